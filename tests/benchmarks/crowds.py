"""What looking at a team of hundreds of members costs, who have read none of many thousands of messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from teams_cli.membership import joining
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.store.documents import encode
from teams_cli.store.files.engine import FileStore
from teams_cli.store.opening import open_store
from teams_cli.teams.permission import Caller
from tests.benchmarks.measuring import spent, spent_by
from tests.support import postgres
from tests.support.cli import ALPHA, Cli
from tests.support.postgres import Postgres
from tests.support.serving import serving

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

MEMBERS, MESSAGES = 300, 50_000
MOST = 0.5
"""Seconds of processor time."""
_LOOKS = {"list-agents": "lea", "brief": "a7"}
NOW = "2030-01-01T00:00:00.000Z"


def bench_crowds(
    directory: Path, teams: list[str], rounds: int, show: Callable[..., None], against: Callable[[float, float], str]
) -> None:
    """A look at the team in files, and at the same team on a PostgreSQL server, in processor time."""
    print(f"\n{MEMBERS} members, {MESSAGES:,} messages, none read, seconds of processor time, best of {rounds}")
    show("", "", "", "", "seconds", "limit")
    root = directory / "crowd"
    store = FileStore(str(root))
    _gather(store)
    for number in range(1, MESSAGES + 1):
        path = root / f"teams/{ALPHA}/messages/{number // 1000}/{number}.{_reader(number)}.{number:016x}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(_message(str(number), _reader(number))))
    _look("files", Cli(root, team=ALPHA), teams, rounds, show, against)
    if why := postgres.missing():
        print(f"  PostgreSQL: not measured: {why}")
        return
    server = Postgres(directory=directory)
    try:
        address = server.address(schema="crowd")
        there = open_store(str(directory / "there"), address)
        _gather(there)
        there.close()
        put = server.psql(_PUT.format(body=encode(_message("NUMBER", "READER")).decode()))
        assert put.returncode == 0, put
        _look("PostgreSQL", Cli(directory / "there", team=ALPHA, TEAMS_STORE=address), teams, rounds, show, against)
    finally:
        server.stop()


_PUT = f"""SET search_path TO crowd; INSERT INTO messages (team, number, uid, recipients, body)
    SELECT '{ALPHA}', n, n, ARRAY['a' || n % {MEMBERS}],
        replace(replace('{{body}}', 'NUMBER', n::text), 'READER', 'a' || n % {MEMBERS})
    FROM generate_series(1, {MESSAGES}) AS n; ANALYZE messages"""


def _gather(store: Store) -> None:
    """The team, with the numbers of the messages given."""
    joining.spawn_team(store, ALPHA, Caller("lea"))
    for n in range(MEMBERS):
        joining.join(store, ALPHA, Caller(f"a{n}"))
    store.reserve(ALPHA, MESSAGE, MESSAGES)


def _reader(number: int) -> str:
    return f"a{number % MEMBERS}"


def _message(number: str, to: str) -> Message:
    """One of those messages, or what they are all like."""
    said = {"from_": "lea", "to": to, "message": f"what you asked me, number {number}", "timestamp": NOW}
    return Message(id=f"msg-{number}", **said)


def _look(
    where: str,
    cli: Cli,
    teams: list[str],
    rounds: int,
    show: Callable[..., None],
    against: Callable[[float, float], str],
) -> None:
    for words, agent in _LOOKS.items():
        taken = min(spent([*teams, words], cli.environ(agent)) for _ in range(rounds))
        show(f"{words}, {where}", "", "", "", f"{taken:.2f}", against(MOST, taken))
    taken = min(_first_board(cli) for _ in range(rounds))
    show(f"the board's first answer, {where}", "", "", "", f"{taken:.2f}", against(MOST, taken))


def _first_board(cli: Cli) -> float:
    """What a server that has answered nothing of the team spends on the first look at its board."""
    with serving(cli) as server:
        before = spent_by(server.pid)
        server.get("/api/board")
        return spent_by(server.pid) - before
