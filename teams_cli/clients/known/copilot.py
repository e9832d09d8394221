"""GitHub Copilot CLI: how it is run, and its plugin."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from teams_cli.clients import own_entries
from teams_cli.clients.contract import COMMON, Client, Dialect, PluginCommands, Seat
from teams_cli.clients.profiles import Versions
from teams_cli.text import safe

_TURN = ("copilot", "--output-format", "json", "--no-ask-user", "{model}", "{permissions}", "{mcp}")


class _TopLevel(Dialect):
    """The dialect of Claude Code with one difference: the text for the model is at the top level of the hook's
    answer.
    """

    def context(self, event: dict[str, Any], text: str) -> dict[str, Any]:
        return {"additionalContext": safe(text)}


class Copilot(Client):
    """GitHub Copilot CLI. It runs the hooks in plugins that are made for Claude Code."""

    profile: Mapping[str, Any] = {
        "name": "copilot",
        "description": "GitHub Copilot CLI, one turn a process.",
        "model": ["--model", "{model}"],
        "start": [*_TURN, "--session-id", "{session_id}"],
        "resume": [*_TURN, "--resume={session_id}"],
        "introduced": True,
        "sessionId": {"from": "preset"},
        "output": {"from": "lines", "match": {"type": "assistant.message"}, "path": "data.content"},
        "failed": {"status": True},
        "interrupt": [["INT", 3], ["TERM", 3], ["KILL", 2]],
        "modes": {
            "ask": "it asks nobody where no person sits in front of it; over ACP it does: --harness copilot-acp",
            "edit": [
                *("--disallow-temp-dir", "--allow-tool", "write"),
                *("--allow-tool", "shell(teams:*)", "--allow-tool", own_entries.NAME),
            ],
            "all": ["--allow-all"],
        },
        "mcp": "copilot",
    }
    dialect = _TopLevel("SessionStart", "UserPromptSubmit", ("PostToolUse",), "Stop", guard=COMMON.guard)
    events = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")
    sitting = ("SessionEnd",)
    seat = Seat("-p --prompt --acp", resume=("--resume={session_id}",), first=("--interactive", "{prompt}"))
    plugin = PluginCommands(
        "copilot",
        "install",
        "uninstall",
        leftovers=("enabledPlugins", "extraKnownMarketplaces"),
        settings=".copilot/settings.json",
    )
    versions = Versions("1.0.102")

    def server_words(self, python: str, variables: Iterable[str]) -> list[str]:
        entry = self.server_entry(self.server_command(python))
        handed_on = {name: f"${{{name}}}" for name in variables}
        server = {"type": "local", **entry, "env": handed_on, "tools": ["*"]}
        return ["--additional-mcp-config", json.dumps({"mcpServers": {own_entries.NAME: server}})]


CLIENT = Copilot()
