"""The checks by name: what each looks at, and in a line what it did."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter

from teams_cli import text
from teams_cli.extensions.review import change as changes
from teams_cli.extensions.review import (
    configured,
    data_files,
    exports,
    imports,
    kinds,
    python_flow,
    python_lint,
    script_lint,
    trials,
)
from teams_cli.extensions.review.change import Change, Git, content
from teams_cli.extensions.review.findings import ALLOWED_FILE, NOTE, SERIOUS, WARNING, Finding, allowed_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Check = Callable[[str, list[str]], Iterable[Finding]]
    "A check looks at these files in that tree."
    Row = tuple[re.Pattern[str], str, str, str]
    from collections.abc import Callable, Iterable, Mapping


_MARK = re.compile(r"^(<{7}|>{7}|\|{7})( |$)|^={7}$")
_STOPS = {
    ".rb": re.compile(r"^\s*(binding\.(pry|irb)|byebug|debugger)\b"),
    ".php": re.compile(r"\b(var_dump|dd|die)\s*\("),
    ".vue": re.compile(r"^\s*debugger\b"),
    ".svelte": re.compile(r"^\s*debugger\b"),
    ".go": re.compile(r"\bruntime\.Breakpoint\(|\bspew\.Dump\("),
    ".rs": re.compile(r"\b(dbg|todo)!\s*\("),
}
_REMAINS = re.compile(r"(\.(orig|rej|bak|swp|swo|tmp)|~|\.DS_Store|Thumbs\.db|\.py[co])$|(^|/)(__pycache__|\.idea)/")
_PRIVATE = re.compile(
    r"(^|/)(\.env(\.(local|prod(uction)?))?|id_(rsa|dsa|ecdsa|ed25519)|\.netrc|\.pgpass|\.npmrc|\.pypirc)$"
)
OPEN = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b.{0,80}")


def check_leftovers(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Marks of a merge, and statements at which a program stops."""
    for path in paths:
        rows = content(tree, path).splitlines()
        yield from _marks(path, rows)
        if stops := _STOPS.get(os.path.splitext(path)[1]):
            for number, row in enumerate(rows, 1):
                if found := stops.search(row):
                    yield Finding(WARNING, path, number, f"left from debugging: `{found[0].strip()}`", "debugging")


def _marks(path: str, rows: list[str]) -> Iterator[Finding]:
    """A conflict has a beginning and an end; one line that looks like a mark may be an underline."""
    found = [(number, row[0]) for number, row in enumerate(rows, 1) if _MARK.match(row)]
    kinds = {mark for _, mark in found}
    if {"<", ">"} <= kinds:
        for number, mark in found:
            if mark == "<":
                yield Finding(SERIOUS, path, number, "a conflict was not resolved", "conflict")
    elif kinds - {"="}:
        yield Finding(WARNING, path, min(n for n, mark in found if mark != "="), "the mark of a conflict", "conflict")


def odd_files(names: list[str]) -> Iterator[Finding]:
    """New files that do not belong into a repository."""
    for name in names:
        if _PRIVATE.search(name):
            yield Finding(WARNING, name, 0, "such files hold secrets; is it meant for everybody?", "private-file")
        elif _REMAINS.search(name):
            yield Finding(NOTE, name, 0, "such files are left behind by tools", "remains")


def open_ends(tree: str, path: str, lines: frozenset[int]) -> Iterator[str]:
    """What the new lines say is still to be done."""
    for number, row in enumerate(content(tree, path).splitlines(), 1):
        if number in lines and (found := OPEN.search(row)):
            yield f"{path}:{number}: {found[0].strip()}"


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


_TRUST = "anybody in between can read and change the traffic"
_PYTHON: tuple[Row, ...] = (
    (re.compile(r"\.verify\s*=\s*False|\bverify_ssl\s*=\s*False|\bssl\s*=\s*False"), SERIOUS, "no-verify", _TRUST),
    (re.compile(r"\bcheck_hostname\s*=\s*False|=\s*ssl\.CERT_NONE|\(ssl\.CERT_NONE"), SERIOUS, "no-verify", _TRUST),
    (re.compile(r"[\"']verify_signature[\"']\s*:\s*False"), SERIOUS, "no-verify", "anybody can make such a token"),
    (re.compile(r"^DEBUG\s*=\s*True\b"), NOTE, "debug", "errors show the program's inside to everybody"),
)
_SCRIPT: tuple[Row, ...] = (
    (
        re.compile(r"\brejectUnauthorized\s*:\s*false|NODE_TLS_REJECT_UNAUTHORIZED['\"\]]*\s*=\s*['\"]?0"),
        SERIOUS,
        "no-verify",
        _TRUST,
    ),
    (
        re.compile(
            r"\.(inner|outer)HTML\s*\+?=(?!=)\s*(?!['\"`][^$+]*['\"`]\s*;?\s*$)"
            r"|\.insertAdjacentHTML\([^,]*,\s*(?!['\"`][^$+]*['\"`]\s*\))"
        ),
        WARNING,
        "inner-html",
        "what users enter becomes part of the page",
    ),
    (re.compile(r"\bdocument\.write(ln)?\("), WARNING, "document-write", "what users enter becomes part of the page"),
    (
        re.compile(r"\b(exec|execSync)\(\s*(`[^`]*\$\{|[\"'][^\"']*[\"']\s*\+)"),
        SERIOUS,
        "command",
        "whoever can choose a part of the command runs any",
    ),
    (
        re.compile(
            r"(?i)(`\s*(select|insert|update|delete)\b[^`]*\$\{|[\"']\s*(select|insert|update|delete)\b[^\"']*[\"']\s*\+)"
        ),
        SERIOUS,
        "sql",
        "whoever can choose a part of the query runs any; give parameters",
    ),
    (
        re.compile(r"(?i)\b\w*(token|secret|passw|nonce|salt|session|otp)\w*\s*[:=][^=].*\bMath\.random\("),
        WARNING,
        "random",
        "it can be foreseen; use crypto",
    ),
)


def check_lines(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Lines of Python, JavaScript and TypeScript that no linter here knows; tests may do such things."""
    for path in paths:
        rows = _PYTHON if kinds.is_python(path) else _SCRIPT
        for number, line in enumerate([] if kinds.is_test(path) else content(tree, path).splitlines(), 1):
            if line.lstrip().startswith(("#", "//", "*")):
                continue
            for pattern, weight, rule, why in rows:
                if found := pattern.search(line):
                    yield Finding(weight, path, number, f"`{found[0].strip()[:60]}`: {why}", rule)


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
    review.compare(script_lint.check_parsing, script_lint.wanted)
    review.compare(script_lint.syntax, review.is_shell)
    review.compare(script_lint.check({}), kinds.is_script)
    counts = [
        (review.count(data_files.is_data), "data"),
        (review.count(kinds.is_python), "Python"),
        (review.count(kinds.is_script), "JavaScript or TypeScript"),
        (review.count(review.is_shell), "shell"),
    ]
    version = ".".join(map(str, sys.version_info[:2]))
    said = ", ".join(_files(count, kind) for count, kind in counts if count)
    return f"parsed {said} (Python {version}, {python_lint.version('oxlint')})" if said else "no file of a known form"


def names(review: Review) -> str:
    """Names that are not defined, not used, or were removed and are still used."""
    review.compare(python_lint.check(python_lint.NAMES), kinds.is_python)
    review.compare(script_lint.check(script_lint.NAMES), kinds.is_script)
    review.add(imports.removed_findings(review.change, review.git))
    review.add(exports.findings(review.change, review.git))
    review.add(imports.findings(review.change, imports.python_files(review.git)))
    review.add(imports.script_findings(review.change, review.git))
    return f"names in {_linted(review)}; uses of what was removed in all Python files"


def mistakes(review: Review) -> str:
    """What is most likely not meant so."""
    review.compare(python_lint.check(python_lint.MISTAKES), kinds.is_python)
    review.compare(python_flow.check, kinds.is_python)
    review.compare(script_lint.check(script_lint.MISTAKES), kinds.is_script)
    review.compare(script_lint.check_shell, review.is_shell)
    return _linted(review)


def _linted(review: Review) -> str:
    counts = [
        (review.count(kinds.is_python), "Python", "ruff"),
        (review.count(kinds.is_script), "JavaScript or TypeScript", "oxlint"),
        (review.count(review.is_shell), "shell", "shellcheck"),
    ]
    said = [f"{_files(count, kind)} ({python_lint.version(name)})" for count, kind, name in counts if count]
    return ", ".join(said) or "no file of a language that is known here"


def dangers(review: Review) -> str:
    """What others could abuse."""
    review.compare(python_lint.check(python_lint.DANGERS), kinds.is_python)
    review.compare(script_lint.check(script_lint.DANGERS), kinds.is_script)
    review.compare(script_lint.dangers, lambda path: review.is_shell(path) or kinds.has_commands(path))
    review.compare(data_files.check_github_workflows, kinds.is_github_workflow)
    review.compare(check_lines, lambda path: kinds.is_python(path) or kinds.is_script(path))
    return f"what runs foreign code, trusts strangers or foreign data, in {_linted(review)}"


def secrets_in(review: Review) -> str:
    """Passwords, tokens and keys."""
    review.compare(data_files.check_secrets, lambda _: True)
    count = _files(review.count(lambda _: True), "text")
    return f"{count} searched for {len(data_files.KNOWN)} kinds of secrets and for passwords"


def leftovers_in(review: Review) -> str:
    """What was left behind."""
    review.compare(check_leftovers, lambda _: True)
    review.compare(python_lint.check(python_lint.LEFTOVERS), kinds.is_python)
    review.compare(python_flow.left_prints, kinds.is_python)
    review.compare(script_lint.check(script_lint.LEFTOVERS), kinds.is_script)
    new = [file.path for file in review.change.files if file.status == "A"]
    review.add(odd_files(new))
    tree = review.change.head_tree
    found = [said for file in review.change.files for said in open_ends(tree, file.path, file.lines)]
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
