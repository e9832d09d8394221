"""Names that are hostile: they make nothing and find nothing."""

from __future__ import annotations

import pytest

from teams_cli.errors import InvalidValue, NotFound
from teams_cli.names import check_name
from teams_cli.store.retrying import update
from tests.store.kinds import INBOX, MESSAGE, TASK, TEAM, Inbox, Message, Task, make_team, send
from tests.store.trees import snapshot

HOSTILE = [
    "",
    " ",
    "\n",
    "bob\n",
    "\nbob",
    "b\x00b",
    ".",
    "..",
    "../bob",
    "../../../../tmp/bob",
    "a/b",
    "/tmp/bob",
    "a\\b",
    ".hidden",
    "a.b",
    "a b",
    "-rf",
    "~",
    "b\u043eb",  # the o is Cyrillic
    "bob²",
    "é",
    "\ud800",
    "b\u202eb",
    "b\x1b[31m",
    "a" * 300,
    "*",
]


class TestHostileNames:
    """The front ends check names too; the engine makes paths of them, so it does not rely on that."""

    def test_of_teams_make_nothing(self, file_store, tmp_path):
        for name in HOSTILE:
            for change in (
                lambda name: make_team(file_store, name),
                lambda name: file_store.create(name, TASK, None, Task(title="t")),
                lambda name: file_store.create(name, INBOX, "bob", Inbox(agent="bob")),
                lambda name: send(file_store, "bob", "hello", team=name),
                lambda name: update(file_store, name, TASK, "task-1", lambda task: task.having(title="x")),
                lambda name: file_store.journal(name, {"n": 1}),
            ):
                before = snapshot(tmp_path)
                with pytest.raises((NotFound, InvalidValue)):
                    change(name)
                assert snapshot(tmp_path) == before, name

    def test_of_teams_find_nothing(self, store):
        for name in HOSTILE:
            for ask in (
                lambda name: store.get(name, TEAM, name),
                lambda name: list(store.scan(name, TASK, [])),
                lambda name: store.labelled(name, TASK, "pending"),
                lambda name: store.read(name, MESSAGE, None, 0, []),
                lambda name: store.last(name, MESSAGE),
                lambda name: list(store.history(name)),
                lambda name: store.watch(name),
            ):
                with pytest.raises((NotFound, InvalidValue)):
                    ask(name)

    def test_of_records(self, store, tmp_path):
        before = snapshot(tmp_path)
        for name in HOSTILE:
            for kind, record in ((INBOX, Inbox(agent="bob")), (TASK, Task(title="t"))):
                with pytest.raises((NotFound, InvalidValue)):
                    store.create("alpha", kind, name, record)
                with pytest.raises((NotFound, InvalidValue)):
                    store.replace("alpha", kind, name, record, b"")
                with pytest.raises((NotFound, InvalidValue)):
                    store.get("alpha", kind, name)
            assert snapshot(tmp_path) == before, name

    def test_of_recipients_and_senders_uids(self, store, tmp_path):
        before = snapshot(tmp_path)
        draft = Message(from_="ann", to="bob", message="hello")
        for name in HOSTILE:
            for to, uid in (([name], None), (["bob"], name), (["bob", name], name)):
                if uid != "":  # which means none
                    with pytest.raises((NotFound, InvalidValue)):
                        store.append("alpha", MESSAGE, to, draft, uid)
            assert snapshot(tmp_path) == before, name

    def test_can_name_nothing_new(self):
        for name in HOSTILE:
            with pytest.raises(InvalidValue):
                check_name(name, "team")


def test_names_of_devices_and_reserved_words_can_name_nothing_new():
    for name in ("con", "NUL", "Aux", "com1", "LPT9", "all", "human", "System"):
        with pytest.raises(InvalidValue):
            check_name(name, "agent")


def test_what_is_no_id_of_a_message_finds_none(store):
    long = "msg-" + "9" * 5000
    for key in ("msg-", "msg", "1", "msg-²", "msg-0", "msg-01", "msg--1", "msg-1\n", "task-1", long, "x-1-1"):
        with pytest.raises(NotFound):
            store.get("alpha", MESSAGE, key)
        with pytest.raises(NotFound):
            store.confirm("alpha", MESSAGE, key)
