"""Examining a PostgreSQL store for `doctor`: the server's settings, and whether the records are whole."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.extensions.postgres.line import POOLED
from teams_cli.extensions.postgres.watches import is_direct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from teams_cli.extensions.postgres.session import Session
    from teams_cli.store.contract import Finding, Kind, Store

_SETTINGS = {
    "fsync": ("problem", "a power cut may destroy all that is in this server", "Set fsync = on, and restart it."),
    "full_page_writes": ("problem", "a power cut may destroy tables", "Set full_page_writes = on."),
    "synchronous_commit": (
        "warning",
        "a crash of the server may lose the last changes that it acknowledged",
        "Set synchronous_commit = on, for the login of the agents at least: ALTER ROLE … SET synchronous_commit = on.",
    ),
}
_SPARE, _SHARE = 10, 0.2
_USED = """SELECT count(*), least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int,
    (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
    (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user))
    FROM pg_stat_activity WHERE backend_type = 'client backend'"""


def examine(session: Session, store: Store, kinds: Sequence[Kind[Any]], only: str) -> Iterator[Finding]:
    """What is wrong with the server's settings and with the records; nothing of it is for us to mend."""
    for name, (level, what, remedy) in _SETTINGS.items():
        if session.server.look(f"SHOW {name}") == [("off",)]:
            yield _finding(level, session.address, f"{name} is off: {what}", remedy)
    yield from _connections(session)
    yield from _pooler(session)
    for team in [only] if only else store.teams():
        for kind in kinds:
            yield from _damaged(store, team, kind)


def _connections(session: Session) -> Iterator[Finding]:
    """Whether the server soon has no connection left for another command."""
    used, most = session.server.look(_USED)[0]
    if most - used < max(_SPARE, most * _SHARE):
        what = f"{used} of the {most} connections that are to be had are taken; a command that gets none fails"
        remedy = "Raise max_connections, or put PgBouncer before the server: see docs/postgres.md."
        yield _finding("warning", session.address, what, remedy)


def _pooler(session: Session) -> Iterator[Finding]:
    """Whether those who wait behind a pooler are woken at once."""
    if session.server.listens_elsewhere:
        direct = session.server.direct()
        try:
            if not is_direct(direct):
                what = "what listen= names in the address is no server, but a pooler as well"
                yield _finding("warning", session.address, what, "Name the server itself.")
        except errors.TeamsError as problem:
            what = f"who waits is woken up to a second late: {problem.message}"
            yield _finding("warning", session.address, what, "Correct what listen= names in the address of the store.")
        finally:
            direct.close()
    elif not is_direct(session.server):
        late, _, remedy = POOLED.partition(". ")
        yield _finding("warning", session.address, late, f"{remedy}.")


def _damaged(store: Store, team: str, kind: Kind[Any]) -> Iterator[Finding]:
    problems: list[errors.TeamsError] = []
    if kind.name == "message":
        store.read(team, kind, None, 0, problems)
    else:
        list(store.scan(team, kind, problems))
    for problem in problems:
        yield _finding("problem", f"team {team}", problem.message, "Correct its body with psql.")


def _finding(level: str, where: str, what: str, remedy: str) -> Finding:
    return {"level": level, "where": where, "what": what, "remedy": remedy}
