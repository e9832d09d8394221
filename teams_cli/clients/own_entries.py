"""The entries of teams in the settings of clients: its hooks and its MCP server, and how they are recognised."""

from __future__ import annotations

import os

WAIT = "--wait"
"""What makes a hook of a client in a terminal one that waits beside it for mail."""
ASK = "--ask"
"""What makes a hook one that asks the person whether a tool may be used."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program(python: str, *words: str) -> list[str]:
    """The words that run one of our commands, in the fastest way: `-m` and most console scripts take half as long
    again.
    """
    return [*of_module(python, "teams_cli.__main__"), *words]


def of_module(python: str, module: str) -> list[str]:
    """The words that run `main` of one of our modules.

    `-P` keeps the directory that the client works in from being imported from.
    """
    installed = os.path.basename(_PACKAGE) in ("site-packages", "dist-packages")
    where = "" if installed else f"import sys; sys.path.append({_PACKAGE!r}); "
    return [python, "-P", "-c", f"{where}from {module} import main; main()"]


def hook_command(python: str, client: str) -> str:
    """The shell command that answers the client's hooks."""
    import shlex  # and with it `re`: most that know of these settings write none

    return shlex.join(program(python, "hook", client))


def is_our_hook(shell_command: object) -> bool:
    """Whether that is a command that we put there, now or in an earlier version."""
    if not isinstance(shell_command, str):
        return False
    words = shell_command.removesuffix(f" {WAIT}").split()
    ours = words[0].rpartition("/")[2] == "teams" if words else False
    return len(words) >= 3 and words[-2] == "hook" and words[-1].isalnum() and (ours or "teams_cli" in shell_command)


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


def is_server_available() -> bool:
    """Whether what the server needs is installed."""
    from importlib.util import find_spec

    try:
        return find_spec("mcp") is not None
    except ImportError:
        return False


def server_command(python: str) -> list[str]:
    """The words that start the server."""
    return program(python, "mcp")


def is_our_server(entry: object) -> bool:
    """Whether that is an entry that we put there, now or in an earlier version."""
    if not isinstance(entry, dict):
        return False
    said, more = entry.get("command"), entry.get("args", [])
    words = [*(said if isinstance(said, list) else [said]), *(more if isinstance(more, list) else [more])]
    if not words or not all(isinstance(word, str) for word in words) or words[-1] != "mcp":
        return False
    return (len(words) == 2 and words[0].rpartition("/")[2] == "teams") or any("teams_cli" in word for word in words)
