"""One check of a review: `python -m teams_cli.extensions.review CHECK`, in the directory of the repository.

TEAMS_WORK names the directory that the checks of one review share. The check `change` runs first, and `verdict` last. A
check prints the result of its task: a line that says what was done, and then the findings, each with its weight.

`try PATCH` runs the tests of the files that a patch changes, on a copy of the checkout. `try PATCH there` is for a
checkout that has the patch already.
"""

from __future__ import annotations

import os
import sys

from teams_cli import text
from teams_cli.extensions.review import change as changes
from teams_cli.extensions.review import checks, findings, linters, own_tools
from teams_cli.extensions.review.change import Change, GitFailed
from teams_cli.extensions.review.findings import ALLOWED_FILE, SERIOUS, WEIGHTS, shown
from teams_cli.extensions.review.linters import ToolFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_FINDINGS, _MOST_FILES = 200, 500
"""The maximum number of findings and of files that one check prints."""


def _collect(environ: Mapping[str, str], work: str) -> None:
    """Collect the change in the directory *work* for the other checks, and print what it is."""
    change = changes.collect(os.getcwd(), work, environ.get("base", ""), environ)
    added = sum(len(file.added) for file in change.files)
    deleted = sum(file.deleted for file in change.files)
    print(f"{text.counted(len(change.files), 'file')}, +{added} -{deleted} lines since {change.called}")
    for file in change.files[:_MOST_FILES]:
        moved = f" from {shown(file.old)}" if file.old != file.path else ""
        print(f"{file.status} {shown(file.path)} +{len(file.added)} -{file.deleted}{moved}")
    if len(change.files) > _MOST_FILES:
        print(f"and {len(change.files) - _MOST_FILES} more files")


def _check(name: str, environ: Mapping[str, str], change: Change) -> int:
    """Run the check called *name* on the change, and print its result. Return the exit status: 1 if there are serious
    findings and the workflow's variable `strict` is set, and otherwise 0.
    """
    review = checks.Review(change, environ)
    print(checks.CHECKS[name](review))
    ordered = sorted(review.findings, key=lambda finding: (WEIGHTS.index(finding.weight), finding.path, finding.line))
    for finding in ordered[:_MOST_FINDINGS]:
        print(finding)
    if left_out := ordered[_MOST_FINDINGS:]:  # the report reads this row as a finding of the greatest weight left out
        print(f"{left_out[0].weight} and {len(left_out)} more findings")
    for fact in review.facts:
        print(fact)
    for rule, paths in review.in_data.items():
        print(f"in test data, where it may be meant: {rule} in {text.listed([shown(path) for path in paths], 3)}")
    if review.accepted:
        print(f"{review.accepted} accepted by {ALLOWED_FILE} or a comment")
    if environ.get("strict", "") in checks.YES and any(finding.weight == SERIOUS for finding in ordered):
        print("serious findings, and strict=yes", file=sys.stderr)
        return 1
    return 0


def _try(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Test a patch, and print which tests ran and which fail because of the patch. Return 1 if any fails, else 0."""
    reports: list[str] = []
    patch, is_applied = arguments[0], arguments[1:] == ["there"]
    failures = own_tools.try_patch(os.getcwd(), patch, environ["TEAMS_WORK"], environ, is_applied, reports.append)
    print("; ".join(reports) or "no test of these files was found")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Run the check that the first of *arguments* names, and print its result. Return the exit status."""
    name = arguments[0]
    try:
        if name == "verdict":
            print(findings.report(environ["TEAMS_RESULTS"], linters.missing()), end="")
            return 0
        if name == "try":
            return _try(arguments[1:], environ)
        work = os.path.join(environ["TEAMS_WORK"], "review")
        if name == "change":
            _collect(environ, work)
            return 0
        return _check(name, environ, changes.load(work))
    except (GitFailed, ToolFailed) as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:], os.environ))
