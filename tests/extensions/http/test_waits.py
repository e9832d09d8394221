"""Requests that wait do not hold up other requests."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from teams_cli.membership import joining
from teams_cli.serving.watching import Requester, SharedWatch, Watchers
from teams_cli.store.contract import Store, Watch
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli
from tests.support.serving import Events, Server, received
from tests.support.waits import until


@pytest.mark.slow
def test_waiting_requests_hold_up_nobody(cli: Cli, server: Server) -> None:
    """Requests that wait for messages hold up no others, and free their places when their clients disconnect."""
    waiting = [server.send("/api/read-messages?as=mia", {"wait": 300}) for _ in range(90)]
    until(lambda: _threads(server) >= 90)
    assert server.get("/api/board")["messages"] == []
    server.post("/api/send-message", {"to": "mia", "text": "wake up"})
    assert all(b"wake up" in received(connection) for connection in waiting)
    server.post("/api/ack?as=mia", {"message": ["1"]})
    for _ in range(4):
        for connection in [server.send("/api/read-messages?as=mia", {"wait": 300}) for _ in range(40)]:
            connection.close()
    server.post("/api/send-message?as=bob", {"to": "lea", "text": "x"})
    assert server.end() == 0


def _threads(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.pid}/task"))


@pytest.mark.slow
def test_a_wait_ends_with_its_server(cli: Cli, server: Server) -> None:
    before = _threads(server)
    waiting = server.send("/api/wait?as=mia", {"message": True, "timeout": 300})
    with Events(server):
        until(lambda: _threads(server) > before + 1)
        assert server.end() == 0
    assert received(waiting).startswith(b"HTTP/1.1 503")


class _Delaying:
    """A store on which somebody joins just before its first watch begins."""

    def __init__(self, store: Store, join: Callable[[], object]) -> None:
        self._store = store
        self._join = join

    def watch(self, team: str) -> Watch:
        self._join()
        return self._store.watch(team)


def test_no_change_is_missed_before_there_is_a_watch(team: Store) -> None:
    """A shared watch also reports changes that were made before the server began to watch the team."""
    watchers = Watchers(_Delaying(team, lambda: joining.join(team, ALPHA, Caller("mia"))))
    watch = SharedWatch(watchers, ALPHA, {"team"}, Requester())
    try:
        assert watch.wait(10)
    finally:
        watchers.close()
