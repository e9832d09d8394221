"""The command with which clients start our MCP server, what they hand on to it, and how it is known again."""

from __future__ import annotations

from teams_cli.clients import hook_settings

NAME = "team"
"""What the server is called in the settings of clients; `teams` is what many call that of another product."""
PROMPT_TOOL = "ask_permission"
"""The tool by which a client has the person asked whether it may use another."""
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
    "TEAMS_PERMISSIONS",
    "XDG_CONFIG_HOME",
    "OPENCODE_AGENT_ID",
    "OPENCODE_AGENT_NAME",
    "OPENCODE_AGENT_TYPE",
    "OPENCODE_TEAM_NAME",
    "JANUS_AGENT_NAME",
)
"""What the server goes by; clients that keep their environment from servers have to be told to hand these on."""


def is_available() -> bool:
    """Whether what the server needs is installed."""
    from importlib.util import find_spec

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
    said, more = entry.get("command"), entry.get("args", [])
    words = [*(said if isinstance(said, list) else [said]), *(more if isinstance(more, list) else [more])]
    if not words or not all(isinstance(word, str) for word in words) or words[-1] != "mcp":
        return False
    return (len(words) == 2 and words[0].rpartition("/")[2] == "teams") or any("teams_cli" in word for word in words)
