"""The history of a team as rows: derived, never the truth."""

from __future__ import annotations

from teams_cli.extensions.postgres.session import TAKE
from teams_cli.records.json_text import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from teams_cli.extensions.postgres.connections import Server

    Entry = dict[str, Any]
    Look = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

_LOOK = "SELECT position, entry::text FROM history WHERE team = %s AND position > %s"
_AT_ONCE = 200
_NOTE = f"""WITH next AS ({TAKE}) INSERT INTO history (team, position, entry)
    SELECT %s, last - %s + new.nth, new.entry::json
    FROM next, unnest(%s::text[]) WITH ORDINALITY AS new (entry, nth)
    RETURNING pg_notify(%s, %s)"""


def note(server: Server, team: str, entries: Sequence[Entry], channel: str) -> None:
    """Add the entries, in one change that need not be durable, and wake who listens on the channel."""
    count = len(entries)
    values = [team, "history", count, team, count, [dumps(entry) for entry in entries], channel, "history"]
    server.do(lambda connection: connection.change(f"SET LOCAL synchronous_commit TO off; {_NOTE}", values))


def entries(look: Look, team: str, after: int, backwards: bool) -> Iterator[tuple[int, Entry]]:
    """See the contract."""
    if backwards:
        yield from _backwards(look, team, after)
        return
    for position, entry in look(f"{_LOOK} ORDER BY position", [team, after]):
        yield position, loads(entry)


def _backwards(look: Look, team: str, after: int) -> Iterator[tuple[int, Entry]]:
    more, before = f"{_LOOK} AND position < %s ORDER BY position DESC LIMIT %s", 1 << 62
    while found := look(more, [team, after, before, _AT_ONCE]):
        for position, entry in found:
            yield position, loads(entry)
        before = found[-1][0]
