"""Answers in words: the function of each command's declaration turns its document into lines."""

from __future__ import annotations

from teams_cli.clock import SystemClock, parse_rfc3339, seconds_since
from teams_cli.commands.declaration import EACH, Command, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from teams_cli.cli.tables import Table

    Parts = list[str | Table]

_OLD = 60
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def parts(command: Command, document: Any, words: str = "") -> Parts:
    """The lines and tables that tell the answer of the command; by other *words* than usual, if given."""
    how = named(place_of((words or command.words).removeprefix(EACH)))
    if words.startswith(EACH):
        return [part for each in document for part in how(each)]
    shown: Parts = how(document)
    return shown


def place_of(words: str) -> str:
    """The function that tells an answer: an extension may have it beside its commands."""
    return words if words.startswith("extensions.") else f"cli.show.{words}"


def present(*lines: str | None) -> Parts:
    """The lines that are there."""
    return [line for line in lines if line]


def ago(at: str | None) -> str:
    """`35 s ago`; a dash for what never was."""
    return "-" if at is None else f"{age(at)} ago"


def is_old(at: str) -> bool:
    """Whether that was long enough ago to be said: something may have been done since that it asks for."""
    return seconds_since(at, SystemClock().now()) >= _OLD


def age(at: str, now: datetime | None = None) -> str:
    """`35 s`, from that moment to now, or to when it was *now*."""
    return length_of(seconds_since(at, now or SystemClock().now()))


def moment(at: str | None) -> str:
    """A time by the clock of this machine: `14:05:09` if it is today's, else with its date; a dash for none."""
    if at is None:
        return "-"
    try:
        then = parse_rfc3339(at).astimezone()
    except (ValueError, OverflowError):
        return at
    today = SystemClock().now().astimezone().date() == then.date()
    return then.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def state(agent: dict[str, Any]) -> str:
    """How a listed agent is, in a word; of one that its provider limits, also until when."""
    said = str(agent.get("trouble") or agent["state"])
    return f"{said} until {moment(agent['limitedUntil'])}" if said == "limited" else said


def left(moment: str) -> str:
    """`4 min left`, until that moment; a second less is no minute less."""
    return f"{length_of(1 - seconds_since(moment, SystemClock().now()))} left"


def length_of(seconds: float) -> str:
    """`5 min`: the largest unit that fits, and how many whole ones of it."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def counts_of(by_status: dict[str, int]) -> str:
    """`2 completed, 1 pending`, of a number of tasks for each status."""
    return ", ".join(f"{count} {status}" for status, count in by_status.items() if count) or "no tasks"
