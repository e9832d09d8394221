"""Waiting for a change under some directories: woken by inotify where there is one, else by looking again and again."""

from __future__ import annotations

import os
import select

from teams_cli.store.polling import PollingWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctypes import CDLL

    from teams_cli.store.contract import Watch

_CREATE, _MODIFY, _MOVED_TO, _DELETE = 0x100, 0x2, 0x80, 0x200
_MASK = _CREATE | _MODIFY | _MOVED_TO | _DELETE
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_PAUSE = 0.02


def watch_directories(tree: str, flat: str) -> Watch:
    """A watch over the directory *tree* and those below it, also ones made later, and over *flat* alone."""
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(_FLAGS)
    except (ImportError, OSError, AttributeError):
        return polling_watch(tree, flat)
    if descriptor < 0:  # 128 instances a user is a usual limit
        return polling_watch(tree, flat)
    return InotifyWatch(tree, flat, libc, descriptor)


class InotifyWatch:
    """Wakes within a fraction of a millisecond."""

    def __init__(self, tree: str, flat: str, libc: CDLL, descriptor: int) -> None:
        self._places = (tree, flat)
        self._libc = libc
        self._descriptor = descriptor
        self._watched: set[str] = set()
        self._add_new()

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        if self._add_new():
            return True
        ready, _, _ = select.select([self._descriptor], [], [], max(timeout, 0))
        if ready:
            self._drain()
        return bool(ready)

    def fileno(self) -> int:
        """What select and poll take."""
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _drain(self) -> None:
        try:
            while os.read(self._descriptor, 1 << 16):
                pass
        except BlockingIOError:
            return

    def _add_new(self) -> bool:
        new = _directories(*self._places) - self._watched
        for path in new:
            self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), _MASK)
        self._watched |= new
        return bool(new)


def polling_watch(tree: str, flat: str) -> PollingWatch:
    """A watch that looks at the times of the directories, which change with every rename into them."""
    return PollingWatch(lambda: _states(tree, flat), _PAUSE)


def _states(tree: str, flat: str) -> dict[str, tuple[int, int]]:
    found = {}
    for path in _directories(tree, flat):
        try:
            state = os.stat(path)
        except OSError:
            continue
        found[path] = (state.st_mtime_ns, state.st_ino)
    return found


def _directories(tree: str, flat: str) -> set[str]:
    """The directories there are now: *flat*, and *tree* with two levels below it (the segments of the log)."""
    found = {flat} if os.path.isdir(flat) else set()
    level = [tree]
    for _ in range(3):
        level = [path for path in level if os.path.isdir(path)]
        found.update(level)
        level = [entry for path in level for entry in _below(path)]
    return found


def _below(path: str) -> list[str]:
    """The directories in one that holds few other things; of the log's segments, only the newest grows."""
    try:
        with os.scandir(path) as entries:
            names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    segments = [name for name in names if name.isascii() and name.isdigit()]
    if segments:
        names = [name for name in names if name not in segments] + [max(segments, key=int)]
    return [f"{path}/{name}" for name in names]
