"""A store of files to be damaged, and ways to damage it."""

from __future__ import annotations

import json
import os
import signal
import socket

import pytest

from tests.store.histories import cheap_fsync
from tests.store.kinds import INBOX, MESSAGE, TASK, Inbox, Task, make_team, send

PLACES = {
    "task": (TASK, "task-2", "tasks/alpha/task-2.json"),
    "inbox": (INBOX, "cid", "teams/alpha/inboxes/cid.json"),
    "message": (MESSAGE, "msg-2", "teams/alpha/messages/0/2.bob.u-cid.json"),
}


@pytest.fixture(autouse=True)
def no_hanging():
    """Fail a test that is stopped by a pipe or a device in place of a record."""
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(600)
    with cheap_fsync():
        yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _hangs(*_: object) -> None:
    raise AssertionError("hangs")


@pytest.fixture
def store(file_store):
    make_team(file_store)
    for n in (1, 2, 3):
        file_store.create("alpha", TASK, None, Task(title=f"t{n}"))
    for name in ("bob", "cid", "dan"):
        file_store.create("alpha", INBOX, name, Inbox(agent=name))
        send(file_store, "bob", f"to bob, as to {name}", uid=f"u-{name}")
    return file_store


def as_content(data):
    return lambda path: path.write_bytes(data)


def as_directory(path):
    path.unlink()
    path.mkdir()


def as_pipe(path):
    path.unlink()
    os.mkfifo(path)


def as_link_to(target):
    def replace(path):
        path.unlink()
        path.symlink_to(target)

    return replace


def as_link_to_a_good_file(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def as_socket(path):
    path.unlink()
    before = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is limited to 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def all_of(store, kind):
    """Return all records of the kind, and the problems with others."""
    problems = []
    if kind is MESSAGE:
        return store.read("alpha", MESSAGE, None, 0, problems), problems
    records = [record for record, _ in store.scan("alpha", kind, problems)]
    beside = []
    assert list(store.documents("alpha", kind, beside)) == [record.having().to_json() for record in records]
    assert [(said.code, said.message) for said in beside] == [(said.code, said.message) for said in problems]
    return records, problems


def edit(path, **values):
    """Change fields of a file, as a person with an editor would."""
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **values}, indent=2) + "\n")
