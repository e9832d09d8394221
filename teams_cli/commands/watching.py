"""The command that watches a team."""

from __future__ import annotations

import time

from teams_cli import views
from teams_cli.commands.call import Stream
from teams_cli.commands.declaration import Command, switch, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.commands.call import Call

_WATCH = """Watch the team in the terminal: its agents, tasks and newest messages, until interrupted.

Without a terminal, print the present state, then a line for each change. With --json, the whole as one JSON object a
line, each time that anything changed. With --once, how it is now.
"""
_TOGETHER = 0.05
_LOOK_AGAIN = 5.0


def _watch(call: Call, once: bool) -> Any:
    team = call.load_team().name
    if once:
        return views.frame(call.store, team, call.problems)
    return Stream(_frames(call, team), live=True)


def _frames(call: Call, team: str) -> Iterator[dict[str, Any]]:
    """A frame for each time that something changed, with the history's lines of it; the first without."""
    watch = call.store.watch(team)
    try:
        position, _ = _changes(call, team, 0)
        seen = views.frame(call.store, team, [])
        yield seen
        while True:
            watch.wait(_LOOK_AGAIN)
            time.sleep(_TOGETHER)  # changes come in flocks: show them as one
            position, changes = _changes(call, team, position)
            now = views.frame(call.store, team, [])
            if changes or now != seen:
                seen = now
                yield {**now, "changes": changes}
    finally:
        watch.close()


def _changes(call: Call, team: str, position: int) -> tuple[int, list[dict[str, Any]]]:
    """What the history says since that position, and the position behind it."""
    found = []
    for behind, entry in call.store.history(team, position):
        position = behind
        found.append(entry)
    return position, found


COMMANDS = table(
    Command(
        "watch", _watch, switch("--once", "Show how it is now, and end."), doc=_WATCH, changes=False, at_shell=True
    ),
)
