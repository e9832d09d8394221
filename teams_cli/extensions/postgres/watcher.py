"""The watcher: a process that listens to the server of one store, for all waiting processes of one user on one machine.

The first waiting process starts the watcher. The watcher ends when no process has waited for a while. No state is lost
with it: a process that loses its watcher finds another watcher, or listens by itself. The module is an entry point, so
it reads the environment.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import time
from contextlib import suppress

from teams_cli import errors
from teams_cli.extensions.postgres import schema
from teams_cli.extensions.postgres.connections import Again, Connection, Lost, Server
from teams_cli.extensions.postgres.engine import PostgresStore
from teams_cli.extensions.postgres.line import BEAT, COUNTS, LISTENS, Place, is_of_this_user, parse_request
from teams_cli.extensions.postgres.watches import Counts, listen
from teams_cli.store import opening
from teams_cli.store.contract import EVERY_TOPIC, concerns
from teams_cli.store.files import disk, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_LINGER = 30.0
_ROUND, _LONG_ROUND = 1.0, 5.0
"""The maximum number of seconds that the watcher waits for an event. The long round is used while the server notifies
the watcher of every change.
"""
_TRY_AGAIN = 0.5
_PRUNE_EVERY = 600.0
_PATIENCE = 2.0
_LONGEST_REQUEST = 1 << 20
_MOST_UNSENT = 1 << 16


class Waiter:
    """A waiting process, as the watcher sees it: what the process waits for, and the data that is still to be sent to
    it.
    """

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.team = ""
        self.channels: frozenset[str] = frozenset()
        """The channels that the process waits for; empty before its request has arrived."""
        self.topics: Collection[str] | None = None
        self.is_served = False
        self._received = b""
        self._unsent = b""

    def receive(self) -> bool:
        """Read what the waiting process sent. Return False if the process has left, or if it sent too much.

        Raises:
            ValueError: The data is not the request of a waiting process.
        """
        try:
            data = self.line.recv(65536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._received += data
        if self.channels or not self._received.endswith(b"\n"):  # no request is expected, or it is incomplete
            return bool(data) and len(self._received) < _LONGEST_REQUEST
        request = parse_request(self._received)
        self.team, self.channels = str(request["team"]), frozenset(map(str, request["channels"]))
        self.topics = None if request["topics"] is None else frozenset(map(str, request["topics"]))
        return True

    def tell(self, topics: frozenset[str]) -> None:
        """Send the topics of a change to the waiting process, if it waits for any of these topics."""
        if self.is_served and topics and concerns(self.topics, topics):
            # If nothing is known of the change, its only topic is the `*` of EVERY_TOPIC, which every process gets.
            wanted = topics if self.topics is None else topics & {*self.topics, *EVERY_TOPIC}
            self._send(" ".join(sorted(wanted)).encode() + b"\n")

    def serve(self, answer: bytes) -> None:
        """Send *answer*, which is `LISTENS` or `COUNTS`, as the first answer to the waiting process. From then on, that
        process misses no change.
        """
        self.is_served = True
        self._send(answer)

    def beat(self) -> None:
        """Send an empty line, which shows the waiting process that the watcher is alive."""
        if self.is_served:
            self._send(b"\n")

    def _send(self, data: bytes) -> None:
        """Send *data* after the data that is still unsent. If this is too much, send a line that stands for every topic
        instead. It replaces all unsent lines except the first, because a part of the first may have been sent.
        """
        self._unsent += data
        if len(self._unsent) > _MOST_UNSENT:
            first_line = self._unsent[: self._unsent.index(b"\n") + 1]
            self._unsent = first_line + b"*\n"  # `*` stands for every topic
        self.catch_up()

    def catch_up(self) -> None:
        """Send as much of the unsent data as the socket takes."""
        try:
            if self._unsent:
                self._unsent = self._unsent[self.line.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:  # the process is gone, which the next read from its line shows
            self._unsent = b""


class Watcher:
    """Listens to one server, and notifies the waiting processes of this machine."""

    def __init__(self, server: Server, door: socket.socket) -> None:
        self._server = server
        self._door = door
        self._waiters: dict[int, Waiter] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(door, selectors.EVENT_READ)
        self._connection: Connection | None = None
        self._descriptor = -1
        self._listening: set[str] = set()
        """The channels to which the connection listens."""
        self._counts: Counts | None = None
        self._due_at = 0.0
        """The time of the next count, or of the next attempt to connect."""
        self._beat_at = time.monotonic() + BEAT
        # After a random part of the time, so that the watchers of several machines prune at different times.
        self._prune_at = time.monotonic() + _PRUNE_EVERY * os.urandom(1)[0] / 256
        self.alone_since = time.monotonic()

    def connect(self) -> None:
        """Listen to the server. If only a pooler can be reached, count the changes instead.

        Raises:
            Busy, StorageFailed: The server can't be reached.
        """
        connection, direct = listen(self._server, [])
        if direct:
            self._connection, self._descriptor = connection, connection.link.fileno()
            self._selector.register(self._descriptor, selectors.EVENT_READ)
        else:
            self._server.give_back(connection)
            self._counts = Counts(self._server, [])

    def round(self) -> None:
        """Wait for requests or changes, for some seconds at most. Then handle them, send data that is still unsent, and
        delete the ids of old changes when it is time.
        """
        for key, _ in self._selector.select(_LONG_ROUND if self._connection and self._waiters else _ROUND):
            if key.fileobj is self._door:
                self._accept()
            elif key.fd in self._waiters:
                waiter = self._waiters[key.fd]
                try:
                    still_waits = waiter.receive()
                except ValueError:  # it sent anything but a request
                    still_waits = False
                if not still_waits:
                    self._selector.unregister(waiter.line)
                    del self._waiters[waiter.line.fileno()]
                    waiter.line.close()
        try:
            if self._reconnect_if_due():
                self._serve()
                self._pass_on()
        except Exception as problem:
            self._drop_connection(problem)
        is_beat = time.monotonic() > self._beat_at
        if is_beat:
            self._beat_at = time.monotonic() + BEAT
        for waiter in self._waiters.values():
            if is_beat:
                waiter.beat()
            else:
                waiter.catch_up()
        if time.monotonic() > self._prune_at:
            self._prune_at += _PRUNE_EVERY
            schema.prune(self._server)
            self._server.close()  # the connection that listens stays open
        if self._waiters:
            self.alone_since = time.monotonic()

    def _accept(self) -> None:
        with suppress(OSError):  # the process has left already
            line, _ = self._door.accept()
            if not is_of_this_user(line):
                line.close()
                return
            line.setblocking(False)
            self._waiters[line.fileno()] = Waiter(line)
            self._selector.register(line, selectors.EVENT_READ)

    def _serve(self) -> None:
        """Listen to the channels of all waiting processes, and to no others. Then begin to serve the new processes."""
        new = [waiter for waiter in self._waiters.values() if waiter.channels and not waiter.is_served]
        wanted = {channel for waiter in self._waiters.values() for channel in waiter.channels}
        if self._counts:
            if new:  # a change of a team is found only if the team was counted before the change
                self._count(self._counts)
        elif self._connection and wanted != self._listening:
            statements = [f'LISTEN "{channel}"' for channel in sorted(wanted - self._listening)]
            statements += [f'UNLISTEN "{channel}"' for channel in sorted(self._listening - wanted)]
            self._connection.rows("; ".join(statements))
            self._listening = wanted
        for waiter in new:
            waiter.serve(COUNTS if self._counts else LISTENS)

    def _pass_on(self) -> None:
        """Tell the waiting processes of the changes that the server announced, or that a count finds if it is due."""
        if self._counts and time.monotonic() >= self._due_at:
            self._count(self._counts)
        if self._connection is None:
            return
        link = self._connection.link
        link.poll()
        topics_by_channel: dict[str, set[str]] = {}
        for notification in link.notifies:
            topics = (notification.payload or "*").split()  # `*` stands for every topic
            topics_by_channel.setdefault(notification.channel, set()).update(topics)
        link.notifies.clear()
        if not topics_by_channel:
            return
        for waiter in self._waiters.values():
            topics_of_each_channel = [topics_by_channel.get(channel, ()) for channel in waiter.channels]
            waiter.tell(frozenset().union(*topics_of_each_channel))

    def _count(self, counts: Counts) -> None:
        """Count the changes of all teams that are waited for, and tell the processes that wait for a changed team."""
        self._due_at = time.monotonic() + _ROUND
        teams = {waiter.team for waiter in self._waiters.values() if waiter.channels}
        changed = counts.changed(sorted(teams)) if teams else ()
        for waiter in self._waiters.values():
            if waiter.team in changed:
                waiter.tell(EVERY_TOPIC)

    def _drop_connection(self, problem: Exception) -> None:
        """Close the broken connection, and schedule a retry. Notify all waiting processes: they may miss changes."""
        _log(f"the connection is lost: {problem or type(problem).__name__}")
        if self._connection:
            self._selector.unregister(self._descriptor)
            self._connection.close()
        self._connection, self._listening, self._counts = None, set(), None
        self._due_at = time.monotonic() + _TRY_AGAIN
        self._tell_all()

    def _reconnect_if_due(self) -> bool:
        """If there is no connection and the next attempt is due, connect, and notify all waiting processes, because
        they may have missed changes. Return whether there is a connection now.
        """
        if self._connection is None and self._counts is None:
            if time.monotonic() < self._due_at:
                return False
            self._due_at = time.monotonic() + _TRY_AGAIN
            try:
                self.connect()
                self._serve()
            except (errors.Busy, Lost, Again):
                return False
            self._tell_all()
        return True

    def _tell_all(self) -> None:
        for waiter in self._waiters.values():
            waiter.tell(EVERY_TOPIC)


class Tenancy:
    """Holds the watcher's socket, and finds out if another watcher has put its own socket into this one's place."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.door = place.listen()
        self._path = place.socket
        self._inode = os.stat(self._path).st_ino  # a watcher that replaces this one makes a socket with another inode
        self._look_at = 0.0

    def holds(self) -> bool:
        """Return whether the socket still belongs to this watcher. To save time, the socket is checked only every few
        seconds; in between, return True.
        """
        if time.monotonic() < self._look_at:
            return True
        self._look_at = time.monotonic() + _LONG_ROUND
        try:
            return os.stat(self._path).st_ino == self._inode
        except OSError:
            return False

    def end(self) -> None:
        """Remove the socket, if it still belongs to this watcher. A process that wants to connect then looks for
        another watcher.
        """
        if self.holds():
            disk.discard(self._path)
        self.door.close()


def _log(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
    sys.stderr.flush()


def main() -> None:
    """Run the watcher whose name is the first argument. It ends when another watcher has replaced its socket, or when
    no process has waited for 30 seconds; a second argument replaces this number.
    """
    linger = float(sys.argv[2]) if len(sys.argv) > 2 else _LINGER
    store = opening.from_environment(os.environ, _PATIENCE)
    assert isinstance(store, PostgresStore)
    place = Place(store.root, sys.argv[1], {}, {})  # without an environment, because it starts no watcher
    lock = locks.hold(f"{place.directory}/{place.name}.lock", store.root)  # until the process ends
    if lock is None:  # another watcher is running
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # then only fewer processes can wait, each of which needs an open file
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        listen(store.server.direct(), [])[0].close()  # a watcher that can't reach the server must not take the place
        tenancy = Tenancy(place)
        watcher = Watcher(store.server.direct(), tenancy.door)
        while tenancy.holds() and time.monotonic() - watcher.alone_since < linger:
            watcher.round()
        tenancy.end()
    except errors.TeamsError as problem:
        _log(problem.message)


if __name__ == "__main__":
    main()
