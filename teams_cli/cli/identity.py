"""What flags and environment say of the caller: where the teams are, who it is, in which team. Imports nothing."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_BELOW_CONFIG = "opencode/opencode-teams"

_VARIABLES = {
    "agent": ("TEAMS_AGENT_ID", "OPENCODE_AGENT_ID"),
    "display": ("TEAMS_AGENT_NAME", "OPENCODE_AGENT_NAME"),
    "type": ("TEAMS_AGENT_TYPE", "OPENCODE_AGENT_TYPE"),
    "team": ("TEAMS_TEAM", "OPENCODE_TEAM_NAME"),
    "token": ("TEAMS_TOKEN",),
}


def look_up(what: str, said: str | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """The value of an identity setting and where it comes from: a flag, else the first variable that is set."""
    if said:
        return said, "flag"
    for variable in _VARIABLES[what]:
        if environ.get(variable):
            return environ[variable], variable
    return "", "unset"


def store_address(said: str | None, environ: Mapping[str, str], configured: str | None) -> tuple[str, str]:
    """The address of the store, empty for the files under the root, and what says so: a flag, else the environment,
    else the user's `config.json`.
    """
    if said:
        return said, "flag"
    if environ.get("TEAMS_STORE"):
        return environ["TEAMS_STORE"], "TEAMS_STORE"
    return (configured, "config.json") if configured else ("", "default")


def root_directory(said: str | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """Where the teams are kept, and what says so."""
    if said:
        return said, "flag"
    if environ.get("TEAMS_HOME"):
        return environ["TEAMS_HOME"], "TEAMS_HOME"
    base = environ.get("XDG_CONFIG_HOME", "")
    if base.startswith("/"):  # the specification says to ignore others
        return f"{base}/{DEFAULT_BELOW_CONFIG}", "XDG_CONFIG_HOME"
    return os.path.expanduser(f"~/.config/{DEFAULT_BELOW_CONFIG}"), "default"
