"""What the contract promises to processes that wait for changes, on every engine."""

from __future__ import annotations

import select
import threading
import time

import pytest

from teams_cli.store.contract import concerns, update
from tests.store.kinds import INBOX, TASK, TEAM, Inbox, Task, broadcast, close_team, make_team, send, texts, titles


def settle(watch):
    """Use up what the watch still announces: its own creation and earlier changes."""
    while watch.wait(0.02):
        pass


def quiet(watch):
    """Wait until nothing is announced any more. Meanwhile a watch may only announce that it may have missed something,
    as it does when it gets its news from another process from now on.
    """
    while watch.wait(0.1):
        assert "*" in watch.heard


@pytest.fixture
def watching(store):
    """Return a watch of the team that announces nothing from before. It is closed at the end."""
    made = []

    def watch(topics=None):
        made.append(store.watch("alpha", topics) if topics else store.watch("alpha"))
        settle(made[-1])
        return made[-1]

    yield watch
    for each in made:
        each.close()


CHANGES = {
    "message": lambda store: send(store, "bob", "hello"),
    "to several": lambda store: broadcast(store, ["ann", "bob"], "hello"),
    "task": lambda store: store.create("alpha", TASK, None, Task(title="t")),
    "inbox": lambda store: store.create("alpha", INBOX, "bob", Inbox(agent="bob")),
    "team": lambda store: update(store, "alpha", TEAM, "alpha", lambda team: team.having(leader="bob")),
    "history": lambda store: store.journal("alpha", {"what": "said"}),
}


def woken_by(change, watch, store):
    """Whether a change wakes a waiting thread. It may wake it before the change returns, so the change is joined."""
    changing = threading.Timer(0.05, change, [store])
    changing.start()
    woken = watch.wait(60)
    changing.join()
    return woken


class TestWatch:
    def test_every_change_wakes_who_waits_for_anything(self, store, watching):
        """This includes a second change in a watched directory, and a change in a new directory."""
        watch = watching()
        for change in ("task", "inbox", "team", "message", "message", "message", "history"):
            assert woken_by(CHANGES[change], watch, store), change
            settle(watch)

    @pytest.mark.parametrize(
        ("topics", "change"),
        [
            (["message/bob"], "message"),
            (["message/bob"], "to several"),
            (["message"], "message"),
            (["task:pending"], "task"),
            (["task/task-1"], "task"),
            (["task"], "task"),
            (["inbox/bob"], "inbox"),
            (["team"], "team"),
            (["history"], "history"),
            (["message/ann", "task"], "task"),
        ],
    )
    def test_a_change_on_a_topic_wakes_who_asked_for_it(self, store, watching, topics, change):
        """This includes a change in a directory that did not exist before."""
        watch = watching(topics)
        assert woken_by(CHANGES[change], watch, store)
        assert concerns(topics, watch.heard)

    def test_changes_on_other_topics_wake_nobody(self, store, watching):
        for change in ("message", "task", "message", "task", "inbox", "history"):  # new directories are looked into
            CHANGES[change](store)
        watch = watching(["message/ann", "task:in_progress", "task/task-9", "plan"])
        if watch.slow:
            pytest.skip(watch.slow)  # all that others watch is too much for the system: it can't tell topics
        for change in ("message", "task", "history"):
            CHANGES[change](store)
        update(store, "alpha", INBOX, "bob", lambda inbox: inbox.having(up_to=1))
        update(store, "alpha", TASK, "task-1", lambda task: task.having(title="new"))
        quiet(watch)

    def test_a_record_that_gets_another_label_wakes_by_that(self, store, watching):
        for status in ("pending", "in_progress"):
            store.create("alpha", TASK, None, Task(title="t", status=status))
        now, before = watching(["task:in_progress"]), watching(["task:pending"])
        if now.slow or before.slow:
            pytest.skip(now.slow or before.slow)
        update(store, "alpha", TASK, "task-1", lambda task: task.having(status="in_progress"))
        assert now.wait(60)
        quiet(before)
        none = watching(["task:"])
        update(store, "alpha", TASK, "task-1", lambda task: task.having(status="completed"))
        assert none.wait(60)

    def test_a_change_before_the_wait_or_while_it_was_looked_at_is_not_missed(self, store, watching):
        watch = watching(["message/bob"])
        send(store, "bob", "hello")
        texts(store, "bob")
        assert watch.wait(60)

    def test_select_wakes_too_where_it_can(self, store, watching):
        watch = watching()
        if watch.fileno() is not None:
            assert select.select([watch.fileno()], [], [], 0)[0] == []
            send(store, "bob", "hello")
            assert select.select([watch.fileno()], [], [], 60)[0]

    def test_without_a_change_the_time_runs_out_and_to_read_is_none(self, store, watching):
        send(store, "bob", "hello")
        watch = watching()
        woken = True
        while woken:  # for ever, if to read were a change
            texts(store, "bob")
            titles(store)
            store.get("alpha", TEAM, "alpha")
            began = time.monotonic()
            woken = watch.wait(0.1)
        assert time.monotonic() - began >= 0.09

    def test_who_waited_for_a_team_that_is_removed_hears_of_the_next_of_that_name(self, store, watching):
        for change in ("message", "task"):
            CHANGES[change](store)
        watch = watching()
        close_team(store)
        store.drop("alpha", TEAM, store.get("alpha", TEAM, "alpha")[1])
        for change in (lambda store: None, make_team, CHANGES["message"], CHANGES["task"]):
            change(store)
            assert watch.wait(60)
            settle(watch)
