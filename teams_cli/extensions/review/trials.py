"""Tests of what changed, run on copies: now, and where one fails, on the code as it was before."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

from teams_cli import text
from teams_cli.extensions.review import change as changes
from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change, Git, GitFailed, content
from teams_cli.extensions.review.findings import SERIOUS, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_MOST_FILES = 30
_LARGEST = 200 << 20
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - (.*))?$", re.MULTILINE)
_TAP = re.compile(r"^\s*not ok \d+ - (.+)$|^\s*[\u2716\u25cf] (.+?)(?: \([\d.]+ ?ms\))?$", re.MULTILINE)
_MISSING = re.compile(
    r"(?:ModuleNotFoundError|ImportError)\W+No module named '?([\w.]+)|Cannot find (?:module|package) '([^']+)'"
)


class Suite:
    """Tests that one command runs: which files, and what their failures look like."""

    def __init__(self, name: str, words: list[str], files: list[str], failed: re.Pattern[str]) -> None:
        self.name = name
        self.words = words
        self.files = files
        self.failed = failed


class SuiteOutcome:
    """The result of a suite: the failed tests with their reasons, or why it could not run."""

    def __init__(self, failed: dict[str, str], problem: str = "") -> None:
        self.failed = failed
        self.problem = problem


def suites(change: Change, git: Git, environ: Mapping[str, str]) -> list[Suite]:
    """The tests of the changed modules, and those that changed themselves, by the runners that are there."""
    files = git.names("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    found = [_python(change, files, environ), _scripts(change, files), _go(change)]
    return [suite for suite in found if suite]


def _python(change: Change, files: list[str], environ: Mapping[str, str]) -> Suite | None:
    tests = [path for path in files if re.search(r"(^|/)(test_[^/]*|[^/]*_test)\.py$", path)]
    chosen = _chosen(change, tests, kinds.PYTHON, _mentions_module)
    if not chosen:
        return None
    for python in _interpreters(change.repo, environ):
        looked = [python, "-c", "import pytest"]
        if subprocess.run(looked, stdin=subprocess.DEVNULL, capture_output=True, cwd=change.work).returncode == 0:
            words = ["-m", "pytest", "-q", "--tb=line", "-rfE", "--no-header", "-p", "no:cacheprovider", "--color=no"]
            return Suite("pytest", [python, *words, "--", *chosen], chosen, _FAILED)
    return Suite("pytest", [], chosen, _FAILED)


def _interpreters(repo: str, environ: Mapping[str, str]) -> list[str]:
    """The Pythons that may have what the tests need: the repository's own, the user's, ours."""
    places = [os.path.join(repo, name, "bin/python") for name in (".venv", "venv", "env")]
    if environ.get("VIRTUAL_ENV"):
        places.append(os.path.join(environ["VIRTUAL_ENV"], "bin/python"))
    found = [*places, shutil.which("python3", path=environ.get("PATH")) or "", sys.executable]
    return [place for place in found if os.access(place, os.X_OK)]


def _mentions_module(text: str, path: str) -> bool:
    name = os.path.basename(path.rpartition(".")[0].removesuffix("/__init__"))
    return bool(re.search(rf"^\s*(?:from|import)\s[^#\n]*\b{re.escape(name)}\b", text, re.MULTILINE))


def _mentions_script(text: str, path: str) -> bool:
    stem = re.escape(os.path.basename(path).partition(".")[0])
    return bool(re.search(rf"""(?:from|require\(|import\()\s*["'][^"']*\b{stem}(?:\.\w+)?["']""", text))


def _chosen(change: Change, tests: list[str], ends: tuple[str, ...], mentions: Callable[[str, str], bool]) -> list[str]:
    """The tests that changed, those that bear the name of what changed, and those that import it."""
    changed = [file.path for file in change.files if file.status != "D"]
    sources = [path for path in changed if path.endswith(ends) and not kinds.is_test(path)]
    stems = {os.path.basename(path).partition(".")[0].strip("_") for path in sources}
    chosen = [path for path in tests if path in changed]
    for path in tests:
        bare = re.sub(r"^test_|_test$|[._-](test|spec)$", "", os.path.splitext(os.path.basename(path))[0])
        if path not in chosen and (
            bare in stems or any(mentions(content(change.repo, path), name) for name in sources)
        ):
            chosen.append(path)
    return chosen[:_MOST_FILES]


def _scripts(change: Change, files: list[str]) -> Suite | None:
    tests = [path for path in files if re.search(r"[._-](test|spec)\.[mc]?[jt]sx?$|(^|/)__tests__/.*\.[jt]sx?$", path)]
    chosen = _chosen(change, tests, kinds.SCRIPT, _mentions_script)
    if not chosen:
        return None
    for name, words in (("jest", ["--ci", "--colors=false"]), ("vitest", ["run", "--reporter=tap"])):
        place = os.path.join(change.repo, "node_modules/.bin", name)
        if os.access(place, os.X_OK):
            return Suite(name, [place, *words, *chosen], chosen, _TAP)
    node = shutil.which("node")
    plain = [path for path in chosen if "node:test" in content(change.repo, path)]
    return (
        Suite("node --test", [node, "--test", "--test-reporter=tap", *plain], plain, _TAP) if node and plain else None
    )


def _go(change: Change) -> Suite | None:
    go = shutil.which("go")
    places = {os.path.dirname(file.path) for file in change.files if file.path.endswith(".go") and file.status != "D"}
    tested = sorted(
        place for place in places if any(n.endswith("_test.go") for n in os.listdir(os.path.join(change.repo, place)))
    )
    if not go or not tested:
        return None
    words = [go, "test", *(f"./{place}" for place in tested)]
    return Suite("go test", words, tested, re.compile(r"^\s*--- FAIL: (\S+)", re.MULTILINE))


def findings(
    change: Change, git: Git, environ: Mapping[str, str], seconds: float, report: Callable[[str], None]
) -> Iterator[Finding]:
    """Tests that fail now and did not before; what was run, and what could not be, goes to *report*."""
    for suite in suites(change, git, environ):
        if not suite.words:
            report(f"{len(suite.files)} test files were found and not run: pytest is not installed")
            continue
        now = _run(suite, _copy(change, git, "now"), environ, seconds)
        if now.problem:
            report(f"{suite.name} of {text.listed(suite.files, 3)} could not be run: {now.problem}")
            continue
        old = _run(suite, _copy(change, git, "before"), environ, seconds) if now.failed else SuiteOutcome({})
        fresh = {name: why for name, why in now.failed.items() if name not in old.failed and not old.problem}
        outcome = f"{len(now.failed)} failed, {len(fresh)} of them since this change" if now.failed else "all passed"
        report(f"{suite.name} ran {text.listed(suite.files, 3)}: {outcome}")
        for name, why in fresh.items():
            path = name.partition("::")[0]
            path = path if path in suite.files else suite.files[0]
            yield Finding(SERIOUS, path, 0, f"a test fails since this change: {name}: {why}", "test")


def _copy(change: Change, git: Git, when: str) -> str:
    """A copy of the repository as it is, or as it was, so that tests leave no trace in the checkout."""
    place = os.path.join(change.work, f"trial-{when}")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    if when == "before":
        try:
            archive = git("archive", "--format=tar", change.base)
        except GitFailed:
            return place
        subprocess.run(["tar", "-x", "-C", place], input=archive, check=False, capture_output=True)
    else:
        copy_checkout(git, change.repo, place)
    if os.path.isdir(modules := os.path.join(change.repo, "node_modules")):
        os.symlink(modules, os.path.join(place, "node_modules"))
    return place


def copy_checkout(git: Git, repo: str, place: str) -> None:
    """Copy what git tracks or would, as it is now, less what is very large."""
    left = _LARGEST
    for name in git.names("ls-files", "-z", "--cached", "--others", "--exclude-standard"):
        source, target = os.path.join(repo, name), os.path.join(place, name)
        if not os.path.isfile(source) or (left := left - os.path.getsize(source)) < 0:
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def _run(suite: Suite, place: str, environ: Mapping[str, str], seconds: float) -> SuiteOutcome:
    status, output = run(suite.words, place, environ, seconds)
    if status is None:
        return SuiteOutcome({}, f"it took longer than {seconds:.0f} s")
    failed = {}
    for found in suite.failed.finditer(output):
        words = [word for word in found.groups() if word]
        failed[words[0].strip()] = " ".join((words[1] if len(words) > 1 else "see its output").split())[:200]
    if (missing := _MISSING.search(output)) and status:
        name = next(word for word in missing.groups() if word)
        if not os.path.exists(os.path.join(place, name.split(".")[0])):
            return SuiteOutcome({}, f"{name} is not installed")
    if status and not failed:
        last = output.strip().splitlines()
        return SuiteOutcome({}, last[-1][:200] if last else f"status {status}")
    return SuiteOutcome(failed)


def run(words: list[str], place: str, environ: Mapping[str, str], seconds: float) -> tuple[int | None, str]:
    """The status and output of tests in that directory; no status when they took too long. All they started ends."""
    around = {name: value for name, value in environ.items() if not name.startswith(("TEAMS_", "OPENCODE_"))}
    mark = {"TEAMS_RUN_ID": environ["TEAMS_RUN_ID"]} if "TEAMS_RUN_ID" in environ else {}
    tops = [place, os.path.join(place, "src"), os.path.join(place, "lib")]
    path = os.pathsep.join([top for top in tops if os.path.isdir(top)])
    more = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "CI": "1", "NO_COLOR": "1", **mark}
    process = subprocess.Popen(
        words,
        cwd=place,
        env={**around, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=seconds)[0]
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


_PLAIN = ("-c", "user.name=teams", "-c", "user.email=teams@localhost", "-c", "commit.gpgsign=false")


def try_out(
    repo: str,
    patch: str,
    work: str,
    environ: Mapping[str, str],
    seconds: float,
    report: Callable[[str], None],
    there: bool = False,
) -> list[Finding]:
    """The tests that fail with the patch and did not without; what was run goes to *report*.

    With *there* the checkout has the patch already, so the copy is taken back before it is applied again.

    Raises:
        GitFailed: The patch does not fit.
    """
    copy = os.path.join(work, "tried")
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    copy_checkout(Git(repo, environ), repo, copy)
    git = Git(copy, _with_their_packages(repo, environ))
    git("init", "-q")
    _leave_packages(repo, copy)
    if there:
        git("apply", "--reverse", patch)
    git("add", "-A", "-f", "--", ".", ":!node_modules")
    git(*_PLAIN, "commit", "-q", "--no-verify", "--allow-empty", "-m", "before")
    git("apply", patch)
    change = changes.collect(copy, os.path.join(work, "tried-work"), "HEAD", git.environ)
    return list(findings(change, git, git.environ, seconds, report))


def _with_their_packages(repo: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which the repository's own Python is found, which is not in the copy."""
    places = [os.path.join(repo, name) for name in (".venv", "venv", "env")]
    own = next((place for place in places if os.access(os.path.join(place, "bin/python"), os.X_OK)), "")
    return {**environ, **({"VIRTUAL_ENV": own} if own else {})}


def _leave_packages(repo: str, copy: str) -> None:
    """Have the packages of node, which are not in the copy, found there all the same."""
    if os.path.isdir(modules := os.path.join(repo, "node_modules")) and not os.path.exists(f"{copy}/node_modules"):
        os.symlink(modules, os.path.join(copy, "node_modules"))
        with open(os.path.join(copy, ".git/info/exclude"), "a", encoding="utf-8") as file:
            file.write("/node_modules\n")
