"""What `doctor` looks at in the PostgreSQL engine: what the server promises, and whether the records are whole."""

from __future__ import annotations

from teams_cli.errors import TeamsError
from teams_cli.records.annotations import Any, Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.store.contract import Finding, Kind
    from teams_cli.store.postgres.engine import PostgresStore

_SETTINGS = {
    "fsync": ("problem", "a power cut may destroy all that is in this server", "Set fsync = on, and restart it."),
    "full_page_writes": ("problem", "a power cut may destroy tables", "Set full_page_writes = on."),
    "synchronous_commit": (
        "warning",
        "a crash of the server may lose the last changes that it acknowledged",
        "Set synchronous_commit = on, for the login of the agents at least: ALTER ROLE … SET synchronous_commit = on.",
    ),
}
_SPARE = 10


def examine(store: PostgresStore, kinds: Sequence[Kind[Any]]) -> Iterator[Finding]:
    """What is wrong with the server's settings and with the records; nothing of it is for us to mend."""
    for name, (level, what, remedy) in _SETTINGS.items():
        if store.server.look(f"SHOW {name}") == [("off",)]:
            yield _finding(level, store.address, f"{name} is off: {what}", remedy)
    free, most = store.server.look(
        "SELECT current_setting('max_connections')::int - count(*), current_setting('max_connections')::int "
        "FROM pg_stat_activity WHERE backend_type = 'client backend'"
    )[0]
    if free < _SPARE:
        what = f"{free} of {most} connections are free, and an agent takes two"
        yield _finding("warning", store.address, what, "Raise max_connections, or put a pooler before the server.")
    for team in store.teams():
        for kind in kinds:
            yield from _damaged(store, team, kind)


def _damaged(store: PostgresStore, team: str, kind: Kind[Any]) -> Iterator[Finding]:
    problems: list[TeamsError] = []
    if kind.name == "message":
        store.read(team, kind, None, 0, problems)
    else:
        list(store.scan(team, kind, problems))
    for problem in problems:
        yield _finding("problem", f"team {team}", problem.message, "Correct its body with psql.")


def _finding(level: str, where: str, what: str, remedy: str) -> Finding:
    return {"level": level, "where": where, "what": what, "remedy": remedy}
