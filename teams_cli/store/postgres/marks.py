"""The column by which records are found without reading all: their label."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.postgres.connections import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.postgres.engine import PostgresStore

    R = TypeVar("R", bound=Record)

_FIRST = 64
"""How many keys are fetched before somebody asks for more."""
_LABELLED = """SELECT key FROM records WHERE team = %s AND kind = %s AND label = ANY (%s)
    AND (length(key), key) > (%s, %s) ORDER BY length(key), key LIMIT %s"""
_BY_LABEL = """SELECT coalesce(label, ''), array_agg(key) FROM records WHERE team = %s AND kind = %s
    GROUP BY coalesce(label, '')"""
# What was changed since it was read has its label from who changed it.
_LABEL = """UPDATE records SET label = found.label
    FROM unnest(%s::text[], %s::text[], %s::text[]) AS found (key, label, revision)
    WHERE team = %s AND kind = %s AND records.key = found.key AND records.xmin = found.revision::xid
        AND records.label IS DISTINCT FROM found.label"""


def labelled(store: PostgresStore, team: str, kind: Kind[R], labels: Collection[str]) -> Iterator[str]:
    """See the contract."""
    behind = ""
    for limit in (_FIRST, None):
        found = store.look(_LABELLED, [team, kind.name, list(labels), len(behind), behind, limit])
        yield from (key for (key,) in found)
        if limit is None or len(found) < limit:
            return
        behind = found[-1][0]


def by_label(store: PostgresStore, team: str, kind: Kind[R]) -> Mapping[str, Collection[str]]:
    """See the contract."""
    return dict(store.look(_BY_LABEL, [team, kind.name]))


def mark_anew(store: PostgresStore, team: str, kind: Kind[R], keys: Collection[str]) -> None:
    """See the contract: what an older version labelled in another way, or not at all."""
    found = list(store.scan(team, kind, [], keys)) if kind.label else []
    if not found or kind.label is None:
        return
    named = [getattr(record, kind.key) for record, _ in found]
    labels = [kind.label(record) for record, _ in found]
    values = [named, labels, [revision for _, revision in found], team, kind.name]
    try:
        store.server.do(lambda connection: connection.change(_LABEL, values, also_closed=True))
    except (errors.TeamsError, Missing):  # a login of an agent may not, or somebody is changing one
        return
