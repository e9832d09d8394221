"""Doorbells: a named pipe for each terminal. The waker rings the bell; the process that can wake the client listens to
it.
"""

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
"""The only text that wakes a client. It never contains text that others wrote."""
MAIL, STOP, LEAVE = b"m", b"s", b"l"
"""The reasons to ring: there is mail; there is mail that interrupts the client; the listeners must leave."""


class Doorbell:
    """The bell of one terminal, for the process that listens to it: the listener.

    The listener holds the lock of the file `PATH.lock`, which contains the process id of the listener's client. The
    number in the file is negative while listeners for this client are dismissed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = -1
        self._pipe = -1

    def listen(self, client: int = 0) -> bool:
        """Become the listener of the bell, for the client with the process id *client*, which is 0 if unknown. Returns
        False if another process listens already.
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
        # Opened also for writing, so that the pipe never reports its end. Rings for an earlier listener are gone.
        self._pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        return True

    def client_pid(self) -> int:
        """Return the process id of the client whose listener last took this bell; 0 if the id is unknown. It is
        negative while listeners for this client are dismissed.
        """
        try:
            with open(f"{self.path}.lock", encoding="ascii") as file:
                return int(file.read() or 0)
        except (OSError, ValueError):
            return 0

    def is_dismissed(self, client: int) -> bool:
        """Whether listeners for the client with the process id *client* are dismissed."""
        return client > 0 and self.client_pid() == -client

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the bell rings."""
        return self._pipe

    def wait(self, seconds: float) -> bytes:
        """Wait at most *seconds* for the bell to ring. Return the reason why it rang, or b"" if it did not ring."""
        ready, _, _ = select.select([self._pipe], [], [], seconds)
        return self.read_reason() if ready else b""

    def read_reason(self) -> bytes:
        """Return the most important reason for which the bell rang since the last call, or b"" if it did not ring."""
        try:
            rings = os.read(self._pipe, 4096)
        except BlockingIOError:
            return b""
        for reason in (LEAVE, STOP):
            if reason in rings:
                return reason
        return rings[:1]  # the other rings are for mail, too

    def close(self) -> None:
        """Stop listening."""
        for descriptor in (self._pipe, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._lock = -1


def ring(path: str, reason: bytes = MAIL) -> bool:
    """Ring the bell at *path* for the *reason*. Returns False if nobody listens. With an empty *reason*, the bell does
    not ring, and the result only says whether somebody listens.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # there is no pipe, or nobody reads
        return False
    try:
        return os.write(descriptor, reason) == len(reason)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def has_listener(path: str) -> bool:
    """Whether somebody listens to the bell at *path*."""
    return ring(path, b"")


def dismiss(directory: str, client: str) -> None:
    """Make the listeners for all clients of the kind *client*, such as `claude`, leave now, and leave again whenever
    they return after a turn. The wrapper that `teams` runs around a client in a terminal stays a listener, because the
    person in front of the terminal needs it.
    """
    for bell in _bells_of(directory, client):
        _write_client_pid(bell, -abs(Doorbell(bell).client_pid()))
        ring(bell, LEAVE)


def readmit(directory: str, client: str) -> None:
    """Let the dismissed listeners for clients of the kind *client* return after the next turn."""
    for bell in _bells_of(directory, client):
        _write_client_pid(bell, abs(Doorbell(bell).client_pid()))


def _bells_of(directory: str, client: str) -> Iterator[str]:
    """Yield the paths of the bells of clients of the kind *client*, or of an unknown kind."""
    for parent, _, files in os.walk(directory):
        for name in files:
            if name.endswith(".bell"):
                try:
                    with open(f"{parent}/{name.removesuffix('.bell')}.json", encoding="utf-8") as file:
                        kind = json.load(file).get("client")
                except (OSError, ValueError):
                    kind = None
                if kind in (None, "", client):
                    yield f"{parent}/{name}"


def _write_client_pid(bell: str, pid: int) -> None:
    try:
        descriptor = os.open(f"{bell}.lock", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # its client went meanwhile
        return
    os.write(descriptor, b"%d" % pid)
    os.close(descriptor)
