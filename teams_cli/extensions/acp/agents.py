"""The clients that speak the Agent Client Protocol: the command that starts each client, and its peculiarities."""

from __future__ import annotations

import json
import os
import sys

from teams_cli.clients import known, own_entries
from teams_cli.clients.contract import Client
from teams_cli.clients.known.opencode import EDIT
from teams_cli.clients.settings_files import write_settings_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_TURN = own_entries.of_module(sys.executable, "teams_cli.extensions.acp.turn")
_SERVER = "--server"
"""The option with which the program `turn` offers our MCP server to the client. It is for clients that have no other
way to find the server.
"""
_PROFILE: dict[str, Any] = {
    "input": "prompt",
    "introduced": True,
    "sessionId": {"from": "lines", "match": {"type": "session"}, "path": "sessionId"},
    "output": {"from": "lines", "match": {"type": "text"}, "path": "text"},
    "failed": {"status": True, "lines": {"type": "error"}},
    "interrupt": [["INT", 5], ["TERM", 3], ["KILL", 2]],
    "modes": {"ask": [], "edit": [], "all": []},
}
_USAGE = {"from": "lines", "match": {"type": "usage"}, "input": ["input"], "cached": ["cached"], "output": ["output"]}
_OPENCODE_ASKS = {
    **dict.fromkeys(EDIT, "ask"),
    "bash": {"*": "ask", "teams": "allow", "teams *": "allow"},
}


class Speaker(Client):
    """A client that speaks the Agent Client Protocol. The program `turn` runs the client, with these *options*. *keys*
    are added to the client's profile.
    """

    def __init__(self, name: str, description: str, *options: str, **keys: Any) -> None:
        turn = [*_TURN, *options]
        commands = {"start": [*turn, "--", "{acp}"], "resume": [*turn, "--session", "{session_id}", "--", "{acp}"]}
        self.profile = {"name": name, "description": description, **_PROFILE, **commands, **keys}


def _with_model(program: str) -> dict[str, Any]:
    """Return keys for a client whose *program* has an option for the model, and reports the tokens that it used."""
    return {"acp": [program, "--acp", "{model}"], "model": ["--model", "{model}"], "usage": _USAGE}


ANY = Speaker("acp", "Any client that speaks the Agent Client Protocol: --acp-command says which.", _SERVER)
COPILOT = Speaker(
    "copilot-acp",
    "GitHub Copilot CLI, over the Agent Client Protocol.",
    "--gives-up",
    acp=["copilot", "--acp", "{mcp}"],  # it refuses MCP servers that the protocol announces
    mcp="copilot",
)
GEMINI = Speaker(
    "gemini-acp",
    "Gemini CLI, over the Agent Client Protocol.",
    *("--titles", "--forgets", os.path.expanduser("~/.gemini/tmp/*/chats/session-%Y-%m-%dT%H-%M-{session:.8}.jsonl")),
    once="gemini",
    **_with_model("gemini"),
    set={"GEMINI_CLI_NO_RELAUNCH": "true"},
)
OPENCODE = Speaker(
    "opencode-acp",
    "OpenCode, over the Agent Client Protocol.",
    acp=["opencode", "acp"],
    once="opencode",
    modes={
        "ask": {"set": {"OPENCODE_PERMISSION": json.dumps(_OPENCODE_ASKS)}},
        "edit": {"set": {"OPENCODE_PERMISSION": json.dumps(EDIT)}},
        "all": {"set": {"OPENCODE_PERMISSION": json.dumps({"*": "allow"})}},
    },
)


class _Qwen(Speaker):
    """Qwen Code, with settings that stop it from asking its model after each turn what the user might say next."""

    def once(self, python: str, directory: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        settings = known.get("qwen").settings_once(python) | {"ui": {"enableFollowupSuggestions": False}}
        return [], {"QWEN_CODE_SYSTEM_DEFAULTS_PATH": write_settings_once(f"{directory}/qwen-acp.json", settings)}


QWEN = _Qwen(
    "qwen-acp",
    "Qwen Code, over the Agent Client Protocol.",
    once="qwen-acp",
    **_with_model("qwen"),
)
