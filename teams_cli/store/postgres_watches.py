"""Waiting for a change in a team that is in PostgreSQL: notified by the server, or behind a pooler by looking again."""

from __future__ import annotations

import select
import time

from teams_cli.store.polling import PollingWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.store.contract import Watch
    from teams_cli.store.postgres_connections import Connection, Server

_PAUSE = 0.1
_STATE = """SELECT (SELECT count(*) FROM changes WHERE team = %s AND at > %s::timestamptz),
    (SELECT sum(last) FROM counters WHERE team = %s)"""


def watch(server: Server, team: str, channel: str) -> Watch:
    """A watch over the changes in a team, from now on."""
    connection, direct = _listen(server, channel)
    if direct:
        return ListeningWatch(server, channel, connection)
    connection.close()  # it is a pooler that we talk to, and which of its users it notifies is chance
    return _polling_watch(server, team)


def _listen(server: Server, channel: str) -> tuple[Connection, bool]:
    """A connection that is notified of changes, and whether it leads to the server itself."""

    def job(connection: Connection) -> bool:
        own = connection.rows(f'LISTEN "{channel}"; SELECT pg_backend_pid()')[0][0]
        return bool(own == connection.link.info.backend_pid)

    return server.borrow(job)


class ListeningWatch:
    """Woken by the server, within a millisecond. When the connection broke, it wakes, and listens on another."""

    def __init__(self, server: Server, channel: str, connection: Connection) -> None:
        self._server = server
        self._channel = channel
        self._connection: Connection | None = connection

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        if self._connection is None:
            self._connection = _listen(self._server, self._channel)[0]
            return True
        link, give_up = self._connection.link, time.monotonic() + timeout
        while not self._heard(link):
            if not select.select([link], [], [], max(give_up - time.monotonic(), 0))[0]:
                return False
        return True

    def _heard(self, link: Any) -> bool:
        """Whether notifications have come, or can't come any more; none is left."""
        try:
            link.poll()
        except Exception:
            self._drop()
            return True
        woken = bool(link.notifies)
        link.notifies.clear()
        return woken

    def fileno(self) -> int | None:
        """What select and poll take; None while the connection is broken."""
        return self._connection.link.fileno() if self._connection else None

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is None:
            return
        try:
            self._connection.rows("UNLISTEN *")
            self._connection.link.notifies.clear()
        except Exception:
            self._drop()
        else:
            self._server.give_back(self._connection)
        self._connection = None

    def _drop(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None


def _polling_watch(server: Server, team: str) -> PollingWatch:
    """A watch that looks whether the number of changes is another."""
    began = server.look("SELECT (clock_timestamp() - interval '5 minutes')::text")
    values = [team, began[0][0], team]
    return PollingWatch(lambda: server.look(_STATE, values), _PAUSE)
