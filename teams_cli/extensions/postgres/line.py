"""The line between waiting processes of a machine and its watcher, which listens to the server for all of them.

The watcher has a socket below the root, for its user only. A waiting process sends one line of JSON with the team, the
channels and the topics it wants. Once the watcher can miss no later commit, it answers with `LISTENS` or `COUNTS`.
Then it sends a line of topics for each change. An empty line now and then shows that the watcher is alive.
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

from teams_cli import errors, processes
from teams_cli.environment import SANDBOX
from teams_cli.names import is_name
from teams_cli.store.contract import EVERY_TOPIC
from teams_cli.store.files import disk, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

_FORM = 1
"""The version of this protocol; a watcher of another version has another socket."""
_PATIENCE = 1.0
_FOR_THE_SERVER = ("PG", "LC_", "LANG", "PATH", "HOME", "USER", "TMPDIR", "TZ", "KRB5", "SSL", "LD_", "PYTHON")
"""The beginnings of the variables that a connection may need. Variables that name an agent are not passed on to the
watcher.
"""
_STARTED_IN = 3.0
LISTENS, COUNTS = b"listens\n", b"counts \n"
"""The possible first answers of the watcher: the server notifies it of changes, or it counts them from time to time.
The answers have the same length, so that one read gets either of them.
"""
_LOG = 1 << 18
BEAT = 60.0
"""Seconds between two empty lines, by which the watcher shows that it is alive."""
LATE = "changes are seen up to a second late"
POOLED = f"{LATE}: a pooler passes none of them on. Add listen=HOST:PORT, the server itself, to the store's address"


def name_of(whereabouts: Sequence[str]) -> str:
    """Return the name of the watcher for a store whose identity is *whereabouts*: see `Server.whereabouts`."""
    return md5(repr((_FORM, *whereabouts)).encode(), usedforsecurity=False).hexdigest()[:16]


class Place:
    """The place of a store's watcher on this machine: its directory, its socket and its log."""

    def __init__(self, root: str, name: str, variables: Mapping[str, str], environ: Mapping[str, str]):
        self.directory = f"{root}/watchers"
        self.name = name
        self._root = root
        self._environ = {name: environ[name] for name in environ if name.startswith(_FOR_THE_SERVER)}
        self._environ.update(variables)
        self._may_start = bool(environ) and not environ.get(
            SANDBOX
        )  # a process that is started in a sandbox ends with the command

    @property
    def log(self) -> str:
        """The path of the watcher's log."""
        return f"{self.directory}/{self.name}.log"

    def attach(self, team: str, channels: Sequence[str], topics: Collection[str] | None) -> AttachedWatch | None:
        """Return a watch that the watcher serves, or None if there is no watcher or it does not answer."""
        line = None
        try:
            line = self.connect()
            wanted = {"team": team, "channels": list(channels), "topics": None if topics is None else sorted(topics)}
            line.sendall(json.dumps(wanted).encode() + b"\n")
            answer = line.recv(len(COUNTS))
            if answer not in (LISTENS, COUNTS):
                raise ConnectionError
        except OSError:
            if line is not None:
                line.close()
            return None
        warning = POOLED if answer == COUNTS else ""
        return AttachedWatch(line, warning)

    def connect(self) -> socket.socket:
        """Return a connected socket to the watcher.

        Raises:
            OSError: There is no watcher, or it belongs to another user.
        """
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.settimeout(_PATIENCE)
            with _Short(self.directory) as directory:
                line.connect(f"{directory}/{self.name}")
            if not is_of_this_user(line):
                raise PermissionError
        except OSError:
            line.close()
            raise
        return line

    def start(self) -> None:
        """Start the watcher, unless another process has just started one, or this process is in a sandbox."""
        if not self._may_start or not self._claim_start():
            return
        with suppress(OSError):
            if os.path.getsize(self.log) > _LOG:
                os.replace(self.log, f"{self.log}.1")
        with suppress(OSError):
            processes.start_own("teams_cli.extensions.postgres.watcher", [self.name], self._environ, self.log)

    def _claim_start(self) -> bool:
        """Return whether this process may start the watcher. If so, note it, so that others do not start one too."""
        try:
            held = locks.hold(f"{self.directory}/{self.name}.start", self._root)
        except errors.StorageFailed:  # nothing can be written here
            return False
        if held is None:
            return False
        note = os.fstat(held)
        if is_ours := not note.st_size or abs(time.time() - note.st_mtime) > _STARTED_IN:
            os.pwrite(held, b".", 0)
        os.close(held)
        return is_ours

    def listen(self) -> socket.socket:
        """Make and return the socket of the watcher, and replace one that was left behind. The caller holds the
        lock.
        """
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            with _Short(self.directory) as directory:
                path = f"{directory}/{self.name}"
                disk.discard(path)
                made.bind(path)
            made.listen(1024)
        finally:
            os.umask(before)
        made.setblocking(False)
        return made


class _Short:
    """A context that gives a short path for a directory, because the path of a socket has at most 100 characters."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._held: int | None = None

    def __enter__(self) -> str:
        if len(self._directory) < 80:
            return self._directory
        self._held = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._held}"

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            os.close(self._held)


def is_of_this_user(line: socket.socket) -> bool:
    """Return whether the process at the other end runs as our user. Where the system has no SO_PEERCRED, return True:
    the mode of the socket already keeps other users out.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.geteuid())


class AttachedWatch:
    """A watch that the watcher of this machine wakes, so that it needs no connection to the server."""

    heard: frozenset[str] = EVERY_TOPIC

    def __init__(self, line: socket.socket, slow: str) -> None:
        self._line = line
        self.slow = slow
        self._rest = b""
        self.lost = False
        """Whether the watcher is gone, so that no more changes are heard of."""
        self._heard_at = time.monotonic()
        line.setblocking(False)

    def wait(self, timeout: float) -> bool:
        """Block until there is a change or the watcher is gone; return False if *timeout* seconds passed first."""
        give_up = time.monotonic() + timeout
        while not self._take_topics():
            if not select.select([self._line], [], [], max(give_up - time.monotonic(), 0))[0]:
                return False
        return True

    def _take_topics(self) -> bool:
        """Store the topics of the complete lines that have arrived in `heard`; return whether there are any."""
        data = self._rest + self._received()
        lines, _, self._rest = data.rpartition(b"\n")
        if self.lost:
            self.heard = EVERY_TOPIC
            return True
        self.heard = frozenset(lines.decode().split())
        return bool(self.heard)

    def _received(self) -> bytes:
        parts = []
        try:
            while part := self._line.recv(65536):
                parts.append(part)
                self._heard_at = time.monotonic()
            self.lost = True
        except BlockingIOError:
            pass
        except OSError:
            self.lost = True
        return b"".join(parts)

    @property
    def silent(self) -> float:
        """The seconds since the watcher last sent anything."""
        return time.monotonic() - self._heard_at

    def fileno(self) -> int | None:
        """Return the descriptor for `select`, or None once the watcher is gone."""
        return None if self.lost else self._line.fileno()

    def close(self) -> None:
        """Close the connection to the watcher."""
        self._line.close()


def asked(line: bytes) -> dict[str, Any]:
    """Parse the first line that a waiting process sends: the team, the channels and the topics that it wants.

    Raises:
        ValueError: The line is not such a request.
    """
    try:
        wanted = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply for a wish") from None
    if not isinstance(wanted, dict) or set(wanted) != {"team", "channels", "topics"}:
        raise ValueError("no wish to be notified of changes")
    if not isinstance(wanted["channels"], list) or not isinstance(wanted["topics"], list | None):
        raise ValueError("no list of changes to notify")
    if not is_name(str(wanted["team"])) or not all(str(channel).isidentifier() for channel in wanted["channels"]):
        raise ValueError("no team that there could be")
    return wanted
