"""Bringing up the team of a repository, and ending it."""

from __future__ import annotations

import os

from teams_cli.commands.call import Call
from teams_cli.runs import rosters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def up(call: Call, file: str | None) -> Any:
    return rosters.up(call.store, call.caller, _path(call, file), call.config, call.environ, _name(call))


def down(call: Call, file: str | None) -> Any:
    return rosters.down(call.store, call.caller, _path(call, file), call.config, call.environ, _name(call))


def _path(call: Call, file: str | None) -> str:
    from teams_cli.workflows import roster

    return roster.place(call.directory) if file is None else os.path.join(call.directory, file)


def _name(call: Call) -> str:
    """The name that the team is given instead of that of the file."""
    said, source = call.sources.get("team", ("", ""))
    return said if source == "flag" else ""
