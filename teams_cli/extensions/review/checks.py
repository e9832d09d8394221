"""The checks by name. Each check adds findings to a review, and returns a line that says what it did."""

from __future__ import annotations

import re
import sys
from collections import Counter
from functools import partial

from teams_cli import text
from teams_cli.extensions.review import data_files, imports, kinds, linters, own_tools
from teams_cli.extensions.review import lines as changed_lines
from teams_cli.extensions.review.change import LARGEST, Change, Git, content, lines_of
from teams_cli.extensions.review.findings import NOTE, Allowed, Finding, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from teams_cli.extensions.review.linters import Check

YES = ("yes", "true", "1")
"""Values of a workflow's variable that mean yes."""


def _find(check: Check, tree: str, paths: list[str]) -> Iterator[Finding]:
    """Yield the findings of *check* in the files at *paths*. Each finding gets the text of its line."""
    if not paths:
        return
    for finding in check(tree, paths):
        file_lines = lines_of(content(tree, finding.path))
        finding.text = file_lines[finding.line - 1].strip() if 0 < finding.line <= len(file_lines) else ""
        yield finding


def _key(finding: Finding) -> tuple[str, str]:
    """Return two strings by which a finding is recognised even if its line has moved: its rule and the text of the
    line. If the finding depends on other lines, its message without numbers takes the place of the line's text.
    """
    if finding.anywhere:
        return finding.rule, re.sub(r"\d+", "", finding.message)
    return finding.rule, finding.text


class Review:
    """The work of one check on a change: its findings, and facts for the report. `in_data` has, for each rule, the
    paths of the test data in which it found something. `accepted` is the number of findings that the repository
    accepts.
    """

    def __init__(self, change: Change, environ: Mapping[str, str]) -> None:
        self.change = change
        self.environ = environ
        self.git = Git(change.repo, environ)
        self.allowed = Allowed(change.repo)
        self.findings: list[Finding] = []
        self.facts: list[str] = []
        self.in_data: dict[str, list[str]] = {}
        self.accepted = 0

    def compare(self, check: Check, is_wanted: Callable[[str], bool]) -> None:
        """Add the defects that *check* finds in the changed files now, and did not find before the change. *is_wanted*
        says whether a path should be checked.

        A finding is added if it is on a changed line, or if a change elsewhere in the file can cause it, such as the
        removal of a definition. A finding that the old file had is not new, even if its line moved.
        """
        head, base = self.change.head_tree, self.change.base_tree
        paths = [path for path in self.change.readable() if is_wanted(path) and not kinds.is_foreign(path, head)]
        old_paths = [path for path in paths if content(base, path)]
        old_counts = Counter(_key(finding) for finding in _find(check, base, old_paths))
        findings = list(_find(check, head, paths))
        # Of equal findings, those in changed lines are matched with old ones first: the line had the defect before.
        findings.sort(key=self._is_in_changed_line, reverse=True)
        for finding in findings:
            is_old = old_counts[_key(finding)] > 0
            old_counts[_key(finding)] -= 1
            if not is_old and (finding.anywhere or self._is_in_changed_line(finding)):
                self.add([finding])

    def _is_in_changed_line(self, finding: Finding) -> bool:
        file = self.change.file(finding.path)
        if file is None:
            return False
        return finding.line in file.lines if finding.line else bool(file.added)  # line 0 stands for the whole file

    def add(self, findings: Iterable[Finding]) -> None:
        """Add the findings. Findings that the repository accepts are only counted. Findings in test data are put into
        `in_data` instead, because test data may be wrong on purpose.
        """
        for finding in findings:
            if self.allowed.covers(finding):
                self.accepted += 1
            elif kinds.is_test_data(finding.path):
                self.in_data.setdefault(finding.rule, []).append(finding.path)
            else:
                self.findings.append(finding)

    def counted(self, *rows: tuple[Callable[[str], bool], str, str]) -> str:
        """Return a text with the number of changed files of each kind, such as shell files, and the version of the tool
        that reads them. Each of *rows* has a function that says whether a path is of the kind, the name of the kind,
        and the tool or "". Return "" if no changed file is of these kinds.
        """
        paths = self.change.readable()
        phrases = []
        for is_of_kind, kind, tool in rows:
            if count := sum(map(is_of_kind, paths)):
                version = f" ({linters.version(tool)})" if tool else ""
                phrases.append(f"{text.counted(count, f'{kind} file')}{version}")
        return ", ".join(phrases)

    def is_shell(self, path: str) -> bool:
        """Return whether a changed file is a shell script."""
        return kinds.is_shell(path, self.change.head_tree)

    def lint(self, subject: str) -> None:
        """Add what ruff and oxlint find with the rules of *subject*."""
        self.compare(partial(linters.check_python, subject), kinds.is_python)
        self.compare(partial(linters.check_scripts, subject), kinds.is_script)

    def linted(self) -> str:
        """Return a text that says how many changed files are read by each linter."""
        rows = [(kinds.is_python, "Python", "ruff"), (kinds.is_script, "JavaScript or TypeScript", "oxlint")]
        return self.counted(*rows, (self.is_shell, "shell", "shellcheck")) or "no file in a supported language"

    def number(self, name: str, default: float) -> float:
        """Return the value of the workflow's variable *name* as a number. Return *default* if the value is empty or not
        a number.
        """
        try:
            return float(self.environ.get(name, "") or default)
        except ValueError:
            return default


def parse(review: Review) -> str:
    """Find files that can't be parsed. Return a line that says which files were parsed."""
    review.compare(data_files.check_parsing, lambda path: kinds.is_python(path) or data_files.is_data(path))
    review.compare(linters.shell_syntax, review.is_shell)
    review.compare(partial(linters.check_scripts, "syntax"), kinds.is_script)
    rows = [(data_files.is_data, "data", ""), (kinds.is_python, "Python", "")]
    rows += [(kinds.is_script, "JavaScript or TypeScript", "oxlint"), (review.is_shell, "shell", "shellcheck")]
    parsed = review.counted(*rows)
    major, minor = sys.version_info[:2]
    return f"parsed {parsed}, as Python {major}.{minor}" if parsed else "no file of a known form"


def names(review: Review) -> str:
    """Find names that are not defined, not used, or were removed and are still used. Return a line that says what was
    searched.
    """
    review.lint("names")
    for find in (imports.python_imports, imports.removed_exports, imports.missing_files):
        review.add(find(review.change, review.git))
    return f"names in {review.linted()}; uses of what was removed in all files"


def mistakes(review: Review) -> str:
    """Find likely mistakes in code. Return a line that says which files the linters read."""
    review.lint("mistakes")
    review.compare(linters.shell_mistakes, review.is_shell)
    return review.linted()


def dangers(review: Review) -> str:
    """Find code that runs foreign code or trusts foreign data. Return a line that says which files were searched."""
    review.lint("dangers")
    is_program = (kinds.is_python, kinds.is_script, review.is_shell, kinds.has_commands)
    review.compare(changed_lines.dangerous_lines, lambda path: any(is_kind(path) for is_kind in is_program))
    return f"searched {review.linted()} for code that runs foreign code or trusts foreign data"


def secrets(review: Review) -> str:
    """Find passwords, tokens and keys. Return a line that says what was searched."""
    review.compare(changed_lines.check_secrets, lambda _: True)
    files = text.counted(len(review.change.readable()), "text file")
    return f"{files} searched for {len(changed_lines.KNOWN)} kinds of secrets and for passwords"


def leftovers(review: Review) -> str:
    """Find conflict marks, debugging code and forgotten files, and add new marks such as TODO to the facts. Return a
    line that says what was searched for, with the number of these marks.
    """
    change = review.change
    review.compare(changed_lines.conflict_marks, lambda _: True)
    review.lint("leftovers")
    review.add(changed_lines.odd_files([file.path for file in change.files if file.status == "A"]))
    to_do = []
    for file in change.files:
        for number, row in enumerate(lines_of(content(change.head_tree, file.path)), 1):
            if number in file.lines and (mark := changed_lines.TO_DO.search(row)):
                what = " ".join(mark[0].split())
                to_do.append(f"marked as still to do: {shown(file.path)}:{number}: {what}")
    review.facts += to_do[:20]
    return f"marks of a merge, debugging, forgotten files; {len(to_do)} new TODO, FIXME, XXX or HACK"


def configured(review: Review) -> str:
    """Run the linters that the repository has configured, and add their findings to the *review*. Return a line that
    says which of them ran.
    """
    if review.environ.get("linters", "yes") not in YES:
        return "left out: linters=no"
    reports: list[str] = []
    review.add(own_tools.linter_findings(review.change, review.number("seconds", 60), reports.append))
    return "; ".join(reports) or "the repository has no linter configured for these files"


def tests(review: Review) -> str:
    """Run the tests that changed, and the tests of the modules that changed. Return a line that says what was run."""
    if review.environ.get("tests", "yes") not in YES:
        return "left out: tests=no"
    reports: list[str] = []
    seconds = review.number("seconds", 60)
    review.add(own_tools.test_findings(review.change, review.git, review.environ, seconds, reports.append))
    return "; ".join(reports) or "no test of these files was found"


def size(review: Review) -> str:
    """Measure the change, and find files that are too large for a repository. Return a line with the measurements."""
    limit = review.number("max_kb", 500) * 1024
    files = review.change.files
    for file in files:
        if file.size > limit:
            message = f"{file.size / 1024:.0f} KiB is large for a repository"
            review.add([Finding(NOTE, file.path, 0, message, "large")])
    churn = sum(len(file.added) + file.deleted for file in files)
    unread = sum(file.size > LARGEST for file in files)
    if churn > 1000:
        review.facts.append(f"{churn} lines are much to review at once; could it be split?")
    if unread:
        review.facts.append(f"{text.counted(unread, 'large file')} not read line by line")
    largest = max([0, *(file.size for file in files)])
    count = text.counted(len(files), "file")
    return f"{count}, {churn} lines added or deleted; the largest file has {largest / 1024:.0f} KiB"


CHECKS: dict[str, Callable[[Review], str]] = {
    "parse": parse,
    "names": names,
    "mistakes": mistakes,
    "dangers": dangers,
    "secrets": secrets,
    "leftovers": leftovers,
    "linters": configured,
    "tests": tests,
    "size": size,
}
