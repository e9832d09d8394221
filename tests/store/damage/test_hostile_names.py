"""Hostile names make nothing and find nothing. The engine checks them itself, because it makes paths of them."""

from __future__ import annotations

import pytest

from teams_cli.errors import InvalidValue, NotFound
from teams_cli.names import check_name
from teams_cli.store.contract import update
from tests.store.kinds import INBOX, MESSAGE, TASK, TEAM, Inbox, Message, Task, make_team, send
from tests.store.trees import snapshot

HOSTILE = ["", " ", "\n", "bob\n", "\nbob", "b\x00b", ".", "..", "../bob", "../../../../tmp/bob", "a/b", "/tmp/bob"]
HOSTILE += ["a\\b", ".hidden", "a.b", "a b", "-rf", "~", "bob²", "é", "\ud800", "b\u202eb", "b\x1b[31m", "a" * 300, "*"]
HOSTILE += ["b\u043eb"]  # the o is Cyrillic


def refused(ask, *arguments):
    with pytest.raises((NotFound, InvalidValue)):
        ask(*arguments)


def test_of_teams(store, tmp_path):
    before = snapshot(tmp_path)
    for name in HOSTILE:
        for ask in (
            lambda name: make_team(store, name),
            lambda name: store.create(name, TASK, None, Task(title="t")),
            lambda name: store.create(name, INBOX, "bob", Inbox(agent="bob")),
            lambda name: send(store, "bob", "hello", team=name),
            lambda name: update(store, name, TASK, "task-1", lambda task: task.having(title="x")),
            lambda name: store.journal(name, {"n": 1}),
            lambda name: store.get(name, TEAM, name),
            lambda name: list(store.scan(name, TASK, [])),
            lambda name: store.labelled(name, TASK, "pending"),
            lambda name: store.read(name, MESSAGE, None, 0, []),
            lambda name: store.last(name, MESSAGE),
            lambda name: list(store.history(name)),
            lambda name: store.watch(name),
        ):
            refused(ask, name)
        assert snapshot(tmp_path) == before, name


def test_of_records_recipients_and_uids(store, tmp_path):
    before = snapshot(tmp_path)
    draft = Message(from_="ann", to="bob", message="hello")
    for name in HOSTILE:
        for kind, record in ((INBOX, Inbox(agent="bob")), (TASK, Task(title="t"))):
            refused(store.create, "alpha", kind, name, record)
            refused(store.replace, "alpha", kind, name, record, b"")
            refused(store.get, "alpha", kind, name)
        refused(store.append, "alpha", MESSAGE, [name], draft, None)
        if name:  # "" means none
            refused(store.append, "alpha", MESSAGE, ["bob"], draft, name)
        assert snapshot(tmp_path) == before, name


def test_can_name_nothing_new():
    for name in (*HOSTILE, "con", "NUL", "Aux", "com1", "LPT9", "all", "human", "System"):
        with pytest.raises(InvalidValue):
            check_name(name, "agent")


def test_what_is_no_id_of_a_message_finds_none(store):
    long = "msg-" + "9" * 5000
    for key in ("msg-", "msg", "1", "msg-²", "msg-0", "msg-01", "msg--1", "msg-1\n", "task-1", long, "x-1-1"):
        for ask in (store.get, store.confirm):
            with pytest.raises(NotFound):
                ask("alpha", MESSAGE, key)
