"""Deciding when a client is woken for its messages, when again, and when the sender is notified instead."""

from __future__ import annotations

from teams_cli.agents.seats.terminals import TERMINAL, Terminal, Waking
from teams_cli.clients.seats import GONE, IDLE
from teams_cli.clock import seconds_since
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.teams import settings, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

AGAIN = (1, 4, 20)
"""After how many times `wakeAgainAfter` a client is woken again that did not read what it was woken for."""
SOON, SOON_TRIES = 1.0, 10
"""Seconds after which a client that nothing could wake is tried again, and how often: what waits beside it starts anew
with the end of each turn, and may not be there yet.
"""
_REMEMBERED = 500
_HOUR = 3600.0


def is_due(terminal: Terminal, state: str, unread: Sequence[int], now: datetime, again_after: float) -> bool:
    """Whether to wake the client now: it is idle and has mail, which it was not woken for, or long ago.

    Whatever comes while it was woken and has not read is read with the rest: one wake for any number of messages.
    """
    if state != IDLE or not unread:
        return False
    if min(unread) > terminal.woken_to or not terminal.woken_at:
        return True
    if 0 < terminal.unheard < SOON_TRIES:
        return seconds_since(terminal.woken_at, now) >= SOON
    if terminal.wakes > len(AGAIN):
        return False
    return seconds_since(terminal.woken_at, now) >= again_after * AGAIN[max(terminal.wakes, 1) - 1]


def unreached(terminal: Terminal, state: str, unread: Sequence[int], now: datetime, again_after: float) -> list[int]:
    """The messages whose senders are to be told that their recipient is gone, or was woken each time and reads not."""
    untold = [number for number in unread if number > terminal.told_to]
    if state == GONE:
        return untold
    if terminal.wakes <= len(AGAIN) or not terminal.woken_at or seconds_since(terminal.woken_at, now) < again_after:
        return []
    return [number for number in untold if number <= terminal.woken_to]


def again_after(team: Team) -> float:
    """The seconds after which a client that did not read is woken once more."""
    return float(settings.value(team, "wakeAgainAfter"))


def note_waking(
    store: Store, team: str, terminal: Terminal, unread: Sequence[int], senders: Sequence[str]
) -> Terminal | None:
    """Note that the client is woken now, for this mail; None if somebody did so first, or it is idle no more."""
    now = teams.now(store)
    noted = [*terminal.wakings, *(Waking(at=now, by=name) for name in senders)][-_REMEMBERED:]

    def change(found: Terminal) -> Terminal:
        if (found.woken_at, found.wakes, found.state) != (terminal.woken_at, terminal.wakes, terminal.state):
            return found
        fresh = not unread or min(unread) > found.woken_to
        wakes = 1 if fresh else found.wakes + (not 0 < found.unheard < SOON_TRIES)
        woken_to = max(found.woken_to, *unread, 0)
        unheard = 0 if fresh else found.unheard
        return found.having(woken_to=woken_to, woken_at=now, wakes=wakes, unheard=unheard, wakings=noted)

    before, after = update(store, team, TERMINAL.also_closed, terminal.agent, change)
    return None if before is after else after


def note_heard(store: Store, team: str, terminal: Terminal, heard: bool) -> None:
    """Note whether a way to wake the client took the hint."""

    def change(found: Terminal) -> Terminal:
        unheard = 0 if heard else found.unheard + 1
        return found if found.unheard == unheard else found.having(unheard=unheard)

    update(store, team, TERMINAL.also_closed, terminal.agent, change)


def note_told(store: Store, team: str, agent: str, number: int) -> None:
    """Note up to which message the senders were told."""

    def change(found: Terminal) -> Terminal:
        return found if found.told_to >= number else found.having(told_to=number)

    update(store, team, TERMINAL.also_closed, agent, change)


def lately(terminal: Terminal, by: str, now: datetime) -> int:
    """How often messages of *by* woke the client within the last hour."""
    return sum(waking.by == by and seconds_since(waking.at, now) < _HOUR for waking in terminal.wakings)
