"""What another store is to have, taken out of files, and put into them, to the byte."""

from __future__ import annotations

import os

from teams_cli.store.documents import decode, headed
from teams_cli.store.files import disk, marks, together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.files.layout import Layout
    from teams_cli.store.files.locks import Lock
    from teams_cli.store.files.message_log import MessageLog

    R = TypeVar("R", bound=Record)


def pack_messages(log: MessageLog, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
    """See the contract."""
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
        together.settle(layout, team, kind)
        marks.make(layout.marks(team, kind, key, record))
        disk.commit(disk.write_temp(layout.temp, data), path)


def put_messages(log: MessageLog, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
    """See the contract. The entries of a directory are brought to the disk together."""
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
