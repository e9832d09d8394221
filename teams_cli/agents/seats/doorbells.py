"""Doorbells: a named pipe for each terminal. The waker rings it, and the process that can wake the client listens."""

from __future__ import annotations

import fcntl
import json
import os
import select
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


LINE = "[teams] You have messages. If they are not shown now, run: teams read-messages"
"""The only text that wakes a client. It never contains what others wrote."""
MAIL, STOP, LEAVE = b"m", b"s", b"l"
"""The reasons to ring: there is mail; the client is to be interrupted because there is mail; listeners are to leave."""


class Doorbell:
    """The bell of one terminal, for the process that listens to it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = -1
        self._pipe = -1

    def take(self, client: int = 0) -> bool:
        """Become the listener of the bell, for the client with the process id *client*. Returns False if another
        process is.
        """
        os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d" % client, 0)
        self._lock = lock
        try:
            os.mkfifo(self.path, 0o600)
        except FileExistsError:
            if not stat.S_ISFIFO(os.lstat(self.path).st_mode):
                raise
        # Opened for reading and writing, so that it never ends. Rings for an earlier listener are gone.
        self._pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        return True

    def client(self) -> int:
        """Return the process id of the client whose listener waits at this bell, negative while that listener is to
        leave; 0 if unknown.
        """
        try:
            with open(f"{self.path}.lock", encoding="ascii") as file:
                return int(file.read() or 0)
        except (OSError, ValueError):
            return 0

    def is_dismissed(self, client: int) -> bool:
        """Whether listeners for the client with the process id *client* are to leave."""
        return client > 0 and self.client() == -client

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the bell rings."""
        return self._pipe

    def wait(self, seconds: float) -> bytes:
        """Return the reason for which the bell rings within *seconds*, or b"" if it does not ring."""
        ready, _, _ = select.select([self._pipe], [], [], seconds)
        return self.heard() if ready else b""

    def heard(self) -> bytes:
        """Return the most important reason for which the bell rang since the last call, or b"" if it did not ring."""
        try:
            rings = os.read(self._pipe, 4096)
        except BlockingIOError:
            return b""
        return next((what for what in (LEAVE, STOP) if what in rings), rings[:1])

    def close(self) -> None:
        """Stop listening."""
        for descriptor in (self._pipe, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._lock = -1


def ring(path: str, what: bytes = MAIL) -> bool:
    """Ring the bell at *path*. Returns False if nobody listens."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # there is no pipe, or nobody reads
        return False
    try:
        return os.write(descriptor, what) == len(what)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def is_heard(path: str) -> bool:
    """Whether somebody listens to the bell at *path*."""
    return ring(path, b"")


def dismiss(directory: str, client: str) -> None:
    """Have all listeners for that kind of client leave, now and after later turns. Our wrapper of a client in a
    terminal stays, because its person needs it.
    """
    for bell in _of_kind(directory, client):
        _admit(bell, False)
        ring(bell, LEAVE)


def readmit(directory: str, client: str) -> None:
    """Let listeners for that kind of client, which were dismissed, return after the next turn."""
    for bell in _of_kind(directory, client):
        _admit(bell, True)


def _of_kind(directory: str, client: str) -> Iterator[str]:
    for top, _, files in os.walk(directory):
        for name in files:
            if name.endswith(".bell") and _client_of(f"{top}/{name}") in ("", client):
                yield f"{top}/{name}"


def _admit(bell: str, admitted: bool) -> None:
    """Record whether the client with that bell may have a listener: if not, its process id is stored negative."""
    pid = abs(Doorbell(bell).client())
    try:
        descriptor = os.open(f"{bell}.lock", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # its client went meanwhile
        return
    os.write(descriptor, b"%d" % (pid if admitted else -pid))
    os.close(descriptor)


def _client_of(bell: str) -> str:
    """Return the kind of client that has the bell; empty if it was not recorded."""
    try:
        with open(f"{bell.removesuffix('.bell')}.json", encoding="utf-8") as file:
            return str(json.load(file).get("client") or "")
    except (OSError, ValueError):
        return ""
