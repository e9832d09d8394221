"""Our entries in the settings of clients, which are hooks and the MCP server, and how we recognise these entries."""

from __future__ import annotations

import os

WAIT = "--wait"
"""The argument of a hook that waits for mail in the background of a client in a terminal."""
HOLD = "--hold"
"""The argument of a hook that may delay the end of a turn for a quarter of an hour; the client waits that long."""
ASK = "--ask"
"""The argument of a hook that asks the human whether a tool may be used."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program(python: str, *words: str) -> list[str]:
    """Return the command line that starts a command of ours fastest. `python -m` and most console scripts take 1.5
    times as long to start.
    """
    return [*of_module(python, "teams_cli.__main__"), *words]


def of_module(python: str, module: str) -> list[str]:
    """Return the command line that runs the function `main` of one of our modules. Its option `-P` keeps Python from
    importing files of the directory in which the client works.
    """
    is_installed = os.path.basename(_PACKAGE_PARENT) in ("site-packages", "dist-packages")
    making_it_importable = "" if is_installed else f"import sys; sys.path.append({_PACKAGE_PARENT!r}); "
    return [python, "-P", "-c", f"{making_it_importable}from {module} import main; main()"]


def is_our_hook(shell_command: object) -> bool:
    """Whether the shell command is a hook that this version or an earlier one installed."""
    if not isinstance(shell_command, str):
        return False
    words = shell_command.removesuffix(f" {WAIT}").removesuffix(f" {HOLD}").split()
    if len(words) < 3 or words[-2] != "hook" or not words[-1].isalnum():  # such as `teams hook claude`
        return False
    return words[0].rpartition("/")[2] == "teams" or "teams_cli" in shell_command


NAME = "team"
"""The name of our server in the settings of clients; not `teams`, which another product often uses."""
PROMPT_TOOL = "ask_permission"
"""The tool by which a client asks the human whether it may use another tool."""
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
"""The variables that our server reads. A client that does not pass on all variables must pass on these."""


def is_server_available() -> bool:
    """Whether the packages that our MCP server needs are installed."""
    from importlib.util import find_spec

    try:
        return find_spec("mcp") is not None
    except ImportError:
        return False


def is_our_server(entry: object) -> bool:
    """Whether the entry is an MCP server that this version or an earlier one installed."""
    if not isinstance(entry, dict):
        return False
    words: list[Any] = []
    for part in (entry.get("command"), entry.get("args", [])):  # each may be a list or a single word
        words += part if isinstance(part, list) else [part]
    if not all(isinstance(word, str) for word in words) or words[-1:] != ["mcp"]:
        return False
    is_teams_mcp = len(words) == 2 and words[0].rpartition("/")[2] == "teams"
    return is_teams_mcp or any("teams_cli" in word for word in words)
