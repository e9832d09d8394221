"""Landings are tended by those who wait: a lander that was killed is started anew, and pull requests are looked at."""

from __future__ import annotations

import time
from contextlib import suppress

from teams_cli import errors, extensions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from teams_cli.commands.call import Call
    from teams_cli.store.pace import Alarm

_EVERY = 30.0
"""Seconds between two looks at the pull requests."""


def start(call: Call) -> bool:
    """Start the lander, which may have been killed, if landings are open, and return whether they are."""
    with suppress(errors.TeamsError):  # the next look tries again
        from teams_cli.tasks import landings

        lander = extensions.provided("land the queue") if landings.open_ones(call.store, call.team) else None
        if lander:
            lander(call.store, call.team, call.environ)
            return True
    return False


def tending(call: Call) -> Callable[[Alarm], None]:
    """What a wait does before each look: it starts the lander every 30 seconds, while landings are open."""
    due = 0.0

    def tend(alarm: Alarm) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + _EVERY if start(call) else 0.0
        if due:
            alarm.ring_in(due - time.monotonic())

    return tend
