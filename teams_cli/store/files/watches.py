"""Waiting for a change below some directories: by inotify if the system has it, otherwise by polling."""

from __future__ import annotations

import errno
import os
import select
import struct
import time

from teams_cli.store.contract import EVERY_TOPIC, concerns
from teams_cli.store.files.directories import OWED, TOGETHER, label_of, name_of_owed
from teams_cli.store.pace import PollingWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from ctypes import CDLL

    from teams_cli.store.contract import Watch

_CREATE, _MODIFY, _MOVED_TO, _DELETE = 0x100, 0x2, 0x80, 0x200
_CHANGED_NAMES = _CREATE | _MOVED_TO | _DELETE
_OVERFLOW, _GONE, _IS_DIRECTORY = 0x4000, 0x8000, 0x40000000
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_PAUSE = 0.02
_GRAIN = 1.0
"""The coarsest step of file times in common file systems, in seconds. Most steps are some milliseconds."""
_HEAD = struct.Struct("iIII")
"""The beginning of an inotify event: the watch, the mask, a cookie, and the length of the name that follows."""
_KINDS = {"inboxes": "inbox"}
"""The kind of record for each directory whose name is not simply the kind with an `s`."""
_TOO_MANY = (
    "the system has no more watches for this user, so changes are seen up to a second late: "
    "raise fs.inotify.max_user_instances and max_user_watches"
)
_LOOK_AGAIN = 1.0
_CHANGE_OF_LABEL = 1.0
"""The most seconds that a task's change from one label to another takes, unless the process that makes it is killed."""


def watch_directories(tree: str, flat: str, topics: Collection[str] | None = None) -> Watch:
    """Return a watch over the directory *tree* of a team with everything below it, and over *flat*, the directory of
    the team's tasks. The watch wakes only for changes on the *topics*; if *topics* is None, for every change.
    """
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(_FLAGS)
    except (ImportError, OSError, AttributeError):  # no inotify on this system
        return polling_watch(tree, flat)
    if descriptor < 0:  # often a user may have 128 instances
        return polling_watch(tree, flat, _TOO_MANY)
    return InotifyWatch(tree, flat, topics, libc, descriptor)


def is_exhausted() -> bool:
    """Whether the system may refuse the user another inotify watch, so that a process waiting for changes must poll."""
    watch = watch_directories("/", "/", ())
    watch.close()
    return bool(watch.slow)


class InotifyWatch:
    """A watch by inotify, which wakes within a fraction of a millisecond after a change. The names of the changed files
    show what a change is about.
    """

    def __init__(self, tree: str, flat: str, topics: Collection[str] | None, libc: CDLL, descriptor: int) -> None:
        self.slow = ""
        self._tree = tree
        self._flat = flat
        self._topics = None if topics is None else frozenset(topics)
        if topics is not None and any(topic.startswith("message/") for topic in topics):
            self._topics = frozenset({*topics, "message/@"})  # the file name of one to several does not show to whom
        self._watches_labels = topics is not None and any(topic.startswith("task:") for topic in topics)
        self._libc = libc
        self._descriptor = descriptor
        self._watched: set[str] = set()
        """The paths of the watched directories. Directories for which the system had no watch left are among them."""
        self._paths: dict[int, str] = {}
        """The path of the directory of each inotify watch."""
        self._changing_label: dict[str, float] = {}
        """The tasks that have the marks of two labels, because their label is being changed. The value is the time by
        which the change ends, unless its process was killed.
        """
        self.heard: frozenset[str] = EVERY_TOPIC
        self._watch_new_directories()

    def wait(self, timeout: float) -> bool:
        give_up = time.monotonic() + timeout
        # The system reports every new directory, but only once the topmost ones are watched.
        wanted = [path for path in (self._tree, self._flat) if self._is_wanted(path)]
        hears_of_new = not self.slow and self._watched.issuperset(wanted)
        if not hears_of_new and self._watch_new_directories():
            self.heard = EVERY_TOPIC  # files may have come into the directories before they were watched
            return True
        if self.slow:  # some directories are not watched: have the caller look at everything each second
            select.select([self._descriptor], [], [], min(_LOOK_AGAIN, max(timeout, 0)))
            self.heard = self._topics_of_events() | EVERY_TOPIC
            return timeout > 0  # after any time, something may have changed
        while True:
            due = min([give_up, *self._changing_label.values()])
            has_events = bool(select.select([self._descriptor], [], [], max(due - time.monotonic(), 0))[0])
            if has_events:
                self.heard = self._topics_of_events()
            elif interrupted := self._topics_of_interrupted_changes():
                self.heard = interrupted
            elif time.monotonic() >= give_up:
                return False
            else:  # woken a little too early
                continue
            if concerns(self._topics, self.heard):
                return True

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _topics_of_events(self) -> frozenset[str]:
        """Return the topics of the changes that the system has reported, and watch directories that are new."""
        topics: set[str] = set()
        for watch, mask, name in self._events():
            if mask & _GONE:
                self._watched.discard(self._paths.pop(watch, ""))  # a directory of that name may be made again
            if mask & _OVERFLOW:  # more happened than the system keeps
                self._watch_new_directories()
                topics.update(EVERY_TOPIC)
            elif mask & (_IS_DIRECTORY | _GONE):
                if self._watch_new_directories():
                    topics.update(EVERY_TOPIC)
            elif watch in self._paths:
                topics.update(self._topics_of_file(self._paths[watch], mask, name))
        return frozenset(topics)

    def _events(self) -> Iterator[tuple[int, int, str]]:
        """Yield the watch, the mask and the file name of each event that the system has ready."""
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                return
            position = 0
            while position + _HEAD.size <= len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, position)
                position += _HEAD.size
                yield watch, mask, os.fsdecode(data[position : position + length].rstrip(b"\0"))
                position += length

    def _topics_of_file(self, directory: str, mask: int, name: str) -> set[str]:
        """Return the topics of a change of the file *name* in the *directory*, where *mask* says what the system
        reported. Return an empty set if this says nothing about a record, or if another event follows that says more.
        """
        if directory.startswith(f"{self._flat}/index/"):  # the file is a mark of a task
            return self._topics_of_task(name, has_final_label=True) if mask & _DELETE else set()
        if name == TOGETHER:  # the names of the records in it are not known
            return {*EVERY_TOPIC} if mask & _MOVED_TO else set()
        if not name.endswith(".json"):
            return {"history"} if name.startswith("history") else set()
        if directory == self._flat:
            return self._topics_of_task(name[:-5], has_final_label=False)
        if directory == self._tree:
            return {"team", f"team/{os.path.basename(self._tree)}"}
        if directory.startswith(f"{self._tree}/messages/"):
            parts = name.split(".")  # <number>.<to>.<uid>.json
            return {"message", f"message/{parts[1]}"}
        kind = self._kind_in(directory)
        return {kind, f"{kind}/{name[:-5]}"}

    def _kind_in(self, directory: str) -> str:
        name = directory[len(self._tree) + 1 :].partition("/")[0]
        return _KINDS.get(name) or name.removesuffix("s")

    def _topics_of_task(self, key: str, has_final_label: bool) -> set[str]:
        """Return the topics of a changed task. While its label is being changed, it has the marks of the old and the
        new label. The topics of these labels are left out unless *has_final_label* says that the old mark was removed.
        But a task that owes a notice keeps both marks until the notice is sent, so the topics of its labels are
        returned at once.
        """
        index = f"{self._flat}/index"
        try:
            labels = {label_of(name) for name in os.listdir(index) if os.path.lexists(f"{index}/{name}/{key}")}
        except OSError:
            labels = set()
        topics = {"task", f"task/{key}"}
        owes_notice = os.path.lexists(f"{self._tree}/{OWED}/{name_of_owed('task', key)}")
        if has_final_label or len(labels) < 2 or owes_notice:
            self._changing_label.pop(key, None)
            topics.update(f"task:{label}" for label in labels or [""])
        elif self._watches_labels:
            self._changing_label[key] = time.monotonic() + _CHANGE_OF_LABEL
        return topics

    def _topics_of_interrupted_changes(self) -> frozenset[str]:
        """Return the topics, with both labels, of each task whose change was interrupted by the end of its process."""
        now = time.monotonic()
        topics: set[str] = set()
        for key in [key for key, due in self._changing_label.items() if due <= now]:
            topics |= self._topics_of_task(key, has_final_label=True)
        return frozenset(topics)

    def _watch_new_directories(self) -> bool:
        """Watch the wanted directories that are not watched yet, and return whether there were any. Then look for more
        until there are none: the system does not report a directory made before its parent was watched.
        """
        any_new = False
        while True:
            try:
                wanted = [path for path in _directories(self._tree, self._flat) if self._is_wanted(path)]
            except OSError as error:
                self.slow = f"changes are seen up to a second late: {error.strerror}; raise the limit with ulimit -n"
                return any_new
            new = [path for path in wanted if path not in self._watched]
            if not new:
                return any_new
            for path in new:
                self._watch(path)
            any_new = True

    def _watch(self, path: str) -> None:
        """Watch the directory. If the system has no watch left, set `slow` to the reason."""
        if self._is_above_tree(path):
            mask = _CREATE | _MOVED_TO
        elif path == self._tree and self._topics is not None:
            mask = _CHANGED_NAMES  # a wait for certain topics need not wake when the history is appended to
        else:
            mask = _CHANGED_NAMES | _MODIFY
        watch = self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), mask)
        if watch >= 0:
            self._paths[watch] = path
        elif os.path.isdir(path):
            self.slow = _TOO_MANY
        else:  # it was removed meanwhile
            return
        self._watched.add(path)

    def _is_above_tree(self, path: str) -> bool:
        """Whether *path* is above the team's directory. It is watched only until the team's directory is made."""
        return self._tree.startswith(f"{path.rstrip('/')}/")

    def _is_wanted(self, path: str) -> bool:
        """Whether changes in the directory may concern the topics of this watch."""
        if path.startswith(f"{self._flat}/index"):
            return self._watches_labels
        if self._topics is None or path == self._tree or self._is_above_tree(path):
            return True
        kind = "task" if path == self._flat else self._kind_in(path)
        begins_of_topics = f"{kind}/", f"{kind}:"
        return any(topic == kind or topic.startswith(begins_of_topics) for topic in self._topics)


def polling_watch(tree: str, flat: str, slow: str = "") -> PollingWatch:
    """Return a watch that compares the times of the directories, which change whenever a file is renamed into them.
    *slow* is the reason why changes are noticed late; empty if this need not be reported.
    """
    return PollingWatch(lambda: _states(tree, flat), _PAUSE, slow, _GRAIN)


def _states(tree: str, flat: str) -> dict[str, tuple[int, int]]:
    """Return, by path, the modification time and the inode of each watched directory. They differ after a change."""
    try:
        paths = _directories(tree, flat)
    except OSError:  # the directories are unknown: another result each second, as if something had changed
        return {"": (int(time.monotonic()), 0)}
    states = {}
    for path in paths:
        if path.startswith(f"{flat}/index"):  # when a mark changes, the directory of the records changes, too
            continue
        try:
            state = os.stat(path)
        except OSError:
            continue
        states[path] = (state.st_mtime_ns, state.st_ino)
    return states


def _directories(tree: str, flat: str) -> list[str]:
    """Return the existing directories to watch: *flat* with its index, and *tree* with two levels below it. The second
    level has the directories into which the log is divided. If *tree* does not exist yet, the nearest existing
    directory above it is watched for its creation.
    """
    index = f"{flat}/index"
    paths = [path for path in (flat, index, *_subdirectories(index)) if os.path.isdir(path)]
    if os.path.isdir(tree):
        paths.append(tree)
        for path in _subdirectories(tree):
            paths += [path, *_subdirectories(path)]
    else:
        nearest = os.path.dirname(tree)
        while not os.path.isdir(nearest):
            nearest = os.path.dirname(nearest)
        paths.append(nearest)
    return paths


def _subdirectories(path: str) -> list[str]:
    """Return the directories in *path*. Of the directories of messages, whose names are numbers, return only the
    newest: the older ones are full and do not change. Raise OSError if too many files are open to read *path*.
    """
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return []  # the directory was removed meanwhile
    segments = [name for name in names if name.isascii() and name.isdigit()]
    if segments:
        names = [name for name in names if name not in segments] + [max(segments, key=int)]
    return [f"{path}/{name}" for name in names]
