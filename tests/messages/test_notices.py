"""Notices that changes owe: each arrives once, whatever cuts the change off."""

from __future__ import annotations

from teams_cli import kinds
from teams_cli.membership import founding, joining
from teams_cli.messages.messages import MESSAGE
from teams_cli.messages.notices import settle
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import claims, tasks
from teams_cli.tasks.changes import Edit, change_task
from teams_cli.tasks.tasks import STATUSES, TASK, Task
from teams_cli.teams.caller import Caller
from tests.store.crashsim import Disk, fresh_places, power_cuts, put, taken
from tests.store.histories import cheap_fsync, explained
from tests.support.cli import ALPHA

LEA, BOB = Caller("lea"), Caller("bob")


def _complete(store):
    change_task(store, ALPHA, BOB, "1", Edit(status="completed"))


def _in_progress(root):
    """A team of which bob has a task in progress."""
    store = FileStore(str(root))
    founding.spawn_team(store, ALPHA, LEA)
    joining.join(store, ALPHA, BOB)
    tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title="t", created_at="2030-01-01T00:00:00.000Z"))
    claims.claim(store, ALPHA, BOB, "1")


def test_after_a_power_cut_while_a_task_is_completed_its_leader_hears_of_it_once():
    with fresh_places() as places:
        top = next(places)
        _in_progress(top / "root")
        disk = Disk(top)
        disk.load(taken(top))
        states = power_cuts(disk, top / "root", [_complete])
        assert {done for done, _, _ in states} == {0, 1} and len(states) > 50
        for done, said, tree in states:
            place = next(places)
            put(tree, place)
            with explained(said), cheap_fsync():
                _check(FileStore(str(place / "root")), done)


def _check(store, done):
    """What was answered for is there, what is owed for it is sent by whoever comes next, and never twice. Of marks, a
    power cut may leave any: `teams doctor --fix` mends them.
    """
    for _ in store.examine(kinds.ALL, fix=True):
        pass
    task = tasks.get(store, ALPHA, "1")
    assert task.status == "completed" or not done
    for _, key in store.owing(ALPHA):
        settle(store, ALPHA, TASK, key)
    assert _heard(store) == (task.status == "completed")
    assert list(store.owing(ALPHA)) == []
    assert [found.id for found in tasks.labelled(store, ALPHA, task.status)] == ["task-1"]
    _complete(store)
    assert _heard(store) == 1
    assert tasks.get(store, ALPHA, "1").owed is None
    assert [label for label in STATUSES if any(tasks.labelled(store, ALPHA, label))] == ["completed"]


def _heard(store):
    return sum("completed by bob" in message.message for message in store.read(ALPHA, MESSAGE, "lea", 0, []))
