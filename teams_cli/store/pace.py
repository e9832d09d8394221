"""Waiting for changes by other processes. A process sleeps until its watch reports a change, or polls."""

from __future__ import annotations

import time

from teams_cli import errors
from teams_cli.clock import meanwhile
from teams_cli.store.contract import EVERY_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeVar

    from teams_cli.store.contract import Store, Watch

    T = TypeVar("T")

_TRIES = 5


def paced(ready: Callable[[], bool]) -> Callable[[], bool]:
    """Return a function that returns what *ready* returns. Before it returns False, it sleeps twice as long as *ready*
    took, but at most a second.

    In a team with thousands of tasks *ready* takes long, and something changes all the time. The sleep keeps a wait
    from using the processor all the time.
    """

    def ask() -> bool:
        began = time.monotonic()
        if ready():
            return True
        time.sleep(min(2 * (time.monotonic() - began), 1.0))
        return False

    return ask


def insist(change: Callable[[], T]) -> T:
    """Make a change that must not fail because others are busy: call it up to five times while it raises `Busy`."""
    for _ in range(_TRIES - 1):
        try:
            return change()
        except errors.Busy:
            continue
    return change()


NEXT_LOOK_FOR_TEAM = 5.0
"""The seconds after which a wait looks again for a team that does not exist. A watch may miss the team's creation,
because even the directory of all teams may not exist yet.
"""
_LOOK_AGAIN = 1.0
_MARGIN = 0.005
"""The seconds added to a waiting time to be sure that it has passed."""
_LONGEST_SLEEP = 240.0


class Alarm:
    """Ends the sleep in `sleep_until` even without a change in the team: at a certain time, or at the end of a process
    of this machine. The alarm is set again for each sleep: `sleep_until` clears it, then calls *ready*, which sets it.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the time and the processes that were set. If nothing is set afterwards, the alarm rings after four
        minutes.
        """
        self.moment = time.monotonic() + _LONGEST_SLEEP
        self._processes: set[tuple[int, str | None, str | None]] = set()

    def ring_in(self, seconds: float) -> None:
        """Ring after *seconds*, or earlier if an earlier time was set."""
        self.moment = min(self.moment, time.monotonic() + max(seconds, 0.0))

    def ring_after(self, seconds: float) -> None:
        """Ring shortly after *seconds* have passed, so that a lease that ends at that time has certainly ended."""
        self.ring_in(seconds + _MARGIN)

    def ring_at_end_of(self, pid: int | None, started: str | None, scope: str | None) -> None:
        """Ring when the process *pid* ends. *started* and *scope* make sure that it is still this process. Do nothing
        if it has ended already, or if its end can't be noticed from here, as on another machine.
        """
        from teams_cli.processes import has_ended

        if pid is not None and has_ended(pid, started, scope) is False:
            self._processes.add((pid, started, scope))

    def rings(self) -> bool:
        """Whether the time that was set has come, or one of the processes has ended."""
        if time.monotonic() >= self.moment:
            return True
        if not self._processes:
            return False
        from teams_cli.processes import has_ended

        return any(has_ended(*process) for process in self._processes)

    def seconds_left(self, give_up: float) -> float:
        """Return the seconds after which `rings` must be called again, or the seconds until the time *give_up* if these
        are fewer. If the alarm is set for the end of a process, this is at most a second, because no process reports
        its end.
        """
        seconds = min(self.moment, give_up) - time.monotonic()
        return min(seconds, _LOOK_AGAIN) if self._processes else seconds


def sleep_until(
    store: Store,
    team: str,
    ready: Callable[[], bool],
    timeout: float | None,
    topics: Collection[str] | Callable[[], Collection[str]] | None = None,
    alarm: Alarm | None = None,
    say: Callable[[str], None] | None = None,
) -> bool:
    """Block until *ready* returns True, then return True. Return False after *timeout* seconds; if *timeout* is None,
    wait for ever.

    *ready* is called after each change in the team, or only after changes on the *topics*. Its answer may also change
    merely because time passes, as when a lease ends. Then *ready* sets the *alarm* for this time. If there is no alarm,
    *ready* is also called every second. If changes are noticed late, *say* is called with a warning.

    Raises:
        InvalidValue: *timeout* is negative or not a number.
    """
    if timeout is not None and not timeout >= 0:
        raise errors.InvalidValue(f"can't wait {timeout:g} seconds", "Give a number of seconds from 0.")
    give_up = float("inf") if timeout is None else time.monotonic() + timeout
    own_alarm = alarm or Alarm()

    def is_ready() -> bool:
        own_alarm.clear()
        if alarm is None:
            own_alarm.ring_in(_LOOK_AGAIN)
        return ready()

    if is_ready():  # asked before a watch is made, which takes longer
        return True
    topics_now = topics() if callable(topics) else topics
    watch, is_warned = store.watch(team, topics_now), False
    try:
        while not is_ready():  # asked again first: something may have changed before there was a watch
            if time.monotonic() >= give_up:
                return False
            if say and watch.slow and not is_warned:
                say(f"teams: {watch.slow}")
                is_warned = True
            _sleep(watch, own_alarm, give_up, team)
        return True
    finally:
        watch.close()


def _sleep(watch: Watch, alarm: Alarm, give_up: float, team: str) -> None:
    """Sleep until the watch wakes, the alarm rings, or the time *give_up* comes. Before and after each sleep, call the
    functions in `meanwhile`.
    """
    act, around_sleep = meanwhile.act, meanwhile.around_sleep
    # `act` returns the seconds until its next call.
    act_at = time.monotonic() + act(team) if act else float("inf")
    while (seconds := alarm.seconds_left(give_up)) > 0 and not alarm.rings():
        seconds = min(seconds, max(act_at - time.monotonic(), 0.0))
        if around_sleep is None:
            has_changed = watch.wait(seconds)
        else:
            around_sleep(True)
            try:
                has_changed = watch.wait(seconds)
            finally:
                around_sleep(False)
        if has_changed:
            return
        if act and time.monotonic() >= act_at:
            act_at = time.monotonic() + act(team)


_LONGEST_PAUSE = 1.0
_SLOWER = 1.5


class PollingWatch:
    """A watch that calls *look* repeatedly, and reports a change when the result differs from the last one. The pauses
    between the calls are *pause* seconds at first. As long as nothing changes, they grow, up to a second.

    If two changes are less than *grain* seconds apart, the result of *look* may not show the second one. To miss no
    change, the watch reports again when *grain* seconds have passed since a change, or since its start.
    """

    heard = EVERY_TOPIC

    def __init__(self, look: Callable[[], object], pause: float, slow: str = "", grain: float = 0.0) -> None:
        self._look = look
        self._first_pause = self._pause = pause
        self.slow = slow
        self._grain = grain
        self._report_again_at = float("inf")
        self._remember(look())

    def wait(self, timeout: float) -> bool:
        give_up = time.monotonic() + timeout
        while (result := self._look()) == self._last_result:
            now = time.monotonic()
            if now >= self._report_again_at:  # a second change may not have shown in the result
                self._report_again_at = float("inf")
                return True
            if now >= give_up:
                return False
            time.sleep(min(self._pause, give_up - now))
            self._pause = min(self._pause * _SLOWER, _LONGEST_PAUSE)
        self._remember(result)
        return True

    def _remember(self, result: object) -> None:
        self._last_result, self._pause = result, self._first_pause
        if self._grain:
            self._report_again_at = time.monotonic() + self._grain

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        return None
