"""What the file engine promises beyond the contract: its layout, its locks, and that reading leaves no trace."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import stat
import time
from contextlib import contextmanager

import pytest

from teams_cli.errors import AlreadyExists, Busy, NotFound, OutcomeUnknown, StorageFailed
from teams_cli.store.contract import update
from teams_cli.store.files.engine import FileStore
from teams_cli.store.files.locks import LOCK
from teams_cli.store.files.whole_team import Closing
from tests.store.faults import Fault
from tests.store.kinds import (
    CHANGES,
    MESSAGE,
    TASK,
    TEAM,
    Task,
    broadcast,
    close_team,
    make_team,
    seen,
    send,
    texts,
)
from tests.store.trees import snapshot


@pytest.fixture
def store(used_store):
    send(used_store, "bob", "first", uid="one")
    broadcast(used_store, ["bob", "cid"], "second", uid="two")
    return used_store


def start(task):
    return task.having(status="in_progress")


def before_second_lock(root, act):
    """Return a store that calls *act* before it takes its second lock, in which it removes marks."""
    taken = []

    class Late(LOCK):
        def __enter__(self):
            taken.append(self.path)
            if len(taken) == 2:
                act()
            super().__enter__()

    return FileStore(str(root), lock=Late), taken


def test_a_mark_stays_when_the_record_was_changed_back_before_it_is_removed(store, root):
    late, taken = before_second_lock(
        root, lambda: update(store, "alpha", TASK, "task-1", lambda task: task.having(status="pending"))
    )
    update(late, "alpha", TASK, "task-1", start)
    assert len(taken) == 2
    held = [list(store.labelled("alpha", TASK, label)) for label in ("pending", "in_progress")]
    assert held == [["task-1"], []]


def test_a_task_whose_writer_was_killed_before_it_removed_a_mark_wakes_who_waits(store, root):
    """Both labels wake, even if nobody ever removes a mark."""
    store.create("alpha", TASK, None, Task(title="u", status="in_progress"))
    watch, other = store.watch("alpha", ["task:in_progress"]), store.watch("alpha", ["task:completed"])
    if watch.slow or other.slow:
        pytest.skip(watch.slow or other.slow)
    with pytest.raises(ZeroDivisionError):
        update(before_second_lock(root, lambda: 1 // 0)[0], "alpha", TASK, "task-1", start)
    assert watch.wait(60)
    assert "task:in_progress" in watch.heard
    assert not other.wait(0)
    watch.close()
    other.close()


def test_the_layout_is_the_documented_one(store, root):
    assert {path for path, content in snapshot(root).items() if isinstance(content, bytes)} == {
        "README",
        "teams/alpha/team.json",
        "teams/alpha/inboxes/bob.json",
        "teams/alpha/messages/0/1.bob.one.json",
        "teams/alpha/messages/0/2.@.two.json",
        "tasks/alpha/task-1.json",
        "tasks/alpha/index/pending/task-1",
        "teams/alpha/messages/.last.2",
        "tasks/alpha/.last.1",
    }
    text = (root / "teams/alpha/messages/0/2.@.two.json").read_text()
    assert text.startswith('{\n  "id": "msg-2",\n  "number": 2,\n  "from": "ann",\n  "to": "all",\n')
    assert text.endswith("\n}\n")
    assert list(json.loads(text)) == ["id", "number", "from", "to", "message", "recipients", "checksum"]


def test_all_is_for_the_owner_alone_whatever_the_umask(file_store, root):
    before = os.umask(0)
    try:
        make_team(file_store)
        for change in ("tasks/alpha", "teams/alpha/messages"):
            CHANGES[change](file_store)
        file_store.journal("alpha", {"what": "done"})
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in [root, *root.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if not path.is_dir()} == {0o600}


def test_reading_makes_nothing_and_changes_nothing(file_store, store, root, tmp_path):
    nowhere = FileStore(str(tmp_path / "nowhere"))
    assert seen(nowhere)["alpha"]["team"] is None
    with pytest.raises(NotFound):
        nowhere.get("alpha", TASK, "task-1")
    assert nowhere.last("alpha", MESSAGE) == 0 and list(nowhere.labelled("alpha", TASK, "pending")) == []
    nowhere.watch("alpha").close()
    assert not (tmp_path / "nowhere").exists()
    before = {path: path.lstat().st_mtime_ns for path in root.rglob("*")}
    seen(store)
    list(store.labelled("alpha", TASK, "pending"))
    assert {path: path.lstat().st_mtime_ns for path in root.rglob("*")} == before


@pytest.mark.parametrize(
    "error", [errno.ENOSPC, pytest.param(errno.EIO, marks=pytest.mark.slow)], ids=errno.errorcode.get
)
@pytest.mark.parametrize("directory", CHANGES)
def test_each_call_to_the_system_fails_in_turn(store, root, directory, error):
    """The change is refused with a path and leaves nothing, or is of unknown outcome. A retry succeeds."""
    unknown = not_removed = 0
    update(store, "alpha", TASK, "task-1", lambda task: task.having(title="first"))  # so that it has seen all
    time.sleep(0.05)  # what is older than this is not opened again, so that each change makes the same calls
    for nth in itertools.count(1):
        before = seen(store), store.teams()
        fault = Fault(nth, error)
        try:
            with fault:
                CHANGES[directory](store)
        except OutcomeUnknown:
            unknown += 1
        except StorageFailed as refused:
            assert store.address in refused.message
            assert (seen(store), store.teams()) == before, fault.happened
        except AlreadyExists:
            assert (seen(store), store.teams()) == before
        assert seen(FileStore(str(root))) == seen(store), fault.happened  # nor does it remember what is not there
        not_removed += fault.happened == "unlink"
        if not fault.happened:
            break
    assert nth > 5 and unknown > 0
    assert len(os.listdir(root / "tmp")) <= not_removed


def test_a_number_that_could_not_be_reserved_is_refused(store):
    """Otherwise a number that was given could be given again."""
    for nth in itertools.count(1):
        fault = Fault(nth, errno.ENOSPC)
        try:
            with fault:
                store.reserve("alpha", MESSAGE, 100 + nth)
        except (OutcomeUnknown, StorageFailed):
            continue
        assert store.last("alpha", MESSAGE) == 100 + nth, fault.happened
        if not fault.happened:
            break
    assert nth > 3


@contextmanager
def held(path):
    """Hold the lock in this process. flock treats another open file like another process."""
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize("directory", CHANGES)
def test_a_lock_that_is_held_means_busy_and_no_change(store, root, directory):
    store.lock_timeout = 0.05
    lock = root / directory / ".lock"
    with held(lock):
        before = snapshot(root)
        with pytest.raises(Busy) as refused:
            CHANGES[directory](store)
        assert str(lock) in refused.value.message
        assert str(os.getpid()) in refused.value.message
        assert snapshot(root) == before
        assert texts(store, "bob") == ["first", "second"]
        if directory != "teams/alpha/messages":  # messages do not wait for anything else
            assert send(store, "bob", "third").number == 3
    CHANGES[directory](store)


@pytest.mark.parametrize("directory", ["tasks/alpha", "teams/alpha/messages", "teams/alpha/inboxes"])
def test_a_team_is_closed_when_nobody_changes_anything_in_it(store, root, directory):
    """A process that has a lock has read the team's state, and may be about to write."""
    for change in CHANGES.values():
        change(store)
    store.lock_timeout = 0.05
    with held(root / directory / ".lock"):
        with pytest.raises(Busy, match=directory):
            close_team(store)
        assert store.get("alpha", TEAM, "alpha")[0].state == "active"
    close_team(store)
    assert store.get("alpha", TEAM, "alpha")[0].state == "closed"


def test_closing_holds_a_lock_whose_file_was_not_there(store, root):
    store.lock_timeout = 0.05
    (root / "teams/alpha/.lock").unlink(missing_ok=True)
    with Closing(store.address, "alpha", lambda directory: LOCK(directory, 1.0)), pytest.raises(Busy):
        CHANGES["teams/alpha"](store)


@pytest.mark.parametrize("remove", ["tmp", "README", "tasks/alpha/index", "teams/.lock", "tasks/alpha/.lock"])
def test_what_the_store_can_make_anew_it_does(store, root, tmp_path, remove):
    (root / remove).rename(tmp_path / "moved away")
    store = FileStore(str(root))
    for change in CHANGES.values():
        change(store)
    assert (root / remove).exists()
