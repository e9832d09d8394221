"""Fixtures for the tests of the contract: a team in the store, and threads that begin at the same moment."""

from __future__ import annotations

import threading

import pytest

from tests.store.kinds import make_team


@pytest.fixture(autouse=True)
def team(store):
    assert store.teams() == []
    store.lock_timeout = 60.0  # threads that begin together wait for each other's disk
    make_team(store)


def in_threads(count, job):
    """Call `job(0)`, `job(1)`, … at the same moment; return what each returned or raised."""
    outcomes = [None] * count
    barrier = threading.Barrier(count)

    def run(n):
        barrier.wait()
        try:
            outcomes[n] = job(n)
        except Exception as error:
            outcomes[n] = error

    threads = [threading.Thread(target=run, args=[n]) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
