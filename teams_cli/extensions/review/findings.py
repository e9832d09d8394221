"""Findings with their weights, the list of accepted findings, and the report."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from teams_cli.environment import to_install
from teams_cli.extensions.review.change import content, lines_of
from teams_cli.text import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


SERIOUS, WARNING, NOTE = "SERIOUS", "WARNING", "note"
"""The weights of findings: code that will fail or can be abused, a probable mistake, and something worth a look."""
WEIGHTS = (SERIOUS, WARNING, NOTE)
ALLOWED_FILE = ".teams-review"
_ALLOW_COMMENT = re.compile(r"teams-review:\s*allow(?:\s+([\w,./: -]+))?")
_OTHER_COMMENT = re.compile(r"(?:#|//)\s*(?:noqa\b|nosec\b|nosemgrep\b|pragma: allowlist secret|eslint-disable)")


@dataclass
class Finding:
    """A defect that a check found. *message* describes the defect, and *rule* names its kind for the list of accepted
    findings. *line* is the number of its line, or 0 for the whole file; *text* is the text of the line. If *anywhere*
    is True, the finding is reported even if its line was not changed.
    """

    weight: str
    path: str
    line: int
    message: str
    rule: str
    text: str = ""
    anywhere: bool = False

    def __str__(self) -> str:
        where = shown(self.path)
        if self.line:
            where += f":{self.line}"
        return f"{self.weight} {where}: {' '.join(self.message.split())} [{self.rule}]"


def shown(path: str) -> str:
    """Return the path as one line of printable text."""
    return path if path.isprintable() else ascii(path)


class Allowed:
    """Knows which findings a repository accepts, by its file `.teams-review` and by comments in other files.

    A line of that file is `GLOB`, `GLOB RULE` or `* RULE`; `#` begins a comment. In any other file, the comment
    `teams-review: allow` accepts all findings on its line, and `teams-review: allow RULE` those of one rule.
    """

    def __init__(self, repo: str) -> None:
        rows = (line.partition("#")[0].split() for line in lines_of(content(repo, ALLOWED_FILE)))
        self.globs_and_rules = [(row[0], row[1:]) for row in rows if row]

    def covers(self, finding: Finding) -> bool:
        """Return whether the repository accepts the finding."""
        if _OTHER_COMMENT.search(finding.text):  # a comment for another tool also accepts it
            return True
        if comment := _ALLOW_COMMENT.search(finding.text):
            allows_all_rules = not comment[1]
            return allows_all_rules or finding.rule in re.split(r"[,\s]+", comment[1])
        return any(
            fnmatchcase(finding.path, glob) and (not rules or finding.rule in rules)
            for glob, rules in self.globs_and_rules
        )


_FINDING = re.compile(rf"({'|'.join(WEIGHTS)}) (.*)")
_MORE_FINDINGS = re.compile(r"and (\d+) more findings")
_HEADINGS = {SERIOUS: "Must be changed", WARNING: "Probably mistakes", NOTE: "Worth a look"}
_NOUNS = {SERIOUS: "serious finding", WARNING: "warning", NOTE: "note"}
_VERDICTS = {
    SERIOUS: "changes are needed",
    WARNING: "have a look at the warnings",
    NOTE: "have a look at the notes",
}
_MOST_SHOWN = 100
"""The maximum number of findings of one weight in the report."""


class Result:
    """The output of one check: its summary, its findings, and further facts. *row* is the check's entry in the index of
    the results, and *path* the file with the output, which is missing if the check was not done.
    """

    def __init__(self, row: dict[str, Any], path: str) -> None:
        self.key = row["key"]
        self.owner = row["owner"] or "-"
        self.is_done = os.path.exists(path)
        output = content("", path)
        lines = lines_of(output) if output else []
        without_lines = "no output" if self.is_done else "not done"
        self.summary = lines[0] if lines else without_lines
        self.findings = [(match[1], match[2]) for line in lines if (match := _FINDING.fullmatch(line))]
        """The weight and the text of each finding."""
        self.facts = [line for line in lines[1:] if not _FINDING.fullmatch(line)]


def report(directory: str, missing: list[str]) -> str:
    """Return the whole report as Markdown. *directory* has the results of the checks. *missing* names the linters that
    are not installed, which the report mentions.
    """
    with open(os.path.join(directory, "index.json"), encoding="utf-8") as file:
        rows = json.load(file)
    results = [Result(row, os.path.join(directory, row["file"])) for row in rows]
    findings: dict[str, list[str]] = {weight: [] for weight in WEIGHTS}
    listed: set[tuple[str, str]] = set()
    for result in results:
        for weight, text in result.findings:  # usually the text is `PLACE: MESSAGE [RULE]`
            place = text.partition(": ")[0]
            rule = text.rpartition("[")[2] if text.endswith("]") else text
            if (place, rule) not in listed:  # a finding that two checks have is listed once
                listed.add((place, rule))
                findings[weight].append(text)
    parts = [_head(results, findings)]
    if missing:
        parts.append(f"Not installed: {', '.join(missing)}. With them a review finds more. {to_install('review')}")
    for weight, texts in findings.items():
        if texts:
            items = [f"* {_item(text)}" for text in texts[:_MOST_SHOWN]]
            if len(texts) > _MOST_SHOWN:
                items.append(f"* and {len(texts) - _MOST_SHOWN} more: see the tasks")
            parts.append(f"### {_HEADINGS[weight]}\n\n" + "\n".join(items))
    checks = [f"| {result.key} | {result.owner} | {result.summary.replace('|', '/')} |" for result in results]
    parts.append("\n".join(["### Checks\n", "| check | by | what it did |", "|---|---|---|", *checks]))
    # The facts of the change are only the names of the changed files.
    facts = [fact for result in results if result.key != "change" for fact in result.facts]
    if facts:
        parts.append("\n".join(f"* {fact.replace('|', '/')}" for fact in facts))
    return "\n\n".join(parts) + "\n"


def _head(results: list[Result], findings: dict[str, list[str]]) -> str:
    """Return the beginning of the report: the verdict, the numbers of findings, and the checks that were not done.
    *findings* has the texts of the findings by their weight.
    """
    change = next((result.summary for result in results if result.key == "change"), "")
    # The findings with the greatest weight decide.
    verdict = next((verdict for weight, verdict in _VERDICTS.items() if findings[weight]), "nothing was found")
    if change.startswith("0 files"):
        verdict = "nothing to review"
    counts = []
    for weight, noun in _NOUNS.items():
        rows = [_MORE_FINDINGS.fullmatch(text) for text in findings[weight]]
        number = sum(int(more[1]) if more else 1 for more in rows)  # a row `and N more findings` counts as N
        counts.append(counted(number, noun))
    summary = f"{', '.join(counts)}; {change or 'the change is not known'}."
    if undone := [result.key for result in results if not result.is_done]:
        so_far = "" if any(findings.values()) else "so far "
        verdict = f"the review is incomplete; {so_far}{verdict}"
        summary += f"\n\nNot done: {', '.join(undone)}."
    return (
        f"## Verdict: {verdict}\n\n{summary}\n\n"
        "Parsers, linters and tests read this change; no model and no person did. "
        "They find mistakes of known kinds; they can't see whether the change does what it should."
    )


def _item(text: str) -> str:
    """Return a finding as a list item. Its text may be from the reviewed files, so it must not become Markdown."""
    place, colon, message = text.partition(": ")
    if not colon:  # the row `and N more findings`
        return text
    escaped_place = place.replace("*", r"\*")
    escaped_message = re.sub(r"[\\*_<>|#~&]", r"\\\g<0>", message)
    return f"**{escaped_place}**: {escaped_message}"
