"""A model of what a disk may hold after a power cut. It follows the system calls, beside the real disk.

As in LevelDB's fault injection, whatever fsync did not bring to the disk may be lost. The content of a file that was
not synced may be missing, cut in half or whole. Each change of a directory that was not synced may be there or not, in
any combination. A rename is one change. Nothing is assumed of a file system that POSIX does not promise.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from teams_cli.store.files.engine import FileStore

Tree = dict[str, Any]
"""A directory: bytes for a file, a tree for a directory."""


class Killed(BaseException):
    """Ends the process at this point, without running its clean-up."""


class File:
    def __init__(self, content: bytes = b"") -> None:
        self.written = self.synced = content

    def after_crash(self, part: str) -> bytes:
        """Return what is left, where *part* of what was not synced survives: "none", "half" or "all"."""
        if self.written == self.synced or part == "all":
            return self.written
        if len(self.written) == len(self.synced) and part == "half":  # written over: any bytes of it may be there
            mixed = zip(self.written, self.synced, strict=True)
            return bytes(new if place % 2 else old for place, (new, old) in enumerate(mixed))
        return self.written[: len(self.written) // 2] if part == "half" else self.synced


class Directory:
    def __init__(self) -> None:
        self.entries: dict[str, File | Directory] = {}
        self.synced: dict[str, File | Directory] = {}


Change = list[tuple[Directory, str, "File | Directory | None"]]
"""Entries that are set or removed together."""


class Disk:
    """The files below *top*, as processes see them and as they are on the disk for sure."""

    def __init__(self, top: Path) -> None:
        self.top = str(top)
        self.root = Directory()
        self.pending: list[Change] = []

    def find(self, path: str) -> File | Directory | None:
        node: File | Directory | None = self.root
        for name in path[len(self.top) :].strip("/").split("/"):
            if name:
                node = node.entries.get(name) if isinstance(node, Directory) else None
        return node

    def load(self, tree: Tree, into: Directory | None = None) -> None:
        """Regard everything in *tree* as durable."""
        into = into or self.root
        for name, found in tree.items():
            node = File(found) if isinstance(found, bytes) else Directory()
            into.entries[name] = into.synced[name] = node
            if isinstance(node, Directory):
                self.load(found, node)

    def change(self, *entries: tuple[str, File | Directory | None]) -> None:
        """Set or remove the entries at these paths in one step."""
        made: Change = []
        for path, node in entries:
            parent = self.find(os.path.dirname(path))
            assert isinstance(parent, Directory)
            made.append((parent, os.path.basename(path), node))
        for parent, name, node in made:
            _set(parent.entries, name, node)
        self.pending.append(made)

    def sync(self, node: File | Directory) -> None:
        if isinstance(node, File):
            node.synced = node.written
            return
        for change in [c for c in self.pending if any(parent is node for parent, _, _ in c)]:
            self.pending.remove(change)
            for parent, name, child in change:
                _set(parent.synced, name, child)

    def crash_states(self) -> Iterator[tuple[str, Tree]]:
        """Yield what a power cut may leave now, each with a phrase that says what survived."""
        pending = self.pending
        choices = [("nothing", []), ("everything", pending)]
        choices += [(f"only {_said(change)}", [change]) for change in pending]
        choices += [(f"all but {_said(change)}", [c for c in pending if c is not change]) for change in pending]
        choices += [(f"the first {n}", pending[:n]) for n in range(2, len(pending) - 1)]
        for said, kept in choices:
            for part in ("none", "half", "all"):
                yield f"{said} kept, of file contents {part}", self._tree(self.root, kept, part)

    def worst(self) -> Tree:
        """Return what is left if everything is lost that can be lost."""
        return self._tree(self.root, [], "none")

    def _tree(self, directory: Directory, kept: list[Change], part: str) -> Tree:
        entries = dict(directory.synced)
        for change in kept:
            for parent, name, node in change:
                if parent is directory:
                    _set(entries, name, node)
        return {
            name: node.after_crash(part) if isinstance(node, File) else self._tree(node, kept, part)
            for name, node in entries.items()
        }


def _set(entries: dict[str, File | Directory], name: str, node: File | Directory | None) -> None:
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node


def _said(change: Change) -> str:
    return ", ".join(f"{'-' if node is None else '+'}{name}" for _, name, node in change)


_ENTRIES: dict[str, Callable[..., list[tuple[str, File | Directory | None]]]] = {
    "mkdir": lambda disk, path, mode=0o777: [(path, Directory())],
    "rename": lambda disk, source, target: [(target, disk.find(source)), (source, None)],
    "link": lambda disk, source, target: [(target, disk.find(source))],
    "unlink": lambda disk, path: [(path, None)],
}
"""For each system call, the entries of directories that it changes; None for an entry that is removed."""


class Recorder:
    """Listens to the system calls that change files below the disk's top, and can end the process before one of them.

    Within `with`, fsync takes no time: the model remembers what was synced. *told* is called after each call.
    """

    def __init__(self, disk: Disk, told: Callable[[str], None] | None = None, kill_before: int = 0) -> None:
        self.disk = disk
        self.told = told or (lambda call: None)
        self.kill_before = kill_before
        self.calls = 0
        self.dead = False
        self._open: dict[int, File | Directory | None] = {}
        self._place: dict[int, int] = {}
        changes = {name: self._changing(name, getattr(os, name)) for name in _ENTRIES}
        self._listening = {
            **changes,
            "open": self._open_file,
            "write": self._write,
            "fsync": self._fsync,
            "close": self._close,
        }
        self._real = {name: getattr(os, name) for name in self._listening}

    def __enter__(self) -> Recorder:
        for name, function in self._listening.items():
            setattr(os, name, function)
        return self

    def __exit__(self, *_: object) -> None:
        for name, function in self._real.items():
            setattr(os, name, function)

    def revive(self) -> None:
        """Continue as another process, which finds the files of the killed one, but none of its locks or open files."""
        for descriptor in list(self._open):
            self._close(descriptor)
        self.dead, self.kill_before = False, 0

    def _step(self) -> None:
        self.calls += 1
        if self.dead or self.calls == self.kill_before:
            self.dead = True
            raise Killed

    def _ours(self, path: Any) -> bool:
        return isinstance(path, str) and f"{path}/".startswith(f"{self.disk.top}/")

    def _changing(self, name: str, real: Callable[..., None]) -> Callable[..., None]:
        """Wrap a system call that changes entries of directories."""

        def call(*arguments: Any) -> None:
            if not self._ours(arguments[0]):
                return real(*arguments)
            self._step()
            real(*arguments)
            self.disk.change(*_ENTRIES[name](self.disk, *arguments))
            return self.told(f"{name} {arguments[-1]}")

        return call

    def _open_file(self, path: str, flags: int, mode: int = 0o777, **options: Any) -> int:
        if not self._ours(path):
            return self._real["open"](path, flags, mode, **options)
        missing = flags & os.O_CREAT and not os.path.lexists(path)
        if missing or flags & os.O_TRUNC:
            self._step()
        descriptor: int = self._real["open"](path, flags, mode)
        if missing:
            self.disk.change((path, File()))
        node = self._open[descriptor] = self.disk.find(path)
        self._place[descriptor] = len(node.written) if flags & os.O_APPEND and isinstance(node, File) else 0
        if flags & os.O_TRUNC and isinstance(node, File):
            node.written = b""
        if missing or flags & os.O_TRUNC:
            self.told(f"open {path}")
        return descriptor

    def _write(self, descriptor: int, data: bytes) -> int:
        node = self._open.get(descriptor)
        if isinstance(node, File):
            self._step()
        count: int = self._real["write"](descriptor, data)
        if isinstance(node, File):
            at = self._place.get(descriptor, 0)
            node.written = node.written[:at] + bytes(data[:count]) + node.written[at + count :]
            self._place[descriptor] = at + count
            self.told("write")
        return count

    def _fsync(self, descriptor: int) -> None:
        node = self._open.get(descriptor)
        if node is not None:
            self._step()
            self.disk.sync(node)
            self.told("fsync")

    def _close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        self._real["close"](descriptor)


def durable(top: Path) -> Disk:
    """Return a disk on which everything below *top* is there for sure."""
    disk = Disk(top)
    disk.load(taken(top))
    return disk


def collecting(recorder: Recorder) -> dict[str, tuple[str, Tree]]:
    """Collect all states that a power cut could leave from now on, each with a phrase that says when."""
    found: dict[str, tuple[str, Tree]] = {}

    def collect(call: str) -> None:
        for said, tree in recorder.disk.crash_states():
            found.setdefault(repr(_essence(tree)), (f"{call}: {said}", tree))

    collect("at first")
    recorder.told = collect
    return found


def power_cuts(disk: Disk, root: Path, changes: Sequence[Callable[[FileStore], Any]]) -> list[tuple[int, str, Tree]]:
    """Make all changes; yield each state that a power cut may leave meanwhile, after the number of changes done."""
    states: list[tuple[int, str, Tree]] = []
    with Recorder(disk) as recorder:
        store = FileStore(str(root))
        for done in range(len(changes) + 1):
            found = collecting(recorder)
            for change in changes[done : done + 1]:
                change(store)
            states += [(done, f"{done} done, {said}", tree) for said, tree in found.values()]
    return states


def _essence(tree: Tree) -> Tree:
    """Return the tree without the files that were being written, which nobody reads."""
    return {
        name: found if isinstance(found, bytes) else _essence(found) for name, found in tree.items() if name != "tmp"
    }


@contextmanager
def fresh_places() -> Iterator[Iterator[Path]]:
    """Yield new directories, in memory if possible, because the disk is a model."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as top:
        yield (made for number in itertools.count() if not (made := Path(top, str(number))).mkdir())


def put(tree: Tree, top: Path) -> None:
    """Write the files of *tree* below *top*."""
    for name, found in tree.items():
        if isinstance(found, bytes):
            (top / name).write_bytes(found)
        else:
            (top / name).mkdir(mode=0o700, exist_ok=True)
            put(found, top / name)


def taken(top: Path) -> Tree:
    """Return the tree of everything below *top*."""
    return {path.name: taken(path) if path.is_dir() else path.read_bytes() for path in sorted(top.iterdir())}
