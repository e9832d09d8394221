"""Finding leftovers: marks of a merge, statements for debugging, files of tools."""

from __future__ import annotations

import os
import re

from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MARK = re.compile(r"^(<{7}|>{7}|\|{7})( |$)|^={7}$")
_STOPS = {
    ".rb": re.compile(r"^\s*(binding\.(pry|irb)|byebug|debugger)\b"),
    ".php": re.compile(r"\b(var_dump|dd|die)\s*\("),
    ".vue": re.compile(r"^\s*debugger\b"),
    ".svelte": re.compile(r"^\s*debugger\b"),
    ".go": re.compile(r"\bruntime\.Breakpoint\(|\bspew\.Dump\("),
    ".rs": re.compile(r"\b(dbg|todo)!\s*\("),
}
_REMAINS = re.compile(r"(\.(orig|rej|bak|swp|swo|tmp)|~|\.DS_Store|Thumbs\.db|\.py[co])$|(^|/)(__pycache__|\.idea)/")
_PRIVATE = re.compile(
    r"(^|/)(\.env(\.(local|prod(uction)?))?|id_(rsa|dsa|ecdsa|ed25519)|\.netrc|\.pgpass|\.npmrc|\.pypirc)$"
)
OPEN = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b.{0,80}")


def check(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Marks of a merge, and statements at which a program stops."""
    for path in paths:
        rows = content(tree, path).splitlines()
        yield from _marks(path, rows)
        if stops := _STOPS.get(os.path.splitext(path)[1]):
            for number, row in enumerate(rows, 1):
                if found := stops.search(row):
                    yield Finding(WARNING, path, number, f"left from debugging: `{found[0].strip()}`", "debugging")


def _marks(path: str, rows: list[str]) -> Iterator[Finding]:
    """A conflict has a beginning and an end; one line that looks like a mark may be an underline."""
    found = [(number, row[0]) for number, row in enumerate(rows, 1) if _MARK.match(row)]
    kinds = {mark for _, mark in found}
    if {"<", ">"} <= kinds:
        for number, mark in found:
            if mark == "<":
                yield Finding(SERIOUS, path, number, "a conflict was not resolved", "conflict")
    elif kinds - {"="}:
        yield Finding(WARNING, path, min(n for n, mark in found if mark != "="), "the mark of a conflict", "conflict")


def odd_files(names: list[str]) -> Iterator[Finding]:
    """New files that do not belong into a repository."""
    for name in names:
        if _PRIVATE.search(name):
            yield Finding(WARNING, name, 0, "such files hold secrets; is it meant for everybody?", "private-file")
        elif _REMAINS.search(name):
            yield Finding(NOTE, name, 0, "such files are left behind by tools", "remains")


def open_ends(tree: str, path: str, lines: frozenset[int]) -> Iterator[str]:
    """What the new lines say is still to be done."""
    for number, row in enumerate(content(tree, path).splitlines(), 1):
        if number in lines and (found := OPEN.search(row)):
            yield f"{path}:{number}: {found[0].strip()}"
