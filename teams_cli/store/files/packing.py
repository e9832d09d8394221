"""Packing the messages of a closed team: a file of its own takes a block of the disk, however short a message is.

The packed file is on the disk, durable, before the files of the messages that it has are removed. A crash in between
leaves some in both, with the same bytes: these are removed by whoever packs next, and seen once meanwhile.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.documents import headed
from teams_cli.store.files import disk
from teams_cli.store.files.layout import PACKED
from teams_cli.store.files.packed import Packed, can_hold, packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.files.message_log import MessageLog

    R = TypeVar("R", bound=Record)

WORTH = 100
"""Fewer files in a directory are left as they are: they take less than half a MiB."""


def pack(log: MessageLog, kind: Kind[R], worth: int = WORTH) -> None:
    """Have the messages of each directory with more than *worth* files in one. What is damaged keeps its own.

    Raises:
        Busy, StorageFailed, OutcomeUnknown: The rest has its files as before; nothing is lost.
    """
    for segment in log.segments():
        if has_many(log, segment, worth):
            with log.lock(log.directory):
                _pack_directory(log, kind, segment)


def has_many(log: MessageLog, segment: int, worth: int = WORTH) -> bool:
    """Whether more messages in the directory than that have files of their own."""
    return len(disk.names_in(f"{log.directory}/{segment}")) > worth


def _pack_directory(log: MessageLog, kind: Kind[R], segment: int) -> None:
    directory = f"{log.directory}/{segment}"
    before = Packed(directory)
    files = {name: before.get(name) or b"" for name in before}
    loose = {}
    for number, path in log.files(segment):
        name = path.rpartition("/")[2]
        if name not in files and (data := _packable(log, kind, number, path)):
            loose[name] = data
    if loose:
        _write(log, segment, {**files, **loose})
    for name, data in {**files, **loose}.items():
        path = f"{directory}/{name}"
        if name in loose or _has(path, data):
            disk.discard(path)


def _packable(log: MessageLog, kind: Kind[R], number: int, path: str) -> bytes:
    """The file of a message as it is to be packed; nothing if it has to stay where it is."""
    try:
        log.decode(kind, path)
        data = headed(disk.read_file(path), kind, number)
    except (errors.TeamsError, FileNotFoundError):
        return b""
    return data if can_hold(data) else b""


def _has(path: str, data: bytes) -> bool:
    try:
        return disk.read_file(path) == data
    except (errors.TeamsError, FileNotFoundError):
        return False


def _write(log: MessageLog, segment: int, files: dict[str, bytes]) -> None:
    ordered = sorted(files, key=lambda name: (name.find("."), name))
    last = int(ordered[-1].partition(".")[0]) if ordered else 0
    with disk.Written(f"{log.root}/tmp", packed({name: files[name] for name in ordered}, last)) as temp:
        disk.commit(temp, f"{log.directory}/{segment}/{PACKED}")


def take_out(log: MessageLog, path: str, aside: str) -> None:
    """Move one of the packed messages to a file of its own *aside*; its *path* goes through the packed file.

    Raises:
        StorageFailed, OutcomeUnknown: It is packed still.
    """
    directory, _, name = path.partition(f"/{PACKED}/")
    with log.lock(log.directory):
        here = Packed(directory)
        if (data := here.get(name)) is not None:
            disk.commit(disk.write_temp(f"{log.root}/tmp", data), aside)
            rest = {other: here.get(other) or b"" for other in here if other != name}
            _write(log, int(directory.rpartition("/")[2]), rest)
