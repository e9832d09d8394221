"""What a hundred who wait cost: the processor time of all of them for a message to another, and while nothing happens;
how soon one of them is woken; on PostgreSQL also connections and queries.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FILES
from teams_cli.store.opening import open_store
from teams_cli.teams import presence
from teams_cli.teams.permission import Caller
from tests.benchmarks.measuring import spent_by
from tests.support import postgres
from tests.support.cli import ALPHA
from tests.support.postgres import Postgres

_WAITERS = 100
_SENDS = 20
_IDLE = 10.0
_SETTLE = 3.0
_LIMITS = {"ms of all waiters a send": 35.0, "ms until one is woken": 50.0, "queries in 5 s idle": 1.0}
_COMMITS = "SELECT pg_stat_clear_snapshot(); SELECT sum(xact_commit) FROM pg_stat_database"
Show = Callable[..., None]


def bench_waiting(directory: Path, show: Show) -> None:
    """Measure on files, and on a PostgreSQL server where there is one."""
    print(f"\n{_WAITERS} times `teams wait` in one team")
    show("", "files", "", "limit")
    _measured(directory / "waiting", FILES, None, show)
    if why := postgres.missing():
        print(f"  PostgreSQL: not measured: {why}")
        return
    server = Postgres("max_connections=400", directory=directory)
    try:
        show("", "PostgreSQL", "", "limit")
        _measured(directory / "waiting-there", server.address(schema="waiting"), server, show)
    finally:
        server.stop()


def _measured(root: Path, address: str, server: Postgres | None, show: Show) -> None:
    store = open_store(str(root), address)
    joining.spawn_team(store, ALPHA, Caller("lea"))
    for name in ["silent", *_names()]:
        joining.join(store, ALPHA, Caller(name))
    environ = {**os.environ, "TEAMS_HOME": str(root), "TEAMS_STORE": address, "TEAMS_TEAM": ALPHA}
    waiters = {name: _begin(name, environ) for name in _names()}
    try:
        _until_all_wait(store)
        _row(show, "ms of all waiters, idle, a second", _idle(waiters) * 1000)
        _row(show, "ms of all waiters a send", _send_to_another(store, waiters) * 1000)
        if server is not None:
            _of_the_server(server, show)
        _row(show, "ms until one is woken", statistics.median(_woken(store, waiters)) * 1000)
    finally:
        for process in waiters.values():
            process.kill()
            process.wait()
        store.close()


def _names() -> list[str]:
    return [f"w{number}" for number in range(_WAITERS)]


def _begin(name: str, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "teams_cli", "wait", "--as", name]
    return subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _until_all_wait(store: Store) -> None:
    while not all(presence.load(store, ALPHA, name).waiting for name in _names()):
        time.sleep(0.2)
    time.sleep(_SETTLE)


def _row(show: Show, what: str, value: float) -> None:
    limit = _LIMITS.get(what)
    show(what, value, "", "-" if limit is None else f"<= {limit:g} {'ok' if value <= limit else 'MISSED'}")


def _spent(waiters: dict[str, subprocess.Popen[bytes]]) -> float:
    """The seconds of a processor that all of them took so far."""
    return sum(spent_by(process.pid) for process in waiters.values())


def _idle(waiters: dict[str, subprocess.Popen[bytes]]) -> float:
    before = _spent(waiters)
    time.sleep(_IDLE)
    return (_spent(waiters) - before) / _IDLE


def _send_to_another(store: Store, waiters: dict[str, subprocess.Popen[bytes]]) -> float:
    """Seconds a send to a member that does not wait, beyond what they take anyhow."""
    before = _spent(waiters)
    for number in range(_SENDS):
        messages.send(store, ALPHA, Caller("lea"), "silent", f"number {number}")
        time.sleep(0.1)
    time.sleep(1)
    return (_spent(waiters) - before) / _SENDS


def _woken(store: Store, waiters: dict[str, subprocess.Popen[bytes]]) -> list[float]:
    """Seconds from a send until its recipient, which waits, has ended."""
    taken = []
    for name in _names()[: _SENDS // 2]:
        began = time.perf_counter()
        messages.send(store, ALPHA, Caller("lea"), name, "wake up")
        waiters[name].wait(60)
        taken.append(time.perf_counter() - began)
    return taken


def _of_the_server(server: Postgres, show: Show) -> None:
    """How many connections each waiter has, and how many queries all of them make while nothing happens."""
    import psycopg2

    link = psycopg2.connect(server.address())
    link.autocommit = True
    with link.cursor() as cursor:

        def number(query: str) -> int:
            cursor.execute(query)
            return int((cursor.fetchone() or (0,))[0])

        there = number("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
        _row(show, "connections a waiter", there / _WAITERS)
        before = number(_COMMITS)
        time.sleep(_IDLE)
        _row(show, "queries in 5 s idle", (number(_COMMITS) - before) * 5 / _IDLE / _WAITERS)
    link.close()


def main() -> None:
    """Measure this alone, on this disk."""
    with tempfile.TemporaryDirectory() as directory:
        bench_waiting(Path(directory), lambda *cells: print("  ", *cells, flush=True))


if __name__ == "__main__":
    main()
