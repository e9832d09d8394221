"""Reads whole teams out of PostgreSQL and writes them into it, byte for byte; also deletes teams and examines a
store.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.doctor import finding
from teams_cli.extensions.postgres.line import POOLED
from teams_cli.extensions.postgres.session import PASS
from teams_cli.extensions.postgres.watches import is_direct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, TypeVar

    from teams_cli.extensions.postgres.session import Session
    from teams_cli.records.records import Record
    from teams_cli.store.contract import Finding, Kind, Store

    R = TypeVar("R", bound=Record)


_TO_SEVERAL = "@"
"""Stands in the key of a packed message where its recipient would be, if the message has several recipients."""
_COUNTED = f"counted AS ({PASS}), "
_PUT = """INSERT INTO records (team, kind, key, label, body) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (team, kind, key) DO UPDATE SET label = excluded.label, body = excluded.body,
    changed_at = clock_timestamp() RETURNING 1"""
_PUT_MESSAGES = """INSERT INTO messages (team, number, uid, recipients, body)
    SELECT %s, new.number, new.uid, string_to_array(new.recipients, ' '), new.body
    FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) AS new (number, uid, recipients, body)
    ON CONFLICT DO NOTHING RETURNING 1"""


def pack(session: Session, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
    """Yield the key and the stored bytes of each record of a kind, ordered by number or name. The key of a message is
    `<number>.<recipient>.<uid>`.
    """
    if kind.name == "message":  # its key has the number, the recipient and the uid
        rows = session.look("SELECT number, uid, body FROM messages WHERE team = %s ORDER BY number", [team])
        for number, uid, body in rows:
            message = session.decode(team, kind, f"{kind.prefix}-{number}", body)
            to = _TO_SEVERAL if message.recipients else message.to  # type: ignore[attr-defined]
            yield f"{number}.{to}.{uid}", body.encode()
        return
    rows = session.look("SELECT key, body FROM records WHERE team = %s AND kind = %s", [team, kind.name])
    for key, body in sorted(rows, key=lambda row: (kind.number_in(row[0]), row[0])):
        session.decode(team, kind, key, body)  # refuses a damaged record
        yield key, body.encode()


def put(session: Session, team: str, kind: Kind[R], key: str, data: bytes) -> None:
    """Store one record from its bytes, which `pack` yielded from another store. A record with the same key is
    replaced.
    """
    body = data.decode()
    record = session.decode(team, kind, key, body)
    label = kind.label(record) if kind.label else None
    values = [team, kind.name, key, label, body]
    if kind.numbered:
        to_count = [team, kind.name, kind.number_in(key)]
        session.change(team, kind.also_closed, _PUT, [*to_count, *values], _COUNTED)
    else:
        session.change(team, kind.also_closed, _PUT, values)


def put_messages(session: Session, team: str, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
    """Store messages from their keys and bytes, which `pack` yielded from another store. Messages that are stored
    already are skipped.
    """
    numbers, uids, recipients, bodies = [], [], [], []
    for key, data in packed:
        number, _, recipient_and_uid = key.partition(".")
        uid = recipient_and_uid.partition(".")[2]
        body = data.decode()
        message = session.decode(team, kind, f"{kind.prefix}-{number}", body)
        if not uid:
            hint = "Look where it comes from."
            raise errors.DamagedRecord(f"{session.address}: {key!r}: no message has that name", hint)
        numbers.append(int(number))
        uids.append(uid)
        recipients.append(" ".join(message.recipients or [message.to]))  # type: ignore[attr-defined]
        bodies.append(body)
    values = [team, kind.name, max(numbers), team, numbers, uids, recipients, bodies]
    session.change(team, kind.also_closed, _PUT_MESSAGES, values, _COUNTED)


_IF_GONE = "team = %s AND EXISTS (SELECT 1 FROM gone)"
_DROP = f"""gone AS (DELETE FROM records WHERE team = %s AND kind = %s AND key = %s AND xmin = %s::xid
    AND record->>'state' = 'closed' RETURNING 1),
    no_records AS (DELETE FROM records WHERE kind <> 'team' AND {_IF_GONE}),
    no_messages AS (DELETE FROM messages WHERE {_IF_GONE}), no_history AS (DELETE FROM history WHERE {_IF_GONE}),
    no_counters AS (DELETE FROM counters WHERE {_IF_GONE}), no_logins AS (DELETE FROM logins WHERE {_IF_GONE}), """


def drop(session: Session, team: str, kind: Kind[R], revision: str) -> None:
    """Delete the team with all its records. If the team's own record was changed, so that it no longer has *revision*,
    nothing is deleted, and an error is raised.
    """
    where = [team, kind.name, team]  # the key of a team's own record is its name
    for_conditions = [team] * _DROP.count(_IF_GONE)
    if session.change(team, kind, "SELECT 1 FROM gone", [*where, revision, *for_conditions], _DROP) is None:
        if not session.look("SELECT 1 FROM records WHERE team = %s AND kind = %s AND key = %s", where):
            raise errors.NotFound(f"there is no {kind.name} {team}")
        raise errors.StaleRevision(f"{kind.name} {team} was changed meanwhile", "Read it again.")


_SETTINGS = {
    "fsync": ("problem", "a power cut may destroy all that is in this server", "Set fsync = on, and restart it."),
    "full_page_writes": ("problem", "a power cut may destroy tables", "Set full_page_writes = on."),
    "synchronous_commit": (
        "warning",
        "a crash of the server may lose the last changes that it acknowledged",
        "Set synchronous_commit = on, for the login of the agents at least: ALTER ROLE … SET synchronous_commit = on.",
    ),
}
_FEW, _SHARE_OF_FEW = 10, 0.2
"""Free connections are too few if they are fewer than this number, or fewer than this share of all connections."""
_USED = """SELECT count(*), least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int,
    (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
    (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user))
    FROM pg_stat_activity WHERE backend_type = 'client backend'"""


def examine(session: Session, store: Store, kinds: Sequence[Kind[Any]], only: str) -> Iterator[Finding]:
    """Yield a finding for each dangerous setting of the server, for each damaged record, if few connections are left,
    and if notifications come late. *only* is the team whose records are read; "" stands for all teams.
    """
    for name, (level, what, remedy) in _SETTINGS.items():
        if session.server.look(f"SHOW {name}") == [("off",)]:
            yield finding(session.address, level, f"{name} is off: {what}", remedy)
    used, most = session.server.look(_USED)[0]
    if most - used < max(_FEW, most * _SHARE_OF_FEW):
        what = f"{used} of the {most} available connections are in use; a command that gets none fails"
        remedy = "Raise max_connections, or put PgBouncer before the server: see docs/postgres.md."
        yield finding(session.address, "warning", what, remedy)
    yield from _late_notifications(session)
    for team in [only] if only else store.teams():
        problems: list[errors.TeamsError] = []
        for kind in kinds:
            if kind.name == "message":
                store.read(team, kind, None, 0, problems)
            else:
                list(store.scan(team, kind, problems))
        for problem in problems:
            yield finding(f"team {team}", "problem", problem.message, "Correct its body with psql.")


def _late_notifications(session: Session) -> Iterator[Finding]:
    if session.server.listens_elsewhere:
        direct = session.server.direct()
        try:
            if not is_direct(direct):
                what = "listen= in the address names a pooler, not the server"
                yield finding(session.address, "warning", what, "Name the server itself.")
        except errors.TeamsError as problem:
            what = f"who waits is woken up to a second late: {problem.message}"
            yield finding(session.address, "warning", what, "Correct what listen= names in the address of the store.")
        finally:
            direct.close()
    elif not is_direct(session.server):
        late, _, remedy = POOLED.partition(". ")
        yield finding(session.address, "warning", late, f"{remedy}.")
