"""Waiting for a change in files: how it is announced, and how it is found without an announcement."""

from __future__ import annotations

import os

import pytest

from teams_cli.store.files.watches import InotifyWatch, polling_watch
from tests.store.kinds import CHANGES, send


@pytest.fixture
def store(used_store):
    send(used_store, "bob", "first")
    return used_store


def polling(store):
    return polling_watch(f"{store.root}/teams/alpha", f"{store.root}/tasks/alpha")


def test_without_inotify_the_watch_looks_again_and_again(store):
    """Many systems allow a user 128 instances."""
    watch = polling(store)
    assert not watch.wait(0.03)
    for change in ("tasks/alpha", "teams/alpha/messages", "teams/alpha/inboxes"):
        CHANGES[change](store)
        assert watch.wait(60), change
    watch.close()


@pytest.mark.slow
def test_a_change_that_left_the_same_time_as_the_one_before_is_seen(store, root):
    """The times of most file systems have steps of some milliseconds, of some of a second."""
    watch = polling(store)
    send(store, "bob", "first")
    assert watch.wait(60)
    log = root / "teams/alpha/messages"
    times = [(path, path.stat()) for path in (log, *log.glob("[0-9]*"))]
    send(store, "bob", "second")
    for path, state in times:
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert watch.wait(60)
    assert not watch.wait(0.1)


class _NoMoreWatches:
    """The C library of a user who has as many watches as the system allows."""

    def inotify_add_watch(self, descriptor: int, path: bytes, mask: int) -> int:
        return -1


def test_without_a_watch_left_it_looks_again_and_says_so(store, root):
    descriptor, other_end = os.pipe2(os.O_NONBLOCK)
    places = str(root / "teams/alpha"), str(root / "tasks/alpha")
    watch = InotifyWatch(*places, ["message/bob"], _NoMoreWatches(), descriptor)
    send(store, "bob", "hello")
    while not watch.slow:
        watch.wait(0)
    assert "max_user_watches" in watch.slow
    assert watch.wait(60)  # it can't tell, so that whoever waits looks
    assert "*" in watch.heard
    watch.close()
    os.close(other_end)
