"""What JavaScript and TypeScript modules exported before, and other files still import."""

from __future__ import annotations

import os
import re

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change, ChangedFile, Git, GitFailed, content
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
_IMPORT = re.compile(r"(?:import|export)\s+(?:type\s+)?(?:[\w$]+\s*,\s*)?\{([^}]*)\}\s*from\s*[\"'](\.[^\"']*)[\"']")
_MOST = 1000
"""Files that are looked through."""


def findings(change: Change, git: Git) -> Iterator[Finding]:
    """Imports of names that a changed module exported before and does not export now."""
    lost = {file.old: names for file in change.files if (names := _lost(change, git, file))}
    if not lost:
        return
    places = {_stem(path): path for path in lost}
    patterns = [f"*{end}" for end in kinds.SCRIPT]
    for path in git.names("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns)[:_MOST]:
        yield from _uses(path, content(change.repo, path), places, lost)


def _uses(path: str, text: str, places: dict[str, str], lost: dict[str, set[str]]) -> Iterator[Finding]:
    for found in _IMPORT.finditer(text):
        origin = places.get(_stem(os.path.normpath(os.path.join(os.path.dirname(path), found[2]))))
        for name in _names(found[1], 0) & lost.get(origin or "", set()):
            line = text.count("\n", 0, found.start()) + 1
            what = f"{name} is not exported by {origin} any more, and is still imported here"
            yield Finding(SERIOUS, path, line, what, "removed", anywhere=True)


def _stem(path: str) -> str:
    """What an import calls the file: without the ending, and without `index`."""
    stem, end = os.path.splitext(path)
    return (stem if end in kinds.SCRIPT else path).removesuffix("/index")


def _lost(change: Change, git: Git, file: ChangedFile) -> set[str]:
    if not kinds.is_script(file.old) or file.status not in "MDR":
        return set()
    try:
        before = git("cat-file", "blob", f"{change.base}:{file.old}").decode(errors="replace")
    except GitFailed:
        return set()
    moved = file.status == "R" and _stem(file.old) != _stem(file.path)
    after = "" if file.status == "D" or moved else content(change.head_tree, file.path)
    return set() if _OPEN.search(after) else _exported(before) - _exported(after)


def _exported(text: str) -> set[str]:
    found = set(_DECLARED.findall(text))
    for names in _LISTED.findall(text):
        found |= _names(names, -1)
    return found


def _names(text: str, which: int) -> set[str]:
    """The names in braces; of `a as b` the one that is asked for."""
    parts = (part.strip().removeprefix("type ").split(" as ") for part in text.split(","))
    return {part[which].strip() for part in parts if part[which].strip()}
