"""Notices that a change owes arrive once, even if the change is cut off by a kill or by a power cut."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest

from teams_cli import kinds
from teams_cli.membership import joining
from teams_cli.messages.messages import MESSAGE
from teams_cli.messages.notices import deliver, send_owed_by
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import update
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import claims, tasks
from teams_cli.tasks.changes import Edit, change_task
from teams_cli.tasks.tasks import STATUSES, TASK, Task
from teams_cli.teams.permission import Caller
from tests.store.crashsim import Killed, Recorder, collecting, durable, fresh_places, power_cuts, put
from tests.store.histories import cheap_fsync, explained
from tests.support.cli import ALPHA

LEA, BOB, HUMAN = Caller("lea"), Caller("bob"), Caller("human")


def _complete(store):
    change_task(store, ALPHA, BOB, "1", Edit(status="completed"))


def _release(store):
    update(store, ALPHA, TASK, "task-1", lambda task: task.freed())


def _completed(task):
    """The task after its completion was stored, when nobody has been told of it."""
    told = Owed(to="lea", message="completed by bob", uid="completed")
    return owing(task.having(status="completed"), told)


def _in_progress(root):
    """Make a team in which bob has a task in progress, and return another store of it, in a tuple."""
    store = FileStore(str(root))
    joining.spawn_team(store, ALPHA, LEA)
    joining.join(store, ALPHA, BOB)
    tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title="t", created_at="2030-01-01T00:00:00.000Z"))
    claims.claim(store, ALPHA, BOB, "1")
    return (FileStore(str(root), lock_timeout=0.5),)


@pytest.mark.slow
def test_after_a_power_cut_while_a_task_is_completed_its_leader_hears_of_it_once():
    with fresh_places() as places:
        top = next(places)
        _in_progress(top / "root")
        states = power_cuts(durable(top), top / "root", [_complete])
        assert {done for done, _, _ in states} == {0, 1} and len(states) > 50
        for done, said, tree in states:
            place = next(places)
            put(tree, place)
            with explained(said), cheap_fsync():
                _check(FileStore(str(place / "root")), done)


@pytest.mark.slow
def test_no_power_cut_takes_back_what_the_leader_heard_after_a_kill():
    def settle_all(store):
        for _, key in store.owing(ALPHA):
            send_owed_by(store, ALPHA, TASK, key)

    assert _cut_after_kills(_in_progress, _complete, settle_all, "in_progress") > 20


@pytest.mark.slow
def test_a_sent_notice_is_no_longer_owed_even_if_another_change_of_the_task_is_killed():
    """A power cut may undo the killed change, after which the task is found by its earlier status."""

    def owing_its_notice(root):
        (store,) = _in_progress(root)
        return store, update(store, ALPHA, TASK, "task-1", _completed)[1]

    def reopen(store):
        change_task(store, ALPHA, HUMAN, "1", Edit(status="pending"))

    def send(store, task):
        deliver(store, ALPHA, TASK, task)
        assert not any(told.uid == "completed" for told in tasks.get(store, ALPHA, "1").owed or ())
        assert _heard(store) >= 1

    assert _cut_after_kills(owing_its_notice, reopen, send, "completed") > 10


@pytest.mark.slow
def test_marks_are_made_anew_only_from_what_no_power_cut_takes_back():
    def mark(store):
        store.correct_hints(ALPHA, TASK, ["task-1"])

    assert _cut_after_kills(_in_progress, _release, mark, "in_progress") > 5


def test_a_change_wakes_who_waits_before_what_it_owes_is_sent(tmp_path):
    _in_progress(tmp_path / "root")
    store = FileStore(str(tmp_path / "root"))
    watch = store.watch(ALPHA, tasks.FREED)
    if watch.slow:
        pytest.skip(watch.slow)
    update(store, ALPHA, TASK, "task-1", _completed)
    assert watch.wait(0) and "task:completed" in watch.heard
    watch.close()


def _cut_after_kills(prepare, change, go_on, before):
    """Kill *change* before each step, *go_on*, check what power cuts may leave, and count the steps."""
    with fresh_places() as places:
        for step in itertools.count(1):
            top = next(places)
            prepared = prepare(top / "root")
            with Recorder(durable(top), kill_before=step) as recorder:
                with suppress(Killed):
                    change(FileStore(str(top / "root"), lock_timeout=0.5))
                if not recorder.dead:
                    return step
                recorder.revive()
                found = collecting(recorder)
                go_on(*prepared)
            _check_after_power_cuts(found, places, before, f"killed before step {step}")


def _check_after_power_cuts(found, places, before, what):
    """Check that lea has heard nothing untrue, and that a task with the label *before* is found by it."""
    for said, tree in found.values():
        place = next(places)
        put(tree, place)
        with explained(f"{what}: {said}"):
            store = FileStore(str(place / "root"))
            task = tasks.get(store, ALPHA, "1")
            assert task.status != "in_progress" or not _heard(store)
            if task.status == before:
                assert [found.id for found in tasks.labelled(store, ALPHA, before)] == ["task-1"]


def _check(store, done):
    """Check that an answered change is kept, its notice sent once, and the marks mended by `--fix`."""
    for _ in store.examine(kinds.ALL, fix=True):
        pass
    task = tasks.get(store, ALPHA, "1")
    assert task.status == "completed" or not done
    for _, key in store.owing(ALPHA):
        send_owed_by(store, ALPHA, TASK, key)
    assert _heard(store) == (task.status == "completed")
    assert list(store.owing(ALPHA)) == []
    assert [found.id for found in tasks.labelled(store, ALPHA, task.status)] == ["task-1"]
    _complete(store)
    assert _heard(store) == 1
    assert tasks.get(store, ALPHA, "1").owed is None
    assert [label for label in STATUSES if any(tasks.labelled(store, ALPHA, label))] == ["completed"]


def _heard(store):
    return sum("completed by bob" in message.message for message in store.read(ALPHA, MESSAGE, "lea", 0, []))
