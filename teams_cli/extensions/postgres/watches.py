"""Waits for changes of a team that is in PostgreSQL.

The watcher, a background process of this machine, wakes waiting processes. It needs only one connection for all of
them. If there is no watcher, a process listens on a connection of its own. Behind a pooler, through which no
notifications come, it polls.
"""

from __future__ import annotations

import select
import time

from teams_cli.clock import jitter
from teams_cli.extensions.postgres.line import BEAT, LATE, POOLED, AttachedWatch, Place
from teams_cli.store.contract import EVERY_TOPIC, concerns
from teams_cli.store.pace import PollingWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from teams_cli.extensions.postgres.connections import Connection, Server
    from teams_cli.store.contract import Watch


_COUNT = """SELECT of.team, edge.at::text, (SELECT sum(last) FROM counters WHERE team = of.team),
    (SELECT count(*) FROM changes WHERE team = of.team AND at > %s::timestamptz),
    (SELECT count(*) FROM changes WHERE team = of.team AND at > edge.at)
    FROM unnest(%s::text[]) AS of (team), (SELECT clock_timestamp() - interval '5 minutes' AS at) AS edge"""
_MOVE_AFTER = 300.0
"""Seconds after which a later start time for the count of changes is chosen."""


class Counts:
    """Counts the changes of some teams in one query, and so finds out which teams changed.

    Only changes since a start time are counted, so that few rows are read. Every five minutes a later start time is
    chosen. One statement then counts from the old time and from the new time, so that no change is missed. A change is
    committed less than five minutes after its row is written.
    """

    def __init__(self, server: Server, teams: Sequence[str]) -> None:
        self._server = server
        self._teams = list(teams)
        self._since = ""
        """The server's time from which changes are counted; "" before the first count."""
        self._moved_at = 0.0
        """This process's time at which `_since` was last chosen."""
        self._counts: dict[str, tuple[Any, ...] | None] = {}
        """The last counts of each team; None for each team while there were no tables."""
        self._looks_with_changes = 0

    def look(self) -> int:
        """Count again. Return how many calls so far have found a change; a `PollingWatch` waits until this number
        grows.
        """
        if self.changed(self._teams):
            self._looks_with_changes += 1
        return self._looks_with_changes

    def changed(self, teams: Sequence[str]) -> set[str]:
        """Return the teams that changed since the last call. A team that was not among the *teams* of the last call is
        left out.
        """
        now = time.monotonic()
        if not self._since:
            self._since = str(self._server.look("SELECT (clock_timestamp() - interval '5 minutes')::text")[0][0])
            self._moved_at = now
        rows = self._server.look(_COUNT, [self._since, list(teams)])
        # `numbers` is the sum of the team's counters, which give numbers to its messages and records.
        counts = {team: (numbers, changes) for team, _, numbers, changes, _ in rows}
        changed = {team for team in self._counts.keys() & counts.keys() if self._counts[team] != counts[team]}
        if rows and now - self._moved_at > _MOVE_AFTER:
            self._since, self._moved_at = rows[0][1], now
            counts = {team: (numbers, later_changes) for team, _, numbers, _, later_changes in rows}
        self._counts = {**dict.fromkeys(teams), **counts}
        return changed


_POLL_EVERY = 0.1
_FIRST_LOOK = 2.0
"""Seconds that a process without a watcher waits before it first looks for a watcher again, or starts one."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.25, 60.0
"""The shortest and the longest pause, in seconds, between two searches for a watcher. The pause doubles each time."""
_ORPHANED = 3.0
"""Seconds for which a process that lost its watcher looks for a new one. After that, it connects to the server by
itself.
"""
_QUIET = 5.0
"""Seconds without news, after which a waiting process closes its idle connections."""
_SILENT = 2.5 * BEAT
_UNWATCHED = f"{LATE}: no watcher of this machine gets to the server that listen= names, as it says in"
_LOOKS_BEFORE_WARNING = 4


class HostWatch:
    """A watch that is served by the watcher of this machine. While there is no watcher, it connects to the server by
    itself.

    When the watch changes from the server to a watcher or back, it also wakes the waiting process. A change that was
    committed at that moment may have been announced by neither.
    """

    def __init__(self, server: Server, place: Place, team: str, channels: list[str], topics: Collection[str] | None):
        self._server = server
        self._place = place
        self._request = (team, channels, topics)
        self._pause = _SHORTEST_PAUSE
        self._looks = 0
        """How many searches in a row found no watcher."""
        self._quiet_since = time.monotonic()
        self._look_at = self._quiet_since + _FIRST_LOOK
        """The time of the next search for a watcher."""
        self._connect_at = 0.0
        """The time after which this process connects to the server by itself, if its watcher is gone and there is no
        new one.
        """
        self._has_moved = False
        """Whether another watch is in use since the last news. Changes may have been missed in between."""
        self.heard: frozenset[str] = EVERY_TOPIC
        self.slow = ""
        self._watch: Watch | None = self._attached() or self._connected()
        """The watch in use. It is None between the loss of the watcher and the next watch."""

    def wait(self, timeout: float) -> bool:
        give_up = time.monotonic() + timeout
        while True:
            self._move_if_due()
            if self._has_moved or self._wait_for_step(give_up):
                self._has_moved = False
                self._quiet_since = time.monotonic()
                return True
            if time.monotonic() >= give_up:
                return False

    def _wait_for_step(self, give_up: float) -> bool:
        """Wait until there is news, or until it is time to call `_move_if_due` again. Return whether there was news."""
        seconds_left = max(give_up - time.monotonic(), 0.0)
        watch = self._watch
        if watch is None:
            time.sleep(min(seconds_left, 0.02 + jitter(0.1)))
            return False
        seconds_to_next_step = self._seconds_to_next_step()
        if isinstance(watch, AttachedWatch) and time.monotonic() - self._quiet_since >= _QUIET:
            self._server.close_idle()  # a long wait must not hold connections of the server
        has_news = watch.wait(min(seconds_left, seconds_to_next_step))
        self.heard = watch.heard
        if isinstance(watch, AttachedWatch) and (watch.is_lost or watch.silence > _SILENT):
            self.close()
            self._look_at = 0.0  # look for another watcher at once
            self._connect_at = time.monotonic() + _ORPHANED
        return has_news

    def _seconds_to_next_step(self) -> float:
        """Return for how many seconds this watch may sleep before it must act: look for a watcher, close its idle
        connections, or give up on a watcher that is silent.
        """
        now = time.monotonic()
        if not isinstance(self._watch, AttachedWatch):
            return max(self._look_at - now, 0.0)
        seconds_to_close = _QUIET - (now - self._quiet_since)
        if seconds_to_close > 0:
            return seconds_to_close
        return _SILENT  # the connections are closed; a watcher that sends nothing during this sleep is silent

    def _move_if_due(self) -> None:
        """If it is time to look for a watcher, use the one that is running, or start one. If none has been running for
        long, connect to the server until there is one.
        """
        now = time.monotonic()
        if isinstance(self._watch, AttachedWatch) or now < self._look_at:
            return
        if attached := self._attached():
            self._move_to(attached)
            return
        self._place.start()
        if self._watch is None and now < self._connect_at:
            return  # the new watcher may be there at the next step
        self._look_at, self._pause = now + self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        self._looks += 1
        if self._looks > _LOOKS_BEFORE_WARNING and self._server.listens_elsewhere:
            self.slow = f"{_UNWATCHED} {self._place.log}"
        if self._watch is None:
            self._move_to(self._connected())

    def _move_to(self, watch: Watch) -> None:
        """Use *watch* from now on, and wake the process, because changes may have been missed in between."""
        self.close()
        self._watch, self._has_moved, self.heard = watch, True, EVERY_TOPIC

    def _attached(self) -> AttachedWatch | None:
        """Return a watch that the watcher serves; None if there is no watcher. If there is one, a later search for a
        new one begins with the shortest pause again.
        """
        attached = self._place.attach(*self._request)
        if attached:
            self._pause, self._looks = _SHORTEST_PAUSE, 0
            self.slow = attached.slow
        return attached

    def _connected(self) -> Watch:
        """Return a watch with a connection of its own, for when the watcher of this machine can't be used. The watch
        listens to the server or, if only a pooler can be reached, polls.
        """
        team, channels, topics = self._request
        if not self._server.listens_elsewhere:
            connection, direct = listen(self._server, channels)
            if direct:
                return ListeningWatch(self._server, channels, topics, connection)
            connection.close()  # a pooler may give a notification to any of its users
            self.slow = POOLED
        return PollingWatch(Counts(self._server, [team]).look, _POLL_EVERY)

    def fileno(self) -> int | None:
        if self._watch is None:
            self._move_if_due()
        return self._watch.fileno() if self._watch else None

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = None


def listen(server: Server, channels: list[str]) -> tuple[Connection, bool]:
    """Return a connection that listens to *channels*. Also return whether the connection leads to the server itself and
    not to a pooler.
    """

    def listen_on(connection: Connection) -> bool:
        listening = "".join(f'LISTEN "{channel}"; ' for channel in channels)
        pid_of_server = connection.rows(f"{listening}SELECT pg_backend_pid()")[0][0]
        return bool(pid_of_server == connection.link.info.backend_pid)  # a pooler reports a number of its own

    return server.borrow(listen_on)


def is_direct(server: Server) -> bool:
    """Return whether the connections of *server* lead to the server itself and not to a pooler."""
    connection, direct = listen(server, [])
    server.give_back(connection)
    return direct


class ListeningWatch:
    """A watch that the server itself wakes, within a millisecond. If the connection breaks, the watch wakes its process
    and connects again.

    The thread that waits also uses the watch's connection for its statements, so that it needs only one connection. If
    a notification arrives during a statement, the next call of `wait` returns at once, but `select` does not notice it.
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
        if self._connection is None:
            self._connection = listen(self._server, self._channels)[0]
            self._share()
            self.heard = EVERY_TOPIC
            return True
        link, give_up = self._connection.link, time.monotonic() + timeout
        while not self._take_notifications(link):  # a notification on an unwanted topic also ends the `select`
            if not select.select([link], [], [], max(give_up - time.monotonic(), 0))[0]:
                return False
        return True

    def _take_notifications(self, link: Any) -> bool:
        """Take all notifications that have arrived. Return whether one of them has a topic that this watch waits for,
        or may have been lost with the connection.
        """
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
        # A watch for all topics may be waited for with `select`, which misses notifications that come with a statement.
        if self._topics is not None:
            self._server.share(self._connection)

    def fileno(self) -> int | None:
        return self._connection.link.fileno() if self._connection else None

    def close(self) -> None:
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
