"""One lock a directory: held by the kernel, so that it dies with its holder, on a file that is never removed."""

from __future__ import annotations

import errno
import os
import stat
import time

from teams_cli.errors import Busy, StorageFailed
from teams_cli.store.files.disk import failed, make_directories, release
from teams_cli.store.retrying import jitter

try:
    import fcntl
except ImportError:  # no flock here: filelock knows what the platform has
    fcntl = None  # type: ignore[assignment]

_SHORT, _LONG = 0.001, 0.01
"""The longest pauses between two tries: of a lock that is mostly held for less than a millisecond, and later."""
_SOON = 0.25
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def hold(path: str, root: str) -> int | None:
    """The lock on a file below *root*, for as long as the descriptor is open; None if another process has it.

    Raises:
        StorageFailed: It can't be opened or locked, or the directories above it can't be made.
    """
    make_directories(os.path.dirname(path), root)
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        release(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise failed("lock", path, error) from None
    return descriptor


class Lock:
    """The right to change what is in a directory, for the length of a `with` block.

    Nothing may be started while it is held: a child would hold it too.

    Raises:
        Busy: Another process had it for all of *timeout* seconds; names the file and, where known, the holder.
        StorageFailed: The lock file can't be opened.
    """

    def __init__(self, directory: str, timeout: float) -> None:
        self.path = f"{directory}/.lock"
        self.timeout = timeout

    def __enter__(self) -> None:
        self._held = _flock(self.path, self.timeout)

    def __exit__(self, *_: object) -> None:
        release(self._held)


class PortableLock(Lock):
    """The same right, by what the platform has: `filelock` knows. Where there is `flock`, each excludes the other."""

    def __enter__(self) -> None:
        self._lock = _filelock(self.path, self.timeout)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


LOCK = Lock if fcntl else PortableLock
"""How this platform locks."""


def _flock(path: str, timeout: float) -> int:
    """Lock as `filelock` does on this platform, with the same exclusion, in 1/50 of the time."""
    give_up = time.monotonic() + timeout
    # A change holds the lock for about a millisecond, so the first looks come soon; then ever later, that many who wait
    # leave the processor to the one who works, but never more than 10 ms after the lock is free.
    pause = 0.0002
    began = time.monotonic()
    while True:
        descriptor = _open(path)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    release(descriptor)
                    raise _busy(path, timeout) from None
            except OSError as error:
                release(descriptor)
                raise failed("lock", path, error) from None
            time.sleep(pause / 2 + jitter(pause))
            pause = min(pause * 1.5, _SHORT if time.monotonic() - began < _SOON else _LONG)
        if _still_there(descriptor, path):
            return descriptor
        release(descriptor)  # somebody removed the file: others lock its successor


def _open(path: str) -> int:
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise StorageFailed(f"{path} is not a lock file", "Remove it; the next command makes a new one.") from None
        raise failed("open", path, error) from None
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
    except OSError as error:
        release(descriptor)
        raise failed("lock", path, error) from None
    release(descriptor)
    raise StorageFailed(f"{path} is not a lock file", "Remove it; the next command makes a new one.")


def _still_there(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
    except OSError as error:
        release(descriptor)
        raise failed("lock", path, error) from None


def _filelock(path: str, timeout: float):  # type: ignore[no-untyped-def]  # only where there is no flock
    from filelock import FileLock, Timeout

    while True:
        descriptor = _open(path)  # made with what is refused told: it only says that it can't
        lock = FileLock(path, timeout=timeout, poll_interval=0.005, mode=0o600, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            release(descriptor)
            raise _busy(path, timeout) from None
        except OSError as error:
            release(descriptor)
            raise failed("lock", path, error) from None
        if _still_there(descriptor, path):  # else the directory was moved away between its opening and its locking
            release(descriptor)
            return lock
        lock.release()
        release(descriptor)


def _busy(path: str, timeout: float) -> Busy:
    holder = holder_of(path)
    if holder is None:
        return Busy(f"{path} was held for {timeout:g} seconds", "Nothing was changed; try again.")
    return Busy(
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
