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


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
class TestHostileNames:
    """The front ends check names too; the engine makes paths of them, so it does not rely on that."""

    def test_of_teams_make_nothing(self, file_store, tmp_path, name):
        before = snapshot(tmp_path)
        for change in (
            lambda: make_team(file_store, name),
            lambda: file_store.create(name, TASK, None, Task(title="t")),
            lambda: file_store.create(name, INBOX, "bob", Inbox(agent="bob")),
            lambda: send(file_store, "bob", "hello", team=name),
            lambda: update(file_store, name, TASK, "task-1", lambda task: task.having(title="x")),
            lambda: file_store.journal(name, {"n": 1}),
        ):
            with pytest.raises((NotFound, InvalidValue)):
                change()
            assert snapshot(tmp_path) == before

    def test_of_teams_find_nothing(self, store, name):
        for ask in (
            lambda: store.get(name, TEAM, name),
            lambda: list(store.scan(name, TASK, [])),
            lambda: store.labelled(name, TASK, "pending"),
            lambda: store.read(name, MESSAGE, None, 0, []),
            lambda: store.last(name, MESSAGE),
            lambda: list(store.history(name)),
            lambda: store.watch(name),
        ):
            with pytest.raises((NotFound, InvalidValue)):
                ask()

    def test_of_records(self, store, tmp_path, name):
        before = snapshot(tmp_path)
        for kind, record in ((INBOX, Inbox(agent="bob")), (TASK, Task(title="t"))):
            with pytest.raises((NotFound, InvalidValue)):
                store.create("alpha", kind, name, record)
            with pytest.raises((NotFound, InvalidValue)):
                store.replace("alpha", kind, name, record, b"")
            with pytest.raises((NotFound, InvalidValue)):
                store.get("alpha", kind, name)
        assert snapshot(tmp_path) == before

    def test_of_recipients_and_senders_uids(self, store, tmp_path, name):
        before = snapshot(tmp_path)
        draft = Message(from_="ann", to="bob", message="hello")
        for to, uid in (([name], None), (["bob"], name), (["bob", name], name)):
            if uid != "":  # which means none
                with pytest.raises((NotFound, InvalidValue)):
                    store.append("alpha", MESSAGE, to, draft, uid)
        assert snapshot(tmp_path) == before

    def test_can_name_nothing_new(self, name):
        with pytest.raises(InvalidValue):
            check_name(name, "team")


@pytest.mark.parametrize("name", ["con", "NUL", "Aux", "com1", "LPT9", "all", "human", "System"])
def test_names_of_devices_and_reserved_words_can_name_nothing_new(name):
    with pytest.raises(InvalidValue):
        check_name(name, "agent")


@pytest.mark.parametrize(
    "key", ["msg-", "msg", "1", "msg-²", "msg-0", "msg-01", "msg--1", "msg-1\n", "task-1", "msg-" + "9" * 5000, "x-1-1"]
)
def test_what_is_no_id_of_a_message_finds_none(store, key):
    with pytest.raises(NotFound):
        store.get("alpha", MESSAGE, key)
    with pytest.raises(NotFound):
        store.confirm("alpha", MESSAGE, key)
