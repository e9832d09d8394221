"""Qwen Code: how it is run, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from teams_cli.clients.contract import Client, Dialect, Home, PluginCommands, Seat, SettingsPlace, Socket, ToolGuard
from teams_cli.clients.profiles import Versions
from teams_cli.clients.seats import SOCKET
from teams_cli.clients.settings_files import Settings, write_settings_once

_TURN = ("qwen", "-o", "json", "{model}")


class Qwen(Client):
    """Qwen Code. It calls hooks with the same events and answers as Claude Code."""

    profile: Mapping[str, Any] = {
        "name": "qwen",
        "description": "Qwen Code, one turn a process; its copies need version 0.24.",
        "model": ["--model", "{model}"],
        "start": [*_TURN, "{permissions}", "--session-id", "{session_id}"],
        "resume": [*_TURN, "{permissions}", "-r", "{session_id}"],
        "fork": [*_TURN, "-r", "{session_id}", "--fork-session", "--core-tools", "none", "--max-tool-calls", "0"],
        "introduced": True,
        "sessionId": {"from": "preset"},
        "output": {"from": "items", "match": {"type": "result"}, "path": "result"},
        "usage": {
            "from": "items",
            "match": {"type": "result"},
            "each": "stats.models",
            "input": ["tokens.prompt"],
            "cached": ["tokens.cached"],
            "output": ["tokens.candidates"],
            "grows": True,
        },
        "failed": {"status": True, "items": {"is_error": True}},
        "interrupt": [["INT", 3], ["TERM", 3], ["KILL", 2]],
        "modes": {
            "ask": "it asks nobody where no person sits in front of it; over ACP it does: --harness qwen-acp",
            "edit": ["--approval-mode", "auto-edit", "--allowed-tools", "run_shell_command(teams)"],
            "all": ["--approval-mode", "yolo"],
        },
        "hooks": "qwen",
        "once": "qwen",
    }
    dialect = Dialect(
        "SessionStart",
        "UserPromptSubmit",
        ("PostToolUse",),
        "Stop",
        joins=True,
        guard=ToolGuard("PreToolUse", ("write_file", "edit", "replace"), ("run_shell_command",)),
    )
    events = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")
    sitting = ("PermissionRequest", "Notification", "SessionEnd")
    seat = Seat(
        "-p --prompt --acp --experimental-acp",
        (SOCKET,),
        resume=("--resume", "{session_id}"),
        first=("--prompt-interactive", "{prompt}"),
        socket=Socket("QWEN_CODE_MESSAGING_SOCKET", "QWEN_CODE_MESSAGING_TOKEN", framed=True),
        begins_silently=True,
    )
    home = Home(
        "",
        ".qwen",
        SettingsPlace(
            ".qwen/settings.json", "settings.json", Settings(hooks=True, servers="mcpServers", comments=True)
        ),
    )

    plugin = PluginCommands("qwen", "install", "uninstall", leftovers=("$version",), noun="extensions")
    versions = Versions("0.24.4")

    def server_entry(self, words: list[str]) -> dict[str, Any]:
        return {**super().server_entry(words), "trust": True}

    def once(self, python: str, directory: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        path = write_settings_once(f"{directory}/qwen.json", self.settings_once(python))
        return [], {"QWEN_CODE_SYSTEM_DEFAULTS_PATH": path}


CLIENT = Qwen()
