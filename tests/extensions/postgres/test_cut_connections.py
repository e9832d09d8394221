"""Connections to PostgreSQL that break after any number of bytes, in whatever is said, again and again.

What was acknowledged is there, once, and what was not is there wholly or not; no number is given twice.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from teams_cli.errors import Busy, NothingReady, StaleClaim
from teams_cli.extensions.postgres.engine import PostgresStore
from teams_cli.messages import messages
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.retrying import update
from teams_cli.tasks import choosing, tasks
from teams_cli.tasks.changes import Edit, change_task
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams.permission import Caller
from tests.conftest import new_address, server
from tests.support.cli import ALPHA, make_team
from tests.support.wire import Wire

pytestmark = pytest.mark.slow

WORKERS, LONGEST = 6, 1_000_000
CUTS = int(os.environ.get("TESTS_CUTS", "600"))


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire(f"{server().directory}/.s.PGSQL.5432")
    yield made
    made.close()


class Worker(threading.Thread):
    """One agent over a wire that breaks; it notes what it was told."""

    def __init__(self, name: str, store: PostgresStore, wire: Wire) -> None:
        super().__init__(daemon=True)
        self.caller = Caller(name)
        self.store = store
        self.wire = wire
        self.chance = random.Random(name)
        self.made: list[str] = []
        self.claimed: list[tuple[str, int]] = []
        self.completed: dict[str, str] = {}
        self.sent: dict[str, int] = {}
        self.counted = 0
        self.unknown = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            turn = 0
            while self.wire.cuts < CUTS:
                turn += 1
                self.act(f"{self.caller.name}-{turn}")
        except Exception as failure:
            self.failure = failure

    def act(self, word: str) -> None:
        """One change of some kind; one that may have been made or not is not counted as either."""
        try:
            self.chance.choice((self.create, self.work, self.send, self.count))(word)
        except Busy:
            self.unknown += 1

    def create(self, word: str) -> None:
        draft = Task(team_name=ALPHA, title=word, created_at="")
        self.made.append(tasks.create(self.store, ALPHA, Caller("lea"), draft).id)

    def work(self, word: str) -> None:
        try:
            task = choosing.claim_next(self.store, ALPHA, self.caller)
        except NothingReady:
            return
        self.claimed.append((task.id, task.claim))
        try:
            change_task(
                self.store, ALPHA, self.caller, task.id, Edit(status="completed", result=word, claim=task.claim)
            )
        except StaleClaim:
            return
        self.completed[task.id] = word

    def send(self, word: str) -> None:
        self.sent[word] = messages.send(self.store, ALPHA, self.caller, "lea", word).number

    def count(self, word: str) -> None:
        update(self.store, ALPHA, TASK, "task-1", lambda task: task.having(result=f"{int(task.result or 0) + 1}"))
        self.counted += 1


def test_nothing_acknowledged_is_lost_and_nothing_is_made_twice(wire: Wire, tmp_path: Path, monkeypatch: Any) -> None:
    address = new_address()
    monkeypatch.setenv("TEAMS_STORE", address)
    cli = make_team(tmp_path / "root", *(f"a{n}" for n in range(WORKERS)))
    tasks.create(cli.store(), ALPHA, Caller("lea"), Task(team_name=ALPHA, title="a counter", created_at=""))
    update(cli.store(), ALPHA, TASK, "task-1", lambda task: task.having(status="cancelled", result="0"))
    frayed = f"postgresql://teams@127.0.0.1:{wire.port}/postgres?sslmode=disable&schema={address.rpartition('=')[2]}"
    wire.fray(random.Random(11), LONGEST)
    stores = [PostgresStore(frayed, str(tmp_path / f"{n}"), patience=60) for n in range(WORKERS)]
    workers = [Worker(f"a{n}", store, wire) for n, store in enumerate(stores)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.failure for worker in workers] == [None] * WORKERS
    acknowledged = check(cli.store(), workers)
    print(f"{wire.cuts} cuts, {acknowledged} acknowledged changes: 0 lost, 0 numbers given twice")


def check(store: Any, workers: list[Worker]) -> int:
    """Compare what was acknowledged with what is there; how much that was."""
    found = {task.id: task for task in tasks.all_of(store, ALPHA, [])}
    made = [key for worker in workers for key in worker.made]
    assert len(set(made)) == len(made) and set(made) <= set(found)
    assert sorted(found) == sorted(f"task-{n}" for n in range(1, len(found) + 1))
    claimed = [claim for worker in workers for claim in worker.claimed]
    assert len(set(claimed)) == len(claimed), "one claim has two owners"
    completed = {key: word for worker in workers for key, word in worker.completed.items()}
    assert {key: found[key].result for key in completed} == completed
    sent = {word: number for worker in workers for word, number in worker.sent.items()}
    log = store.read(ALPHA, MESSAGE, None, 0, [])
    assert {m.message: m.number for m in log if m.message in sent} == sent
    assert len({message.message for message in log}) == len(log), "a message was stored twice"
    counted, unknown = sum(worker.counted for worker in workers), sum(worker.unknown for worker in workers)
    assert counted <= int(found["task-1"].result) <= counted + unknown
    return len(made) + len(claimed) + len(completed) + len(sent) + counted
