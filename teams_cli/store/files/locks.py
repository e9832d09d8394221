"""One lock a directory, held by the kernel on a file that is never removed. It ends with the process that holds it."""

from __future__ import annotations

import errno
import os
import stat
import time

from teams_cli import errors
from teams_cli.store.files.disk import failed, make_directories, release
from teams_cli.store.retrying import jitter

try:
    import fcntl
except ImportError:  # no flock here: filelock knows what the platform has
    fcntl = None  # type: ignore[assignment]

_LONGEST = 0.005
"""The most seconds between two tries for a lock."""
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def hold(path: str, root: str) -> int | None:
    """Lock a file below *root* as long as the descriptor is open. Return None if another process holds it.

    Raises:
        StorageFailed: It can't be opened or locked, or the directories above it can't be made.
    """
    make_directories(os.path.dirname(path), root)
    descriptor, _ = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        release(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise failed("lock", path, error) from None
    return descriptor


class Lock:
    """A `with` block that may change the content of a directory.

    Start no process in it: the child would hold the lock too.

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
    """The same lock by `filelock`, for every platform. Where there is `flock`, each excludes the other."""

    def __enter__(self) -> None:
        self._lock = _filelock(self.path, self.timeout)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


LOCK = Lock if fcntl else PortableLock
"""The kind of lock on this platform."""


def _flock(path: str, timeout: float) -> int:
    """Lock as `filelock` does on this platform, with the same exclusion. Importing `filelock` takes longer than an
    everyday command.

    A change holds the lock for about a millisecond, so the first tries come soon and later ones more rarely, which
    leaves the processor to the holder.
    """
    give_up = time.monotonic() + timeout
    pause = 0.0002
    while True:
        descriptor, opened = _open(path)
        try:
            while not _try(descriptor):
                if time.monotonic() >= give_up:
                    release(descriptor)
                    raise _busy(path, timeout)
                time.sleep(pause / 2 + jitter(pause))
                pause = min(pause * 1.5, _LONGEST)
        except OSError as error:
            release(descriptor)
            raise failed("lock", path, error) from None
        except BaseException:  # interrupted: nobody has it
            release(descriptor)
            raise
        if _still_there(descriptor, opened, path):
            return descriptor
        release(descriptor)  # somebody removed the file: others lock its successor


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy(path: str, timeout: float) -> errors.Busy:
    """Return the refusal after waiting for a lock. It names the holder if the system tells it."""
    holder = holder_of(path)
    if holder is None:
        return errors.Busy(f"{path} was held for {timeout:g} seconds", "Nothing was changed; try again.")
    return errors.Busy(
        f"{path} was held by process {holder} for {timeout:g} seconds",
        f"Nothing was changed; try again. If process {holder} is suspended, continue or end it.",
    )


def holder_of(path: str) -> int | None:
    """Return the process that holds the lock file, if the system tells it."""
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


def _open(path: str) -> tuple[int, os.stat_result]:
    """Open the lock file, which is made if it is missing, and return it with its identity.

    Raises:
        StorageFailed: It can't be opened, or is no file that can be locked.
    """
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise errors.StorageFailed(
                f"{path} is not a lock file", "Remove it; the next command makes a new one."
            ) from None
        raise failed("open", path, error) from None
    try:
        opened = os.fstat(descriptor)
        if stat.S_ISREG(opened.st_mode):
            return descriptor, opened
    except OSError as error:
        release(descriptor)
        raise failed("lock", path, error) from None
    release(descriptor)
    raise errors.StorageFailed(f"{path} is not a lock file", "Remove it; the next command makes a new one.")


def _still_there(descriptor: int, opened: os.stat_result, path: str) -> bool:
    """Whether the opened file is still the file at that path."""
    try:
        return os.path.samestat(opened, os.lstat(path))
    except FileNotFoundError:
        return False
    except OSError as error:
        release(descriptor)
        raise failed("lock", path, error) from None


def _filelock(path: str, timeout: float):  # type: ignore[no-untyped-def]  # only where there is no flock
    from filelock import FileLock, Timeout

    while True:
        descriptor, opened = _open(path)  # made with what is refused told: it only says that it can't
        lock = FileLock(path, timeout=timeout, poll_interval=0.005, mode=0o600, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            release(descriptor)
            raise _busy(path, timeout) from None
        except OSError as error:
            release(descriptor)
            raise failed("lock", path, error) from None
        if _still_there(descriptor, opened, path):  # else the directory was moved away before it was locked
            release(descriptor)
            return lock
        lock.release()
        release(descriptor)
