"""One lock for each directory, held by the kernel on a file that is never removed. A lock ends with the process that
holds it.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from teams_cli import errors
from teams_cli.clock import jitter
from teams_cli.store.files.disk import failed, make_directories, release

try:
    import fcntl
except ImportError:  # no flock here: filelock knows what the platform has
    fcntl = None  # type: ignore[assignment]

_LONGEST_PAUSE = 0.005
"""The most seconds between two attempts to take a lock."""
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def hold(path: str, root: str) -> int | None:
    """Lock a file below *root*, and return its descriptor. The lock is held as long as the descriptor is open. Return
    None if another process holds the lock.
    """
    make_directories(os.path.dirname(path), root)
    descriptor, _ = _open(path)
    try:
        if _try_lock(descriptor):
            return descriptor
    except OSError as error:
        release(descriptor)
        raise failed("lock", path, error) from None
    release(descriptor)
    return None


class Lock:
    """The lock of a directory. A `with` block holds it, and may change what is in the directory.

    The block must not start a process, because the child process would hold the lock, too.

    Raises:
        Busy: Another process held the lock for *timeout* seconds. The error names the file and, if known, the process.
        StorageFailed: The lock file can't be opened.
    """

    def __init__(self, directory: str, timeout: float) -> None:
        self.path = f"{directory}/.lock"
        self.timeout = timeout

    def __enter__(self) -> None:
        self._descriptor = _flock(self.path, self.timeout)

    def __exit__(self, *_: object) -> None:
        release(self._descriptor)


class PortableLock(Lock):
    """A lock like `Lock`, for platforms without the system call `flock`. It is made by the library `filelock`. On
    platforms with `flock`, a `Lock` and a `PortableLock` of one directory exclude each other.
    """

    def __enter__(self) -> None:
        self._lock = _filelock(self.path, self.timeout)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


LOCK = Lock if fcntl else PortableLock
"""The class of locks to use on this platform."""


def _flock(path: str, timeout: float) -> int:
    """Lock the file at *path*, and return its descriptor. A change holds the lock for about a millisecond. So the first
    attempts follow each other quickly. Later attempts are rarer, to leave the processor to the holder of the lock.
    """
    give_up = time.monotonic() + timeout
    pause = 0.0002
    while True:
        descriptor, opened = _open(path)
        try:
            while not _try_lock(descriptor):
                if time.monotonic() >= give_up:
                    release(descriptor)
                    raise _busy(path, timeout)
                time.sleep(pause / 2 + jitter(pause))
                pause = min(pause * 1.5, _LONGEST_PAUSE)
        except OSError as error:
            release(descriptor)
            raise failed("lock", path, error) from None
        except BaseException:  # interrupted while it waited
            release(descriptor)
            raise
        if _is_still_at(path, descriptor, opened):
            return descriptor
        release(descriptor)  # the file was removed, so other processes lock the one that was made after it


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy(path: str, timeout: float) -> errors.Busy:
    holder = holder_of(path)
    if holder is None:
        return errors.Busy(f"{path} was held for {timeout:g} seconds", "Nothing was changed; try again.")
    return errors.Busy(
        f"{path} was held by process {holder} for {timeout:g} seconds",
        f"Nothing was changed; try again. If process {holder} is suspended, continue or end it.",
    )


def holder_of(path: str) -> int | None:
    """Return the process that holds the lock file; None if none does, or if the system does not show which."""
    try:
        state = os.stat(path)
        inode = f"{os.major(state.st_dev):02x}:{os.minor(state.st_dev):02x}:{state.st_ino}"
        with open("/proc/locks", encoding="ascii") as table:
            for line in table:  # such as "7: FLOCK ADVISORY WRITE 4711 fd:01:1835017 0 EOF"; "->" marks who waits
                fields = line.split()
                if inode in fields and "->" not in fields:
                    return int(fields[fields.index(inode) - 1])
    except (OSError, ValueError):
        return None
    return None


def _open(path: str) -> tuple[int, os.stat_result]:
    """Open the lock file, and make it if it is missing. Return its descriptor and its status from `os.fstat`."""
    no_lock_file = errors.StorageFailed(f"{path} is not a lock file", "Remove it; the next command makes a new one.")
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise no_lock_file from None
        raise failed("open", path, error) from None
    try:
        opened = os.fstat(descriptor)
        if stat.S_ISREG(opened.st_mode):
            return descriptor, opened
    except OSError as error:
        release(descriptor)
        raise failed("lock", path, error) from None
    release(descriptor)
    raise no_lock_file


def _is_still_at(path: str, descriptor: int, opened: os.stat_result) -> bool:
    """Whether the open file is still at *path*. If the system refuses to say, close the file and raise an error."""
    try:
        return os.path.samestat(opened, os.lstat(path))
    except FileNotFoundError:
        return False
    except OSError as error:
        release(descriptor)
        raise failed("lock", path, error) from None


def _filelock(path: str, timeout: float):  # type: ignore[no-untyped-def]  # filelock is not imported to check types
    from filelock import FileLock, Timeout

    while True:
        descriptor, opened = _open(path)  # its errors say why a file can't be opened; those of filelock do not
        lock = FileLock(path, timeout=timeout, poll_interval=0.005, mode=0o600, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            release(descriptor)
            raise _busy(path, timeout) from None
        except OSError as error:
            release(descriptor)
            raise failed("lock", path, error) from None
        if _is_still_at(path, descriptor, opened):  # else the directory was moved away before it was locked
            release(descriptor)
            return lock
        lock.release()
        release(descriptor)
