"""Marks: empty files that show which records have a label or owe a notice, so that not all records need to be read.

Marks of a label are in `<label>/` for numbers below a thousand, and in `<label>.<thousand>/` for each further thousand.
With 10,000 tasks in a single directory, `claim-task --next` would take 9 ms instead of 1.6. Version 0.1 put all marks
of a label into `<label>/`.
"""

from __future__ import annotations

import os

from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def path_in_index(label: str, key: str) -> str:
    """Return the path of the mark of a *label* for the record under *key*, relative to the index."""
    thousand = _thousand(key)
    return f"{label}.{thousand}/{key}" if thousand else f"{label}/{key}"


def _thousand(key: str) -> str:
    """Return the thousands of the number in *key*, such as "2" for `task-2345`; "" below a thousand or without one."""
    digits = key.rpartition("-")[2]
    return digits[:-3] if digits.isdecimal() else ""


def label_of(directory: str) -> str:
    """Return the label whose marks are in that *directory* of the index."""
    return directory.partition(".")[0]


def name_of_owed(kind: str, key: str) -> str:
    """Return the file name of the mark of a record that owes a notice."""
    return f"{kind}~{key}"


def kind_and_key_owing(file_name: str) -> tuple[str, str]:
    """Return the kind and the key of the record whose mark has the *file_name* that `name_of_owed` returned."""
    kind, _, key = file_name.partition("~")
    return kind, key


def labelled(index: str, directories: Collection[str], labels: Collection[str]) -> Iterator[str]:
    """Yield the keys of records that have marks of these *labels*, lowest number first. *directories* are the names of
    all directories in the index. Each thousand of numbers has its own directories, which are read only once the caller
    has taken all keys with lower numbers.
    """
    directories_by_thousand: dict[str, list[str]] = {}
    for directory in directories:
        label, _, thousand = directory.partition(".")
        if label in labels:
            directories_by_thousand.setdefault(thousand, []).append(directory)
    # Directories without a thousand in their name may have any keys: version 0.1 put all marks into them.
    keys_by_thousand: dict[str, set[str]] = {}
    for directory in directories_by_thousand.pop("", ()):
        for key in disk.names_in(f"{index}/{directory}"):
            keys_by_thousand.setdefault(_thousand(key), set()).add(key)
    # Sorted by length and then as texts, numbers without leading zeros are in their order, and so are ids.
    for thousand in sorted(sorted({*keys_by_thousand, *directories_by_thousand}), key=len):
        keys = keys_by_thousand.get(thousand, set())
        for directory in directories_by_thousand.get(thousand, ()):
            keys.update(disk.names_in(f"{index}/{directory}"))
        yield from sorted(sorted(keys), key=len)


def by_label(index: str, directories: Collection[str], names: Collection[str]) -> dict[str, Collection[str]]:
    """Return, by label, the keys of the records whose files have these *names*. Under "" are the records without a
    mark, and those with marks of several labels. *directories* are the names of all directories in the index.
    """
    marked_by_label: dict[str, list[str]] = {}
    for directory in directories:
        if directory.startswith("."):  # file managers leave such files
            continue
        marked_by_label.setdefault(label_of(directory), []).extend(disk.names_in(f"{index}/{directory}"))
    unmarked = set(names)
    for keys in marked_by_label.values():
        unmarked.difference_update([f"{key}.json" for key in keys])
    count_of_marks = sum(map(len, marked_by_label.values()))
    if count_of_marks == len(names) - len(unmarked):
        # The usual case, fast even with thousands of tasks: each mark belongs to a record, and no record has two.
        return {"": _keys(unmarked), **marked_by_label}
    labels_of: dict[str, set[str]] = {key: set() for key in _keys(names)}
    for label, keys in marked_by_label.items():
        for key in keys:
            if key in labels_of:  # else the record of the mark is gone
                labels_of[key].add(label)
    keys_by_label: dict[str, list[str]] = {label: [] for label in ("", *marked_by_label)}
    for key, labels in labels_of.items():
        label = labels.pop() if len(labels) == 1 else ""
        keys_by_label[label].append(key)
    return {**keys_by_label}


def _keys(names: Collection[str]) -> set[str]:
    return {name[:-5] for name in names if name.endswith(".json")}


def make(paths: Collection[str]) -> None:
    """Make the marks by which a record is found. This is done before the record is stored: a mark too many does no
    harm, but a record without its mark might not be found.
    """
    for path in paths:
        try:
            try:
                _make_file(path)
            except FileNotFoundError:
                directory = os.path.dirname(path)
                for missing in (os.path.dirname(directory), directory):
                    try:
                        os.mkdir(missing, 0o700)
                    except FileExistsError:  # it was not missing, or another process has just made it
                        continue
                _make_file(path)
        except OSError as error:
            raise disk.failed("write", path, error) from None


def _make_file(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def clear(paths: Collection[str], kept: Collection[str] = ()) -> None:
    """Remove the marks at these *paths*, except those in *kept*. Version 0.1 put some marks into another directory;
    they are removed from there, too.
    """
    for path in set(paths).difference(kept):
        disk.discard(path)
        index, directory, key = path.rsplit("/", 2)
        label, dot, _ = directory.partition(".")
        if dot:  # LABEL.N holds the further thousands of marks; version 0.1 had all of them in LABEL
            disk.discard(f"{index}/{label}/{key}")
