"""A fleet on one PostgreSQL server: hosts of several agents each that wait, behind PgBouncer where there is one.

Each host is a root with a name of its own, as a machine has; this one carries some hundred that wait. What is beyond is
computed from what one host and one change cost here, and said so. Alone: `python -m tests.benchmarks.fleet 10 100`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.store.opening import open_store
from teams_cli.teams import presence
from teams_cli.teams.permission import Caller
from tests.benchmarks.measuring import spent_by
from tests.support import pgbouncer, postgres
from tests.support.cli import ALPHA
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres import Postgres, end_users_of

_HERTZ = os.sysconf("SC_CLK_TCK")
_HOSTS = 10
_SENDS = 20
_IDLE = 60.0
_MOST_QUERIES, _MOST_SERVER_MS = 2.0, 3.0
_BACKENDS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
_LISTENERS = f"{_BACKENDS} AND query LIKE '%LISTEN%'"
_COMMITS = "SELECT pg_stat_clear_snapshot(); SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"


class Fleet:
    """So many who wait, spread over the hosts, all in one team: the worst for who is woken in vain."""

    def __init__(self, server: Postgres, address: str, size: int, directory: Path) -> None:
        self.server, self.address = server, address
        self.names = [f"w{number}" for number in range(size)]
        self.store: Store = open_store(str(directory / "here"), address)
        joining.spawn_team(self.store, ALPHA, Caller("lea"))
        for name in ["silent", *self.names]:
            joining.join(self.store, ALPHA, Caller(name))
        self.waiters = {name: self._begin(name, directory / f"host{n % _HOSTS}") for n, name in enumerate(self.names)}
        while not all(presence.load(self.store, ALPHA, name).waiting for name in self.names):
            time.sleep(0.2)
        time.sleep(15)  # until they have gone over to their watchers, and given their connections back

    def _begin(self, name: str, root: Path) -> subprocess.Popen[bytes]:
        environ = {**os.environ, "TEAMS_HOME": str(root), "TEAMS_STORE": self.address, "TEAMS_TEAM": ALPHA}
        environ["TEAMS_HOST"] = root.name
        words = [sys.executable, "-m", "teams_cli", "wait", "--as", name]
        return subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def watchers(self) -> list[int]:
        """The processes that listen, one a host."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path("/proc", name, "cmdline").read_bytes()
                environ = Path("/proc", name, "environ").read_bytes()
            except OSError:
                continue
            if b"postgres.watcher" in words and self.address.encode() in environ:
                found.append(int(name))
        return found

    def spent(self, pids: list[int]) -> float:
        """The seconds of a processor that these took so far."""
        seconds = 0.0
        for pid in pids:
            with suppress(OSError):  # it ended
                seconds += spent_by(pid)
        return seconds

    def of_the_server(self) -> float:
        """The same of the server and all its processes."""
        assert self.server.process is not None
        own = self.server.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        ended = Path(f"/proc/{own}/stat").read_text().rpartition(") ")[2].split()
        return self.spent([own, *map(int, children)]) + (int(ended[13]) + int(ended[14])) / _HERTZ

    def memory(self, pids: list[int]) -> float:
        """MiB that these have for themselves, in the mean."""
        sizes = []
        for pid in pids:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            sizes.append(next(int(line.split()[1]) for line in lines if line.startswith("Pss:")))
        return statistics.mean(sizes) / 1024

    def number(self, sql: str) -> int:
        """What the server counts."""
        return int(self.server.psql(sql).stdout.split()[-1])

    def end(self) -> None:
        for process in self.waiters.values():
            process.kill()
            process.wait()
        self.store.close()
        end_users_of(self.address)


def measure(fleet: Fleet) -> dict[str, Any]:
    """What the fleet costs while nothing happens, at a send to none of them, and how soon one is woken."""
    waiting, watchers = [process.pid for process in fleet.waiters.values()], fleet.watchers()
    found: dict[str, Any] = {"watchers": len(watchers)}
    found["listening connections"] = fleet.number(_LISTENERS)
    found["all connections"] = fleet.number(_BACKENDS)
    found["MiB a waiter"], found["MiB a watcher"] = fleet.memory(waiting), fleet.memory(watchers)
    commits, before = fleet.number(_COMMITS), fleet.spent(waiting + watchers)
    time.sleep(_IDLE)
    found["queries a second a host, idle"] = (fleet.number(_COMMITS) - commits) / _IDLE / _HOSTS
    found["idle ms a second, all"] = (fleet.spent(waiting + watchers) - before) / _IDLE * 1000
    server, before = fleet.of_the_server(), fleet.spent(waiting + watchers)
    for number in range(_SENDS):
        messages.send(fleet.store, ALPHA, Caller("lea"), "silent", f"number {number}")
        time.sleep(0.1)
    time.sleep(1)
    found["ms of all who wait, a send to another"] = (fleet.spent(waiting + watchers) - before) / _SENDS * 1000
    found["ms of the server a send"] = (fleet.of_the_server() - server) / _SENDS * 1000
    taken = []
    for name in fleet.names[: _SENDS // 2]:
        began = time.perf_counter()
        messages.send(fleet.store, ALPHA, Caller("lea"), name, "wake up")
        fleet.waiters[name].wait(60)
        taken.append((time.perf_counter() - began) * 1000)
    found["ms until one has its mail and ended, median"] = statistics.median(taken)
    found["ms until one has its mail and ended, longest"] = max(taken)
    return found


def bench_fleet(sizes: list[int], directory: Path) -> None:
    """Measure fleets of these sizes, and compute the one of 100 hosts from the last."""
    if why := postgres.missing():
        return print(f"  not measured: {why}")
    server = Postgres("max_connections=400", directory=directory)
    pool = PgBouncer(server, size=20) if pgbouncer.program() else None
    print(f"\n{_HOSTS} hosts, one team" + (", behind PgBouncer" if pool else f"; no pooler: {pgbouncer.NONE}"))
    try:
        for size in sizes:
            schema = f"fleet{size}"
            address = pool.address(schema) if pool else server.address(schema=schema)
            fleet = Fleet(server, address, size, directory / schema)
            try:
                found = measure(fleet)
            finally:
                fleet.end()
            print(f"  {size} who wait")
            for what, value in found.items():
                print(f"    {what:<46}{value:>9.1f}", flush=True)
        _listeners(server)
    finally:
        if pool:
            pool.stop()
        server.stop()
    return None


def _listeners(server: Postgres) -> None:
    """What a change costs the server when 10 and when 100 hosts listen, to other teams than that of the change."""
    import psycopg2

    print("  listening hosts, and ms of the server for each of 2,000 changes that concern none of them")
    links: list[Any] = []
    for size in (0, 10, 100):
        while len(links) < size:
            links.append(psycopg2.connect(server.address()))
            links[-1].autocommit = True
            links[-1].cursor().execute(f'LISTEN "other{len(links)}"')
        fleet = Fleet.__new__(Fleet)
        fleet.server = server
        before = fleet.of_the_server()
        server.psql(
            "DO $$ BEGIN FOR n IN 1..2000 LOOP PERFORM pg_notify('changed', 'message'); COMMIT; END LOOP; END $$"
        )
        cost = (fleet.of_the_server() - before) / 2000 * 1000
        print(f"    {size:<46}{cost:>9.3f}   {'ok' if cost <= _MOST_SERVER_MS else 'MISSED'}", flush=True)
    for link in links:
        link.close()


def main() -> None:
    """Measure on this machine, at the sizes given or at 10 and 100."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        bench_fleet([int(word) for word in sys.argv[1:]] or [10, 100], Path(directory))


if __name__ == "__main__":
    main()
