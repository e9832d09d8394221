"""Findings: how heavy, where, what and why; and which of them are shown."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase

SERIOUS, WARNING, NOTE = "SERIOUS", "WARNING", "note"
"""It will fail or can be abused; it is probably a mistake; it is worth a look."""
WEIGHTS = (SERIOUS, WARNING, NOTE)
ALLOWED_FILE = ".teams-review"
_HERE = re.compile(r"teams-review:\s*allow(?:\s+([\w,./: -]+))?")
_NO_CHECK = re.compile(r"(?:#|//)\s*(?:noqa\b|nosec\b|nosemgrep\b|pragma: allowlist secret|eslint-disable)")


class Finding:
    """Something that a check found. *rule* names the kind, for the allow-list; *anywhere* holds also on old lines."""

    def __init__(
        self, weight: str, path: str, line: int, what: str, rule: str, text: str = "", anywhere: bool = False
    ) -> None:
        self.weight = weight
        self.path = path
        self.line = line
        self.what = what
        self.rule = rule
        self.text = text
        self.anywhere = anywhere

    def __str__(self) -> str:
        where = f"{shown(self.path)}{f':{self.line}' if self.line else ''}"
        return f"{self.weight} {where}: {' '.join(self.what.split())} [{self.rule}]"


def shown(path: str) -> str:
    """The path as one line of plain text."""
    return path if path.isprintable() else ascii(path)


class Allowed:
    """What whoever keeps the repository has looked at and accepts.

    Lines of `.teams-review` are `GLOB`, `GLOB RULE` or `* RULE`; `#` begins a comment. In a file, `teams-review: allow`
    in a comment accepts all that is found in its line, `teams-review: allow RULE` that rule alone.
    """

    def __init__(self, text: str = "") -> None:
        rows = (line.partition("#")[0].split() for line in text.splitlines())
        self.pairs = [(words[0], words[1:]) for words in rows if words]

    def covers(self, finding: Finding) -> bool:
        """Whether it is accepted."""
        if _NO_CHECK.search(finding.text):
            return True
        if said := _HERE.search(finding.text):
            return not said[1] or finding.rule in re.split(r"[,\s]+", said[1])
        return any(
            fnmatchcase(finding.path, glob) and (not rules or finding.rule in rules) for glob, rules in self.pairs
        )


def allowed_in(repo: str) -> Allowed:
    """The allow-list of the repository; an empty one if there is none."""
    try:
        with open(os.path.join(repo, ALLOWED_FILE), encoding="utf-8", errors="replace") as file:
            return Allowed(file.read(LIMIT))
    except OSError:
        return Allowed()


LIMIT = 1 << 20
