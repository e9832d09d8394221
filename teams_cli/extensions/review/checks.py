"""The checks by name: what each looks at, and in a line what it did."""

from __future__ import annotations

import sys

from teams_cli import text
from teams_cli.extensions.review import (
    configured,
    data_files,
    exports,
    github_workflows,
    imports,
    kinds,
    leftovers,
    lines,
    parsing,
    python_flow,
    python_lint,
    python_reading,
    removed,
    ruff_rules,
    script_imports,
    script_lint,
    secrets,
    shell_lint,
    tools,
    trials,
)
from teams_cli.extensions.review.change import Change
from teams_cli.extensions.review.comparing import new_findings
from teams_cli.extensions.review.findings import ALLOWED_FILE, NOTE, Finding, allowed_in
from teams_cli.extensions.review.git import Git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from teams_cli.extensions.review.comparing import Check


class Review:
    """One check at work on a change: its findings, and facts that are none."""

    def __init__(self, change: Change, environ: Mapping[str, str]) -> None:
        self.change = change
        self.environ = environ
        self.git = Git(change.repo, environ)
        self.allowed = allowed_in(change.repo)
        self.findings: list[Finding] = []
        self.facts: list[str] = []
        self.in_data: dict[str, list[str]] = {}
        self.accepted = 0

    def compare(self, check: Check, wanted: Callable[[str], bool]) -> None:
        """Add what the check finds now and did not find before."""
        self.add(new_findings(self.change, check, wanted))

    def add(self, found: Iterable[Finding]) -> None:
        """Add findings that are new; what stands in test data, which may be wrong on purpose, is told apart."""
        for finding in found:
            if self.allowed.covers(finding):
                self.accepted += 1
            elif kinds.is_test_data(finding.path):
                self.in_data.setdefault(finding.rule, []).append(finding.path)
            else:
                self.findings.append(finding)

    def told(self) -> list[str]:
        """What is worth a line though it is no finding."""
        apart = [
            f"in test data, where it may be meant: {rule} in {text.listed(paths, 3)}"
            for rule, paths in self.in_data.items()
        ]
        accepted = [f"{self.accepted} accepted by {ALLOWED_FILE} or a comment"] if self.accepted else []
        return [*self.facts, *apart, *accepted]

    def count(self, wanted: Callable[[str], bool]) -> int:
        """How many of the changed files are of that kind."""
        return sum(wanted(path) for path in self.change.readable())

    def is_shell(self, path: str) -> bool:
        """Whether a changed file is a shell script."""
        return kinds.is_shell(path, self.change.head_tree)

    def number(self, name: str, default: float) -> float:
        """A variable of the workflow that is a number."""
        try:
            return float(self.environ.get(name, "") or default)
        except ValueError:
            return default


def _files(count: int, kind: str) -> str:
    return text.counted(count, f"{kind} file")


def parse(review: Review) -> str:
    """Files that their own language can't read."""
    review.compare(parsing.check, parsing.wanted)
    review.compare(shell_lint.syntax, review.is_shell)
    review.compare(script_lint.check({}), kinds.is_script)
    counts = [
        (review.count(data_files.is_data), "data"),
        (review.count(kinds.is_python), "Python"),
        (review.count(kinds.is_script), "JavaScript or TypeScript"),
        (review.count(review.is_shell), "shell"),
    ]
    version = ".".join(map(str, sys.version_info[:2]))
    said = ", ".join(_files(count, kind) for count, kind in counts if count)
    return f"parsed {said} (Python {version}, {tools.version('oxlint')})" if said else "no file of a known form"


def names(review: Review) -> str:
    """Names that are not defined, not used, or were removed and are still used."""
    review.compare(python_lint.check(ruff_rules.NAMES), kinds.is_python)
    review.compare(script_lint.check(script_lint.NAMES), kinds.is_script)
    review.add(removed.findings(review.change, review.git))
    review.add(exports.findings(review.change, review.git))
    review.add(imports.findings(review.change, removed.python_files(review.git)))
    review.add(script_imports.findings(review.change, review.git))
    return f"names in {_linted(review)}; uses of what was removed in all Python files"


def mistakes(review: Review) -> str:
    """What is most likely not meant so."""
    review.compare(python_lint.check(ruff_rules.MISTAKES), kinds.is_python)
    review.compare(python_flow.check, kinds.is_python)
    review.compare(script_lint.check(script_lint.MISTAKES), kinds.is_script)
    review.compare(shell_lint.check, review.is_shell)
    return _linted(review)


def _linted(review: Review) -> str:
    counts = [
        (review.count(kinds.is_python), "Python", "ruff"),
        (review.count(kinds.is_script), "JavaScript or TypeScript", "oxlint"),
        (review.count(review.is_shell), "shell", "shellcheck"),
    ]
    said = [f"{_files(count, kind)} ({tools.version(name)})" for count, kind, name in counts if count]
    return ", ".join(said) or "no file of a language that is known here"


def dangers(review: Review) -> str:
    """What others could abuse."""
    review.compare(python_lint.check(ruff_rules.DANGERS), kinds.is_python)
    review.compare(script_lint.check(script_lint.DANGERS), kinds.is_script)
    review.compare(shell_lint.dangers, lambda path: review.is_shell(path) or kinds.has_commands(path))
    review.compare(github_workflows.check, kinds.is_github_workflow)
    review.compare(lines.check, lambda path: kinds.is_python(path) or kinds.is_script(path))
    return f"what runs foreign code, trusts strangers or foreign data, in {_linted(review)}"


def secrets_in(review: Review) -> str:
    """Passwords, tokens and keys."""
    review.compare(secrets.check, lambda _: True)
    count = _files(review.count(lambda _: True), "text")
    return f"{count} searched for {len(secrets.KNOWN)} kinds of secrets and for passwords"


def leftovers_in(review: Review) -> str:
    """What was left behind."""
    review.compare(leftovers.check, lambda _: True)
    review.compare(python_lint.check(ruff_rules.LEFTOVERS), kinds.is_python)
    review.compare(python_reading.left_prints, kinds.is_python)
    review.compare(script_lint.check(script_lint.LEFTOVERS), kinds.is_script)
    new = [file.path for file in review.change.files if file.status == "A"]
    review.add(leftovers.odd_files(new))
    tree = review.change.head_tree
    found = [said for file in review.change.files for said in leftovers.open_ends(tree, file.path, file.lines)]
    review.facts += [f"still to be done by its own word: {said}" for said in found[:20]]
    return f"marks of a merge, debugging, forgotten files; {len(found)} new TODO, FIXME, XXX or HACK"


def linters(review: Review) -> str:
    """The repository's own linters."""
    if review.environ.get("linters", "yes") not in ("yes", "true", "1"):
        return "left out: linters=no"
    told: list[str] = []
    review.add(configured.findings(review.change, review.number("seconds", 60), told.append))
    return "; ".join(told) or "the repository has none configured for these files"


def tests(review: Review) -> str:
    """Tests of the modules that changed."""
    if review.environ.get("tests", "yes") not in ("yes", "true", "1"):
        return "left out: tests=no"
    told: list[str] = []
    seconds = review.number("seconds", 60)
    review.add(trials.findings(review.change, review.git, review.environ, seconds, told.append))
    return "; ".join(told) or "no test of these files was found"


def size(review: Review) -> str:
    """How much there is to review, and files that are too large for a repository."""
    limit, rows = review.number("max_kb", 500), review.change.files
    large = [row for row in rows if row.size > limit * 1024]
    what = "is large for a repository"
    review.add(Finding(NOTE, row.path, 0, f"{row.size / 1024:.0f} KiB {what}", "large") for row in large)
    churn = sum(len(row.added) + row.deleted for row in rows)
    unread = sum(row.size > 1 << 20 for row in rows)
    if churn > 1000:
        review.facts.append(f"{churn} lines are much to review at once; could it be split?")
    if unread:
        review.facts.append(f"{_files(unread, 'large')} not read line by line")
    largest = max([row.size for row in rows], default=0)
    count = text.counted(len(rows), "file")
    return f"{count}, {churn} lines added or deleted; the largest file has {max(largest, 0) / 1024:.0f} KiB"


CHECKS: dict[str, Callable[[Review], str]] = {
    "parse": parse,
    "names": names,
    "mistakes": mistakes,
    "dangers": dangers,
    "secrets": secrets_in,
    "leftovers": leftovers_in,
    "linters": linters,
    "tests": tests,
    "size": size,
}
