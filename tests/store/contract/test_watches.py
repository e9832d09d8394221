"""What the contract promises to who waits for changes, on every engine."""

from __future__ import annotations

import select
import threading
import time

import pytest

from teams_cli.store.contract import concerns
from teams_cli.store.retrying import update
from tests.store.kinds import (
    INBOX,
    TASK,
    TEAM,
    Inbox,
    Task,
    broadcast,
    make_team,
    send,
    texts,
    titles,
)


def soon(change, store):
    """Make the change while somebody waits; it may wake before it is over, so it is to be joined."""
    timer = threading.Timer(0.05, change, [store])
    timer.start()
    return timer


class TestWatch:
    def test_a_change_wakes_who_waits(self, store):
        watch = store.watch("alpha")
        for change in (
            lambda store: store.create("alpha", TASK, None, Task(title="t")),
            lambda store: store.create("alpha", INBOX, "bob", Inbox(agent="bob")),
            lambda store: update(store, "alpha", TEAM, "alpha", lambda team: team.having(leader="bob")),
            lambda store: send(store, "bob", "hello"),
            lambda store: store.journal("alpha", {"what": "said"}),
        ):
            settle(watch)
            changing = soon(change, store)
            assert watch.wait(60)
            changing.join()
        watch.close()

    def test_a_change_before_the_wait_is_not_missed(self, store):
        watch = store.watch("alpha")
        send(store, "bob", "hello")
        assert watch.wait(60)
        watch.close()

    def test_every_message_wakes(self, store):
        """Also the second in a directory that is watched already, and one in a directory that is new."""
        watch = store.watch("alpha")
        for n in range(3):
            settle(watch)
            send(store, "bob", str(n))
            assert watch.wait(60)
        watch.close()

    def test_select_wakes_too_where_it_can(self, store):
        watch = store.watch("alpha")
        settle(watch)
        if watch.fileno() is not None:
            assert select.select([watch.fileno()], [], [], 0)[0] == []
            send(store, "bob", "hello")
            assert select.select([watch.fileno()], [], [], 60)[0]
        watch.close()

    def test_without_a_change_the_time_runs_out(self, store):
        watch = store.watch("alpha")
        settle(watch)
        began = time.monotonic()
        assert not watch.wait(0.1)
        assert time.monotonic() - began >= 0.09
        assert not watch.wait(0)
        watch.close()

    @pytest.mark.parametrize(
        ("topics", "change"),
        [
            (["message/bob"], lambda store: send(store, "bob", "hello")),
            (["message/bob"], lambda store: broadcast(store, ["ann", "bob"], "hello")),
            (["message"], lambda store: send(store, "ann", "hello")),
            (["task:pending"], lambda store: store.create("alpha", TASK, None, Task(title="t"))),
            (["task/task-1"], lambda store: store.create("alpha", TASK, None, Task(title="t"))),
            (["task"], lambda store: store.create("alpha", TASK, None, Task(title="t"))),
            (["inbox/bob"], lambda store: store.create("alpha", INBOX, "bob", Inbox(agent="bob"))),
            (["team"], lambda store: update(store, "alpha", TEAM, "alpha", lambda team: team.having(leader="bob"))),
            (["history"], lambda store: store.journal("alpha", {"what": "said"})),
            (["message/ann", "task"], lambda store: store.create("alpha", TASK, None, Task(title="t"))),
        ],
    )
    def test_a_change_on_a_topic_wakes_who_asked_for_it(self, store, topics, change):
        """Also what goes into a directory that is not there yet."""
        watch = store.watch("alpha", topics)
        settle(watch)
        changing = soon(change, store)
        assert watch.wait(60)
        changing.join()
        assert concerns(topics, watch.heard)
        watch.close()

    def test_changes_on_other_topics_wake_nobody(self, store):
        for _ in range(2):  # directories that are new are looked into
            send(store, "bob", "hello")
            store.create("alpha", TASK, None, Task(title="t"))
        store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        store.journal("alpha", {"what": "said"})
        watch = store.watch("alpha", ["message/ann", "task:in_progress", "task/task-9", "plan"])
        if watch.slow:
            pytest.skip(watch.slow)  # all that others watch is too much for the system: it can't tell topics
        settle(watch)
        send(store, "bob", "hello")
        store.create("alpha", TASK, None, Task(title="t"))
        update(store, "alpha", INBOX, "bob", lambda inbox: inbox.having(up_to=1))
        update(store, "alpha", TASK, "task-1", lambda task: task.having(title="new"))
        store.journal("alpha", {"what": "said"})
        assert not watch.wait(0.1)
        watch.close()

    def test_a_record_that_gets_another_label_wakes_by_that(self, store):
        store.create("alpha", TASK, None, Task(title="t"))
        store.create("alpha", TASK, None, Task(title="u"))
        update(store, "alpha", TASK, "task-2", lambda task: task.having(status="in_progress"))
        now, before = store.watch("alpha", ["task:in_progress"]), store.watch("alpha", ["task:pending"])
        if now.slow or before.slow:
            pytest.skip(now.slow or before.slow)
        settle(now)
        settle(before)
        update(store, "alpha", TASK, "task-1", lambda task: task.having(status="in_progress"))
        assert now.wait(60)
        assert not before.wait(0.05)
        none = store.watch("alpha", ["task:"])
        settle(none)
        update(store, "alpha", TASK, "task-1", lambda task: task.having(status="completed"))
        assert none.wait(60)
        for watch in (now, before, none):
            watch.close()

    def test_who_waited_for_a_team_that_is_removed_hears_of_the_next_of_that_name(self, store):
        send(store, "bob", "hello")
        store.create("alpha", TASK, None, Task(title="t"))
        watch = store.watch("alpha")
        settle(watch)
        update(store, "alpha", TEAM, "alpha", lambda team: team.having(state="closed"))
        store.drop("alpha", TEAM, store.get("alpha", TEAM, "alpha")[1])
        assert watch.wait(60)
        settle(watch)
        make_team(store)
        assert watch.wait(60)
        settle(watch)
        for change in (
            lambda: send(store, "bob", "hello"),
            lambda: store.create("alpha", TASK, None, Task(title="t")),
        ):
            change()
            assert watch.wait(60)
            settle(watch)
        watch.close()

    def test_what_came_while_it_was_looked_at_ends_the_next_wait(self, store):
        watch = store.watch("alpha", ["message/bob"])
        settle(watch)
        send(store, "bob", "hello")
        texts(store, "bob")
        assert watch.wait(60)
        watch.close()

    def test_reading_wakes_nobody(self, store):
        send(store, "bob", "hello")
        watch = store.watch("alpha")
        settle(watch)
        texts(store, "bob")
        titles(store)
        store.get("alpha", TEAM, "alpha")
        assert not watch.wait(0.05)
        watch.close()


def settle(watch):
    """Use up what the making of the watch and earlier changes still announce."""
    while watch.wait(0.02):
        pass
