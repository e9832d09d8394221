"""Running a command of the caller's for what happens in a team, as long as it is watched."""

from __future__ import annotations

import time

from teams_cli.agents import notifying
from teams_cli.commands.answers import Stream
from teams_cli.commands.call import Call
from teams_cli.store import pace
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_REST = 0.2
"""Seconds for more to happen, which is told with the first."""


def on(call: Call, event: str, command: str | None, once: bool) -> Any:
    """Tell what happens from now on, and run the command for it."""
    return Stream(_told(call, notifying.EVENTS if event == "any" else (event,), command, once))


def _told(call: Call, wanted: tuple[str, ...], command: str | None, once: bool) -> Iterator[dict[str, Any]]:
    known = _now(call, wanted)
    while True:
        pace.sleep_until(call.store, call.team, lambda: not set(_now(call, wanted)).issubset(known), None)  # noqa: B023
        time.sleep(_REST)
        found = _now(call, wanted)
        news = [event for word, event in found.items() if word not in known]
        known = found
        if not news:
            continue
        given = notifying.document(call.team, news, teams.now(call.store))
        problem = notifying.run(command, given, call.environ) if command else ""
        if problem:
            call.say(f"teams: the command failed: {problem}")
        yield {**given, **({"failure": problem} if problem else {})}
        if once:
            return


def _now(call: Call, wanted: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    found = notifying.so_now(call.store, call.load_team())
    return {word: event for word, event in found.items() if event["event"] in wanted}
