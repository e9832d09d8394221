"""Whole teams: making a team, copying one between stores byte for byte, and removing a closed one."""

from __future__ import annotations

import os
from contextlib import suppress

from teams_cli import errors
from teams_cli.records.records import Record
from teams_cli.store.documents import decode, encode, with_heading
from teams_cli.store.files import directories, disk
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
    """Store the record of a new team, and return its bytes. *lock* is the lock of the directory that has all teams. If
    a crash left a directory for this team without a record, this directory is used.
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
    """Yield the key and the bytes of each message, to be copied to another store."""
    for segment in log.segments():
        for number, path in log.files(segment):
            log.decode(kind, path)  # only to check it
            yield os.path.basename(path).removesuffix(".json"), with_heading(log.content(path), kind, number)


def put(layout: Layout, lock: Callable[[str], Lock], team: str, kind: Kind[R], key: str, data: bytes) -> None:
    """Store a record that is being copied from another store. *data* are its bytes. A record with the same *key* is
    replaced.
    """
    path = layout.path(team, kind, key)
    record, directory = decode(data, kind, key, path), os.path.dirname(path)
    disk.make_directories(directory, layout.root)
    with lock(directory):
        directories.settle(layout, team, kind)
        directories.make_marks(layout.marks(team, kind, key, record))
        disk.commit(disk.write_temp(layout.temp, data), path)


def put_messages(log: MessageLog, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
    """Store messages that are being copied from another store, and skip those that are stored already. *packed* has
    their keys and bytes. Each directory is synced once, after its messages were stored.
    """
    by_directory: dict[str, list[tuple[str, bytes]]] = {}
    for key, data in packed:
        number, path = log.place_of(key)
        decode(data, kind, f"{kind.prefix}-{number}", key)
        by_directory.setdefault(os.path.dirname(path), []).append((path, data))
    for directory, files in by_directory.items():
        disk.make_directories(directory, log.root)
        present = frozenset(log.listed(int(os.path.basename(directory))))
        for path, data in files:
            if os.path.basename(path) not in present:
                disk.put(disk.write_temp(f"{log.root}/tmp", data), path)
        disk.confirm(directory, directory)


_PARTS = ("tasks", "index", "teams")
"""The directories with the files of a team, in the order in which they are removed. If a crash interrupts the removal,
a closed team with fewer files is left; removing it again finishes the work.
"""


def move_to_trash(root: str, team: str) -> str:
    """Move the team's directories into a new directory for temporary files, and return the path of that directory. The
    caller holds all locks of the team.

    Raises:
        StorageFailed: A directory can't be moved; all directories are where they were.
        OutcomeUnknown: The disk did not confirm the change, or some directories could not be moved back.
    """
    trash = f"{root}/tmp/dropped-{team}-{os.urandom(6).hex()}"
    moved: list[str] = []
    try:
        os.mkdir(trash, 0o700)
        for part in _PARTS:
            with suppress(FileNotFoundError):
                os.rename(f"{root}/{part}/{team}", f"{trash}/{part}")
                moved.append(part)
                if part != _PARTS[-1]:  # a power cut must not bring these files back once the team is gone
                    disk.sync_directory(f"{root}/{part}")
    except OSError as error:
        try:
            for part in moved:
                os.rename(f"{trash}/{part}", f"{root}/{part}/{team}")
        except OSError as failure:
            raise errors.OutcomeUnknown(
                f"team {team} is only partly removed; the disk failed: {failure.strerror}",
                "Repeat the command: it continues.",
            ) from None
        with suppress(OSError):  # it may not have been made; an empty one hurts nobody
            os.rmdir(trash)
        raise disk.failed("remove", f"team {team} in {root}", error) from None
    for part in moved[-1:]:
        disk.confirm(f"{root}/{part}", f"{root}/{part}/{team}")
    return trash


def delete_trash(directory: str) -> None:
    """Delete a directory of temporary files. Files that can't be deleted now stay, and only take space."""
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


class Closing:
    """All locks of a team, held by a `with` block. Before the block ends, the locks of directories that were made
    meanwhile are taken, too. So no change that began before the team was closed is still running when the block ends.

    If a lock file is missing, it is made, so that a later change has to wait for the lock.

    Raises:
        Busy: Another process held a lock too long. This process holds no lock.
        OutcomeUnknown: Another process held a lock too long at the end of the block. The change in the block was made,
            but an earlier change may still follow.
    """

    def __init__(self, root: str, team: str, lock: Callable[[str], Lock]) -> None:
        self._root = root
        self._team = team
        self._lock = lock
        self._held: dict[str, Lock] = {}

    def __enter__(self) -> None:
        try:
            self._take_missing_locks()
        except BaseException:
            self._release()
            raise

    def __exit__(self, failure: object, *_: object) -> None:
        try:
            if failure is None:
                self._take_missing_locks()
        except errors.TeamsError as error:
            raise errors.OutcomeUnknown(
                f"team {self._team} is closed, but {error.message}",
                "An earlier change may still follow. Repeat the command: it waits.",
            ) from None
        finally:
            self._release()

    def _take_missing_locks(self) -> None:
        """Take the locks that are not held yet. Every process takes them in the same order, so no two processes wait
        for each other.
        """
        team_directory = f"{self._root}/teams/{self._team}"
        directories = [team_directory, f"{self._root}/tasks/{self._team}"]
        directories += [f"{team_directory}/{name}" for name in disk.names_in(team_directory) if name != OWED]
        for directory in sorted(filter(os.path.isdir, directories)):
            if directory not in self._held:
                lock = self._lock(directory)
                lock.__enter__()
                self._held[directory] = lock

    def _release(self) -> None:
        while self._held:
            _, lock = self._held.popitem()
            lock.__exit__()
