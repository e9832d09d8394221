"""Eight real processes at once: no change is lost, none is made twice, and no reader sees half of one.

Since a process runs much longer than the critical moments, chance alone would rarely find a race. So each process waits
a random time before the system calls between which another process could act.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import random
import sys
import time

import pytest

from teams_cli.errors import AlreadyExists
from teams_cli.store import opening
from teams_cli.store.contract import update
from teams_cli.store.files.engine import FileStore
from teams_cli.store.files.locks import PortableLock
from tests.conftest import new_address
from tests.store.kinds import INBOX, MESSAGE, TASK, Inbox, Task, make_team, send

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")]

PROCESSES = 8
PATIENCE = 600
_together = None


def dawdle(module, name):
    """Make a function of the system start up to 0.4 ms late."""
    function = getattr(module, name)

    def late(*arguments, **options):
        if random.random() < 0.5:
            time.sleep(random.random() * 0.0004)
        return function(*arguments, **options)

    setattr(module, name, late)


def begin(barrier):
    """Prepare each process: it knows the barrier, and waits before system calls."""
    global _together
    _together = barrier
    for name in ("rename", "open", "listdir", "write"):
        dawdle(os, name)
    dawdle(fcntl, "flock")


@pytest.fixture(scope="module")
def together():
    """Run a job in all processes at once; return the results."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(PROCESSES, begin, [context.Barrier(PROCESSES)]) as pool:
        yield lambda job, place, *more: pool.starmap(
            job, [(place, number, *more) for number in range(PROCESSES)], chunksize=1
        )
        pool.close()
        pool.join()


@pytest.fixture(params=["files", "both", "postgres"])
def place(request, tmp_path):
    """Provide the root and the address of an empty store, for every engine that processes can share and each way of
    locking: this platform's, the other one, and a different one in each process.
    """
    return str(tmp_path / "root"), new_address() if request.param == "postgres" else "files", request.param


@pytest.fixture
def store(place):
    made = opening.open_store(*place[:2])
    make_team(made)
    yield made
    made.close()


def opened(place):
    root, address, way = place
    store = opening.open_store(root, address, patience=PATIENCE)
    if way == "both" and os.getpid() % 2:
        store = FileStore(root, lock_timeout=PATIENCE, lock=PortableLock)
    _together.wait(PATIENCE)
    return store


def count_up(place, number, times):
    store = opened(place)
    for _ in range(times):
        update(store, "alpha", TASK, "task-1", lambda task: task.having(count=task.count + 1), patience=PATIENCE)


def test_no_update_is_lost(together, place, store):
    store.create("alpha", TASK, None, Task(title="t"))
    together(count_up, place, 20)
    assert store.get("alpha", TASK, "task-1")[0].count == PROCESSES * 20


def count_or_watch(place, number, times):
    """Change a record in half of the processes, and read it in the others; return what the readers saw, in order."""
    if number % 2:
        count_up(place, number, times)
        return []
    store = opened(place)
    seen = [0]
    give_up = time.monotonic() + PATIENCE
    while seen[-1] < PROCESSES // 2 * times and time.monotonic() < give_up:
        task, _ = store.get("alpha", TASK, "task-1")
        assert len(task.notes["long"]) == 20_000
        seen.append(task.count)
    return seen


def test_a_reader_sees_whole_records_and_none_twice_in_the_wrong_order(together, place, store):
    store.create("alpha", TASK, None, Task(title="t", notes={"long": "x" * 20_000}))
    for seen in together(count_or_watch, place, 15)[::2]:
        assert seen == sorted(seen) and seen[-1] == PROCESSES // 2 * 15


def first_to(create, names):
    """Return the names under which this process was the first to create something."""
    won = []
    for name in names:
        try:
            create(name)
            won.append(name)
        except AlreadyExists:
            continue
    return won


def make_teams(place, number, names):
    store = opened(place)
    return first_to(lambda name: make_team(store, name if number % 2 else name.upper()), names)


def create_inboxes(place, number, names):
    store = opened(place)
    return first_to(lambda name: store.create("alpha", INBOX, name, Inbox(agent=name, up_to=number)), names)


def test_of_several_that_make_one_team_or_record_in_a_new_root_one_wins(together, place):
    """Names of teams that differ only in case are the same."""
    names = [f"name{n}" for n in range(10)]
    won = together(make_teams, place, names)
    assert sorted(name for mine in won for name in mine) == names
    store = opening.open_store(*place[:2])
    assert len(store.teams()) == len(names)
    make_team(store)
    won = together(create_inboxes, place, names)
    assert sorted(name for mine in won for name in mine) == names
    for number, mine in enumerate(won):
        assert all(store.get("alpha", INBOX, name)[0].up_to == number for name in mine)
    store.close()


def send_or_read_on(place, number, times):
    """Send in half of the processes; in the others, read on from the last message that they saw."""
    store = opened(place)
    if number % 2:
        return [send(store, f"agent{number}", f"{number}/{n}").number for n in range(times)]
    seen = []
    give_up = time.monotonic() + PATIENCE
    while len(seen) < PROCESSES // 2 * times and time.monotonic() < give_up:
        seen += [m.number for m in store.read("alpha", MESSAGE, None, seen[-1] if seen else 0, [])]
    return seen


def test_no_message_is_lost_or_numbered_twice_or_passed_by_a_cursor(together, place, store):
    """Numbers are in the order of commitment: none appears below one that was seen."""
    results = together(send_or_read_on, place, 50)
    everything = list(range(1, PROCESSES // 2 * 50 + 1))
    assert sorted(n for mine in results[1::2] for n in mine) == everything
    for number, mine in list(enumerate(results))[1::2]:
        read = store.read("alpha", MESSAGE, f"agent{number}", 0, [])
        assert [message.number for message in read] == mine == sorted(mine)
        assert [message.message for message in read] == [f"{number}/{n}" for n in range(50)]
    assert all(seen == everything for seen in results[::2])
