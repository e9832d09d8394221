"""The loop through which all changes go, on every engine."""

from __future__ import annotations

import time

import pytest

from teams_cli.errors import Busy, NotFound
from teams_cli.store.contract import update, upsert
from tests.store.contract.conftest import in_threads
from tests.store.kinds import INBOX, TASK, Inbox, Task, titles


def count(store):
    return update(store, "alpha", TASK, "task-1", lambda task: task.having(count=task.count + 1))


def note_read(store):
    upsert(store, "alpha", INBOX, "bob", Inbox(agent="bob"), lambda inbox: inbox.having(up_to=inbox.up_to + 1))


class TestUpdate:
    def test_starts_anew_when_another_was_first_and_gives_the_old_and_the_new(self, store):
        store.create("alpha", TASK, None, Task(title="t"))
        seen = []

        def change(task: Task) -> Task:
            seen.append(task.count)
            if len(seen) < 3:
                count(store)
            return task.having(title=f"{task.title}!")

        old, new = update(store, "alpha", TASK, "task-1", change)
        assert (old.count, old.title, new.count, new.title, seen) == (2, "t", 2, "t!", [0, 1, 2])
        assert store.get("alpha", TASK, "task-1")[0] == new

    def test_the_record_itself_means_no_change(self, store):
        _, revision = store.create("alpha", TASK, None, Task(title="t"))
        assert update(store, "alpha", TASK, "task-1", lambda task: task)[1].title == "t"
        assert store.get("alpha", TASK, "task-1")[1] == revision
        with pytest.raises(NotFound):
            update(store, "alpha", TASK, "task-2", lambda task: task)

    def test_gives_up_when_others_are_always_first(self, store):
        store.create("alpha", TASK, None, Task(title="t"))

        def change(task: Task) -> Task:
            count(store)
            return task.having(title="mine")

        with pytest.raises(Busy):
            update(store, "alpha", TASK, "task-1", change, patience=0.05)
        assert titles(store) == {"task-1": "t"}

    def test_one_turn_may_take_longer_than_that(self, store):
        """A slow change that lost a race is tried again, even after *patience* is over."""
        store.create("alpha", TASK, None, Task(title="t"))
        seen = []

        def change(task: Task) -> Task:
            seen.append(task.count)
            if len(seen) == 1:
                count(store)
                time.sleep(0.1)
            return task.having(title="mine")

        update(store, "alpha", TASK, "task-1", change, patience=0.05)
        assert titles(store) == {"task-1": "mine"} and seen == [0, 1]


class TestUpsert:
    def test_makes_what_is_not_there_and_changes_what_is(self, store):
        upsert(store, "alpha", INBOX, "bob", Inbox(agent="bob"), lambda inbox: inbox)
        with pytest.raises(NotFound):
            store.get("alpha", INBOX, "bob")
        for expected in (1, 2):
            note_read(store)
            assert store.get("alpha", INBOX, "bob")[0].up_to == expected

    def test_of_several_loses_no_change(self, store):
        in_threads(8, lambda n: note_read(store))
        assert store.get("alpha", INBOX, "bob")[0].up_to == 8
