"""Waiting for a change in a team that is in PostgreSQL: notified by the server, or behind a pooler by looking again."""

from __future__ import annotations

import select
import time

from teams_cli.records.annotations import Any, Collection
from teams_cli.store.contract import EVERY_TOPIC, concerns
from teams_cli.store.polling import PollingWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.store.contract import Watch
    from teams_cli.store.postgres.connections import Connection, Server

_PAUSE = 0.1
_STATE = """SELECT (SELECT count(*) FROM changes WHERE team = %s AND at > %s::timestamptz),
    (SELECT sum(last) FROM counters WHERE team = %s)"""


def watch(server: Server, team: str, channels: list[str], topics: Collection[str] | None) -> Watch:
    """A watch over the changes in a team, from now on; only for those on the topics, if some are given."""
    connection, direct = _listen(server, channels)
    if direct:
        return ListeningWatch(server, channels, topics, connection)
    connection.close()  # it is a pooler that we talk to, and which of its users it notifies is chance
    return _polling_watch(server, team)


def _listen(server: Server, channels: list[str]) -> tuple[Connection, bool]:
    """A connection that is notified of changes, and whether it leads to the server itself."""

    def job(connection: Connection) -> bool:
        listening = "".join(f'LISTEN "{channel}"; ' for channel in channels)
        own = connection.rows(f"{listening}SELECT pg_backend_pid()")[0][0]
        return bool(own == connection.link.info.backend_pid)

    return server.borrow(job)


class ListeningWatch:
    """Woken by the server, within a millisecond. When the connection broke, it wakes, and listens on another.

    Who waits for some topics has one connection and not two: between two waits its thread uses this one for whatever
    it looks at. What comes meanwhile is heard by the next wait, not by `select`.
    """

    slow = ""
    heard: frozenset[str] = EVERY_TOPIC

    def __init__(
        self, server: Server, channels: list[str], topics: Collection[str] | None, connection: Connection
    ) -> None:
        self._server = server
        self._channels = channels
        self._topics = topics
        self._connection: Connection | None = connection
        self._share()

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        if self._connection is None:
            self._connection = _listen(self._server, self._channels)[0]
            self._share()
            self.heard = EVERY_TOPIC
            return True
        link, give_up = self._connection.link, time.monotonic() + timeout
        while not self._heard(link):
            if not select.select([link], [], [], max(give_up - time.monotonic(), 0))[0]:
                return False
        return True

    def _heard(self, link: Any) -> bool:
        """Whether notifications of what was asked for have come, or can't come any more; none is left."""
        try:
            link.poll()
        except Exception:
            self._drop()
            self.heard = EVERY_TOPIC
            return True
        heard = {topic for notice in link.notifies for topic in (notice.payload or "*").split()}
        link.notifies.clear()
        self.heard = frozenset(heard)
        return bool(heard) and concerns(self._topics, self.heard)

    def _share(self) -> None:
        if self._topics is not None:
            self._server.share(self._connection)

    def fileno(self) -> int | None:
        """What select and poll take; None while the connection is broken."""
        return self._connection.link.fileno() if self._connection else None

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is None:
            return
        self._server.share(None)
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
            self._server.share(None)
            self._connection.close()
        self._connection = None


def _polling_watch(server: Server, team: str) -> PollingWatch:
    """A watch that looks whether the number of changes is another."""
    began = server.look("SELECT (clock_timestamp() - interval '5 minutes')::text")
    values = [team, began[0][0], team]
    return PollingWatch(lambda: server.look(_STATE, values), _PAUSE)
