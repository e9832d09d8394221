"""Judging only the change: the findings of a check that were not there before."""

from __future__ import annotations

import re
from collections import Counter

from teams_cli.extensions.review import change as changes
from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change
from teams_cli.extensions.review.findings import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Check = Callable[[str, list[str]], Iterable[Finding]]
    "A check looks at these files in that tree."


def new_findings(change: Change, check: Check, wanted: Callable[[str], bool]) -> list[Finding]:
    """What *check* finds in the changed files now, less what it found in them before.

    A finding counts when it stands on a line that changed, or when it can come of a change elsewhere in the file, as a
    name that is not defined any more. What stood in the old files the same is old, wherever it has moved.
    """
    paths = [path for path in change.readable() if wanted(path) and not kinds.is_foreign(path, change.head_tree)]
    if not paths:
        return []
    found = [_placed(finding, change.head_tree) for finding in check(change.head_tree, paths)]
    there = [path for path in paths if changes.content(change.base_tree, path)]
    old = Counter(_key(_placed(finding, change.base_tree)) for finding in check(change.base_tree, there))
    kept = []
    for finding in sorted(found, key=lambda finding: not _touched(change, finding)):
        if old[_key(finding)] < 1 and (finding.anywhere or _touched(change, finding)):
            kept.append(finding)
        old[_key(finding)] -= 1
    return kept


def _placed(finding: Finding, tree: str) -> Finding:
    """The finding with the text of its line."""
    rows = changes.content(tree, finding.path).splitlines()
    finding.text = rows[finding.line - 1].strip() if 0 < finding.line <= len(rows) else ""
    return finding


def _key(finding: Finding) -> tuple[str, str]:
    """What makes two findings the same, though the line has moved; of those that depend on others, the words do."""
    return finding.rule, re.sub(r"\d+", "", finding.what) if finding.anywhere else finding.text


def _touched(change: Change, finding: Finding) -> bool:
    file = change.file(finding.path)
    return bool(file and (finding.line in file.lines or (not finding.line and file.added)))
