"""What a hundred waiting agents cost: their processor time while nothing happens and for a message to another
agent, and the time until one is woken; on PostgreSQL also connections and queries.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FILES
from teams_cli.store.opening import open_store
from teams_cli.teams import presence
from teams_cli.teams.permission import Caller
from tests.benchmarks.measuring import against, show, spent_by
from tests.support import postgres
from tests.support.cli import ALPHA
from tests.support.postgres import Postgres

_NAMES = [f"w{number}" for number in range(100)]
_SENDS, _IDLE, _SETTLE = 20, 10.0, 3.0
_COMMITS = "SELECT pg_stat_clear_snapshot(); SELECT sum(xact_commit) FROM pg_stat_database"
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"


def bench_waiting(directory: Path) -> None:
    print(f"\n{len(_NAMES)} times `teams wait` in one team")
    show("", "files", "limit")
    _measured(directory / "waiting", FILES, None)
    if why := postgres.missing():
        print(f"  PostgreSQL: not measured: {why}")
        return
    server = Postgres("max_connections=400", directory=directory)
    try:
        show("", "PostgreSQL", "limit")
        _measured(directory / "waiting-there", server.address(schema="waiting"), server)
    finally:
        server.stop()


def _measured(root: Path, address: str, server: Postgres | None) -> None:
    store = open_store(str(root), address)
    joining.spawn_team(store, ALPHA, Caller("lea"))
    for name in ["silent", *_NAMES]:
        joining.join(store, ALPHA, Caller(name))
    environ = {**os.environ, "TEAMS_HOME": str(root), "TEAMS_STORE": address, "TEAMS_TEAM": ALPHA}
    words, nothing = [sys.executable, "-m", "teams_cli", "wait", "--as"], subprocess.DEVNULL
    waiters = {name: subprocess.Popen([*words, name], env=environ, stdin=nothing, stdout=nothing) for name in _NAMES}
    try:
        while not all(presence.load(store, ALPHA, name).waiting for name in _NAMES):
            time.sleep(0.2)
        time.sleep(_SETTLE)
        _row("ms of all waiters, idle, a second", _idle(waiters) * 1000, 0)
        _row("ms of all waiters a send", _send_to_another(store, waiters) * 1000, 35)
        if server is not None:
            _row("connections a waiter", _number(server, _CONNECTIONS) / len(_NAMES), 0)
            before = _number(server, _COMMITS)
            time.sleep(_IDLE)
            _row("queries in 5 s idle", (_number(server, _COMMITS) - before) * 5 / _IDLE / len(_NAMES), 1)
        _row("ms until one is woken", statistics.median(_woken(store, waiters)) * 1000, 50)
    finally:
        for process in waiters.values():
            process.kill()
            process.wait()
        store.close()


def _row(what: str, value: float, limit: float) -> None:
    show(what, value, against(limit, value))


def _number(server: Postgres, sql: str) -> int:
    return int(server.psql(sql).stdout.split()[-1])


def _spent(waiters: dict[str, subprocess.Popen[bytes]]) -> float:
    """The seconds of processor time that all waiters have taken so far."""
    return sum(spent_by(process.pid) for process in waiters.values())


def _idle(waiters: dict[str, subprocess.Popen[bytes]]) -> float:
    before = _spent(waiters)
    time.sleep(_IDLE)
    return (_spent(waiters) - before) / _IDLE


def _send_to_another(store: Store, waiters: dict[str, subprocess.Popen[bytes]]) -> float:
    """The seconds of processor time that a message to a member that does not wait costs all waiters."""
    before = _spent(waiters)
    for number in range(_SENDS):
        messages.send(store, ALPHA, Caller("lea"), "silent", f"number {number}")
        time.sleep(0.1)
    time.sleep(1)
    return (_spent(waiters) - before) / _SENDS


def _woken(store: Store, waiters: dict[str, subprocess.Popen[bytes]]) -> list[float]:
    """The seconds from sending a message until its waiting recipient has ended."""
    taken = []
    for name in _NAMES[: _SENDS // 2]:
        began = time.perf_counter()
        messages.send(store, ALPHA, Caller("lea"), name, "wake up")
        waiters[name].wait(60)
        taken.append(time.perf_counter() - began)
    return taken
