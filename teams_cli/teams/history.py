"""The history of a team: a note of each change and of who made it. Notes are written after the changes, so a killed
process may leave one out. Notes affect what agents are shown, but never which changes are allowed.
"""

from __future__ import annotations

from teams_cli import errors, extensions
from teams_cli.clock import parse_rfc3339, seconds_in
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from typing import Any


def note(store: Store, team: str, actor: str, what: str, **details: Any) -> None:
    """Note a change in the history after it was made, and call the functions of extensions that act after such a
    change. *what* is the operation in the past tense, such as "task created". Errors are ignored, because the change
    has already been made. If an extension fails, this is noted.
    """
    details = {key: value for key, value in details.items() if value not in (None, "", [])}
    try:
        entry = {"at": teams.now(store), "actor": actor, "what": what, **details}
        store.journal(team, entry)
        for extension, act in extensions.after(what):
            try:
                act(store, team, entry)
            except Exception as failure:  # whatever it is: the change was acknowledged
                cause = {"extension": extension, "after": what, "error": f"{type(failure).__name__}: {failure}"}
                store.journal(team, {"at": teams.now(store), "actor": SYSTEM, "what": "extension failed", **cause})
    except errors.TeamsError:  # the time is that of a server, which went away
        return


_MANY_OLDER, _FEW_OLDER = 100, 10
"""A search back in time ends after this many older changes in a row."""


def since(store: Store, team: str, moment: datetime | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the changes made at *moment* or later, oldest first, each with its position."""
    for position, entry in store.history(team):
        if moment is None or is_since(entry, moment):
            yield position, entry


def later(store: Store, team: str, time: str) -> Iterator[dict[str, Any]]:
    """Yield the changes after that *time*, newest first. The search ends after a few older changes in a row."""
    for _, entry in _newest_first(store, team, lambda entry: str(entry.get("at", "")) > time, _FEW_OLDER):
        yield entry


def newest(store: Store, team: str, moment: datetime | None, limit: int | None) -> list[tuple[int, dict[str, Any]]]:
    """Return the newest changes, sorted from old to new, each with its position. *limit* is the most changes to return,
    and *moment* the earliest time of a change; None sets no limit. The history is read backwards, and only as far as
    needed.
    """
    if moment is None and limit is None:
        return list(store.history(team))

    def is_wanted(entry: dict[str, Any]) -> bool:
        return moment is None or is_since(entry, moment)

    newest_first: list[tuple[int, dict[str, Any]]] = []
    for change in _newest_first(store, team, is_wanted, _MANY_OLDER):
        newest_first.append(change)
        if len(newest_first) == limit:
            break
    return newest_first[::-1]


def _newest_first(
    store: Store, team: str, is_wanted: Callable[[dict[str, Any]], bool], most_unwanted: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the wanted changes with their positions, newest first, until *most_unwanted* in a row are not wanted
    because they are older. A few older ones do not end the search: a machine whose clock is slow may have written them
    among newer ones.
    """
    unwanted_in_a_row = 0
    for position, entry in store.history(team, backwards=True):
        if is_wanted(entry):
            unwanted_in_a_row = 0
            yield position, entry
            continue
        unwanted_in_a_row += 1
        if unwanted_in_a_row == most_unwanted:
            return


def moment(text: str, now: datetime) -> datetime:
    """Return the moment that *text* means: a time, `today`, or how long before *now*, such as `2h`. A time without an
    offset is in this machine's time zone.

    Raises:
        InvalidValue: *text* is none of these.
    """
    from datetime import datetime, timedelta

    number, unit = text[:-1], text[-1:]
    try:
        if unit in ("s", "m", "h", "d") and number.isascii() and number.isdigit() and len(number) < 10:
            return now - timedelta(seconds=seconds_in(text))
        date_or_time = f"{now.astimezone():%Y-%m-%d}" if text == "today" else text
        time = datetime.fromisoformat(date_or_time)
        return time if time.tzinfo else time.astimezone()
    except (ValueError, OverflowError):
        raise errors.InvalidValue(
            f"{text!r} is not a valid time", "Write 2026-01-25T23:00:00Z, 2026-01-25, today, or 90s, 10m, 2h, 1d."
        ) from None


def is_since(entry: dict[str, Any], moment: datetime) -> bool:
    """Whether the change *entry* was made at *moment* or later. A change whose time can't be read counts as older."""
    try:
        return parse_rfc3339(str(entry.get("at"))) >= moment
    except ValueError:
        return False


def line(entry: dict[str, Any]) -> str:
    """Return the entry in words: `bob: task claimed task-1`."""
    hidden_keys = ("at", "actor", "what", "title", "claim")
    details = [_in_words(key, value) for key, value in entry.items() if key not in hidden_keys]
    what = str(entry.get("what")).replace("task kept for ", "task assigned to ")  # older versions wrote `kept`
    return f"{entry.get('actor')}: {what} {' '.join(details)}".rstrip()


def _in_words(key: str, value: Any) -> str:
    """Return the *value* that a history entry has under *key*, as words."""
    if value is True:
        return key
    if key == "to":
        return f"to {', '.join(value) if isinstance(value, list) else value}"
    if key == "commit":
        return f"on {str(value)[:10]}"
    if key == "status" and isinstance(value, int):
        return f"exit status {value}"
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    return str(value)


def closed_by(store: Store, team: str) -> str | None:
    """Return who last closed the team; None if the history does not say so."""
    entries = store.history(team, backwards=True)
    return next((entry.get("actor") for _, entry in entries if entry.get("what") == "team closed"), None)


def of_closed(store: Store, team: str, tasks_in_brackets: str = "") -> errors.WrongState:
    """Return the error for a change in a closed team. It says who closed the team, and ends with *tasks_in_brackets*:
    how many tasks were completed, such as ` (3 of 4 tasks completed)`, or an empty text.
    """
    closer = closed_by(store, team)
    by = f", by {closer}" if closer else ""
    return errors.WrongState(
        f"team {team} is closed{by}{tasks_in_brackets}",
        f"You are done. Only if it must go on (leader or human): teams restore-team {team}",
    )
