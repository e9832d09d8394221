"""Finding records by words, by the full-text search of the database."""

from __future__ import annotations

from teams_cli.errors import TeamsError
from teams_cli.records.annotations import Iterator, Sequence
from teams_cli.store.postgres import schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.postgres.engine import PostgresStore

    R = TypeVar("R", bound=Record)

_SINCE = 4
_ALL = 1 << 62
_HAS = "(words_of(record) @@ %s::tsquery OR length(body) > 100000)"
_RECORDS = "SELECT key, body FROM records WHERE team = %s AND kind = %s"
_MESSAGES = "SELECT number, body FROM messages WHERE team = %s AND number < %s"
_NEWEST = "ORDER BY number DESC LIMIT 500"


def search(
    store: PostgresStore, team: str, kind: Kind[R], words: Sequence[str], problems: list[TeamsError]
) -> Iterator[R]:
    """See the contract. The words go to the database as it would write them into its index itself."""
    condition, values = _condition(store, words)
    for key, body in _rows(store, team, kind, condition, values):
        try:
            yield store.decode(team, kind, key, body)
        except TeamsError as problem:
            problems.append(problem)


def _condition(store: PostgresStore, words: Sequence[str]) -> tuple[str, list[str]]:
    """What finds the records; all, where nothing is left to look for, or the tables are of before there was an index:
    reading brings none up to date.
    """
    if schema.check(store.server) < _SINCE:
        return "true", []
    wanted = store.look("SELECT wanted(%s)::text", [list(words)])[0][0]
    return (_HAS, [wanted]) if wanted else ("true", [])


def _rows(
    store: PostgresStore, team: str, kind: Kind[R], condition: str, values: list[str]
) -> Iterator[tuple[str, str]]:
    """The keys and texts of what the condition finds. Messages come page by page: who asks may have enough soon."""
    if kind.name != "message":
        found = store.look(f"{_RECORDS} AND {condition}", [team, kind.name, *values])
        yield from sorted(found, key=lambda row: (kind.number_in(row[0]), row[0]), reverse=True)
        return
    before = _ALL
    while page := store.look(f"{_MESSAGES} AND {condition} {_NEWEST}", [team, before, *values]):
        for number, body in page:
            yield f"{kind.prefix}-{number}", body
        before = page[-1][0]
