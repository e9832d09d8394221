"""Imports of files that are not there, in JavaScript and TypeScript."""

from __future__ import annotations

import os
import re

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change, content
from teams_cli.extensions.review.findings import SERIOUS, Finding
from teams_cli.extensions.review.git import Git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_IMPORTED = re.compile(r"(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)[\"'](\.{1,2}/[^\"'?#!]*)[\"']")


def findings(change: Change, git: Git) -> Iterator[Finding]:
    """Files that a changed line imports by a relative path, and that neither are there nor are made by a build."""
    for path in change.readable():
        file = change.file(path)
        if file and kinds.is_script(path) and not kinds.is_foreign(path, change.head_tree):
            rows = content(change.head_tree, path).splitlines()
            for number in sorted(file.lines & set(range(1, len(rows) + 1))):
                yield from _of_line(change.repo, git, path, number, rows[number - 1])


def _of_line(repo: str, git: Git, path: str, number: int, row: str) -> Iterator[Finding]:
    if row.lstrip().startswith(("//", "*", "/*")):
        return
    for name in _IMPORTED.findall(row):
        place = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if not place.startswith("..") and not _is_there(repo, place) and not git.said("check-ignore", "--", place):
            yield Finding(SERIOUS, path, number, f"there is no {place}: the import fails", "import")


def _is_there(repo: str, place: str) -> bool:
    """Whether there is that file or directory, or one that an ending was left out of, or that becomes it."""
    directory, name = os.path.split(os.path.join(repo, place))
    stem, end = os.path.splitext(name)
    stems = {name, stem} if end in kinds.SCRIPT else {name}
    try:
        entries = os.listdir(directory)
    except OSError:
        return False
    return any(entry == name or entry.startswith(tuple(f"{one}." for one in stems)) for entry in entries)
