"""Parts of answers in words: tables, times, states, counts."""

from __future__ import annotations

from teams_cli.clock import SystemClock, parse_rfc3339, seconds_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    Parts = list["str | Table"]

_OLD = 60
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


class Table:
    """Rows under headings. On a terminal they are drawn as a table, and in plain text as aligned columns. *empty* is
    shown if there are no rows.
    """

    def __init__(self, columns: list[str], rows: list[list[str]], empty: str = "") -> None:
        self.columns = columns
        self.rows = rows
        self.empty = empty


def present(*lines: str | None) -> Parts:
    """Return the lines that are neither None nor empty."""
    return [line for line in lines if line]


def ago(at: str | None) -> str:
    """Return how long ago the time *at* was, such as `35 s ago`; a dash if *at* is None."""
    return "-" if at is None else f"{age(at)} ago"


def is_old(at: str) -> bool:
    """Return whether the time is old enough that its age is worth showing."""
    return seconds_since(at, SystemClock().now()) >= _OLD


def age(at: str, now: datetime | None = None) -> str:
    """Return the length of time from *at* until *now*, such as `35 s`. If *now* is None, it is the present time."""
    return length_of(seconds_since(at, now or SystemClock().now()))


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


def agent_state(agent: dict[str, Any]) -> str:
    """Return the state, or the trouble, of an agent in a list. For an agent that its provider limits, the end of the
    limit is added. For an idle agent that may have ended its work, the result says this instead.
    """
    state = str(agent.get("trouble") or agent["state"])
    if state == "idle" and agent.get("mayHaveEnded"):
        return "may have ended"
    return f"{state} until {clock_time(agent['limitedUntil'])}" if state == "limited" else state


def time_left(moment: str) -> str:
    """Return the time that is left until the *moment*, such as `4 min left`. A part of a second counts as a second."""
    return f"{length_of(1 - seconds_since(moment, SystemClock().now()))} left"


def length_of(seconds: float) -> str:
    """Return *seconds* as a whole number of the largest unit that fits, from days to seconds, such as `5 min`."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def counts_of(by_status: dict[str, int]) -> str:
    """Return in words how many tasks have each status: `2 completed, 1 pending`."""
    return ", ".join(f"{count} {status}" for status, count in by_status.items() if count) or "no tasks"
