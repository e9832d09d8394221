"""Marks: empty files that show which records have a label or owe a notice, so that not all records need to be read.

Marks of a label are in `<label>/` for the first thousand numbers, and in `<label>.<thousand>/` for each further
thousand: with 10,000 tasks in one directory, `claim-task --next` takes 9 ms instead of 1.6. Version 0.1 put all of them
into the first.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.files.directories import Layout
    from teams_cli.store.files.locks import Lock

    R = TypeVar("R", bound=Record)


def place(label: str, key: str) -> str:
    """Return the path of a record's mark below the index."""
    thousand = _thousand(key)
    return f"{label}.{thousand}/{key}" if thousand else f"{label}/{key}"


def _thousand(key: str) -> str:
    """Return the thousands of the number in a key, as digits; empty below a thousand or without a number."""
    digits = key.rpartition("-")[2]
    return digits[:-3] if digits.isdecimal() else ""


def label_of(directory: str) -> str:
    """Return the label of the marks in a directory of the index."""
    return directory.partition(".")[0]


def owed(kind: str, key: str) -> str:
    """Return the name of the mark of a record that owes a notice."""
    return f"{kind}~{key}"


def labelled(index: str, marked_in: Collection[str], labels: Collection[str]) -> Iterator[str]:
    """Yield the keys that have marks of these labels in the directories *marked_in*, lowest number first. A directory
    is only read once its keys are asked for.
    """
    keys: dict[str, set[str]] = {"": set()}
    later: dict[str, list[str]] = {}
    for name in marked_in:
        if label_of(name) in labels:
            later.setdefault(name.partition(".")[2], []).append(name)
    for name in later.pop("", ()):
        for key in disk.names_in(f"{index}/{name}"):
            keys.setdefault(_thousand(key), set()).add(key)
    for thousand in sorted(sorted({*keys, *later}), key=len):
        found = keys.get(thousand, set()).union(*(disk.names_in(f"{index}/{name}") for name in later.get(thousand, ())))
        yield from sorted(sorted(found), key=len)  # without leading zeros this is the order of the numbers


def by_label(index: str, marked_in: Collection[str], names: Collection[str]) -> dict[str, Collection[str]]:
    """Return the keys of the records with files of these *names*, by the label of their mark in one of the directories
    *marked_in*. Records without a mark, or with several, are under "".
    """
    found: dict[str, list[str]] = {}
    for name in marked_in:
        if name.startswith("."):  # as file managers leave them
            continue
        found.setdefault(label_of(name), []).extend(disk.names_in(f"{index}/{name}"))
    others = set(names)
    for marked in found.values():
        others.difference_update([f"{key}.json" for key in marked])
    unmarked = _keys(others)
    if sum(map(len, found.values())) == len(names) - len(others):  # so each mark is of another record
        return {"": unmarked, **found}
    return _each_once(found, _keys(names))


def _keys(names: Collection[str]) -> set[str]:
    return {name[:-5] for name in names if name.endswith(".json")}


def _each_once(found: dict[str, list[str]], keys: set[str]) -> dict[str, Collection[str]]:
    """Return *found* without what is no key, and with the keys under "" that have no label or several."""
    labels: dict[str, set[str]] = {key: set() for key in keys}
    for label, marked in found.items():
        for key in keys.intersection(marked):
            labels[key].add(label)
    named: dict[str, list[str]] = {label: [] for label in ("", *found)}
    for key, of_key in labels.items():
        named[of_key.pop() if len(of_key) == 1 else ""].append(key)
    return {**named}


def make(paths: Collection[str]) -> None:
    """Mark a record before it is stored: a mark too many does no harm, but one too few might.

    Raises:
        StorageFailed: The system refused.
    """
    for path in paths:
        try:
            try:
                _enter(path)
            except FileNotFoundError:
                _make_directories(os.path.dirname(path))
                _enter(path)
        except OSError as error:
            raise disk.failed("write", path, error) from None


def _enter(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _make_directories(path: str) -> None:
    for made in (os.path.dirname(path), path):
        try:
            os.mkdir(made, 0o700)
        except FileExistsError:  # or another makes it just now
            continue


def clear(paths: Collection[str], kept: Collection[str] = ()) -> None:
    """Remove the marks of a record, except those in *kept*, also where version 0.1 put them."""
    for path in set(paths).difference(kept):
        disk.discard(path)
        index, directory, key = path.rsplit("/", 2)
        label, dot, _ = directory.partition(".")
        if dot:  # LABEL.N holds the further thousands of marks; version 0.1 had all of them in LABEL
            disk.discard(f"{index}/{label}/{key}")


_AT_ONCE = 500
"""The number of records that are marked before other processes get a turn."""


def mark_anew(
    layout: Layout,
    lock: type[Lock],
    team: str,
    kind: Kind[R],
    keys: Collection[str],
    marks_of: Callable[[str], list[str]],
) -> None:
    """Give the records exactly the marks that *marks_of* returns, as far as possible at once."""
    waiting, labels = list(keys), layout.labels(team, kind)
    directory = layout.directory(team, kind)
    try:
        while waiting:
            with lock(directory, 0.0):
                disk.confirm(directory, directory)  # or a power cut brings back what had the marks that go
                for key in waiting[:_AT_ONCE]:
                    _mark(layout.all_marks(team, kind, key, labels), key, marks_of)
            del waiting[:_AT_ONCE]
    except errors.TeamsError:  # somebody is changing one
        return


def _mark(every: list[str], key: str, marks_of: Callable[[str], list[str]]) -> None:
    try:
        kept = marks_of(key)
    except errors.NotFound:
        kept = []
    except errors.TeamsError:  # nobody can tell what belongs there
        return
    make(kept)
    clear(every, kept)
