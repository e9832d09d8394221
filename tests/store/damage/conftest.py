"""A store of files, to be damaged."""

from __future__ import annotations

import signal

import pytest

from tests.store.histories import cheap_fsync
from tests.store.kinds import INBOX, TASK, Inbox, Task, make_team, send


@pytest.fixture(autouse=True)
def no_hanging():
    """A pipe or a device in a record's place must not stop the program."""
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _hangs(*_: object) -> None:
    raise AssertionError("hangs")


@pytest.fixture(autouse=True)
def no_power_cuts():
    with cheap_fsync():
        yield


@pytest.fixture
def store(file_store):
    make_team(file_store)
    for n in (1, 2, 3):
        file_store.create("alpha", TASK, None, Task(title=f"t{n}"))
    for name in ("bob", "cid", "dan"):
        file_store.create("alpha", INBOX, name, Inbox(agent=name))
        send(file_store, "bob", f"to bob, as to {name}", uid=f"u-{name}")
    return file_store
