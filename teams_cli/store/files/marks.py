"""Marks: empty files by which records are found without reading all, by their label or as ones that owe a notice.

Marks of a label are in a directory for the first thousand numbers, `<label>`, and in one for each further thousand,
`<label>.<thousand>`, so that the first ones are found as quickly among many. Those of older versions are all in the
first of these.
"""

from __future__ import annotations

import os

from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


def place(label: str, key: str) -> str:
    """Where below the index the mark of a record is."""
    thousand = _thousand(key)
    return f"{label}.{thousand}/{key}" if thousand else f"{label}/{key}"


def owed(kind: str, key: str) -> str:
    """What the mark of a record is called that owes a notice."""
    return f"{kind}~{key}"


def _thousand(key: str) -> str:
    """The thousands in the number of a key, as digits; empty below a thousand."""
    return key.rpartition("-")[2][:-3]


def labelled(index: str, marked_in: Collection[str], labels: Collection[str]) -> Iterator[str]:
    """The keys of which there are marks of these labels in the directories *marked_in*, lowest number first; no more is
    read than is asked for.
    """
    parts: dict[str, set[str]] = {"": set()}
    later: dict[str, list[str]] = {}
    for name in marked_in:
        label, _, thousand = name.partition(".")
        if label not in labels:
            continue
        if thousand:
            later.setdefault(thousand, []).append(name)
        else:
            parts[""].update(disk.names_in(f"{index}/{name}"))
    if _thousand(max(parts[""], key=len, default="")):  # only older versions have made such
        for key in parts.pop(""):
            parts.setdefault(_thousand(key), set()).add(key)
    for thousand in sorted(sorted({*parts, *later}), key=len):
        keys = parts.get(thousand, set())
        keys.update(*(disk.names_in(f"{index}/{name}") for name in later.get(thousand, ())))
        yield from sorted(sorted(keys), key=len)  # without leading zeros this is the order of the numbers


def by_label(index: str, marked_in: Collection[str], names: Collection[str]) -> dict[str, Collection[str]]:
    """The keys of the records that have files of these *names*, by the label of which each has a mark in one of the
    directories *marked_in*; under "" those that have none, or several.
    """
    found: dict[str, list[str]] = {}
    for name in marked_in:
        if name.startswith("."):  # as file managers leave them
            continue
        found.setdefault(name.partition(".")[0], []).extend(disk.names_in(f"{index}/{name}"))
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
    """What was *found*, without what is no key, and with the keys under "" that have no label or several."""
    labels: dict[str, set[str]] = {key: set() for key in keys}
    for label, marked in found.items():
        for key in keys.intersection(marked):
            labels[key].add(label)
    named: dict[str, list[str]] = {label: [] for label in ("", *found)}
    for key, of_key in labels.items():
        named[of_key.pop() if len(of_key) == 1 else ""].append(key)
    return {**named}


def make(paths: Collection[str], former: Sequence[str] = ()) -> None:
    """Make a record findable before it says why: a mark too many does no harm, one too few might. The *former* marks
    are those that it has until now.

    Raises:
        StorageFailed: The system refused.
    """
    for path in paths:
        like = former[0] if former and path not in former else ""
        try:
            try:
                _enter(path, like)
            except FileNotFoundError:
                _make_directories(os.path.dirname(path))
                _enter(path, like)
        except OSError as error:
            raise disk.failed("write", path, error) from None


def _enter(path: str, like: str) -> None:
    """Make the mark, as another name of the file of one *like* it where that can be: file systems are slow at making
    files where many were removed shortly before.
    """
    if like:
        try:
            return os.link(like, path)
        except FileExistsError:
            return None
        except OSError:  # it is gone, or has as many names as it can have, or files have only one here
            pass
    return os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _make_directories(path: str) -> None:
    for made in (os.path.dirname(path), path):
        try:
            os.mkdir(made, 0o700)
        except FileExistsError:  # or another makes it just now
            continue


def clear(paths: Collection[str], kept: Collection[str] = ()) -> None:
    """Remove marks by which a record is not to be found any more, also where older versions made them."""
    for path in paths:
        if path not in kept:
            disk.discard(path)
            index, directory, key = path.rsplit("/", 2)
            label, dot, _ = directory.partition(".")
            if dot:
                disk.discard(f"{index}/{label}/{key}")
