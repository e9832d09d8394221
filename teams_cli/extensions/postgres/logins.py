"""Logins for agents: PostgreSQL roles that row-level security holds to what is theirs. See `schema.sql`, version 2."""

from __future__ import annotations

import secrets
from hashlib import md5
from urllib.parse import quote, urlencode

from teams_cli.extensions.postgres.connections import SOCKET, Connection, Server
from teams_cli.extensions.postgres.driver import library
from teams_cli.store.contract import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_TABLES = ("records", "messages", "history", "counters", "changes", "format")


def admit(server: Server, team: str, agents: Mapping[str, str], kinds: Sequence[Kind[Any]]) -> dict[str, str]:
    """Give each of the agents a login, and take it from all others of the team; see the contract.

    Returns the addresses, with their passwords, of the logins that are new.

    Raises:
        NotAllowed: The login that we have may make no others.
    """
    passwords = {name: secrets.token_urlsafe(24) for name in agents}
    tried: set[str] = set()

    def job(connection: Connection) -> dict[str, str]:
        made = {}
        ((database,),) = connection.rows("SELECT current_database()")
        connection.begin("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"teams {server.schema}"])
        _open(connection, kinds)
        for name, does in agents.items():
            login = login_of(database, server.schema, team, name)
            there = connection.rows("SELECT 1 FROM pg_roles WHERE rolname = %s", [login])
            if there and name in tried:  # it is there with our password: all but the answer to the commit arrived
                made[name] = _address(server, login, passwords[name])
            elif not there:
                tried.add(name)
                hidden = library.encrypt_password(passwords[name], login, connection.link, "scram-sha-256")
                connection.rows(f'CREATE ROLE "{login}" LOGIN PASSWORD %s', [hidden])
                made[name] = _address(server, login, passwords[name])
            _grant(connection, server.schema, login)
            connection.rows(
                "INSERT INTO logins (login, team, agent, leads, manages) VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT (login) DO UPDATE SET leads = excluded.leads, manages = excluded.manages",
                [login, team, name, does == "leads", does == "manages"],
            )
        connection.commit("DELETE FROM logins WHERE team = %s AND NOT agent = ANY (%s)", [team, list(agents)])
        return made

    return server.do(job)


def _open(connection: Connection, kinds: Sequence[Kind[Any]]) -> None:
    """Note what logins may do with each kind, as it declares it."""
    for kind in kinds:
        if kind.logins:
            connection.rows(
                "INSERT INTO opened VALUES (%s, %s, %s)"
                " ON CONFLICT (kind) DO UPDATE SET rule = excluded.rule, prefix = excluded.prefix",
                [kind.name, kind.logins, kind.prefix if kind.numbered else None],
            )


def login_of(database: str, schema: str, team: str, agent: str) -> str:
    """The name of an agent's login: readable, with a digest of all that tells it from others of the same server."""
    digest = md5(f"{database} {schema} {team} {agent}".encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{schema[:16]}_{team[:16]}_{agent[:16]}_{digest}"


def _grant(connection: Connection, schema: str, login: str) -> None:
    connection.rows(f'GRANT USAGE ON SCHEMA "{schema}" TO "{login}"')
    connection.rows(f'GRANT SELECT ON {", ".join(_TABLES)} TO "{login}"')
    connection.rows(f'GRANT INSERT ON records, messages, history, counters, changes TO "{login}"')
    connection.rows(f'REVOKE UPDATE ON records, counters FROM "{login}"')  # who may update all may lock the table
    connection.rows(f'GRANT UPDATE (label, body, changed_at) ON records TO "{login}"')
    connection.rows(f'GRANT UPDATE (last) ON counters TO "{login}"')


def _address(server: Server, login: str, password: str) -> str:
    """The address of the store for that login."""
    said = {k: v for k, v in server.options.items() if k not in ("user", "password", "dbname") and k not in SOCKET}
    said["schema"] = server.schema
    name = quote(str(server.options.get("dbname", "")), safe="")
    return f"postgresql://{quote(login, safe='')}:{quote(password, safe='')}@/{name}?{urlencode(said)}"
