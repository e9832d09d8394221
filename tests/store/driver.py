"""A small client that makes a few changes and tells of each, for tests that make the system fail under it.

    python -m tests.store.driver ROOT

Each line of its output is a JSON object: `{"done": 3}` when three changes are made, or `{"refused": …}` with what the
refusal said and whether the store is then as it has to be; each refused change is tried once more.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

from teams_cli.errors import AlreadyExists, OutcomeUnknown, TeamsError
from teams_cli.store.files import journal
from teams_cli.store.files.engine import FileStore
from teams_cli.store.retrying import update
from tests.store.kinds import MESSAGE, TASK, Task, chain, make_team, seen, send

assert journal  # loaded before the marked part begins


def create_task(store):
    store.create("alpha", TASK, None, Task(title="t"))


def claim(store):
    update(store, "alpha", TASK, "task-1", lambda task: task.having(status="in_progress", owner="bob"))


def tell(store):
    send(store, "bob", "hello", uid="one")


def read(store):
    problems = []
    found = store.read("alpha", MESSAGE, "bob", 0, problems)
    if problems:
        raise problems[0]
    assert [message.message for message in found] == ["hello"]


def create_two(store):
    chain(store, "t", "u")


CHANGES = [make_team, create_task, claim, create_two, tell, read]


def say(**what):
    os.write(1, json.dumps(what).encode() + b"\n")


def run(root, change, model):
    """Make the change on the store and the model; say what a refusal said and left."""
    try:
        change(FileStore(root, lock_timeout=0.5))
    except TeamsError as refused:
        state, before = seen(FileStore(root)), seen(model)
        unknown = isinstance(refused, OutcomeUnknown)
        made = unknown and state != before
        if made:
            change(model)
        as_it_has_to_be = state == seen(model)
        say(refused=refused.code, message=refused.message, unknown=unknown, right=as_it_has_to_be)
        again(root, change, None if made else model)
    else:
        change(model)


def again(root, change, model):
    """Try a refused change once more; on the model too, unless it was made already."""
    try:
        change(FileStore(root, lock_timeout=0.5))
    except AlreadyExists:
        if model is not None:
            raise
    if model is not None:
        change(model)


def main(root):
    model = FileStore(f"{tempfile.mkdtemp()}/root")
    for done, change in enumerate(CHANGES, start=1):
        run(root, change, model)
        say(done=done)


if __name__ == "__main__":
    main(sys.argv[1])
