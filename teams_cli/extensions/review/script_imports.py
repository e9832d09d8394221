"""JavaScript and TypeScript imports of files that are not there, and of exports that the change took away."""

from __future__ import annotations

import os
import re

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change, ChangedFile, Git, content
from teams_cli.extensions.review.findings import SERIOUS, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DECLARED = re.compile(
    r"^\s*export\s+(?:declare\s+)?(?:default\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\s*\*?|class|const|let|var|interface|type|enum|namespace)\s+([\w$]+)",
    re.MULTILINE,
)
_LISTED = re.compile(r"export\s+(?:type\s+)?\{([^}]*)\}")
_OPEN = re.compile(r"export\s+\*(?!\s+as\b)|module\.exports|^\s*export\s+(?:const|let|var)\s*[{\[]", re.MULTILINE)
"""Exports whose names can't be seen."""
_IMPORT = re.compile(r"(?:import|export)\s+(?:type\s+)?(?:[\w$]+\s*,\s*)?\{([^}]*)\}\s*from\s*[\"'](\.[^\"']*)[\"']")
_IMPORTED_FILE = re.compile(r"(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)[\"'](\.{1,2}/[^\"'?#!]*)[\"']")


def missing_files(change: Change, git: Git) -> Iterator[Finding]:
    """Relative imports in changed lines of files that are not there and that no build makes."""
    for path in change.readable():
        file = change.file(path)
        if not file or not kinds.is_script(path) or kinds.is_foreign(path, change.head_tree):
            continue
        for number, line in enumerate(content(change.head_tree, path).splitlines(), 1):
            if number not in file.lines or line.lstrip().startswith(("//", "*", "/*")):
                continue
            for name in _IMPORTED_FILE.findall(line):
                target = os.path.normpath(os.path.join(os.path.dirname(path), name))
                is_there = target.startswith("..") or _is_there(change.repo, target)
                if not is_there and not git.line("check-ignore", "--", target):
                    yield Finding(SERIOUS, path, number, f"there is no {target}: the import fails", "import")


def _is_there(repo: str, target: str) -> bool:
    """Whether there is that file or directory, or one whose ending was left out, or that becomes it."""
    directory, name = os.path.split(os.path.join(repo, target))
    stem, end = os.path.splitext(name)
    stems = {name, stem} if end in kinds.SCRIPT else {name}
    try:
        entries = os.listdir(directory)
    except OSError:
        return False
    return any(entry == name or entry.startswith(tuple(f"{one}." for one in stems)) for entry in entries)


def removed_exports(change: Change, git: Git) -> Iterator[Finding]:
    """Imports of names that a changed module exported before and does not export now."""
    removed = {_stem(file.old): names for file in change.files if (names := _removed(change, git, file))}
    patterns = [f"*{end}" for end in kinds.SCRIPT]
    listed = git.names("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns)
    for path in listed if removed else ():
        text = content(change.repo, path)
        for found in _IMPORT.finditer(text):
            origin = _stem(os.path.normpath(os.path.join(os.path.dirname(path), found[2])))
            for name in _names(found[1], 0) & removed.get(origin, set()):
                line = text.count("\n", 0, found.start()) + 1
                what = f"{name} is no longer exported by {found[2]}, and is still imported here"
                yield Finding(SERIOUS, path, line, what, "removed", anywhere=True)


def _stem(path: str) -> str:
    """What an import calls the file: without the ending, and without `index`."""
    stem, end = os.path.splitext(path)
    return (stem if end in kinds.SCRIPT else path).removesuffix("/index")


def _removed(change: Change, git: Git, file: ChangedFile) -> set[str]:
    if not kinds.is_script(file.old) or file.status not in "MDR":
        return set()
    before = git.line("cat-file", "blob", f"{change.base}:{file.old}")
    is_gone = file.status == "D" or _stem(file.old) != _stem(file.path)
    after = "" if is_gone else content(change.head_tree, file.path)
    return set() if _OPEN.search(after) else _exported(before) - _exported(after)


def _exported(text: str) -> set[str]:
    listed = (_names(names, -1) for names in _LISTED.findall(text))
    return set(_DECLARED.findall(text)).union(*listed)


def _names(text: str, which: int) -> set[str]:
    """The names in braces; of `a as b` the first or the last."""
    parts = (part.strip().removeprefix("type ").split(" as ") for part in text.split(","))
    return {part[which].strip() for part in parts if part[which].strip()}
