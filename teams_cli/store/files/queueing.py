"""Waiting for a lock that is held longer than a change takes: in the system's queue; and who holds it."""

from __future__ import annotations

import _thread
import os
import time

from teams_cli import errors
from teams_cli.store.files.disk import release

try:
    import fcntl
except ImportError:  # no flock here, and nobody comes here
    fcntl = None  # type: ignore[assignment]

_MOST_UNWANTED = 16


def queued(descriptor: int, give_up: float) -> bool | None:
    """Whether the lock was had in the queue, in time. If not, the descriptor will be closed once its turn comes. None
    where it could not stand there: it is as it was.

    Only a thread can stand there for a time: what a signal interrupts is up to whoever runs us.
    """
    if time.monotonic() >= give_up or _Turn.unwanted >= _MOST_UNWANTED:
        return None
    try:
        return _Turn(descriptor).came(give_up)
    except RuntimeError:  # the system has no thread to give
        return None


class _Turn:
    """The turn of a descriptor in the queue for its lock; taken in a thread, and waited for in another."""

    unwanted = 0
    """How many turns were waited for in vain and have not come yet: each has a thread and a descriptor."""
    _settling = _thread.allocate_lock()

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._over = _thread.allocate_lock()
        self._over.acquire()
        self._is_wanted, self._has_come = True, False
        self._failure: OSError | None = None

    def _take(self) -> None:
        """Wait for it as long as it takes; give it back at once if nobody wants it any more."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError as error:
            self._failure = error
        with self._settling:
            self._has_come = True
            if not self._is_wanted:
                _Turn.unwanted -= 1
                release(self._descriptor)
        self._over.release()

    def came(self, give_up: float) -> bool:
        """Whether it came in time. Otherwise it is wanted no more.

        Raises:
            OSError: The system refused.
            RuntimeError: It has no thread to give.
        """
        _thread.start_new_thread(self._take, ())
        try:
            self._over.acquire(timeout=max(0.0, give_up - time.monotonic()))
            came = self._is_here()
        except BaseException:  # interrupted: what comes now is nobody's
            if self._is_here():
                release(self._descriptor)
            raise
        if came and self._failure:
            raise self._failure
        return came

    def _is_here(self) -> bool:
        """Whether it has come by now. Otherwise it is wanted no more."""
        with self._settling:
            if self._is_wanted and not self._has_come:
                self._is_wanted = False
                _Turn.unwanted += 1
            return self._has_come


def busy(path: str, timeout: float) -> errors.Busy:
    """The refusal of who waited so long for a lock; names who holds it, where the system tells."""
    holder = holder_of(path)
    if holder is None:
        return errors.Busy(f"{path} was held for {timeout:g} seconds", "Nothing was changed; try again.")
    return errors.Busy(
        f"{path} was held by process {holder} for {timeout:g} seconds",
        f"Nothing was changed; try again. If process {holder} is stopped, let it go on or end it.",
    )


def holder_of(path: str) -> int | None:
    """The process that holds the lock file, where the system tells."""
    try:
        found = os.stat(path)
        inode = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
        with open("/proc/locks", encoding="ascii") as table:
            for line in table:
                words = line.split()
                if inode in words and "->" not in words:
                    return int(words[words.index(inode) - 1])
    except (OSError, ValueError):
        return None
    return None
