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
    """Rows under headings; in plain text aligned columns, on a terminal a table."""

    def __init__(self, columns: list[str], rows: list[list[str]], empty: str = "") -> None:
        self.columns = columns
        self.rows = rows
        self.empty = empty


def present(*lines: str | None) -> Parts:
    """Return the lines that are neither None nor empty."""
    return [line for line in lines if line]


def ago(at: str | None) -> str:
    """Return how long ago the time was: `35 s ago`; a dash for None."""
    return "-" if at is None else f"{age(at)} ago"


def is_old(at: str) -> bool:
    """Whether the time is so long ago that its age is worth showing."""
    return seconds_since(at, SystemClock().now()) >= _OLD


def age(at: str, now: datetime | None = None) -> str:
    """Return how long the time is ago, or was ago at *now*: `35 s`."""
    return length_of(seconds_since(at, now or SystemClock().now()))


def clock_time(at: str | None) -> str:
    """Return the time by the clock of this machine: `14:05:09` if it is today's, else with its date; `-` for None."""
    if at is None:
        return "-"
    try:
        then = parse_rfc3339(at).astimezone()
    except (ValueError, OverflowError):
        return at
    today = SystemClock().now().astimezone().date() == then.date()
    return then.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def agent_state(agent: dict[str, Any]) -> str:
    """Return the state of a listed agent; if its provider limits it, also until when."""
    state = str(agent.get("trouble") or agent["state"])
    return f"{state} until {clock_time(agent['limitedUntil'])}" if state == "limited" else state


def time_left(moment: str) -> str:
    """Return the time that is left until the moment, rounded up to a second: `4 min left`."""
    return f"{length_of(1 - seconds_since(moment, SystemClock().now()))} left"


def length_of(seconds: float) -> str:
    """Return the time in the largest unit of which it has at least one: `5 min`."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def counts_of(by_status: dict[str, int]) -> str:
    """Return the number of tasks for each status in words: `2 completed, 1 pending`."""
    return ", ".join(f"{count} {status}" for status, count in by_status.items() if count) or "no tasks"
