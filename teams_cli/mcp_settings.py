"""How each client is told of our MCP server: the entry in its settings, and the words that bring it along."""

from __future__ import annotations

import json
from importlib.util import find_spec

from teams_cli import hook_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

NAME = "team"
"""What the server is called in the settings of clients; `teams` is what many call that of another product."""
VARIABLES = (
    "TEAMS_AGENT_ID",
    "TEAMS_AGENT_NAME",
    "TEAMS_AGENT_TYPE",
    "TEAMS_TEAM",
    "TEAMS_TOKEN",
    "TEAMS_HOME",
    "TEAMS_STORE",
    "TEAMS_HOST",
    "TEAMS_SHADOW",
    "XDG_CONFIG_HOME",
    "OPENCODE_AGENT_ID",
    "OPENCODE_AGENT_NAME",
    "OPENCODE_AGENT_TYPE",
    "OPENCODE_TEAM_NAME",
)
"""What the server goes by; clients that keep their environment from servers have to be told to hand these on."""
_GEMINI_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
"""What Gemini CLI keeps from servers, and the agents that are spawned through ours need."""
_START_SECONDS = 60
_CALL_SECONDS = 24 * 60 * 60
"""For calls that wait: an end of its own has every one that wants one."""


def is_available() -> bool:
    """Whether what the server needs is installed."""
    try:
        return find_spec("mcp") is not None
    except ImportError:
        return False


def command(python: str) -> list[str]:
    """The words that start the server."""
    return hook_settings.program(python, "mcp")


def is_ours(entry: object) -> bool:
    """Whether that is an entry that we put there, now or in an earlier version."""
    if not isinstance(entry, dict):
        return False
    said = entry.get("command")
    words = [*(said if isinstance(said, list) else [said]), *entry.get("args", [])]
    if not words or not all(isinstance(word, str) for word in words) or words[-1] != "mcp":
        return False
    return (len(words) == 2 and words[0].rpartition("/")[2] == "teams") or any("teams_cli" in word for word in words)


def entry(client: str, words: list[str]) -> dict[str, Any]:
    """The server as it stands in the client's settings."""
    started = {"command": words[0], "args": words[1:]}
    if client == "claude":
        return {**started, "alwaysLoad": True}
    if client == "codex":
        return _codex(words, VARIABLES)
    if client == "opencode":
        return {"type": "local", "command": words, "enabled": True}
    if client == "gemini":
        return {**started, "trust": True, "env": {name: f"${{{name}:-}}" for name in (*VARIABLES, *_GEMINI_KEYS)}}
    return {**started, "trust": True}


def _codex(words: list[str], variables: Iterable[str]) -> dict[str, Any]:
    return {
        "command": words[0],
        "args": words[1:],
        "env_vars": sorted(variables),
        "default_tools_approval_mode": "approve",
        "startup_timeout_sec": _START_SECONDS,
        "tool_timeout_sec": _CALL_SECONDS,
    }


def words(client: str | None, python: str, variables: Iterable[str]) -> list[str]:
    """What the command line of a client needs so that it has our server, whatever the user's files say; *variables*
    are the names of those of its environment.

    Empty for clients that have no such words, and where what the server needs is missing.
    """
    if client not in ("claude", "codex") or not is_available():
        return []
    if client == "claude":
        return ["--mcp-config", json.dumps({"mcpServers": {NAME: entry(client, command(python))}})]
    # Unless it is required, the first request of a short turn goes out before the server has started.
    table = {**_codex(command(python), variables), "required": True}
    return ["-c", f"mcp_servers.{NAME}={inline_table(table)}"]


def inline_table(document: dict[str, Any]) -> str:
    """The document as TOML on one line; its texts as JSON's are TOML's too."""
    return "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in document.items()) + "}"
