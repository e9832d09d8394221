"""Every change of a team, with its actor: for `history`, live views and `brief`; derived, never the truth."""

from __future__ import annotations

from teams_cli import teams
from teams_cli.clock import parse_rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from teams_cli.store.contract import Store


def note(store: Store, team: str, actor: str, what: str, **details: Any) -> None:
    """Note a change after it was made. *what* is the operation in the past tense, `task claimed`."""
    said = {key: value for key, value in details.items() if value not in (None, "", [])}
    store.journal(team, {"at": teams.now(store), "actor": actor, "what": what, **said})


def since(store: Store, team: str, moment: datetime | None, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """The noted changes from *moment* on, oldest first, each with its position."""
    for position, entry in store.history(team, after):
        if moment is None or is_since(entry, moment):
            yield position, entry


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
    """The entry in words: `bob: task claimed task-1`."""
    said = [str(value) for key, value in entry.items() if key not in ("at", "actor", "what", "title", "claim")]
    return f"{entry.get('actor')}: {entry.get('what')} {' '.join(said)}".rstrip()
