"""The tables of the PostgreSQL engine: made where there are none, brought up to date where they are older."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.extensions.postgres.connections import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.extensions.postgres.connections import Connection, Server

VERSION = 17
_FORMAT = "CREATE TABLE format (version integer NOT NULL, store text NOT NULL)"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext(%s))"


def check(server: Server) -> int:
    """The version of the tables; 0 where there are none.

    Raises:
        StorageFailed: A newer version of the program made them.
    """
    return known(server, server.look("SELECT version FROM format"))


def known(server: Server, found: Sequence[Sequence[Any]]) -> int:
    """The version that was *found* last in a row of what the format says; as `check`."""
    version = int(found[0][-1]) if found else 0
    if version > VERSION:
        raise errors.StorageFailed(
            f"the tables at {server.name} are of version {version}, this program supports {VERSION}",
            "Update the program on this machine.",
        )
    return version


def prepare(server: Server) -> None:
    """Bring the tables to the version that this program knows, in one transaction.

    Raises:
        StorageFailed: They are newer, or the database does not hold UTF-8.
        NotAllowed: This login may not make tables.
    """
    if check(server) < VERSION:
        server.do(lambda connection: _bring_up(connection, server.schema))
    if os.urandom(1) == b"\0":
        prune(server)


# The table of changes can't be parted by days, to be dropped with them: that a change is made once rests on its id
# being unique among all, which a server sees to within each part only. So some go at a time, by the index of each team.
_PRUNE = """WITH RECURSIVE of AS (SELECT min(team) AS team FROM changes
        UNION ALL SELECT (SELECT min(team) FROM changes WHERE team > of.team) FROM of WHERE of.team IS NOT NULL),
    old AS (SELECT found.at FROM of, LATERAL (SELECT ctid AS at FROM changes
        WHERE team = of.team AND changes.at < clock_timestamp() - interval '3 days' LIMIT 5000) AS found LIMIT 5000)
    DELETE FROM changes WHERE ctid = ANY (ARRAY(SELECT at FROM old))"""


def prune(server: Server) -> None:
    """Forget old changes, whose makers have long learnt what became of them: they ask for a day at the most."""
    try:
        server.do(lambda connection: connection.change(_PRUNE))
    except (errors.TeamsError, Missing):  # an agent's own login may not
        return


def _bring_up(connection: Connection, schema: str) -> None:
    connection.begin(_ONE_AT_A_TIME, [f"teams {schema}"])
    encoding = connection.rows("SHOW server_encoding")[0][0]
    if encoding != "UTF8":
        raise errors.StorageFailed(
            f"the database holds {encoding}, not UTF-8", "Make one: createdb -E UTF8 -T template0 NAME"
        )
    if not connection.rows("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]):
        connection.rows(f'CREATE SCHEMA "{schema}"')
    version = 0
    if connection.rows("SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'format'", [schema]):
        version = connection.rows("SELECT version FROM format")[0][0]
    else:
        connection.rows(_FORMAT)
        connection.rows("INSERT INTO format VALUES (0, %s)", [os.urandom(8).hex()])
    for number, part in parts().items():
        if number > version:
            connection.rows(part)
    connection.commit("UPDATE format SET version = greatest(version, %s)", [VERSION])


def parts() -> dict[int, str]:
    """What makes each version out of the one before."""
    with open(f"{os.path.dirname(__file__)}/schema.sql", encoding="utf-8") as file:
        _, *texts = file.read().split("\n-- version ")
    return {int(text.partition("\n")[0]): text.partition("\n")[2] for text in texts}
