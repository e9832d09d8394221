"""The line between those who wait on a machine and its watcher, which listens to the server for all of them.

The watcher has a socket below the root, for its user alone. Who waits says in one line of JSON what it waits for. The
watcher answers with a word once no change that is committed from then on can be missed, and after that with a line for
each change that was asked for: its topics; and now and then with an empty line, by which one that stands still is told
from one that has nothing to tell. When the line ends, nothing is known but that it did.
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
"""Of what is said on the line: a watcher that says it otherwise has another socket."""
_PATIENCE = 1.0
_FOR_THE_SERVER = ("PG", "LC_", "LANG", "PATH", "HOME", "USER", "TMPDIR", "TZ", "KRB5", "SSL", "LD_", "PYTHON")
"""How the variables begin that a connection may need. What says who an agent is stays with the agent."""
_STARTED_IN = 3.0
LISTENS, COUNTS = b"listens\n", b"counts \n"
"""What the watcher says first: whether it is told of changes, or looks for them now and then."""
_LOG = 1 << 18
BEAT = 60.0
"""Seconds from one sign of life to the next."""
LATE = "changes are seen up to a second late"
POOLED = f"{LATE}: a pooler passes none of them on. Add listen=HOST:PORT, the server itself, to the store's address"


def name_of(whereabouts: Sequence[str]) -> str:
    """The name of a store's watcher, from the identity of the store."""
    return md5(repr((_FORM, *whereabouts)).encode(), usedforsecurity=False).hexdigest()[:16]


class Place:
    """The place of a store's watcher on this machine, and how to start it."""

    def __init__(self, root: str, name: str, variables: Mapping[str, str], environ: Mapping[str, str]):
        self.directory = f"{root}/watchers"
        self.name = name
        self._root = root
        self._environ = {name: environ[name] for name in environ if name.startswith(_FOR_THE_SERVER)}
        self._environ.update(variables)
        self._may_start = bool(environ) and not environ.get(SANDBOX)  # what is started in there ends with the command

    @property
    def log(self) -> str:
        """The log of the watcher."""
        return f"{self.directory}/{self.name}.log"

    def attach(self, team: str, channels: Sequence[str], topics: Collection[str] | None) -> AttachedWatch | None:
        """A watch that the watcher serves; None if there is none, or it does not answer."""
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
        return AttachedWatch(line, POOLED if answer == COUNTS else "")

    def connect(self) -> socket.socket:
        """A line to the watcher.

        Raises:
            OSError: There is none, or it is another user's.
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
        """Start the watcher, unless somebody did so just now, or what we start would not be left alone."""
        if not self._may_start or not self._is_ours_to_start():
            return
        with suppress(OSError):
            if os.path.getsize(self.log) > _LOG:
                os.replace(self.log, f"{self.log}.1")
        with suppress(OSError):
            processes.start_own("teams_cli.extensions.postgres.watcher", [self.name], self._environ, self.log)

    def _is_ours_to_start(self) -> bool:
        """Whether nobody else who misses the watcher starts it; if so it is noted that we do."""
        try:
            held = locks.hold(f"{self.directory}/{self.name}.start", self._root)
        except errors.StorageFailed:  # nothing can be written here: there is none then
            return False
        if held is None:
            return False
        noted = os.fstat(held)
        if free := not noted.st_size or abs(time.time() - noted.st_mtime) > _STARTED_IN:
            os.pwrite(held, b".", 0)
        os.close(held)
        return free

    def listen(self) -> socket.socket:
        """The socket of the watcher, in the place of one that was left behind; for who holds the lock."""
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
    """A short way to a directory: the path of a socket has 100 characters at the most."""

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
    """Whether the process at the other end is one of our user; where the system does not say, its file's mode has."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.geteuid())


class AttachedWatch:
    """Woken by the watcher of this machine; it takes no connection to the server."""

    heard: frozenset[str] = EVERY_TOPIC

    def __init__(self, line: socket.socket, slow: str) -> None:
        self._line = line
        self.slow = slow
        self._rest = b""
        self.lost = False
        """Whether the watcher is gone, so that changes are not heard of any more."""
        self._heard_at = time.monotonic()
        line.setblocking(False)

    def wait(self, timeout: float) -> bool:
        """Block until a change was told of since the last call, or can't be any more; False when time ran out."""
        give_up = time.monotonic() + timeout
        while not self._told():
            if not select.select([self._line], [], [], max(give_up - time.monotonic(), 0))[0]:
                return False
        return True

    def _told(self) -> bool:
        """Whether whole lines have come; what they say is in `heard`."""
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
        """Seconds since the watcher said anything, if only that it is there."""
        return time.monotonic() - self._heard_at

    def fileno(self) -> int | None:
        """What `select` wakes on when something was told."""
        return None if self.lost else self._line.fileno()

    def close(self) -> None:
        """Leave the line."""
        self._line.close()


def asked(line: bytes) -> dict[str, Any]:
    """Parse the line in which a waiting process says what it waits for.

    Raises:
        ValueError: It says nothing of the kind.
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
