"""Records in files, and how they are edited by hand."""

from __future__ import annotations

import json
import os
import socket

from tests.store.kinds import INBOX, MESSAGE, TASK

PLACES = {
    "task": (TASK, "task-2", "tasks/alpha/task-2.json"),
    "inbox": (INBOX, "cid", "teams/alpha/inboxes/cid.json"),
    "message": (MESSAGE, "msg-2", "teams/alpha/messages/0/2.bob.u-cid.json"),
}


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
    """All records of the kind, and the problems beside them."""
    problems = []
    if kind is MESSAGE:
        return store.read("alpha", MESSAGE, None, 0, problems), problems
    found = [record for record, _ in store.scan("alpha", kind, problems)]
    beside = []
    assert list(store.documents("alpha", kind, beside)) == [record.having().to_json() for record in found]
    assert [(said.code, said.message) for said in beside] == [(said.code, said.message) for said in problems]
    return found, problems


def edit(path, **values):
    """Change fields of a file as a person with an editor would."""
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **values}, indent=2) + "\n")
