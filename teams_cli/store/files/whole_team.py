"""Whole teams: making one, copying one between stores byte for byte, and removing a closed one."""

from __future__ import annotations

import os
from contextlib import suppress

from teams_cli import errors
from teams_cli.records.records import Record
from teams_cli.store.documents import decode, encode, headed
from teams_cli.store.files import directories, disk, marks
from teams_cli.store.files.directories import OWED, Layout
from teams_cli.store.files.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from teams_cli.store.contract import Kind
    from teams_cli.store.files.message_log import MessageLog

    R = TypeVar("R", bound=Record)


def create_team(layout: Layout, team: str, record: Record, lock: Lock) -> bytes:
    """Make the file of a team, under the *lock* of the directory of all teams. An empty directory that a crashed
    creation left is used.

    Raises:
        AlreadyExists: There is one of that name, but for the case of its letters.
    """
    parent, directory = layout.teams, layout.team(team)
    disk.make_directories(parent, layout.root)
    with disk.Written(layout.temp, data := encode(record)) as temp, lock:
        for name in disk.names_in(parent):
            if name.lower() == team.lower() and "team.json" in disk.names_in(f"{parent}/{name}"):
                disk.confirm(f"{parent}/{name}", f"{parent}/{name}/team.json")
                raise errors.AlreadyExists(f"there is a team {name} already", "Choose another name, or join it.")
        disk.make_directories(directory, layout.root)
        disk.make_directories(layout.tasks(team), layout.root)
        disk.commit(temp, f"{directory}/team.json")
    return data


def pack_messages(log: MessageLog, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
    """Yield the messages of a team, packed for a copy: see `Store.pack`."""
    for segment in log.segments():
        for number, path in log.files(segment):
            log.decode(kind, path)
            yield os.path.basename(path).removesuffix(".json"), headed(log.content(path), kind, number)


def put(layout: Layout, lock: Callable[[str], Lock], team: str, kind: Kind[R], key: str, data: bytes) -> None:
    """See the contract."""
    path = layout.path(team, kind, key)
    record, directory = decode(data, kind, key, path), os.path.dirname(path)
    disk.make_directories(directory, layout.root)
    with lock(directory):
        directories.settle(layout, team, kind)
        marks.make(layout.marks(team, kind, key, record))
        disk.commit(disk.write_temp(layout.temp, data), path)


def put_messages(log: MessageLog, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
    """See the contract. The entries of a directory are synced together."""
    by_directory: dict[str, list[tuple[str, bytes]]] = {}
    for key, data in packed:
        number, path = log.place_of(key)
        decode(data, kind, f"{kind.prefix}-{number}", key)
        by_directory.setdefault(os.path.dirname(path), []).append((path, data))
    for directory, files in by_directory.items():
        disk.make_directories(directory, log.root)
        there = frozenset(log.listed(int(os.path.basename(directory))))
        for path, data in files:
            if os.path.basename(path) not in there:
                disk.put(disk.write_temp(f"{log.root}/tmp", data), path)
        disk.confirm(directory, directory)


_PARTS = ("tasks", "index", "teams")
"""The directories of a team's files, in the order of removal. A crash in between leaves a closed team with fewer files,
which can be removed again.
"""


def take_away(root: str, team: str) -> str:
    """Move the team's directories to a place where nobody looks for them, and return that place. The caller holds all
    its locks.

    Raises:
        StorageFailed: One can't be moved; all are where they were.
        OutcomeUnknown: The disk did not confirm, or some are gone.
    """
    trash = f"{root}/tmp/dropped-{team}-{os.urandom(6).hex()}"
    moved: list[str] = []
    try:
        os.mkdir(trash, 0o700)
        for part in _PARTS:
            with suppress(FileNotFoundError):
                os.rename(f"{root}/{part}/{team}", f"{trash}/{part}")
                moved.append(part)
    except OSError as error:
        _put_back(root, team, trash, moved)
        raise disk.failed("remove", f"team {team} in {root}", error) from None
    for part in moved:
        disk.confirm(f"{root}/{part}", f"{root}/{part}/{team}")
    return trash


def _put_back(root: str, team: str, trash: str, moved: list[str]) -> None:
    try:
        for part in moved:
            os.rename(f"{trash}/{part}", f"{root}/{part}/{team}")
    except OSError as error:
        raise errors.OutcomeUnknown(
            f"team {team} is only partly removed; the disk failed: {error.strerror}",
            "Repeat the command: it continues.",
        ) from None
    with suppress(OSError):  # it may not have been made; an empty one hurts nobody
        os.rmdir(trash)


def empty(trash: str) -> None:
    """Delete the directory into which a team was moved to be removed. A file that can't be deleted now only takes
    space.
    """
    import shutil

    shutil.rmtree(trash, ignore_errors=True)


class Closing:
    """A `with` block that holds all locks of a team; locks that were made meanwhile are taken before it ends.

    The lock file of a directory is made if it does not exist, so that whoever comes later waits for it.

    Raises:
        Busy: Another process had one of them too long; none is held.
        OutcomeUnknown: The same, of one that came meanwhile; what was done in the block is done.
    """

    def __init__(self, root: str, team: str, lock: Callable[[str], Lock]) -> None:
        self._root = root
        self._team = team
        self._lock = lock
        self._held: dict[str, Lock] = {}

    def __enter__(self) -> None:
        try:
            self._take()
        except BaseException:
            self._release()
            raise

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._take()
        except errors.TeamsError as failure:
            raise errors.OutcomeUnknown(
                f"team {self._team} is closed, but {failure.message}",
                "An earlier change may still follow. Repeat the command: it waits.",
            ) from None
        finally:
            self._release()

    def _take(self) -> None:
        """Take the locks that are not held yet, in the order in which everybody takes several."""
        for directory in sorted(filter(os.path.isdir, self._directories())):
            if directory not in self._held:
                lock = self._lock(directory)
                lock.__enter__()
                self._held[directory] = lock

    def _release(self) -> None:
        while self._held:
            self._held.popitem()[1].__exit__()

    def _directories(self) -> list[str]:
        own = f"{self._root}/teams/{self._team}"
        parts = (f"{own}/{name}" for name in disk.names_in(own) if name != OWED)
        return [own, f"{self._root}/tasks/{self._team}", *parts]
