"""Examines a store in PostgreSQL for `doctor`: the settings and the connections of the server, and all records."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.doctor import finding
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
_FEW, _SHARE_OF_FEW = 10, 0.2
"""Free connections are too few if they are fewer than this number, or fewer than this share of all connections."""
_USED = """SELECT count(*), least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int,
    (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
    (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user))
    FROM pg_stat_activity WHERE backend_type = 'client backend'"""


def examine(session: Session, store: Store, kinds: Sequence[Kind[Any]], only: str) -> Iterator[Finding]:
    """Yield a finding for each dangerous setting of the server and each damaged record, one if few connections are
    left, and one if notifications arrive late. *only* is the team whose records are read; "" stands for all teams.
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
                list(store.scan(team, kind, problems))  # reads every record, only to find the damaged ones
        for problem in problems:
            yield finding(f"team {team}", "problem", problem.message, "Correct its body with psql.")


def _late_notifications(session: Session) -> Iterator[Finding]:
    """Yield a finding if notifications arrive late because no connection leads to the server itself."""
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
