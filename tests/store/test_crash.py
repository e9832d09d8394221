"""A power cut or a kill at every step of every change: acknowledged changes survive, others are there wholly or not at
all.
"""

from __future__ import annotations

import itertools

import pytest

from teams_cli.errors import AlreadyExists
from teams_cli.store.contract import update
from teams_cli.store.files import whole_team
from teams_cli.store.files.engine import FileStore
from tests.store.crashsim import Disk, Killed, Recorder, durable, fresh_places, power_cuts, put
from tests.store.histories import cheap_fsync, check, explained, stages, work_goes_on
from tests.store.kinds import INBOX, MESSAGE, TASK, TEAM, Inbox, Task, Team, broadcast, chain, make_team, seen, send


def start_task(store):
    update(store, "alpha", TASK, "task-1", lambda task: task.having(status="in_progress", owner="bob"))


def say_again(store):
    """Send a message a second time, as a client does that lost the answer. It must be durable when it is confirmed."""
    send(store, "bob", "hello", uid="one")


CHANGES = [
    make_team,
    lambda store: store.create("alpha", TASK, None, Task(title="first")),
    lambda store: store.create("alpha", TASK, None, Task(title="second", status="completed")),
    start_task,
    start_task,
    lambda store: chain(store, "one", "two"),
    lambda store: send(store, "bob", "hello", uid="one"),
    lambda store: broadcast(store, ["bob", "cid"], "hello all", uid="two"),
    say_again,
    lambda store: store.create("alpha", INBOX, "bob", Inbox(agent="bob")),
    lambda store: update(store, "alpha", INBOX, "bob", lambda inbox: inbox.having(up_to=2)),
    lambda store: update(store, "alpha", TEAM, "alpha", lambda team: team.having(leader="cid")),
    lambda store: store.journal("alpha", {"what": "all done"}),
    lambda store: store.create("beta", TEAM, "beta", Team(name="beta", leader="ann")),
    lambda store: send(store, "bob", "hello beta", uid="one", team="beta"),
]
"""Changes in order. A client that does not know whether one was done can repeat it."""


@pytest.fixture
def places():
    with fresh_places() as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "changes"), [("root", CHANGES), ("not/there/root", CHANGES[:3])])
def test_after_a_power_cut_at_any_moment(places, depth, changes):
    """This includes moments before the root and the directories above it existed."""
    top = next(places)
    expected = stages(changes)
    states = power_cuts(Disk(top), top / depth, changes)
    assert len(states) > 10 * len(changes)
    for done, said, tree in states:
        place = next(places)
        put(tree, place)
        with explained(said):
            check(place / depth, done, expected, changes)


def test_after_a_power_cut_a_new_team_gets_nothing_of_a_dropped_one(places, monkeypatch):
    """A closed team with fewer files may be left. A team that is gone has left no tasks behind."""
    monkeypatch.setattr(whole_team, "delete_trash", lambda directory: None)  # the model does not follow it
    top = next(places)
    store = FileStore(str(top / "root"))
    make_team(store)
    store.create("alpha", TASK, None, Task(title="first"))
    update(store, "alpha", TEAM, "alpha", lambda team: team.having(state="closed"))
    _, closed = store.get("alpha", TEAM, "alpha")
    for done, said, tree in power_cuts(durable(top), top / "root", [lambda store: store.drop("alpha", TEAM, closed)]):
        place = next(places)
        put(tree, place)
        with explained(said):
            store = FileStore(str(place / "root"))
            assert not (done and store.teams())
            if not store.teams():
                make_team(store)
                assert list(store.scan("alpha", TASK, [])) == []


def test_after_a_power_cut_a_task_is_found_by_the_label_that_it_had(places):
    """The mark of a label is removed only when the change can't be lost any more."""
    top = next(places)
    store = FileStore(str(top / "root"))
    make_team(store)
    store.create("alpha", TASK, None, Task(title="first"))
    for done, said, tree in power_cuts(durable(top), top / "root", [start_task]):
        place = next(places)
        put(tree, place)
        with explained(said):
            store = FileStore(str(place / "root"))
            task, _ = store.get("alpha", TASK, "task-1")
            if task.status == "pending":
                assert not done and list(store.labelled("alpha", TASK, "pending")) == ["task-1"]


def test_after_a_power_cut_while_the_log_begins_a_new_directory(places):
    top = next(places)
    store = FileStore(str(top / "root"))
    make_team(store)
    send(store, "bob", "hello", uid="old")
    log = top / "root/teams/alpha/messages/0"
    (log / "999.bob.old.json").write_text((log / "1.bob.old.json").read_text().replace("1", "999"))
    (log / "1.bob.old.json").unlink()
    changes = [lambda store: send(store, "bob", "m1000", uid="a"), lambda store: send(store, "bob", "m1001", uid="b")]
    states = power_cuts(durable(top), top / "root", changes)
    assert {done for done, _, _ in states} == {0, 1, 2}
    for done, said, tree in states:
        place = next(places)
        put(tree, place)
        with explained(said):
            store = FileStore(str(place / "root"))
            numbers = [message.number for message in store.read("alpha", MESSAGE, None, 998, [])]
            assert numbers in ([999, 1000, 1001][: done + 1], [999, 1000, 1001][: done + 2])
            following = send(store, "bob", "next").number - numbers[-1]
            assert following in (1, 2)  # the number of a lost one is not given again


@pytest.mark.slow
def test_after_a_kill_at_any_step_and_then_a_power_cut(places):
    """The next process repeats the change. Once it is answered, even a power cut may not undo it. So a process must not
    regard a file or directory of another process as durable.
    """
    expected = stages(CHANGES)
    for step in itertools.count(1):
        top = next(places)
        disk = Disk(top)
        recorder = Recorder(disk, kill_before=step)
        with recorder, explained(f"killed before step {step}"):
            done = until_killed(top / "root", CHANGES)
            if not recorder.dead:
                break
            recorder.revive()
            store = FileStore(str(top / "root"), lock_timeout=0.5)
            state = seen(store)
            assert state in expected[done : done + 2]
            repeat(store, CHANGES[done])
            acknowledged = seen(store)
            assert state == expected[done + 1] or acknowledged == expected[done + 1]
            worst = next(places)
        put(disk.worst(), worst)
        with explained(f"killed before step {step}, repeated, and the power cut"):
            assert seen(FileStore(str(worst / "root"))) == acknowledged
            with cheap_fsync():
                work_goes_on(FileStore(str(worst / "root"), lock_timeout=0.5))
    assert step > 80


def until_killed(root, changes):
    """Make the changes; return how many were done when the process was killed."""
    done = 0
    try:
        store = FileStore(str(root))
        for change in changes:
            change(store)
            done += 1
    except Killed:
        pass
    return done


def repeat(store, change):
    """Repeat a change without knowing whether it was done. A thing with a name may exist already."""
    try:
        change(store)
    except AlreadyExists as there:
        assert there.hint
