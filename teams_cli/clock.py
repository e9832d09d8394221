"""Time: the wall clock for people, and a steady clock for leases. The steady clock shows a restart of the machine, and
cannot be set back. Also times and durations in words, and the functions that are called before and after the sleeps of
a command.
"""

from __future__ import annotations

import os
import time
from _thread import _local  # `threading.local`, without the import of that

from teams_cli import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import UTC, datetime, timedelta
    from typing import Protocol

    class Clock(Protocol):
        """The clock from which a store reads the time."""

        def now(self) -> datetime: ...

        def steady(self) -> tuple[str, float]: ...

else:
    try:  # the part in C: in Python 3.11 `datetime` takes 2 ms longer, since it loads its version in Python first
        from _datetime import datetime, timedelta, timezone

        UTC = timezone.utc
    except ImportError:
        from datetime import UTC, datetime, timedelta


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC, with its time zone."""
        return datetime.now(UTC)

    def steady(self) -> tuple[str, float]:
        """Return the boot id, which is called the epoch, and the seconds of CLOCK_BOOTTIME, which also counts while the
        machine sleeps.

        A different epoch means that the machine was restarted, so all processes of the earlier epoch have ended.
        """
        return boot_id(), time.clock_gettime(_STEADY)


_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_boot_id = ""


def boot_id() -> str:
    """Return a text that differs for each start of the machine; `unknown` if the system has none.

    Raises:
        StorageFailed: The id can't be read just now. With a made-up id, all leases would count as expired, and all
            processes as ended.
    """
    global _boot_id
    if not _boot_id:
        try:
            with open("/proc/sys/kernel/random/boot_id", "rb") as file:
                _boot_id = file.read().decode().strip()
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            _boot_id = "unknown"
        except OSError as error:
            raise errors.StorageFailed(f"{error.filename} can't be read: {error.strerror}", "Try again.") from error
    return _boot_id


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_in(duration: str) -> float:
    """Return the seconds of a duration: a number of seconds, or a number with a unit: `90s`, `5m`, `2h`, `1d`.

    Raises:
        ValueError: *duration* is neither a number nor a number with one of these units.
    """
    unit = _UNITS.get(duration[-1:])
    return float(duration) if unit is None else float(duration[:-1]) * unit


def length(seconds: float) -> str:
    """Return a duration in words: `40 s`, `12 min`, `3 h`, `2 days`. A duration of less than a second has a fraction:
    `0.3 s`.
    """
    if 0 < seconds < 1:
        return f"{seconds:.1g} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 1.5 * 86400:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} days"


_SHORT_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def short_length(seconds: float) -> str:
    """Return a duration as a whole number of the largest unit that fits, rounded down, such as `5 min`."""
    for size, unit in _SHORT_UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def rfc3339(moment: datetime) -> str:
    """Return the time in the form in which times are stored: RFC 3339, in UTC, with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_of_day(timestamp: str) -> str:
    """Return HH:MM:SS (UTC) of a stored time."""
    return timestamp[11:19]


def parse_rfc3339(text: str) -> datetime:
    """Return the time that *text* gives in the form of RFC 3339, with an offset.

    Raises:
        ValueError: *text* does not have this form.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset")
    return moment


def of_epoch(seconds: float) -> datetime:
    """Return the time that is *seconds* seconds after the beginning of 1970, as a UTC time with its time zone."""
    return datetime.fromtimestamp(seconds, UTC)


def later(moment: datetime, seconds: float) -> datetime:
    """Return the time that is *seconds* seconds after *moment*."""
    return moment + timedelta(seconds=seconds)


def seconds_since(text: str, now: datetime) -> float:
    """Return the seconds from the time *text* to *now*; negative if *text* is later."""
    return (now - parse_rfc3339(text)).total_seconds()


_OLD = 60
"""The seconds after which the age of something is worth showing."""


def ago(at: str | None) -> str:
    """Return how long ago the time *at* was, such as `35 s ago`; a dash if *at* is None."""
    return "-" if at is None else f"{age(at)} ago"


def is_old(at: str) -> bool:
    """Return whether the time is old enough that its age is worth showing."""
    return seconds_since(at, SystemClock().now()) >= _OLD


def age(at: str, now: datetime | None = None) -> str:
    """Return the time from *at* until *now*, such as `35 s`. If *now* is None, it is the present time."""
    return short_length(seconds_since(at, now or SystemClock().now()))


def clock_time(at: str | None) -> str:
    """Return the time *at* by the clock of this machine, such as `14:05:09`, or a dash if *at* is None. If it was not
    today, the date comes first.
    """
    if at is None:
        return "-"
    try:
        then = parse_rfc3339(at).astimezone()
    except (ValueError, OverflowError):  # somebody edited it by hand
        return at
    today = SystemClock().now().astimezone().date() == then.date()
    return then.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def time_left(moment: str) -> str:
    """Return the time that is left until the *moment*, such as `4 min left`. A part of a second counts as a second."""
    return f"{short_length(1 - seconds_since(moment, SystemClock().now()))} left"


def jitter(seconds: float) -> float:
    """Return a random time of up to *seconds*. Processes that collided wait for different times, so that they do not
    collide again.
    """
    return seconds * os.urandom(1)[0] / 255


class _Meanwhile(_local):
    """The functions that are called before and after the sleeps of this thread."""

    act: Callable[[str], float] | None = None
    """Called with the name of the team before each sleep. Returns the seconds after which it must be called again."""
    around_sleep: Callable[[bool], None] | None = None
    """Called with True before each sleep, and with False after it. Nothing is written during a sleep, so between the
    two calls a signal may raise `Ended`.
    """


class Ended(BaseException):
    """A signal asked the waiting command to end. *state* says how the work stands, and *hint* how to continue."""

    state = ""
    hint = "Wait longer, or look: teams brief"


meanwhile = _Meanwhile()
