"""The history of a team: notes of each change with its actor. It is derived from the changes and never decides
anything.
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
    """Note a change after it was made, and call the functions of extensions that act after it; errors are ignored.
    *what* is the operation in the past tense.
    """
    given = {key: value for key, value in details.items() if value not in (None, "", [])}
    try:
        entry = {"at": teams.now(store), "actor": actor, "what": what, **given}
        store.journal(team, entry)
        for extension, act in extensions.after(what):
            _call(store, team, entry, extension, act)
    except errors.TeamsError:  # the time is that of a server, which went away
        return


def _call(store: Store, team: str, entry: dict[str, Any], extension: str, act: Callable[..., object]) -> None:
    """Call a function of an extension. If it fails, the change stands, and the history has the failure."""
    try:
        act(store, team, entry)
    except Exception as failure:  # whatever it is: the change was acknowledged
        details = {"extension": extension, "after": entry["what"], "error": f"{type(failure).__name__}: {failure}"}
        store.journal(team, {"at": teams.now(store), "actor": SYSTEM, "what": "extension failed", **details})


_OLDER = 100
"""After so many old changes in a row no new one is expected. Clocks differ a little."""
_A_FEW = 10


def since(store: Store, team: str, moment: datetime | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the changes from *moment* on, oldest first, each with its position."""
    for position, entry in store.history(team):
        if moment is None or is_since(entry, moment):
            yield position, entry


def later(store: Store, team: str, time: str) -> Iterator[dict[str, Any]]:
    """Yield the changes after that time, newest first. A few older ones in between, from a slower clock, do not end the
    search.
    """
    found = _newest_first(store, team, lambda entry: str(entry.get("at", "")) > time, _A_FEW)
    return (entry for _, entry in found)


def newest(store: Store, team: str, moment: datetime | None, limit: int | None) -> list[tuple[int, dict[str, Any]]]:
    """Return the newest *limit* changes (None is all) from *moment* on, oldest first, each with its position. No more
    is read than needed.
    """
    if moment is None and limit is None:
        return list(store.history(team))
    found: list[tuple[int, dict[str, Any]]] = []
    for each in _newest_first(store, team, lambda entry: moment is None or is_since(entry, moment), _OLDER):
        found.append(each)
        if len(found) == limit:
            break
    return found[::-1]


def _newest_first(
    store: Store, team: str, is_new: Callable[[dict[str, Any]], bool], most_older: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the new changes with their positions, until `_OLDER` old ones in a row come before them."""
    older = 0
    for position, entry in store.history(team, backwards=True):
        if is_new(entry):
            older = 0
            yield position, entry
        elif (older := older + 1) == most_older:
            return


def moment(word: str, now: datetime) -> datetime:
    """Return the time that *word* means: a time, `today`, or how long ago. A time without an offset is in this
    machine's zone.

    Raises:
        InvalidValue: It is none of these.
    """
    from datetime import datetime, timedelta

    number = word[:-1]
    try:
        if word[-1:] in ("s", "m", "h", "d") and number.isascii() and number.isdigit() and len(number) < 10:
            return now - timedelta(seconds=seconds_in(word))
        said = datetime.fromisoformat(f"{now.astimezone():%Y-%m-%d}" if word == "today" else word)
        return said if said.tzinfo else said.astimezone()
    except (ValueError, OverflowError):
        raise errors.InvalidValue(
            f"{word!r} is not a valid time", "Write 2026-01-25T23:00:00Z, 2026-01-25, today, or 90s, 10m, 2h, 1d."
        ) from None


def is_since(entry: dict[str, Any], moment: datetime) -> bool:
    """Whether the change was made at that moment or later."""
    return _at(entry) >= moment


def _at(entry: dict[str, Any]) -> datetime:
    from datetime import UTC, datetime

    try:
        return parse_rfc3339(str(entry.get("at")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def line(entry: dict[str, Any]) -> str:
    """Return the entry in words: `bob: task claimed task-1`."""
    said = [_words(key, value) for key, value in entry.items() if key not in ("at", "actor", "what", "title", "claim")]
    what = str(entry.get("what")).replace("task kept for ", "task assigned to ")
    return f"{entry.get('actor')}: {what} {' '.join(said)}".rstrip()


def _words(key: str, value: Any) -> str:
    """Return a detail of an entry in words."""
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
    """Return who last closed the team; None if unknown."""
    entries = store.history(team, backwards=True)
    return next((entry.get("actor") for _, entry in entries if entry.get("what") == "team closed"), None)


def of_closed(store: Store, team: str, came_to: str = "") -> errors.WrongState:
    """Return the refusal of a change in a closed team: who closed it, and what its tasks *came to*."""
    by = closed_by(store, team)
    return errors.WrongState(
        f"team {team} is closed{f', by {by}' if by else ''}{came_to}",
        f"To reopen it (leader or human): teams restore-team {team}. Else you are done.",
    )
