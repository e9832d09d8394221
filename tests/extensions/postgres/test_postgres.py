"""A server that is killed while eight processes work loses nothing that was acknowledged, and does nothing twice."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli.messages.messages import MESSAGE
from teams_cli.store import opening
from teams_cli.tasks import tasks
from tests.conftest import server
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, make_team
from tests.support.postgres import Postgres, end_users_of

pytestmark = pytest.mark.slow

PROCESSES, TASKS, KILLS = 8, 400, 4
PATIENCE = (0.05, 60.0)
"""Seconds that clients with even and with odd numbers wait for a server."""
WORKER = """
import os, sys
from teams_cli.tasks import claims
from teams_cli.messages import messages
from teams_cli.teams.permission import Caller
from teams_cli.errors import Busy, NothingReady, StaleClaim, WrongState
from teams_cli.store.opening import open_store
from teams_cli.tasks.changes import Edit, change_task

name, patience = sys.argv[1], float(sys.argv[2])
store, caller = open_store(os.environ["TEAMS_HOME"], os.environ["TEAMS_STORE"], patience), Caller(name)

def insist(what, change):
    while True:
        try:
            return change()
        except Busy as busy:
            assert busy.status == 12
            print("told", busy.code, flush=True)

sent = 0
while True:
    try:
        task = insist("claim", lambda: claims.claim_next(store, "alpha", caller))
    except NothingReady:
        break
    print("claimed", task.id, flush=True)
    uid = f"{name}-{sent}"
    number = insist("send", lambda: messages.send(store, "alpha", caller, "lea", uid, uid)).number
    print("sent", uid, number, flush=True)
    sent += 1
    try:
        insist("complete", lambda: change_task(
            store, "alpha", caller, task.id, Edit(status="completed", result=uid, claim=task.claim)))
    except StaleClaim:
        continue
    print("completed", task.id, uid, flush=True)
"""


@pytest.fixture
def own() -> Iterator[Postgres]:
    """A server with default settings that a test may kill."""
    server()  # skips where there is none
    made = Postgres()
    yield made
    end_users_of(made.address())
    made.stop()


def test_a_server_killed_in_a_storm(own: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that do not wait may be told "busy" or "unknown"; others notice nothing."""
    monkeypatch.setenv("TEAMS_STORE", own.address())
    names = [f"a{n}" for n in range(PROCESSES)]
    cli = make_team(tmp_path / "root", *names)
    add_tasks(cli, *(f"t{n}" for n in range(TASKS)))
    running = [start(cli, name, PATIENCE[n % 2]) for n, name in enumerate(names)]
    for kill in range(1, KILLS + 1):
        store = opening.open_store(str(cli.root), own.address(), patience=30)
        while sum(task.status == "completed" for task in tasks.all_of(store, ALPHA, [])) < kill * TASKS // (KILLS + 2):
            time.sleep(0.05)
        store.close()
        own.kill()
        time.sleep(0.3)  # clients find nobody there
        own.start()
    said = [[line.split() for line in process.communicate(timeout=TIMEOUT)[0].splitlines()] for process in running]
    assert all(process.returncode == 0 for process in running)
    hasty, patient = ([words for lines in said[n::2] for words in lines] for n in (0, 1))
    assert "told" not in [words[0] for words in patient]
    check(cli, hasty + patient)


def start(cli: Cli, name: str, patience: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WORKER, name, str(patience)]
    return subprocess.Popen(words, env=cli.environ(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def check(cli: Cli, said: list[list[str]]) -> None:
    """Everything that the processes reported is stored exactly once."""
    store = cli.store()
    found = {task.id: task for task in tasks.all_of(store, ALPHA, [])}
    claimed = [words[1] for words in said if words[0] == "claimed"]
    assert len(claimed) == len(set(claimed)), "a task was claimed twice"
    assert all(len([note for note in task.notes if note.what == "claimed"]) <= 1 for task in found.values())
    completed = {words[1]: words[2] for words in said if words[0] == "completed"}
    assert {key: found[key].result for key in completed} == completed
    assert all(found[key].status == "completed" for key in completed)
    sent = {words[1]: int(words[2]) for words in said if words[0] == "sent"}
    log = store.read(ALPHA, MESSAGE, "lea", 0, [])
    numbers = {message.message: message.number for message in log if message.from_ != "system"}
    assert {uid: numbers[uid] for uid in sent} == sent
    assert [message.number for message in store.read(ALPHA, MESSAGE, None, 0, [])] == list(range(1, len(log) + 1))
    # If the answer to a claim was lost, the task stays in progress until its lease ends.
    assert {task.status for task in found.values()} <= {"completed", "in_progress"}
