"""The watcher, one process per machine, tells all waiting commands of changes; they also work without it."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli.environment import SANDBOX
from teams_cli.extensions.postgres import schema
from teams_cli.extensions.postgres.engine import PostgresStore
from teams_cli.extensions.postgres.line import Place, is_of_this_user, name_of
from teams_cli.extensions.postgres.watches import HostWatch
from tests.conftest import server
from tests.store.kinds import TASK, Task, make_team, send, texts
from tests.support import pgbouncer
from tests.support.agents import running
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres import Postgres, schema_of
from tests.support.waits import until

pytestmark = pytest.mark.slow

PATIENCE = 60


class Machine:
    """A root with a store, and the watchers that were started there."""

    def __init__(self, address: str, root: Path) -> None:
        self.address, self.root = address, root
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("TEAMS_")}
        self.store = PostgresStore(address, str(root), environ=self.environ, patience=30)
        self.begun: list[subprocess.Popen[bytes]] = []
        self.watches: list[HostWatch] = []

    def begin(self) -> subprocess.Popen[bytes]:
        """Start a watcher, and wait until it serves."""
        self.launch()
        until(self.socket().exists)
        return self.begun[-1]

    def launch(self, linger: float = 10 * PATIENCE) -> subprocess.Popen[bytes]:
        directory = self.root / "watchers"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = name_of(self.store.server.whereabouts())
        words = [sys.executable, "-m", "teams_cli.extensions.postgres.watcher", name, str(linger)]
        environ = {**self.environ, **self.store.variables}
        self.begun.append(subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL))
        return self.begun[-1]

    def socket(self) -> Path:
        return self.root / "watchers" / name_of(self.store.server.whereabouts())

    def watch(self, topics: list[str] | None = None) -> HostWatch:
        self.watches.append(self.store.watch("alpha", topics))
        return self.watches[-1]

    def settled(self, topics: list[str] | None = None) -> HostWatch:
        """A watch that the watcher serves, and that has reported all earlier changes."""
        if not self.begun:
            self.begin()
        watch = self.watch(topics)
        settle(watch)
        return watch

    def end(self) -> None:
        for watch in self.watches:
            watch.close()
        self.store.close()
        for process in self.begun:
            process.kill()
            process.wait(PATIENCE)
        for pid in running(self.root, "extensions.postgres.watcher"):
            os.kill(pid, signal.SIGKILL)


def settle(watch: HostWatch) -> None:
    while watch.wait(0.05):
        pass


def is_served(watch: HostWatch, store: PostgresStore) -> bool:
    """Whether the watcher serves the watch, so that the store keeps no connection of its own for it."""
    return watch.fileno() is not None and not store.server._shared and type(watch._watch).__name__ == "AttachedWatch"


@pytest.fixture
def machine(address: str, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(address, tmp_path / "root")
    make_team(made.store)
    yield made
    made.end()


def hangs_up(line: socket.socket, wish: bytes) -> bool:
    """Whether the watcher ends the connection *line* without an answer to *wish*."""
    try:
        line.sendall(wish)
        return line.recv(10) == b""
    except ConnectionError:
        return True


class TestWatcher:
    def test_a_wait_starts_the_watcher_which_wakes_it_for_its_topics(self, machine):
        watch = machine.watch(["message/bob"])
        until(lambda: watch.wait(0.2) and is_served(watch, machine.store))
        settle(watch)
        send(machine.store, "ann", "not for bob")
        send(machine.store, "bob", "hello")
        until(lambda: watch.wait(0.2) and watch.heard == {"message/bob"})

    def test_one_serves_all_and_none_of_them_takes_a_connection(self, machine):
        watches = [machine.settled() for _ in range(20)]
        machine.store.server.close()
        send(machine.store, "bob", "hello")
        assert all(watch.wait(PATIENCE) for watch in watches)
        like = f"%{machine.store.session.channel('alpha')}%"
        sql = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%%LISTEN%%' AND query LIKE %s"
        assert machine.store.session.look(sql, [like])[0][0] <= 2  # the watcher's connection, and this query

    def test_a_watch_that_loses_its_watcher_misses_nothing(self, machine):
        watch = machine.settled(["message/bob"])
        machine.begun[-1].kill()
        assert watch.wait(PATIENCE)
        send(machine.store, "bob", "while nobody listened")
        assert watch.wait(PATIENCE)
        settle(watch)
        send(machine.store, "bob", "hello")
        assert watch.wait(PATIENCE)

    def test_it_serves_again_after_a_restart_of_the_server(self, tmp_path):
        server()  # skips where there is none
        own = Postgres()
        machine = Machine(own.address(), tmp_path / "root")
        try:
            make_team(machine.store)
            watch = machine.settled()
            own.kill()
            assert watch.wait(PATIENCE)
            own.start()
            assert watch.wait(PATIENCE)  # something may have been missed
            settle(watch)
            send(machine.store, "bob", "hello")
            assert watch.wait(PATIENCE)
            assert is_served(watch, machine.store) and machine.begun[-1].poll() is None
        finally:
            machine.end()
            own.stop()

    def test_a_second_watcher_ends(self, machine):
        watch = machine.settled()
        assert machine.begin().wait(PATIENCE) == 0
        assert machine.begun[0].poll() is None and is_served(watch, machine.store)

    def test_a_watcher_that_nobody_needs_ends(self, machine):
        process = machine.launch(linger=0.1)
        assert process.wait(PATIENCE) == 0
        assert not machine.socket().exists()

    def test_it_serves_only_its_user_and_only_valid_requests(self, machine):
        machine.begin()
        path = machine.socket()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        wish = b'{"team":"alpha","channels":%b,"topics":%b}\n'
        wrong = [(b'["a\\"; DROP TABLE records"]', b"null"), (b"5", b"null"), (b'["a"]', b"5"), (b"[" * 99999, b"")]
        for said in (b"\n", b"[]\n", *(wish % parts for parts in wrong)):
            with Place(str(machine.root), path.name, {}, {}).connect() as line:
                assert is_of_this_user(line)
                assert hangs_up(line, said)
        watch = machine.settled()
        send(machine.store, "bob", "hello")
        assert watch.wait(PATIENCE) and is_served(watch, machine.store)

    def test_none_is_started_in_a_sandbox(self, address, tmp_path):
        store = PostgresStore(address, str(tmp_path / "root"), environ={**os.environ, SANDBOX: "codex"})
        make_team(store)
        watch = store.watch("alpha")
        watch._look_at = 0.0
        settle(watch)
        assert not (tmp_path / "root" / "watchers").exists()
        send(store, "bob", "hello")
        assert watch.wait(PATIENCE)
        watch.close()
        store.close()


@pytest.mark.skipif(pgbouncer.program() is None, reason=pgbouncer.NONE)
def test_behind_pgbouncer_all_stores_share_few_connections_and_waiting_needs_none(address, tmp_path):
    pooler = PgBouncer(server(), size=2)
    machine = Machine(pooler.address(schema_of(address)), tmp_path / "root")
    try:
        make_team(machine.store)
        machine.begin()
        stores = [PostgresStore(machine.address, str(machine.root), environ=machine.environ) for _ in range(12)]
        watches = [store.watch("alpha", ["message/bob"]) for store in stores]
        for store in stores:
            send(store, "bob", "hello")
            store.create("alpha", TASK, None, Task(title="t"))
        assert all(watch.wait(PATIENCE) and not watch.slow for watch in watches)
        assert len(texts(stores[0], "bob")) == 12 and stores[1].last("alpha", TASK) == 12
        for watch, store in zip(watches, stores, strict=True):
            watch.close()
            store.close()
    finally:
        machine.end()
        pooler.stop()


def test_old_changes_are_forgotten(store):
    make_team(store)
    store.server.do(
        lambda link: link.change(
            "INSERT INTO changes SELECT 'old-' || n, CASE n %% 3 WHEN 0 THEN '' WHEN 1 THEN 'alpha' ELSE 'gone' END,"
            " now() - interval '4 days' FROM generate_series(1, 60) AS n WHERE %s",
            [True],
        )
    )
    kept = store.session.look("SELECT count(*) FROM changes WHERE id NOT LIKE 'old-%%' AND %s", [True])
    schema.prune(store.server)
    assert store.session.look("SELECT count(*) FROM changes") == kept != [(0,)]
