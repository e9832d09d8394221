"""Waiting for changes by others: asleep until a watch wakes, or by looking again and again."""

from __future__ import annotations

import time

from teams_cli import errors
from teams_cli.store.contract import EVERY_TOPIC
from teams_cli.store.retrying import meanwhile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeVar

    from teams_cli.store.contract import Store, Watch

    T = TypeVar("T")

_TRIES = 5


def paced(ready: Callable[[], bool]) -> Callable[[], bool]:
    """Return the same question with a pause after each no, twice as long as the answer took. In a team with thousands
    of tasks a look takes long, and something changes all the time.
    """

    def ask() -> bool:
        began = time.monotonic()
        if ready():
            return True
        time.sleep(min(2 * (time.monotonic() - began), 1.0))
        return False

    return ask


def insist(change: Callable[[], T]) -> T:
    """Make the change; repeat it when it did not have its turn.

    Raises:
        Busy: It did not have it several times.
    """
    for _ in range(_TRIES - 1):
        try:
            return change()
        except errors.Busy:
            continue
    return change()


NO_TEAM = 5.0
"""Seconds after which it is looked again for a team that is not there: where it is to be may itself not be there."""
_LOOK_AGAIN = 1.0
_PAST = 0.005
"""Seconds after which what time brings about is so."""
_TO_BE_SURE = 240.0


class Alarm:
    """Further events that end a sleep: a moment, or the end of a process of this machine. They are set again at each
    look.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the moment and the processes that would end the sleep. Only the regular check is left."""
        self.moment = time.monotonic() + _TO_BE_SURE
        self._processes: set[tuple[int, str | None, str | None]] = set()

    def ring_in(self, seconds: float) -> None:
        """End the sleep in so many seconds, if nothing does before."""
        self.moment = min(self.moment, time.monotonic() + max(seconds, 0.0))

    def ring_after(self, seconds: float) -> None:
        """End the sleep when so many seconds are over for certain, so that what they bring about is so."""
        self.ring_in(seconds + _PAST)

    def ring_at_end_of(self, pid: int | None, started: str | None, place: str | None) -> None:
        """End the sleep when the process ends. Ignored if it is over, or can't be known here."""
        from teams_cli.processes import has_ended

        if pid is not None and has_ended(pid, started, place) is False:
            self._processes.add((pid, started, place))

    def rings(self) -> bool:
        """Whether the sleep is over."""
        if time.monotonic() >= self.moment:
            return True
        return bool(self._processes) and self._is_over()

    def _is_over(self) -> bool:
        from teams_cli.processes import has_ended

        return any(has_ended(*process) for process in self._processes)

    def left(self, give_up: float) -> float:
        """Seconds until it has to be looked at again: processes end without a word."""
        left = min(self.moment, give_up) - time.monotonic()
        return min(left, _LOOK_AGAIN) if self._processes else left


def sleep_until(
    store: Store,
    team: str,
    ready: Callable[[], bool],
    timeout: float | None,
    topics: Collection[str] | Callable[[], Collection[str]] | None = None,
    alarm: Alarm | None = None,
    say: Callable[[str], None] | None = None,
) -> bool:
    """Block until *ready* returns something; False after *timeout* seconds (None is never).

    A change in the team, or on one of the *topics*, wakes it. Where time alone may change the answer, as when a lease
    ends, *ready* sets the *alarm*; without an alarm, *ready* is asked every second as well. *say* gets a warning if
    changes are seen late.

    Raises:
        InvalidValue: *timeout* is below zero, or no number.
    """
    if timeout is not None and not timeout >= 0:
        raise errors.InvalidValue(f"can't wait {timeout:g} seconds", "Give a number of seconds from 0.")
    give_up = float("inf") if timeout is None else time.monotonic() + timeout
    clock = alarm or Alarm()
    if _looked(ready, clock, alarm is None):  # to make a look-out takes longer
        return True
    watch, told = store.watch(team, topics() if callable(topics) else topics), False
    try:
        while not _looked(ready, clock, alarm is None):
            if time.monotonic() >= give_up:
                return False
            if say and watch.slow and not told:
                say(f"teams: {watch.slow}")
                told = True
            _sleep(watch, clock, give_up, team)
        return True
    finally:
        watch.close()


def _looked(ready: Callable[[], bool], alarm: Alarm, each_second: bool) -> bool:
    alarm.clear()
    if each_second:
        alarm.ring_in(_LOOK_AGAIN)
    return ready()


def _sleep(watch: Watch, alarm: Alarm, give_up: float, team: str) -> None:
    """Sleep until something may have changed. Changes that *ready* made itself do not count."""
    act = meanwhile.act
    again_at = time.monotonic() + act(team) if act else float("inf")
    while (left := alarm.left(give_up)) > 0 and not alarm.rings():
        if _woken(watch, min(left, max(again_at - time.monotonic(), 0.0))):
            return
        if act and time.monotonic() >= again_at:
            again_at = time.monotonic() + act(team)


def _woken(watch: Watch, seconds: float) -> bool:
    around = meanwhile.around_sleep
    if around is None:
        return watch.wait(seconds)
    around(True)
    try:
        return watch.wait(seconds)
    finally:
        around(False)


_LONGEST = 1.0
_SLOWER = 1.5


class PollingWatch:
    """Looks every *pause* seconds whether the result of *look* has changed, more and more rarely, down to once a
    second.

    Of two changes within *grain* seconds the second may be invisible. So *grain* seconds after each change, and after
    the start, one more change is reported.
    """

    heard = EVERY_TOPIC

    def __init__(self, look: Callable[[], object], pause: float, slow: str = "", grain: float = 0.0) -> None:
        self._look = look
        self._least = self._pause = pause
        self.slow = slow
        self._grain = grain
        self._to_be_sure = float("inf")
        self._note(look())

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        give_up = time.monotonic() + timeout
        while (seen := self._look()) == self._seen:
            now = time.monotonic()
            if now >= self._to_be_sure:
                self._to_be_sure = float("inf")
                return True
            if now >= give_up:
                return False
            time.sleep(min(self._pause, give_up - now))
            self._pause = min(self._pause * _SLOWER, _LONGEST)
        self._note(seen)
        return True

    def _note(self, seen: object) -> None:
        self._seen, self._pause = seen, self._least
        if self._grain:
            self._to_be_sure = time.monotonic() + self._grain

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        return None
