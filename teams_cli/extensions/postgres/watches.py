"""Waits for changes in a team that is in PostgreSQL.

The watcher of the machine, which has one connection for all, wakes waiting processes. Without a watcher a process
listens on a connection of its own, or polls behind a pooler.
"""

from __future__ import annotations

import select
import time

from teams_cli.extensions.postgres.line import BEAT, LATE, POOLED, AttachedWatch, Place
from teams_cli.store.contract import EVERY_TOPIC, concerns
from teams_cli.store.pace import PollingWatch
from teams_cli.store.retrying import jitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from teams_cli.extensions.postgres.connections import Connection, Server
    from teams_cli.extensions.postgres.session import Session
    from teams_cli.store.contract import Watch


# Changes are counted from a time that moves on every five minutes, with the counts of both times from one statement, so
# that few rows are counted. No change takes five minutes from its row to its commit.
_LOOK = """SELECT of.team, edge.at::text, (SELECT sum(last) FROM counters WHERE team = of.team),
    (SELECT count(*) FROM changes WHERE team = of.team AND at > %s::timestamptz),
    (SELECT count(*) FROM changes WHERE team = of.team AND at > edge.at)
    FROM unnest(%s::text[]) AS of (team), (SELECT clock_timestamp() - interval '5 minutes' AS at) AS edge"""
_MOVE_AFTER = 300.0


class Counts:
    """Counts the changes of some teams in one query, to find the teams that changed."""

    def __init__(self, server: Server, teams: Sequence[str]) -> None:
        self._server = server
        self._teams = list(teams)
        self._since = "-infinity"
        self._moved = float("-inf")
        self._asked: set[str] = set()
        self._seen: dict[str, tuple[Any, ...]] = {}
        self.looks = 0
        """The number of looks that found a change."""

    def look(self) -> int:
        """Look again, and return the number of looks so far that found a change."""
        self.looks += bool(self.changed(self._teams))
        return self.looks

    def changed(self, teams: Sequence[str]) -> set[str]:
        """Return which of the *teams* changed since the last look. A team that was not part of the last look is left
        out.
        """
        since, began = self._since, time.monotonic()
        move = began - self._moved > _MOVE_AFTER
        if since == "-infinity":
            since = str(self._server.look("SELECT (clock_timestamp() - interval '5 minutes')::text")[0][0])
            self._since, move, self._moved = since, False, began
        rows = self._server.look(_LOOK, [since, list(teams)])
        counts = {team: (last, count) for team, _, last, count, _ in rows}
        changed = {team for team in counts if team in self._asked and self._seen.get(team) != counts[team]}
        self._seen, self._asked = counts, set(teams)
        if move and rows:
            self._since, self._moved = rows[0][1], began
            self._seen = {team: (last, later) for team, _, last, _, later in rows}
        return changed


_PAUSE = 0.1
_SHORT = 2.0
"""Seconds that a process waits before it starts a watcher."""
_SOON, _SELDOM = 0.25, 60.0
_ORPHANED = 3.0
"""Seconds for which a process whose watcher was killed looks for a new one before it connects by itself."""
_REST = 5.0
_SILENT = 2.5 * BEAT
_UNWATCHED = f"{LATE}: no watcher of this machine gets to the server that listen= names, as it says in"
_TRIES = 4


def watch(session: Session, place: Place, team: str, topics: Collection[str] | None) -> HostWatch:
    """Return a watch on changes of the team; *place* is the place of this machine's watcher."""
    channels = [session.channel(team)]
    if topics is None or "history" in topics:
        channels.append(session.channel(team, "h"))
    return HostWatch(session.server, place, team, channels, topics)


class HostWatch:
    """A watch that listens by itself until there is a watcher on this machine, which then serves it.

    The change from one to the other also wakes it, since a commit in between may have reached neither.
    """

    def __init__(self, server: Server, place: Place, team: str, channels: list[str], topics: Collection[str] | None):
        self._server = server
        self._place = place
        self._wanted = (team, channels, topics)
        self._pause = _SOON
        self._tries = 0
        self._quiet_since = time.monotonic()
        self._move_at = self._quiet_since + _SHORT
        self._own_at = 0.0
        self._woken = False
        self.heard: frozenset[str] = EVERY_TOPIC
        self.slow = ""
        self._watch: Watch | None = self._attached() or self._own()

    def wait(self, timeout: float) -> bool:
        """Block until something may have changed since the last call; return False if *timeout* seconds passed
        first.
        """
        give_up = time.monotonic() + timeout
        while True:
            self._move()
            if self._woken or self._wait_for_step(give_up):
                self._woken = False
                self._quiet_since = time.monotonic()
                return True
            if time.monotonic() >= give_up:
                return False

    def _wait_for_step(self, give_up: float) -> bool:
        """Wait until there is news or another step is due; return whether there was news."""
        left = max(give_up - time.monotonic(), 0.0)
        watch = self._watch
        if watch is None:
            time.sleep(min(left, 0.02 + jitter(0.1)))
            return False
        woken = watch.wait(min(left, self._seconds_to_next_step()))
        self.heard = watch.heard
        if isinstance(watch, AttachedWatch) and (watch.lost or watch.silent > _SILENT):
            self._release()
            self._own_at, self._move_at = time.monotonic() + _ORPHANED, 0.0
        return woken

    def _seconds_to_next_step(self) -> float:
        """Return the seconds until the next step is due. After a long quiet time, also close idle connections."""
        now = time.monotonic()
        if not isinstance(self._watch, AttachedWatch):
            return max(self._move_at - now, 0.0)
        if now - self._quiet_since >= _REST:
            self._server.rest()  # a long wait must not hold connections of the server
            return _SILENT
        return _REST - (now - self._quiet_since)

    def _move(self) -> None:
        """Attach to the watcher if it is time to look for one. If there has been none for long, connect to the
        server.
        """
        now = time.monotonic()
        if isinstance(self._watch, AttachedWatch) or now < self._move_at:
            return
        watch: Watch | None = self._attached()
        if watch is None:
            self._place.start()
            if self._watch is not None:
                self._look_later(now)
            if self._watch is not None or now < self._own_at:
                return
            self._look_later(now)
            watch = self._own()
        self._release()
        self._watch, self._woken, self.heard = watch, True, EVERY_TOPIC

    def _attached(self) -> Watch | None:
        """Return a watch that the watcher serves, or None if there is no watcher."""
        if attached := self._place.attach(*self._wanted):
            self._pause, self._tries, self.slow = _SOON, 0, attached.slow
        return attached

    def _look_later(self, now: float) -> None:
        self._move_at, self._pause = now + self._pause, min(self._pause * 2, _SELDOM)
        self._tries += 1
        if self._tries > _TRIES and self._server.listens_elsewhere:
            self.slow = f"{_UNWATCHED} {self._place.log}"

    def _own(self) -> Watch:
        team, channels, topics = self._wanted
        if not self._server.listens_elsewhere:
            connection, direct = listen(self._server, channels)
            if direct:
                return ListeningWatch(self._server, channels, topics, connection)
            connection.close()  # a pooler notifies any of its users
            self.slow = POOLED
        return PollingWatch(Counts(self._server, [team]).look, _PAUSE)

    def _release(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def fileno(self) -> int | None:
        """Return the descriptor for `select`, or None if there is none at the moment."""
        if self._watch is None:
            self._move()
        return self._watch.fileno() if self._watch else None

    def close(self) -> None:
        """End the watch."""
        self._release()


def listen(server: Server, channels: list[str]) -> tuple[Connection, bool]:
    """Return a connection that listens to the channels, and whether the connection leads to the server and not to a
    pooler.
    """

    def job(connection: Connection) -> bool:
        listening = "".join(f'LISTEN "{channel}"; ' for channel in channels)
        own = connection.rows(f"{listening}SELECT pg_backend_pid()")[0][0]
        return bool(own == connection.link.info.backend_pid)  # a pooler reports a number of its own

    return server.borrow(job)


def is_direct(server: Server) -> bool:
    """Return whether connections lead to the server itself and not to a pooler."""
    connection, direct = listen(server, [])
    server.give_back(connection)
    return direct


class ListeningWatch:
    """A watch that the server wakes within a millisecond. If its connection breaks, it wakes and makes another one.

    A thread that waits for some topics uses this connection for its other statements too, so that it holds only one.
    Notifications that arrive meanwhile wake the next `wait`, but not `select`.
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
        """Block until something may have changed since the last call; return False if *timeout* seconds passed
        first.
        """
        if self._connection is None:
            self._connection = listen(self._server, self._channels)[0]
            self._share()
            self.heard = EVERY_TOPIC
            return True
        link, give_up = self._connection.link, time.monotonic() + timeout
        while not self._take_notifications(link):
            if not select.select([link], [], [], max(give_up - time.monotonic(), 0))[0]:
                return False
        return True

    def _take_notifications(self, link: Any) -> bool:
        """Take all notifications; return whether a wanted one has arrived or the connection is broken."""
        try:
            link.poll()
        except Exception:
            self._drop()
            self.heard = EVERY_TOPIC
            return True
        self.heard = frozenset(topic for notice in link.notifies for topic in (notice.payload or "*").split())
        link.notifies.clear()
        return bool(self.heard) and concerns(self._topics, self.heard)

    def _share(self) -> None:
        if self._topics is not None:
            self._server.share(self._connection)

    def fileno(self) -> int | None:
        """Return the descriptor for `select`, or None while the connection is broken."""
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
