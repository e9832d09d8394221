"""Which numbers of a directory were given: none is given again, also when the file that had it is gone.

The highest stands in the name of an empty file, `.last.<number>`, which the listing of the directory shows for nothing
and which becomes durable with the entry of the record itself. It is raised behind the record: where it is missing or
late, as after a crash or with files of an older version, the records tell.
"""

from __future__ import annotations

import os

from teams_cli.names import is_number
from teams_cli.store.contract import Kind
from teams_cli.store.files.disk import discard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

_LAST = ".last."
_NEW = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC


def highest(names: Iterable[str]) -> int:
    """The highest number that was given by what the names in a directory say; 0 if they say nothing."""
    said = [name[len(_LAST) :] for name in names if name.startswith(_LAST)]
    return max((int(digits) for digits in said if is_number(digits)), default=0)


def given(names: Collection[str], kind: Kind[Any]) -> tuple[int, int]:
    """The highest number that was given in a directory with these names: by what is noted, and by the records."""
    return highest(names), max((in_name(name, kind) for name in names), default=0)


def in_name(file_name: str, kind: Kind[Any]) -> int:
    """The number in the file name of a numbered record; 0 if it is not one."""
    return kind.number_in(file_name[:-5]) if file_name.endswith(".json") else 0


def keys_among(words: Iterable[str], kind: Kind[Any]) -> list[str]:
    """Those of the words that are keys of numbered records, the lowest number first."""
    begin = f"{kind.prefix}-"
    digits = [word[len(begin) :] for word in words if word.startswith(begin)]
    return [f"{begin}{number}" for number in sorted(map(int, filter(is_number, digits)))]


def in_order(keys: Iterable[str], kind: Kind[Any]) -> list[str]:
    """The keys by number or name."""
    return sorted(sorted(keys), key=len) if kind.numbered else sorted(keys)


def note(directory: str, before: int, number: int) -> None:
    """Raise what `highest` says of the directory from *before* to *number*.

    The record that has the number is made already, so a disk that refuses is no reason to fail.
    """
    try:
        os.rename(f"{directory}/{_LAST}{before}", f"{directory}/{_LAST}{number}")
    except FileNotFoundError:
        keep(directory, number)
    except OSError:
        return


def keep(directory: str, number: int) -> None:
    """Have `highest` say at least *number*, if that can be done."""
    try:
        os.close(os.open(f"{directory}/{_LAST}{number}", _NEW, 0o600))
    except OSError:
        return


def tidy(directory: str, names: Iterable[str]) -> None:
    """Remove marks below the highest."""
    top = f"{_LAST}{highest(names)}"
    for name in names:
        if name.startswith(_LAST) and name != top:
            discard(f"{directory}/{name}")
