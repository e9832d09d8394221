"""Removing a closed team with all that it has, in one transaction."""

from __future__ import annotations

from teams_cli import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.postgres.engine import PostgresStore

    R = TypeVar("R", bound=Record)

_OF_GONE = "team = %s AND EXISTS (SELECT 1 FROM gone)"
_DROP = f"""gone AS (DELETE FROM records WHERE team = %s AND kind = %s AND key = %s AND xmin = %s::xid
    AND record->>'state' = 'closed' RETURNING 1),
    no_records AS (DELETE FROM records WHERE kind <> 'team' AND {_OF_GONE}),
    no_messages AS (DELETE FROM messages WHERE {_OF_GONE}), no_history AS (DELETE FROM history WHERE {_OF_GONE}),
    no_counters AS (DELETE FROM counters WHERE {_OF_GONE}), no_logins AS (DELETE FROM logins WHERE {_OF_GONE}), """


def drop(store: PostgresStore, team: str, kind: Kind[R], revision: str) -> None:
    """See the contract."""
    where = [team, kind.name, team]
    values = [*where, revision, *[team] * _DROP.count("%s")][: _DROP.count("%s")]
    if store.change(team, kind, "SELECT 1 FROM gone", values, _DROP) is None:
        if not store.look("SELECT 1 FROM records WHERE team = %s AND kind = %s AND key = %s", where):
            raise errors.NotFound(f"there is no {kind.name} {team}")
        raise errors.StaleRevision(f"{kind.name} {team} was changed meanwhile", "Look at it again.")
