"""Whole teams taken out of PostgreSQL, and put into it, to the byte."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.postgres import counters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.postgres.engine import PostgresStore

    R = TypeVar("R", bound=Record)

_SEVERAL = "@"
_COUNTED = f"counted AS ({counters.PASS}), "
_PUT = """INSERT INTO records (team, kind, key, label, body) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (team, kind, key) DO UPDATE SET label = excluded.label, body = excluded.body,
    changed_at = clock_timestamp() RETURNING 1"""
_PUT_MESSAGES = """INSERT INTO messages (team, number, uid, recipients, body)
    SELECT %s, new.number, new.uid, string_to_array(new.recipients, ' '), new.body
    FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) AS new (number, uid, recipients, body)
    ON CONFLICT DO NOTHING RETURNING 1"""


def pack(store: PostgresStore, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
    """See the contract."""
    if kind.name == "message":
        yield from _pack_messages(store, team, kind)
        return
    found = store.look("SELECT key, body FROM records WHERE team = %s AND kind = %s", [team, kind.name])
    for key, body in sorted(found, key=lambda row: (kind.number_in(row[0]), row[0])):
        store.decode(team, kind, key, body)
        yield key, body.encode()


def _pack_messages(store: PostgresStore, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
    for number, uid, body in store.look(
        "SELECT number, uid, body FROM messages WHERE team = %s ORDER BY number", [team]
    ):
        message = store.decode(team, kind, f"{kind.prefix}-{number}", body)
        to = _SEVERAL if message.recipients else message.to  # type: ignore[attr-defined]
        yield f"{number}.{to}.{uid}", body.encode()


def put(store: PostgresStore, team: str, kind: Kind[R], key: str, data: bytes) -> None:
    """See the contract."""
    body = data.decode()
    record = store.decode(team, kind, key, body)
    label = kind.label(record) if kind.label else None
    values = [team, kind.name, key, label, body]
    if kind.numbered:
        counted = [team, kind.name, kind.number_in(key)]
        store.change(team, kind.also_closed, _PUT, [*counted, *values], _COUNTED)
    else:
        store.change(team, kind.also_closed, _PUT, values)


def put_messages(store: PostgresStore, team: str, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
    """See the contract."""
    numbers, uids, recipients, bodies = [], [], [], []
    for key, data in packed:
        number, _, rest = key.partition(".")
        record = store.decode(team, kind, f"{kind.prefix}-{number}", body := data.decode())
        if not (uid := rest.partition(".")[2]):
            hint = "Look where it comes from."
            raise errors.DamagedRecord(f"{store.address}: {key!r}: no message is called that", hint)
        numbers.append(int(number))
        uids.append(uid)
        recipients.append(" ".join(record.recipients or [record.to]))  # type: ignore[attr-defined]
        bodies.append(body)
    values = [team, kind.name, max(numbers), team, numbers, uids, recipients, bodies]
    store.change(team, kind.also_closed, _PUT_MESSAGES, values, _COUNTED)
