"""Waiting for a change in a team that is in PostgreSQL.

Who waits is woken by the watcher of its machine, which has one connection for all. Before there is one, and where there
can be none, it listens on a connection of its own, or, behind a pooler, looks again and again.
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


# What is counted from is moved on now and then, with both counts from one look: what is counted stays little. No change
# takes five minutes from its row to its commit.
_LOOK = """SELECT of.team, edge.at::text, (SELECT sum(last) FROM counters WHERE team = of.team),
    (SELECT count(*) FROM changes WHERE team = of.team AND at > %s::timestamptz),
    (SELECT count(*) FROM changes WHERE team = of.team AND at > edge.at)
    FROM unnest(%s::text[]) AS of (team), (SELECT clock_timestamp() - interval '5 minutes' AS at) AS edge"""
_MOVE_AFTER = 300.0


class Counts:
    """Counts the changes of some teams in one query."""

    def __init__(self, server: Server, teams: Sequence[str]) -> None:
        self._server = server
        self._teams = list(teams)
        self._since = "-infinity"
        self._moved = float("-inf")
        self._asked: set[str] = set()
        self._seen: dict[str, tuple[Any, ...]] = {}
        self.looks = 0
        """How many looks saw another count than the one before."""

    def look(self) -> int:
        """Look once more; how many looks saw another count than the one before."""
        self.looks += bool(self.changed(self._teams))
        return self.looks

    def changed(self, teams: Sequence[str]) -> set[str]:
        """The teams in which something was changed since the last look at them, but for those new to us."""
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
"""Seconds of waiting for which nobody starts a watcher, and takes it if one is there."""
_SOON, _SELDOM = 0.25, 60.0
_ORPHANED = 3.0
"""Seconds in which those whose watcher was killed look for the next one, before each goes to the server itself."""
_REST = 5.0
_SILENT = 2.5 * BEAT
_UNWATCHED = f"{LATE}: no watcher of this machine gets to the server that listen= names, as it says in"
_TRIES = 4


def watch(session: Session, place: Place, team: str, topics: Collection[str] | None) -> HostWatch:
    """Look out for changes; the watcher of this machine has its *place*."""
    channels = [session.channel(team)]
    if topics is None or "history" in topics:
        channels.append(session.channel(team, "h"))
    return HostWatch(session.server, place, team, channels, topics)


class HostWatch:
    """A watch that is served by the watcher of this machine as soon as there is one, and by itself until then.

    Whenever one takes the place of the other it wakes: what was committed in between may have been told to neither.
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
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        give_up = time.monotonic() + timeout
        while True:
            self._move()
            if self._woken or self._waited(give_up):
                self._woken = False
                self._quiet_since = time.monotonic()
                return True
            if time.monotonic() >= give_up:
                return False

    def _waited(self, give_up: float) -> bool:
        """Wait until there is news or something else to do; whether there was news."""
        left = max(give_up - time.monotonic(), 0.0)
        watch = self._watch
        if watch is None:
            time.sleep(min(left, 0.02 + jitter(0.1)))
            return False
        woken = watch.wait(min(left, self._while()))
        self.heard = watch.heard
        if isinstance(watch, AttachedWatch) and (watch.lost or watch.silent > _SILENT):
            self._release()
            self._own_at, self._move_at = time.monotonic() + _ORPHANED, 0.0
        return woken

    def _while(self) -> float:
        """Seconds until something else is due than waiting."""
        now = time.monotonic()
        if not isinstance(self._watch, AttachedWatch):
            return max(self._move_at - now, 0.0)
        if now - self._quiet_since >= _REST:
            self._server.rest()  # who sleeps long takes none of the server's connections
            return _SILENT
        return _REST - (now - self._quiet_since)

    def _move(self) -> None:
        """Go over to the watcher, if it is time to look for one; without any for long, to a way of our own."""
        now = time.monotonic()
        if isinstance(self._watch, AttachedWatch) or now < self._move_at:
            return
        found: Watch | None = self._attached()
        if found is None:
            self._place.start()
            if self._watch is not None:
                self._look_later(now)
            if self._watch is not None or now < self._own_at:
                return
            self._look_later(now)
            found = self._own()
        self._release()
        self._watch, self._woken, self.heard = found, True, EVERY_TOPIC

    def _attached(self) -> Watch | None:
        """A watch that the watcher serves, if there is one."""
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
            connection.close()  # it is a pooler that we talk to, and which of its users it notifies is chance
            self.slow = POOLED
        return PollingWatch(Counts(self._server, [team]).look, _PAUSE)

    def _release(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def fileno(self) -> int | None:
        """What `select` wakes on when something changed; None where there is no such thing at the moment."""
        if self._watch is None:
            self._move()
        return self._watch.fileno() if self._watch else None

    def close(self) -> None:
        """Stop looking out."""
        self._release()


def listen(server: Server, channels: list[str]) -> tuple[Connection, bool]:
    """A connection that is notified of changes, and whether it leads to the server itself."""

    def job(connection: Connection) -> bool:
        listening = "".join(f'LISTEN "{channel}"; ' for channel in channels)
        own = connection.rows(f"{listening}SELECT pg_backend_pid()")[0][0]
        return bool(own == connection.link.info.backend_pid)  # a pooler tells a number of its own

    return server.borrow(job)


def is_direct(server: Server) -> bool:
    """Whether connections lead to the server itself, and not to a pooler."""
    connection, direct = listen(server, [])
    server.give_back(connection)
    return direct


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
            self._connection = listen(self._server, self._channels)[0]
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
