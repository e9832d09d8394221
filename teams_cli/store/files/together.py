"""Records that are created together: one file has them all, until each has a file of its own.

Its rename is the commit. Whoever changes something in the directory next, and that is who created them unless it was
killed, gives each its file and removes that one; readers find in it what has no file yet. So there are all or none.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.names import is_name
from teams_cli.records.json_text import indented, loads
from teams_cli.records.records import Record
from teams_cli.store.documents import decode, encode, own_document
from teams_cli.store.files import disk, marks, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Any, TypeVar

    from teams_cli.store.contract import Kind
    from teams_cli.store.files.layout import Layout

    R = TypeVar("R", bound=Record)
    T = TypeVar("T")

NAME = ".together"
_LARGEST = 1 << 30


def create(layout: Layout, team: str, kind: Kind[R], records: Sequence[R]) -> None:
    """Have all records be there. For whoever holds the lock of their directory, and has settled it.

    Raises:
        InvalidValue: One can't be stored.
        StorageFailed: None is there.
        OutcomeUnknown: All are, but the disk did not confirm it.
    """
    files = {getattr(record, kind.key): encode(record) for record in records}
    content = indented({key: data.decode() for key, data in files.items()}).encode()
    with disk.Written(layout.temp, content) as temp:
        for record in records:
            marks.make(layout.marks(team, kind, getattr(record, kind.key), record))
        disk.commit(temp, f"{layout.directory(team, kind)}/{NAME}")
    try:
        settle(layout, team, kind)
    except errors.TeamsError:  # they are there: whoever comes next tries again
        return


def settle(layout: Layout, team: str, kind: Kind[R]) -> None:
    """Give records that were created together their files. For whoever holds the lock of their directory.

    Raises:
        DamagedRecord: Nobody can tell which they are.
        StorageFailed: The system refused; they are where they were.
    """
    directory = layout.directory(team, kind)
    if not (files := _waiting(directory, kind)):
        return
    for key, data in files.items():
        path = f"{directory}/{key}.json"
        if not os.path.lexists(path):
            marks.make(layout.marks(team, kind, key, decode(data, kind, key, f"{directory}/{NAME}")))
            disk.put(disk.write_temp(layout.temp, data), path)
    try:
        disk.sync_directory(directory)
    except OSError as error:
        raise disk.failed("write", directory, error) from None
    before, last = numbers.highest(disk.names_in(directory)), max(map(kind.number_in, files))
    if last > before:
        numbers.note(directory, before, last)
    disk.discard(f"{directory}/{NAME}")


def read(path: str, kind: Kind[R], key: str) -> bytes:
    """All bytes of a record, which has its file at *path* or none yet.

    Raises:
        FileNotFoundError: There is no such record.
        DamagedRecord, StorageFailed: As for `disk.read_file`.
    """
    try:
        return disk.read_file(path)
    except FileNotFoundError:
        if not kind.numbered:
            raise
    data = _waiting(os.path.dirname(path), kind).get(key)
    return disk.read_file(path) if data is None else data  # it may have got its file just now


def document_in(path: str, kind: Kind[Any], key: str) -> dict[str, Any]:
    """The JSON object of the record at *path*, with every field that has a value: of a file of ours that of its text.

    Raises:
        FileNotFoundError, DamagedRecord, StorageFailed: As for `read`.
    """
    own = own_document(disk.glance(path), kind, key)
    return own or decode(read(path, kind, key), kind, key, path).having().to_json()


def each(
    directory: str,
    kind: Kind[R],
    problems: list[errors.TeamsError],
    keys: Collection[str] | None,
    look: Callable[[str, Kind[R], str], T],
) -> Iterator[T]:
    """What *look* finds in each of the files of a directory, or of those *keys*, by number or name; what can't be read
    is one of the *problems*.
    """
    for key in keys_in(directory, kind, problems) if keys is None else numbers.in_order(keys, kind):
        try:
            yield look(f"{directory}/{key}.json", kind, key)
        except FileNotFoundError:
            continue
        except errors.TeamsError as problem:
            problems.append(problem)


def files(layout: Layout, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
    """The key and the bytes of each record of a kind.

    Raises:
        DamagedRecord: One is not good, or nobody can tell which records there are; the others come first.
    """
    problems: list[errors.TeamsError] = []
    directory = layout.directory(team, kind)
    for key in [team] if kind.name == "team" else keys_in(directory, kind, problems):
        path = layout.path(team, kind, key)
        data = read(path, kind, key)
        decode(data, kind, key, path)
        yield key, data
    for problem in problems:
        raise problem


def names_in(directory: str, kind: Kind[R], problems: list[errors.TeamsError]) -> list[str]:
    """The names in the directory, with those of the files that records are still to have; if nobody can tell which,
    that is one of the *problems*.

    Raises:
        StorageFailed: The system refused.
    """
    while NAME in (names := disk.names_in(directory)):
        try:
            if files := _waiting(directory, kind):
                return [*{*names, *(f"{key}.json" for key in files)}]
        except errors.DamagedRecord as damage:
            problems.append(damage)
            break
    return names  # where there were any, all have their files by now, and this is a later look


def keys_in(directory: str, kind: Kind[R], problems: list[errors.TeamsError]) -> list[str]:
    """The keys that the files of a directory stand for, by number or name; other files are *problems*."""
    found = [name[:-5] for name in names_in(directory, kind, problems) if name.endswith(".json")]
    keys = numbers.keys_among(found, kind) if kind.numbered else sorted(filter(is_name, found))
    if len(keys) < len(found):
        known = {*keys}
        hint = f"Make it anew, as {kind.name}s are made, then remove it." if kind.numbered else "Remove it."
        for word in found:
            if word not in known:
                problems.append(
                    errors.DamagedRecord(f"{directory}/{word + '.json'!r}: no {kind.name} is called that", hint)
                )
    return keys


def _waiting(directory: str, kind: Kind[R]) -> dict[str, bytes]:
    """What the file says; nothing where there is none."""
    if not kind.numbered:
        return {}
    path = f"{directory}/{NAME}"
    try:
        files = loads(disk.read_file(path, _LARGEST).decode())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        files = None
    if not isinstance(files, dict) or not files or not all(map(kind.number_in, files)):
        raise errors.DamagedRecord(f"{path}: does not say which records were created", "Move it away.")
    return {key: str(text).encode() for key, text in files.items()}
