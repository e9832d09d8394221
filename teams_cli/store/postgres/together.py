"""Records that are created together: one transaction, and one statement for all of them."""

from __future__ import annotations

from teams_cli.store.documents import encode
from teams_cli.store.postgres import counters
from teams_cli.store.postgres.connections import Taken, number_taken
from teams_cli.store.topics import topics_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.postgres.connections import Connection, Server
    from teams_cli.store.postgres.engine import PostgresStore

    R = TypeVar("R", bound=Record)

_CREATE = """INSERT INTO records (team, kind, key, label, body)
    SELECT %s, %s, new.key, new.label, new.body
    FROM unnest(%s::text[], %s::text[], %s::text[]) AS new (key, label, body) RETURNING 1"""


def create_all(
    store: PostgresStore, server: Server, team: str, kind: Kind[R], count: int, make: Callable[[list[str]], list[R]]
) -> list[R]:
    """See the contract."""

    def job(connection: Connection, change_id: str, sending: Callable[[list[R]], None]) -> list[R]:
        [(last,)] = connection.begin(counters.TAKE, [team, kind.name, count], kind.while_closed)
        records = kind.numbering_all(last - count + 1, count, make)
        keys = [getattr(record, kind.key) for record in records]
        labels = [kind.label(record) if kind.label else None for record in records]
        bodies = [encode(record).decode() for record in records]
        topics = frozenset().union(*(topics_of(kind, key, label) for key, label in zip(keys, labels, strict=True)))
        sending(records)
        connection.commit(*store.as_change(_CREATE, [team, kind.name, keys, labels, bodies], change_id, team, topics))
        return records

    try:
        made = server.do_once(job)
    except Taken:
        raise number_taken(kind.name) from None
    store.changed += 1
    return made
