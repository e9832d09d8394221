"""One check of a review: `python -m teams_cli.extensions.review CHECK`, in the directory of the repository.

TEAMS_WORK names the directory that the checks of one review share; `change` comes first and the verdict last. What is
printed is the result of the task: a line on what was done, then the findings, each with its weight.

`try PATCH` runs the tests of what a patch changes, on a copy; `try PATCH there` when the checkout has it already.
"""

from __future__ import annotations

import os
import sys

from teams_cli import text
from teams_cli.extensions.review import change as changes
from teams_cli.extensions.review import checks, findings, trials
from teams_cli.extensions.review.change import Change, GitFailed
from teams_cli.extensions.review.findings import SERIOUS, WEIGHTS, shown
from teams_cli.extensions.review.python_lint import ToolFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST = 200
"""Findings of one check that are printed."""
_LISTED = 500
_SECONDS = 120.0
_YES = ("yes", "true", "1")


def _change(environ: Mapping[str, str], work: str) -> None:
    found = changes.collect(os.getcwd(), work, environ.get("base", ""), environ)
    added, deleted = sum(len(f.added) for f in found.files), sum(f.deleted for f in found.files)
    print(f"{text.counted(len(found.files), 'file')}, +{added} -{deleted} lines since {found.called}")
    for file in found.files[:_LISTED]:
        moved = f" from {shown(file.old)}" if file.old != file.path else ""
        print(f"{file.status} {shown(file.path)} +{len(file.added)} -{file.deleted}{moved}")
    if len(found.files) > _LISTED:
        print(f"and {len(found.files) - _LISTED} more files")


def _check(name: str, environ: Mapping[str, str], change: Change) -> int:
    review = checks.Review(change, environ)
    summary = checks.CHECKS[name](review)
    print(summary)
    found = sorted(review.findings, key=lambda finding: (WEIGHTS.index(finding.weight), finding.path, finding.line))
    for finding in found[:_MOST]:
        print(finding)
    if len(found) > _MOST:
        print(f"{found[_MOST].weight} and {len(found) - _MOST} more findings")
    for fact in review.told():
        print(fact)
    strict = environ.get("strict", "") in _YES and any(finding.weight == SERIOUS for finding in found)
    if strict:
        print("serious findings, and strict=yes", file=sys.stderr)
    return 1 if strict else 0


def _try(words: list[str], environ: Mapping[str, str]) -> int:
    told: list[str] = []
    work = environ["TEAMS_WORK"]
    found = trials.try_out(os.getcwd(), words[0], work, environ, _SECONDS, told.append, words[1:] == ["there"])
    print("; ".join(told) or "no test of these files was found")
    for finding in found:
        print(finding)
    return 1 if found else 0


def main(words: list[str], environ: Mapping[str, str]) -> int:
    """Do one check, print what it found; the exit status."""
    name = words[0]
    try:
        if name == "verdict":
            print(findings.report(findings.read(environ["TEAMS_RESULTS"])), end="")
            return 0
        if name == "try":
            return _try(words[1:], environ)
        work = os.path.join(environ["TEAMS_WORK"], "review")
        if name == "change":
            _change(environ, work)
            return 0
        return _check(name, environ, changes.load(work))
    except (GitFailed, ToolFailed) as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:], os.environ))
