"""The checks by name. Each check adds findings to a review, and returns a line that says what it did."""

from __future__ import annotations

import re
import sys
from collections import Counter

from teams_cli import text
from teams_cli.extensions.review import data_files, imports, kinds, linters, own_tools
from teams_cli.extensions.review import lines as changed_lines
from teams_cli.extensions.review.change import Change, Git, content
from teams_cli.extensions.review.findings import ALLOWED_FILE, NOTE, Allowed, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from teams_cli.extensions.review.linters import Check

YES = ("yes", "true", "1")


def new_findings(change: Change, check: Check, is_wanted: Callable[[str], bool]) -> list[Finding]:
    """Return the defects that *check* finds in the changed files now and did not find before the change.

    A finding counts if it is on a changed line. It also counts on other lines if a change elsewhere in the file can
    cause it, such as the removal of a definition. A finding that the old file had too is old, even if its line moved.
    """
    paths = [path for path in change.readable() if is_wanted(path) and not kinds.is_foreign(path, change.head_tree)]
    old_paths = [path for path in paths if content(change.base_tree, path)]
    old = Counter(_key(finding) for finding in _with_texts(check, change.base_tree, old_paths))
    new = []
    for finding in sorted(_with_texts(check, change.head_tree, paths), key=lambda f: not _is_touched(change, f)):
        if old[_key(finding)] < 1 and (finding.anywhere or _is_touched(change, finding)):
            new.append(finding)
        old[_key(finding)] -= 1
    return new


def _with_texts(check: Check, tree: str, paths: list[str]) -> Iterator[Finding]:
    """Yield the findings of *check*, each with the text of its line."""
    for finding in check(tree, paths) if paths else ():
        rows = content(tree, finding.path).splitlines()
        finding.text = rows[finding.line - 1].strip() if 0 < finding.line <= len(rows) else ""
        yield finding


def _key(finding: Finding) -> tuple[str, str]:
    """Return the identity of a finding, which stays the same when its line moves: its rule, and the text of its line.
    If the finding depends on other lines, its message takes the place of the text.
    """
    return finding.rule, re.sub(r"\d+", "", finding.what) if finding.anywhere else finding.text


def _is_touched(change: Change, finding: Finding) -> bool:
    file = change.file(finding.path)
    return bool(file and (finding.line in file.lines or (not finding.line and file.added)))


class Review:
    """The work of one check on a change: its findings, and facts for the report."""

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
        """Add the findings that *check* has now and did not have before the change."""
        self.add(new_findings(self.change, check, is_wanted))

    def add(self, findings: Iterable[Finding]) -> None:
        """Add the findings, without those that the repository accepts. Findings in test data, which may be wrong on
        purpose, are kept apart.
        """
        for finding in findings:
            if self.allowed.covers(finding):
                self.accepted += 1
            elif kinds.is_test_data(finding.path):
                self.in_data.setdefault(finding.rule, []).append(finding.path)
            else:
                self.findings.append(finding)

    def notes(self) -> list[str]:
        """Return lines with the facts, the findings in test data, and the number of accepted findings."""
        apart = [
            f"in test data, where it may be meant: {rule} in {text.listed(paths, 3)}"
            for rule, paths in self.in_data.items()
        ]
        accepted = [f"{self.accepted} accepted by {ALLOWED_FILE} or a comment"] if self.accepted else []
        return [*self.facts, *apart, *accepted]

    def counted(self, *rows: tuple[Callable[[str], bool], str, str]) -> str:
        """Return a text with the number of changed files of each kind, and the tool that reads them. Each row has a
        test for the path, the name of the kind, and the tool.
        """
        paths = self.change.readable()
        counts = [(sum(map(is_of_kind, paths)), kind, tool) for is_of_kind, kind, tool in rows]
        return ", ".join(
            f"{text.counted(count, f'{kind} file')}{tool and f' ({linters.version(tool)})'}"
            for count, kind, tool in counts
            if count
        )

    def is_shell(self, path: str) -> bool:
        """Return whether a changed file is a shell script."""
        return kinds.is_shell(path, self.change.head_tree)

    def lint(self, subject: str) -> None:
        """Add what ruff and oxlint find with the rules of *subject*."""
        self.compare(linters.check_python(subject), kinds.is_python)
        self.compare(linters.check_scripts(subject), kinds.is_script)

    def linted(self) -> str:
        """Return a text with the number of changed files that a linter reads."""
        files = [(kinds.is_python, "Python", "ruff"), (kinds.is_script, "JavaScript or TypeScript", "oxlint")]
        return self.counted(*files, (self.is_shell, "shell", "shellcheck")) or "no file in a supported language"

    def number(self, name: str, default: float) -> float:
        """Return the variable *name* of the workflow as a number, or *default* if it is empty or not a number."""
        try:
            return float(self.environ.get(name, "") or default)
        except ValueError:
            return default


def parse(review: Review) -> str:
    """Find files that can't be parsed."""
    review.compare(data_files.check_parsing, lambda path: kinds.is_python(path) or data_files.is_data(path))
    review.compare(linters.shell_syntax, review.is_shell)
    review.compare(linters.check_scripts("syntax"), kinds.is_script)
    files = [(data_files.is_data, "data", ""), (kinds.is_python, "Python", "")]
    files += [(kinds.is_script, "JavaScript or TypeScript", "oxlint"), (review.is_shell, "shell", "shellcheck")]
    parsed, (major, minor) = review.counted(*files), sys.version_info[:2]
    return f"parsed {parsed}, as Python {major}.{minor}" if parsed else "no file of a known form"


def names(review: Review) -> str:
    """Find names that are not defined, not used, or were removed and are still used."""
    review.lint("names")
    for find in (imports.python_imports, imports.removed_exports, imports.missing_files):
        review.add(find(review.change, review.git))
    return f"names in {review.linted()}; uses of what was removed in all files"


def mistakes(review: Review) -> str:
    """Find likely mistakes in code."""
    review.lint("mistakes")
    review.compare(linters.shell_mistakes, review.is_shell)
    return review.linted()


def dangers(review: Review) -> str:
    """Find code that others could abuse."""
    review.lint("dangers")
    is_program = (kinds.is_python, kinds.is_script, review.is_shell, kinds.has_commands)
    review.compare(changed_lines.dangerous_lines, lambda path: any(is_kind(path) for is_kind in is_program))
    return f"searched {review.linted()} for code that runs foreign code or trusts foreign data"


def secrets(review: Review) -> str:
    """Find passwords, tokens and keys."""
    review.compare(changed_lines.check_secrets, lambda _: True)
    files = text.counted(len(review.change.readable()), "text file")
    return f"{files} searched for {len(changed_lines.KNOWN)} kinds of secrets and for passwords"


def leftovers(review: Review) -> str:
    """Find conflict marks, debugging code and forgotten files."""
    review.compare(changed_lines.conflict_marks, lambda _: True)
    review.lint("leftovers")
    review.add(changed_lines.odd_files([file.path for file in review.change.files if file.status == "A"]))
    to_do = [
        f"{file.path}:{number}: {mark[0].strip()}"
        for file in review.change.files
        for number, row in enumerate(content(review.change.head_tree, file.path).splitlines(), 1)
        if number in file.lines and (mark := changed_lines.TO_DO.search(row))
    ]
    review.facts += [f"marked as still to do: {line}" for line in to_do[:20]]
    return f"marks of a merge, debugging, forgotten files; {len(to_do)} new TODO, FIXME, XXX or HACK"


def configured(review: Review) -> str:
    """Run the linters that the repository has configured."""
    if review.environ.get("linters", "yes") not in YES:
        return "left out: linters=no"
    ran: list[str] = []
    review.add(own_tools.linter_findings(review.change, review.number("seconds", 60), ran.append))
    return "; ".join(ran) or "the repository has no linter configured for these files"


def tests(review: Review) -> str:
    """Run the tests of the modules that changed."""
    if review.environ.get("tests", "yes") not in YES:
        return "left out: tests=no"
    ran: list[str] = []
    seconds = review.number("seconds", 60)
    review.add(own_tools.test_findings(review.change, review.git, review.environ, seconds, ran.append))
    return "; ".join(ran) or "no test of these files was found"


def size(review: Review) -> str:
    """Measure the change, and find files that are too large for a repository."""
    limit, rows = review.number("max_kb", 500), review.change.files
    large = [row for row in rows if row.size > limit * 1024]
    what = "is large for a repository"
    review.add(Finding(NOTE, row.path, 0, f"{row.size / 1024:.0f} KiB {what}", "large") for row in large)
    churn = sum(len(row.added) + row.deleted for row in rows)
    unread = sum(row.size > 1 << 20 for row in rows)
    if churn > 1000:
        review.facts.append(f"{churn} lines are much to review at once; could it be split?")
    if unread:
        review.facts.append(f"{text.counted(unread, 'large file')} not read line by line")
    largest = max([row.size for row in rows], default=0)
    count = text.counted(len(rows), "file")
    return f"{count}, {churn} lines added or deleted; the largest file has {max(largest, 0) / 1024:.0f} KiB"


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
