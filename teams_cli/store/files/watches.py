"""Waiting for a change below some directories: by inotify where the system has it, else by polling."""

from __future__ import annotations

import errno
import os
import select
import sys
import time

from teams_cli.store.contract import EVERY_TOPIC, concerns
from teams_cli.store.files import directories
from teams_cli.store.files.marks import label_of, owed
from teams_cli.store.pace import PollingWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from ctypes import CDLL

    from teams_cli.store.contract import Watch

_CREATE, _MODIFY, _MOVED_TO, _DELETE = 0x100, 0x2, 0x80, 0x200
_NAMES = _CREATE | _MOVED_TO | _DELETE
_OVERFLOW, _GONE, _IS_DIRECTORY = 0x4000, 0x8000, 0x40000000
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_PAUSE = 0.02
_GRAIN = 1.0
"""The step in seconds of the coarsest common file times. Most steps are some milliseconds."""
_HEAD = 16
"""The bytes of an event before its name: descriptor, mask, cookie and length of the name, four each."""
_KINDS = {"inboxes": "inbox"}
_TOO_MANY = (
    "the system has no more watches for this user, so changes are seen up to a second late: "
    "raise fs.inotify.max_user_instances and max_user_watches"
)
_LOOK_AGAIN = 1.0
_SETTLING = 1.0
"""The seconds within which a change from one label to another is finished, unless its writer is killed."""


def watch_directories(tree: str, flat: str, topics: Collection[str] | None = None) -> Watch:
    """Return a watch over the directory *tree* of a team with everything below it, and over *flat*, which has its
    tasks. With *topics*, only changes on these wake.
    """
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(_FLAGS)
    except (ImportError, OSError, AttributeError):
        return polling_watch(tree, flat)
    if descriptor < 0:  # 128 instances a user is a usual limit
        return polling_watch(tree, flat, _TOO_MANY)
    return InotifyWatch(tree, flat, topics, libc, descriptor)


def is_exhausted() -> bool:
    """Whether the user has no inotify watch left, so that a waiting process has to poll."""
    watch = watch_directories("/", "/", ())
    watch.close()
    return bool(watch.slow)


class InotifyWatch:
    """Wakes within a fraction of a millisecond. The names of files tell which changes are wanted."""

    def __init__(self, tree: str, flat: str, topics: Collection[str] | None, libc: CDLL, descriptor: int) -> None:
        self.slow = ""
        self._places = (tree, flat)
        self._topics = None if topics is None else _with_several(topics)
        self._watches_labels = topics is not None and any(topic.startswith("task:") for topic in topics)
        self._libc = libc
        self._descriptor = descriptor
        self._watched: set[str] = set()
        self._paths: dict[int, str] = {}
        self._unsettled: dict[str, float] = {}
        """The tasks that have the marks of two labels, and when that has lasted too long."""
        self.heard: frozenset[str] = EVERY_TOPIC
        self._add_new()

    def wait(self, timeout: float) -> bool:
        """Block until a wanted change may have happened since the last call; False after *timeout* seconds."""
        give_up = time.monotonic() + timeout
        if not self._is_told_of_directories() and self._add_new():
            self.heard = EVERY_TOPIC
            return True
        if self.slow:
            select.select([self._descriptor], [], [], min(_LOOK_AGAIN, max(timeout, 0)))
            self.heard = self._take() | EVERY_TOPIC
            return timeout > 0
        while True:
            due = min(give_up, *self._unsettled.values()) if self._unsettled else give_up
            if select.select([self._descriptor], [], [], max(due - time.monotonic(), 0))[0]:
                self.heard = self._take()
            elif found := self._left_unsettled():
                self.heard = found
            elif time.monotonic() >= give_up:
                return False
            else:
                continue
            if concerns(self._topics, self.heard):
                return True

    def fileno(self) -> int:
        """Return the descriptor for `select` and `poll`."""
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take(self) -> frozenset[str]:
        """Return the topics of all changes that the system reported."""
        heard: set[str] = set()
        for watch, mask, name in self._events():
            if mask & _GONE:
                self._watched.discard(self._paths.pop(watch, ""))  # one of that name may come again
            if mask & _OVERFLOW:  # more happened than the system keeps
                self._add_new()
                heard.update(EVERY_TOPIC)
            elif mask & (_IS_DIRECTORY | _GONE):
                heard.update(EVERY_TOPIC if self._add_new() else ())
            elif watch in self._paths:
                heard.update(self._topics_of(self._paths[watch], mask, name))
        return frozenset(heard)

    def _events(self) -> Iterator[tuple[int, int, str]]:
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                return
            at = 0
            while at + _HEAD <= len(data):
                length = int.from_bytes(data[at + 12 : at + _HEAD], sys.byteorder)
                name = data[at + _HEAD : at + _HEAD + length].rstrip(b"\0")
                watch = int.from_bytes(data[at : at + 4], sys.byteorder, signed=True)
                yield watch, int.from_bytes(data[at + 4 : at + 8], sys.byteorder), os.fsdecode(name)
                at += _HEAD + length

    def _topics_of(self, directory: str, mask: int, name: str) -> set[str]:
        """Return the topics of a change of that file."""
        tree, flat = self._places
        if directory.startswith(f"{flat}/index/"):
            return self._of_task(name, settled=True) if mask & _DELETE else set()
        if name == directories.NAME:
            return {*EVERY_TOPIC} if mask & _MOVED_TO else set()
        if not name.endswith(".json"):
            return {"history"} if name.startswith("history") else set()
        if directory == flat:
            return self._of_task(name[:-5], settled=False)
        if directory == tree:
            return {"team", f"team/{os.path.basename(tree)}"}
        place = directory[len(tree) + 1 :]
        if place.startswith("messages/"):
            return {"message", f"message/{[*name.split('.'), ''][1]}"}
        kind = _KINDS.get(place) or place.removesuffix("s")
        return {kind, f"{kind}/{name[:-5]}"}

    def _of_task(self, key: str, settled: bool) -> set[str]:
        """Return the topics of a changed task, with the labels of its marks.

        While its label changes, the task has the marks of both labels; it is *settled* when one is removed. A task that
        owes a notice keeps both until the notice is sent.
        """
        labels = _labels(f"{self._places[1]}/index", key)
        found = {"task", f"task/{key}"}
        if settled or len(labels) < 2 or os.path.lexists(f"{self._places[0]}/owed/{owed('task', key)}"):
            self._unsettled.pop(key, None)
            found.update(f"task:{label}" for label in labels or [""])
        elif self._watches_labels:
            self._unsettled[key] = time.monotonic() + _SETTLING
        return found

    def _left_unsettled(self) -> frozenset[str]:
        """Return the topics of tasks whose change of label was interrupted, because its process was killed: those of
        the old and of the new label.
        """
        now = time.monotonic()
        found: set[str] = set()
        for key in [key for key, due in self._unsettled.items() if due <= now]:
            found |= self._of_task(key, settled=True)
        return frozenset(found)

    def _is_told_of_directories(self) -> bool:
        """Whether the system reports each new directory, so that there is no need to look for them."""
        return not self.slow and all(place in self._watched for place in self._places if self._is_wanted(place))

    def _add_new(self) -> bool:
        """Watch the directories that are not watched yet; False if there were none. Nothing reports a directory that is
        made inside a new one before this is watched, so new directories are looked through once more.
        """
        is_new = False
        while new := [path for path in self._wanted() if path not in self._watched]:
            for path in new:
                self._add(path)
            is_new = True
        return is_new

    def _wanted(self) -> list[str]:
        try:
            return [path for path in _directories(*self._places) if self._is_wanted(path)]
        except OSError as error:
            self.slow = f"changes are seen up to a second late: {error.strerror}; raise the limit with ulimit -n"
            return []

    def _add(self, path: str) -> None:
        watch = self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), self._mask(path))
        if watch >= 0:
            self._paths[watch] = path
        elif os.path.isdir(path):  # the system has no more; it is looked at again and again
            self.slow = _TOO_MANY
        else:
            return
        self._watched.add(path)

    def _mask(self, path: str) -> int:
        """Return the inotify events to watch for in a directory. The history, which is appended to, is in the team's
        own directory; a process that waits for certain topics need not wake for that.
        """
        if self._is_above(path):
            return _CREATE | _MOVED_TO
        return _NAMES if self._topics is not None and path == self._places[0] else _NAMES | _MODIFY

    def _is_above(self, path: str) -> bool:
        """Whether the tree will be made in the directory, which has nothing else of interest."""
        return self._places[0].startswith(f"{path.rstrip('/')}/")

    def _is_wanted(self, path: str) -> bool:
        tree, flat = self._places
        topics = self._topics
        if path.startswith(f"{flat}/index"):
            return self._watches_labels
        if topics is None or path == tree or self._is_above(path):
            return True
        kind = "task" if path == flat else path[len(tree) + 1 :].partition("/")[0]
        kind = _KINDS.get(kind) or kind.removesuffix("s")
        return any(topic == kind or topic.startswith((f"{kind}/", f"{kind}:")) for topic in topics)


def _with_several(topics: Collection[str]) -> frozenset[str]:
    """Return the topics, with the topic of messages to several agents, whose names do not list them."""
    several = {"message/@"} if any(topic.startswith("message/") for topic in topics) else set()
    return frozenset({*topics, *several})


def _labels(index: str, key: str) -> list[str]:
    """Return the labels of which the record has a mark."""
    try:
        return list({label_of(name) for name in os.listdir(index) if os.path.lexists(f"{index}/{name}/{key}")})
    except OSError:
        return []


def polling_watch(tree: str, flat: str, slow: str = "") -> PollingWatch:
    """Return a watch that compares the times of the directories, which change with every rename into them."""
    return PollingWatch(lambda: _states(tree, flat), _PAUSE, slow, _GRAIN)


def _states(tree: str, flat: str) -> dict[str, tuple[int, int]]:
    found = {}
    try:
        directories = _directories(tree, flat)
    except OSError:  # nobody can tell: looked for anew each second
        return {"": (int(time.monotonic()), 0)}
    for path in directories:
        if path.startswith(f"{flat}/index"):
            continue  # what is found there changed beside it too
        try:
            state = os.stat(path)
        except OSError:
            continue
        found[path] = (state.st_mtime_ns, state.st_ino)
    return found


def _directories(tree: str, flat: str) -> list[str]:
    """Return the existing directories: *flat* with its index, and *tree* with two levels below it (the segments of the
    log). If *tree* does not exist yet, the nearest directory above it.
    """
    index = f"{flat}/index"
    found = [path for path in (flat, index, *_below(index)) if os.path.isdir(path)]
    if not os.path.isdir(tree):
        return [*found, _nearest(os.path.dirname(tree))]
    inner = _below(tree)
    return [*found, tree, *inner, *(path for directory in inner for path in _below(directory))]


def _nearest(path: str) -> str:
    """Return the directory, or the first existing one above it."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _below(path: str) -> list[str]:
    """Return the directories in a directory that has few other entries. Of the log's segments only the newest grows."""
    try:
        with os.scandir(path) as entries:
            names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):  # what is in it is not known, and may well be something
            raise
        return []
    segments = [name for name in names if name.isascii() and name.isdigit()]
    if segments:
        names = [name for name in names if name not in segments] + [max(segments, key=int)]
    return [f"{path}/{name}" for name in names]
