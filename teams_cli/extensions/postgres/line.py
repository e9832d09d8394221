"""The connection between waiting processes and the watcher of their machine, which listens to the server for all of
them.

The watcher has a socket below the root, for its user only. A waiting process sends one line of JSON with the team, the
channels and the topics it wants. Once the watcher can miss no later commit, it answers with `LISTENS` if the server
notifies it, or with `COUNTS` if it counts changes from time to time. After that, it sends a line of topics for each
change. An empty line now and then shows that the watcher is alive.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from contextlib import suppress
from hashlib import md5

from teams_cli import errors, processes, sockets
from teams_cli.environment import SANDBOX
from teams_cli.names import is_name
from teams_cli.store.contract import EVERY_TOPIC
from teams_cli.store.files import locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

_PROTOCOL = 1
"""The version of this protocol; a watcher of another version has another socket."""
_PATIENCE = 1.0
_FOR_THE_SERVER = ("PG", "LC_", "LANG", "PATH", "HOME", "USER", "TMPDIR", "TZ", "KRB5", "SSL", "LD_", "PYTHON")
"""The prefixes of the environment variables that a connection may need. Variables that name an agent are not passed on
to the watcher.
"""
_STARTED_IN = 3.0
"""Seconds that a new watcher is given to open its socket. After that, another process may start a watcher."""
LISTENS, COUNTS = b"listens\n", b"counts \n"
"""The possible first answers of the watcher: the server notifies it of changes, or it counts the changes from time to
time. Both answers have the same length, so that one read gets either.
"""
_LONGEST_LOG = 1 << 18
BEAT = 60.0
"""Seconds between two empty lines of the watcher, which show that it is alive."""
LATE = "changes are seen up to a second late"
POOLED = f"{LATE}: a pooler passes none of them on. Add listen=HOST:PORT, the server itself, to the store's address"


def name_of(whereabouts: Sequence[str]) -> str:
    """Return the name of the watcher for the store that *whereabouts* identifies."""
    return md5(repr((_PROTOCOL, *whereabouts)).encode(), usedforsecurity=False).hexdigest()[:16]


class Place:
    """The place of a store's watcher on this machine: its directory, its socket and its log."""

    def __init__(self, root: str, name: str, variables: Mapping[str, str], environ: Mapping[str, str]):
        self.directory = f"{root}/watchers"
        self.name = name
        self.log = f"{self.directory}/{name}.log"
        self.socket = f"{self.directory}/{name}"
        self._root = root
        self._environ = {key: value for key, value in environ.items() if key.startswith(_FOR_THE_SERVER)}
        self._environ.update(variables)
        # In a sandbox, the watcher would end with the command. Without an environment, this process starts none.
        self._may_start = bool(environ) and not environ.get(SANDBOX)

    def attach(self, team: str, channels: Sequence[str], topics: Collection[str] | None) -> AttachedWatch | None:
        """Return a watch that the watcher serves, for changes that it announces on *channels* and that concern the
        *topics*; None stands for all topics. Return None if there is no watcher, or if it does not answer.
        """
        line = None
        try:
            line = self.connect()
            request = {"team": team, "channels": list(channels), "topics": None if topics is None else sorted(topics)}
            line.sendall(json.dumps(request).encode() + b"\n")
            answer = line.recv(len(COUNTS))
            if answer not in (LISTENS, COUNTS):
                raise ConnectionError  # an OSError, as if there were no watcher
        except OSError:
            if line is not None:
                line.close()
            return None
        return AttachedWatch(line, slow=POOLED if answer == COUNTS else "")

    def connect(self) -> socket.socket:
        """Return a socket that is connected to the watcher.

        Raises:
            OSError: There is no watcher, or it belongs to another user.
        """
        line = sockets.connect(self.socket, _PATIENCE)
        if not is_of_this_user(line):
            line.close()
            raise PermissionError
        return line

    def start(self) -> None:
        """Start the watcher. Do nothing if another process has just started it, or if this process is in a sandbox."""
        if not self._may_start or not self._claim_start():
            return
        with suppress(OSError):  # there may be no log yet
            if os.path.getsize(self.log) > _LONGEST_LOG:
                os.replace(self.log, f"{self.log}.1")
        with suppress(OSError):  # without a watcher, processes listen by themselves
            processes.start_own("teams_cli.extensions.postgres.watcher", [self.name], self._environ, self.log)

    def _claim_start(self) -> bool:
        """Return whether this process may start the watcher. If it may, it writes to the file `.start`, whose time
        shows other processes that the watcher was just started.
        """
        try:
            lock = locks.hold(f"{self.directory}/{self.name}.start", self._root)
        except errors.StorageFailed:  # nothing can be written here
            return False
        if lock is None:  # another process is about to start the watcher
            return False
        status = os.fstat(lock)
        # The file is empty before the first start.
        is_due = not status.st_size or abs(time.time() - status.st_mtime) > _STARTED_IN
        if is_due:
            os.pwrite(lock, b".", 0)
        os.close(lock)
        return is_due

    def listen(self) -> socket.socket:
        """Make the socket of the watcher, and return it. A socket that an earlier watcher left is replaced. The caller
        holds the lock of the watcher.
        """
        door = sockets.listen(self.socket)
        door.setblocking(False)
        return door


def is_of_this_user(line: socket.socket) -> bool:
    """Return whether the process at the other end of the line has the same user as this process. If the system can't
    tell (it has no SO_PEERCRED), return True: the mode of the socket already keeps other users out.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.geteuid())


class AttachedWatch:
    """A watch that is woken by the watcher, a process for all waits of this machine. So the process that waits needs no
    connection to the database.
    """

    heard: frozenset[str] = EVERY_TOPIC

    def __init__(self, line: socket.socket, slow: str) -> None:
        self._line = line
        self.slow = slow
        self._incomplete_line = b""
        self.is_lost = False
        """Whether the watcher is gone. If so, the process gets no more notifications of changes from it."""
        self._heard_at = time.monotonic()
        line.setblocking(False)

    def wait(self, timeout: float) -> bool:
        give_up = time.monotonic() + timeout
        while not self._take_topics():
            if not select.select([self._line], [], [], max(give_up - time.monotonic(), 0))[0]:
                return False
        return True

    def _take_topics(self) -> bool:
        """Put the topics that have arrived into `heard`, or every topic if the watcher is gone. Return whether there
        are any.
        """
        try:
            while part := self._line.recv(65536):
                self._incomplete_line += part
                self._heard_at = time.monotonic()
            self.is_lost = True
        except BlockingIOError:
            pass
        except OSError:
            self.is_lost = True
        lines, _, self._incomplete_line = self._incomplete_line.rpartition(b"\n")
        self.heard = EVERY_TOPIC if self.is_lost else frozenset(lines.decode().split())
        return bool(self.heard)

    @property
    def silence(self) -> float:
        """The seconds since the watcher last sent anything."""
        return time.monotonic() - self._heard_at

    def fileno(self) -> int | None:
        return None if self.is_lost else self._line.fileno()

    def close(self) -> None:
        self._line.close()


def parse_request(line: bytes) -> dict[str, Any]:
    """Parse the first line that a waiting process sends: the team, the channels and the topics that it wants.

    Raises:
        ValueError: The line is not such a request.
    """
    try:
        request = json.loads(line)
    except RecursionError:
        raise ValueError("the request is nested too deeply") from None
    if not isinstance(request, dict) or set(request) != {"team", "channels", "topics"}:
        raise ValueError("the request lacks a key or has another one")
    if not isinstance(request["channels"], list) or not isinstance(request["topics"], list | None):
        raise ValueError("the channels or the topics of the request are not a list")
    if not is_name(str(request["team"])) or not all(str(channel).isidentifier() for channel in request["channels"]):
        raise ValueError("the team or a channel of the request has no valid name")
    return request
