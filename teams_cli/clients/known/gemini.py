"""Gemini CLI: how it is run, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from teams_cli.clients.contract import Client, Dialect, Home, Seat, SettingsPlace, ToolGuard
from teams_cli.clients.known import DIRECTORY
from teams_cli.clients.own_entries import VARIABLES
from teams_cli.clients.profiles import Versions
from teams_cli.clients.seats import IDLE, PERMISSION, WORKING
from teams_cli.clients.settings_files import Settings, write_settings_once

_TURN = ("gemini", "-o", "json", "{model}")
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
"""Variables that Gemini CLI does not pass to servers, although agents that our server starts need them."""


class Gemini(Client):
    """Gemini CLI. It has its own names for hook events."""

    profile: Mapping[str, Any] = {
        "name": "gemini",
        "description": "Gemini CLI, one turn a process.",
        "model": ["--model", "{model}"],
        "start": [*_TURN, "{permissions}", "--skip-trust", "--session-id", "{session_id}"],
        "resume": [*_TURN, "{permissions}", "--skip-trust", "-r", "{session_id}"],
        "fork": [
            *_TURN,
            "--skip-trust",
            "--policy",
            "{profiles}/gemini-no-tools.toml",
            "--session-file",
            "{session_file}",
        ],
        "sessionFile": "{HOME}/.gemini/tmp/*/chats/session-*-{session_id:.8}.jsonl",
        "introduced": True,
        "sessionId": {"from": "preset"},
        "output": {"from": "json", "path": "response"},
        "usage": {
            "from": "json",
            "each": "stats.models",
            "input": ["tokens.prompt", "tokens.tool"],
            "cached": ["tokens.cached"],
            "output": ["tokens.candidates", "tokens.thoughts"],
        },
        "failed": {"status": True},
        "interrupt": [["INT", 3], ["TERM", 3], ["KILL", 2]],
        "modes": {
            "ask": "it asks nobody where no person sits in front of it; over ACP it does: --harness gemini-acp",
            "edit": ["--approval-mode", "auto_edit", "--policy", f"{DIRECTORY}/gemini-edit.toml"],
            "all": ["--approval-mode", "yolo"],
        },
        "hooks": "gemini",
        "once": "gemini",
        "set": {"GEMINI_CLI_NO_RELAUNCH": "true"},
    }
    # SessionStart gets no answer: it would stand before the prompt, and when resumed, Gemini CLI forgets such turns.
    dialect = Dialect(
        "BeforeAgent",
        "BeforeAgent",
        ("AfterTool",),
        "AfterAgent",
        block="deny",
        joins=True,
        guard=ToolGuard("BeforeTool", ("write_file", "replace"), ("run_shell_command",), tells=False),
    )
    events = ("BeforeAgent", "AfterTool", "AfterAgent")
    sitting = ("SessionStart", "Notification", "SessionEnd")
    seat = Seat(
        "-p --prompt --acp --experimental-acp",
        resume=("--resume", "{session_id}"),
        first=("--prompt-interactive", "{prompt}"),
        titles={"\u25c7": IDLE, "\u2726": WORKING, "\u270b": PERMISSION},
        set={"GEMINI_CLI_NO_RELAUNCH": "true"},
    )
    hook_timeout = 30_000
    home = Home(
        "",
        ".gemini",
        SettingsPlace(
            ".gemini/settings.json", "settings.json", Settings(hooks=True, servers="mcpServers", comments=True)
        ),
    )

    versions = Versions("0.61.0")

    def server_entry(self, words: list[str]) -> dict[str, Any]:
        handed_on = {name: f"${{{name}:-}}" for name in (*VARIABLES, *_KEYS)}
        return {**super().server_entry(words), "trust": True, "env": handed_on}

    def once(self, python: str, directory: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        path = write_settings_once(f"{directory}/gemini.json", self.settings_once(python))
        return [], {"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": path}


CLIENT = Gemini()
