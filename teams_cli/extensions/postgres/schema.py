"""Creates and updates the tables of the PostgreSQL engine, and gives agents logins."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.extensions.postgres.connections import SOCKET, Connection, Missing, Server
from teams_cli.store.contract import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


VERSION = 18
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext(%s))"


def check(server: Server) -> int:
    """Return the version of the tables, or 0 if there are none.

    Raises:
        StorageFailed: A newer version of the program made them.
    """
    return checked_version(server, server.look("SELECT version FROM format"))


def checked_version(server: Server, rows: Sequence[Sequence[Any]]) -> int:
    """Return the version of the tables as `check` does. *rows* is what a query of the table `format` returned: the
    version is the last value of its only row.
    """
    version = int(rows[0][-1]) if rows else 0
    if version > VERSION:
        raise errors.StorageFailed(
            f"the tables at {server.name} are of version {version}, this program supports {VERSION}",
            "Update the program on this machine.",
        )
    return version


def prepare(server: Server) -> None:
    """Update the tables to the version of this program, in one transaction. One process in 256, chosen at random, also
    deletes the ids of old changes, because that need not be done often.

    Raises:
        StorageFailed: The tables are newer, or the database does not hold UTF-8.
        NotAllowed: This login may not make or update tables.
    """
    version = check(server)
    if version < VERSION:
        try:
            server.do(lambda connection: _update_tables(connection, server.schema))
        except errors.NotAllowed:
            if not version:
                raise
            raise errors.NotAllowed(
                f"the tables at {server.name} are of version {version}, and this login may not update them"
                f" to {VERSION}",
                "Nothing was changed. Ask whoever made the logins to run this version of teams once:"
                " teams set-up-roles",
            ) from None
    if os.urandom(1) == b"\0":  # one process in 256
        prune(server)


# The table of changes can't have partitions by day, because an id must be unique in the whole table, and a server
# ensures that only within a partition. So a bounded number of rows is deleted at a time, by the index of each team.
_PRUNE = """WITH RECURSIVE of AS (SELECT min(team) AS team FROM changes
        UNION ALL SELECT (SELECT min(team) FROM changes WHERE team > of.team) FROM of WHERE of.team IS NOT NULL),
    old AS (SELECT found.at FROM of, LATERAL (SELECT ctid AS at FROM changes
        WHERE team = of.team AND changes.at < clock_timestamp() - interval '3 days' LIMIT 5000) AS found LIMIT 5000)
    DELETE FROM changes WHERE ctid = ANY (ARRAY(SELECT at FROM old))"""


def prune(server: Server) -> None:
    """Delete the ids of changes that are older than three days. A process whose connection broke needs the id of its
    change, to learn whether the change was made, but only for minutes.
    """
    try:
        server.do(lambda connection: connection.change(_PRUNE))
    except (errors.TeamsError, Missing):  # an agent's own login may not
        return


def _update_tables(connection: Connection, schema: str) -> None:
    """Make the tables if there are none, and update them to the version of this program."""
    connection.begin(_ONE_AT_A_TIME, [f"teams {schema}"])
    encoding = connection.rows("SHOW server_encoding")[0][0]
    if encoding != "UTF8":
        raise errors.StorageFailed(
            f"the database holds {encoding}, not UTF-8", "Make one: createdb -E UTF8 -T template0 NAME"
        )
    if not connection.rows("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]):
        connection.rows(f'CREATE SCHEMA "{schema}"')
    if connection.rows("SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'format'", [schema]):
        version = connection.rows("SELECT version FROM format")[0][0]
    else:
        connection.rows("CREATE TABLE format (version integer NOT NULL, store text NOT NULL)")
        connection.rows("INSERT INTO format VALUES (0, %s)", [os.urandom(8).hex()])
        version = 0
    for number, part in parts().items():
        if number > version:
            connection.rows(part)
    connection.commit("UPDATE format SET version = greatest(version, %s)", [VERSION])


def parts() -> dict[int, str]:
    """Return the SQL that updates the tables to each version, by the number of the version."""
    with open(f"{os.path.dirname(__file__)}/schema.sql", encoding="utf-8") as file:
        _, *texts = file.read().split("\n-- version ")  # a comment precedes the first version
    return {int(text.partition("\n")[0]): text.partition("\n")[2] for text in texts}


_TABLES = ("records", "messages", "history", "counters", "changes", "format")


def admit(server: Server, team: str, agents: Mapping[str, str], kinds: Sequence[Kind[Any]]) -> dict[str, str]:
    """Give a login to each of *agents* that has none, and take away the rights of the team's other logins. Return the
    addresses of the new logins by agent, with their passwords. *agents* has the duty of each agent by name: `leads`,
    `manages` or "". *kinds* say what logins may do with each kind of record.

    Raises:
        NotAllowed: This program's own login may not create roles.
    """
    import secrets  # slow to import, like the others below; only few commands make logins

    from psycopg2.extensions import encrypt_password

    passwords = {name: secrets.token_urlsafe(24) for name in agents}
    created: set[str] = set()

    def job(connection: Connection) -> dict[str, str]:
        addresses = {}
        ((database,),) = connection.rows("SELECT current_database()")
        connection.begin(_ONE_AT_A_TIME, [f"teams {server.schema}"])
        for kind in kinds:  # what the logins of agents may do with each kind of record
            if kind.logins:
                connection.rows(
                    "INSERT INTO opened VALUES (%s, %s, %s)"
                    " ON CONFLICT (kind) DO UPDATE SET rule = excluded.rule, prefix = excluded.prefix",
                    [kind.name, kind.logins, kind.prefix if kind.numbered else None],
                )
        for name, duty in agents.items():
            login = login_of(database, server.schema, team, name)
            if not connection.rows("SELECT 1 FROM pg_roles WHERE rolname = %s", [login]):
                created.add(name)
                password_hash = encrypt_password(passwords[name], login, connection.link, "scram-sha-256")
                connection.rows(f'CREATE ROLE "{login}" LOGIN PASSWORD %s', [password_hash])
            if name in created:  # perhaps by an earlier attempt, if only the answer to its commit was lost
                addresses[name] = _address(server, login, passwords[name])
            _grant(connection, server.schema, login)
            connection.rows(
                "INSERT INTO logins (login, team, agent, leads, manages) VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT (login) DO UPDATE SET leads = excluded.leads, manages = excluded.manages",
                [login, team, name, duty == "leads", duty == "manages"],
            )
        connection.commit("DELETE FROM logins WHERE team = %s AND NOT agent = ANY (%s)", [team, list(agents)])
        return addresses

    return server.do(job)


def login_of(database: str, schema: str, team: str, agent: str) -> str:
    """Return the name of an agent's login. The name is readable; a digest at its end makes it unique on the server."""
    from hashlib import md5

    digest = md5(f"{database} {schema} {team} {agent}".encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{schema[:16]}_{team[:16]}_{agent[:16]}_{digest}"


def _grant(connection: Connection, schema: str, login: str) -> None:
    """Give an agent's login its rights on the tables. The tables' policies limit these rights to certain rows."""
    connection.rows(f'GRANT USAGE ON SCHEMA "{schema}" TO "{login}"')
    connection.rows(f'GRANT SELECT ON {", ".join(_TABLES)} TO "{login}"')
    connection.rows(f'GRANT INSERT ON records, messages, history, counters, changes TO "{login}"')
    # A login that may update all columns may lock the table.
    connection.rows(f'REVOKE UPDATE ON records, counters FROM "{login}"')
    connection.rows(f'GRANT UPDATE (label, body, changed_at) ON records TO "{login}"')
    connection.rows(f'GRANT UPDATE (last) ON counters TO "{login}"')


def _address(server: Server, login: str, password: str) -> str:
    """Return the address of the store for an agent's login, with the other options of the address of *server*."""
    from urllib.parse import quote, urlencode

    left_out = {"user", "password", "dbname", *SOCKET}
    query = {key: value for key, value in server.options.items() if key not in left_out}
    query["schema"] = server.schema
    database = quote(str(server.options.get("dbname", "")), safe="")
    return f"postgresql://{quote(login, safe='')}:{quote(password, safe='')}@/{database}?{urlencode(query)}"
