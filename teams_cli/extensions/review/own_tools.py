"""Runs the repository's own tools: the linters that it has configured, and the tests of the changed files."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

from teams_cli import processes, text
from teams_cli.extensions.review import change as changes
from teams_cli.extensions.review import kinds, linters
from teams_cli.extensions.review.change import Change, Git, GitFailed, content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Rows = Iterator[tuple[str, int, str]]
    "Findings of a linter: a path, a line number and a text each."
    Report = Callable[[str], None]
    "A function that is called for each tool, with a text that says that the tool ran, or why it could not."

_ENVIRONMENTS = (".venv", "venv", "env")
"""The directories of a repository that may have a virtual environment."""
_PROGRAMS = (*(f"{name}/bin" for name in _ENVIRONMENTS), "node_modules/.bin")
"""The directories of a repository that may have linters."""
_TEXT_ROW = re.compile(r"^(?:\./)?(?P<path>[^:(]+)(?::|\()(?P<line>\d+)(?:[:,]\d+)?\)?:?\s*(?P<what>.+)$")


def _text_rows(output: str) -> Rows:
    """Read rows that have the form `path:line: message` or `path(line,column): message`."""
    for row in output.splitlines():
        if match := _TEXT_ROW.match(row.strip()):
            message = re.sub(r"^\d+:\s*", "", match["what"])  # without the column
            yield match["path"], int(match["line"]), message


@dataclass
class Linter:
    """A linter that a repository may use. It checks files with one of the *endings*. The function *rows* reads its
    output.

    *configured_by* has a pair for each file that can configure the linter: the name of the file, and the beginning of
    the section that the file must have, or "" if any content will do. In *arguments*, `{work}` stands for a directory
    for temporary files.
    """

    name: str
    endings: tuple[str, ...]
    configured_by: tuple[tuple[str, str], ...]
    arguments: str
    rows: Callable[[str], Rows] = _text_rows


def _eslint_rows(output: str) -> Rows:
    for file in json.loads(output or "[]"):
        for row in file["messages"]:
            yield file["filePath"], row.get("line") or 0, f"{row['message']} ({row.get('ruleId') or 'syntax'})"


def _gofmt_rows(output: str) -> Rows:
    yield from ((path, 0, "is not formatted by gofmt") for path in output.splitlines())


_ESLINT = tuple((f"eslint.config.{end}", "") for end in ("js", "mjs", "cjs", "ts"))
_ESLINT += tuple((f".eslintrc{end}", "") for end in ("", ".js", ".cjs", ".json", ".yml", ".yaml"))
_FLAKE8 = ((".flake8", ""), ("setup.cfg", "[flake8"), ("tox.ini", "[flake8"))
_MYPY = (("mypy.ini", ""), (".mypy.ini", ""), ("pyproject.toml", "[tool.mypy"), ("setup.cfg", "[mypy"))
_RUFF = (("ruff.toml", ""), (".ruff.toml", ""), ("pyproject.toml", "[tool.ruff"))
_YAMLLINT = ((".yamllint", ""), (".yamllint.yml", ""), (".yamllint.yaml", ""))
_OPTIONS_OF_RUFF = "check --no-cache --quiet --no-fix --output-format=concise --force-exclude --"
_OPTIONS_OF_MYPY = "--no-error-summary --no-color-output --hide-error-context --cache-dir={work}/mypy --"
_LINTERS = (
    Linter("ruff", kinds.PYTHON, _RUFF, _OPTIONS_OF_RUFF),
    Linter("flake8", (".py",), _FLAKE8, "--format=%(path)s:%(row)d:%(code)s:%(text)s"),
    Linter("mypy", kinds.PYTHON, _MYPY, _OPTIONS_OF_MYPY),
    Linter("eslint", kinds.SCRIPT, _ESLINT, "--format=json --no-warn-ignored --", _eslint_rows),
    Linter("tsc", kinds.TYPED, (("tsconfig.json", ""),), "--noEmit --pretty false"),
    Linter("shellcheck", kinds.SHELL, ((".shellcheckrc", ""),), "--format=gcc --"),
    Linter("yamllint", (".yml", ".yaml"), _YAMLLINT, "--format=parsable"),
    Linter("gofmt", (".go",), (("go.mod", ""),), "-l", _gofmt_rows),
)


def linter_findings(change: Change, seconds: float, report: Report) -> Iterator[Finding]:
    """Run the linters that the repository has configured, each for *seconds* at most. Yield their findings in changed
    lines.
    """
    for linter in _LINTERS:
        paths = [path for path in change.readable() if path.endswith(linter.endings)]
        if not paths:
            continue
        is_configured = any(
            os.path.exists(os.path.join(change.repo, name)) and section in content(change.repo, name)
            for name, section in linter.configured_by
        )
        if not is_configured:
            continue
        in_repo = [os.path.join(change.repo, directory, linter.name) for directory in _PROGRAMS]
        program = next((path for path in in_repo if os.access(path, os.X_OK)), "") or linters.program(linter.name)
        if not program:
            report(f"{linter.name} is configured, and not installed")
            continue
        arguments = [argument.replace("{work}", change.work) for argument in linter.arguments.split()]
        files = [] if linter.name == "tsc" else paths  # tsc checks the whole project
        try:
            output = linters.output([program, *arguments, *files], change.repo, seconds)
            for path, line, message in linter.rows(output):
                path = os.path.relpath(os.path.join(change.repo, path), change.repo)  # some paths are absolute
                file = change.file(path)
                # Line 0 stands for the whole file. Notes of mypy only explain other findings.
                if file and (line == 0 or line in file.lines) and not message.startswith("note:"):
                    weight = WARNING if linter.name in ("mypy", "tsc") and "error" in message else NOTE
                    yield Finding(weight, path, line, message[:300], linter.name)
            report(f"{linter.name} ran")
        except (linters.ToolFailed, ValueError, KeyError) as problem:
            report(f"{linter.name} could not be run: {problem}")


_MOST_TESTS = 30
"""The maximum number of test files in one suite."""
_LARGEST_COPY = 200 << 20
"""The maximum size, in bytes, of a repository that is copied to run its tests."""
_TOO_LARGE = f"the checkout is larger than {_LARGEST_COPY >> 20} MiB"
_PYTEST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - (.*))?$", re.MULTILINE)
_TAP_FAILURE = re.compile(r"^\s*not ok \d+ - (.+)$|^\s*[\u2716\u25cf] (.+?)(?: \([\d.]+ ?ms\))?$", re.MULTILINE)
_MISSING = re.compile(
    r"(?:ModuleNotFoundError|ImportError)\W+No module named '?([\w.]+)|Cannot find (?:module|package) '([^']+)'"
)


@dataclass
class Suite:
    """Tests that one command runs: the *command*, the test *files*, and *failure*, a pattern that matches each failed
    test in the output. *command* is empty if the program is not installed.
    """

    name: str
    command: list[str]
    files: list[str]
    failure: re.Pattern[str]


def _suites(change: Change, git: Git, environ: Mapping[str, str]) -> Iterator[Suite]:
    """Yield the changed tests and the tests of changed files, one suite for each program that runs tests."""
    files = git.listed()
    python_tests = r"(^|/)(test_[^/]*|[^/]*_test)\.py$"
    if tests := _tests_to_run(change, files, python_tests, kinds.PYTHON, _imports_module):
        yield Suite("pytest", _pytest(change, environ, tests), tests, _PYTEST_FAILURE)
    script_tests = r"[._-](test|spec)\.[mc]?[jt]sx?$|(^|/)__tests__/.*\.[jt]sx?$"
    if tests := _tests_to_run(change, files, script_tests, kinds.SCRIPT, _imports_script):
        yield from _script_suite(change, tests)
    go_sources = [file.path for file in change.files if file.path.endswith(".go") and file.status != "D"]
    with_tests = {os.path.dirname(path) for path in files if path.endswith("_test.go")}
    packages = sorted(with_tests.intersection(map(os.path.dirname, go_sources)))  # in Go, a directory is a package
    if packages and (go := shutil.which("go")):
        command = [go, "test", *(f"./{package}" for package in packages)]
        yield Suite("go test", command, packages, re.compile(r"^\s*--- FAIL: (\S+)", re.MULTILINE))


def _tests_to_run(
    change: Change,
    files: list[str],
    test_pattern: str,
    source_endings: tuple[str, ...],
    imports: Callable[[str, str], bool],
) -> list[str]:
    """Return the tests of one language among *files*: first those that changed, then those that are named after a
    changed source file or import it. *imports* says whether the text of a test imports the file at a path.
    """
    changed = [file.path for file in change.files if file.status != "D"]
    sources = [path for path in changed if path.endswith(source_endings) and not kinds.is_test(path)]
    source_names = {os.path.basename(path).partition(".")[0].strip("_") for path in sources}
    tests = [path for path in files if re.search(test_pattern, path)]
    chosen = [test for test in tests if test in changed]
    for test in tests:
        if test in chosen:
            continue
        stem = os.path.splitext(os.path.basename(test))[0]
        tested_name = re.sub(r"^test_|_test$|[._-](test|spec)$", "", stem)
        text = content(change.repo, test)
        if tested_name in source_names or any(imports(text, source) for source in sources):
            chosen.append(test)
    return chosen[:_MOST_TESTS]


def _imports_module(text: str, path: str) -> bool:
    name = os.path.basename(path.rpartition(".")[0].removesuffix("/__init__"))
    return bool(re.search(rf"^\s*(?:from|import)\s[^#\n]*\b{re.escape(name)}\b", text, re.MULTILINE))


def _imports_script(text: str, path: str) -> bool:
    stem = re.escape(os.path.basename(path).partition(".")[0])
    return bool(re.search(rf"""(?:from|require\(|import\()\s*["'][^"']*\b{stem}(?:\.\w+)?["']""", text))


def _pytest(change: Change, environ: Mapping[str, str], tests: list[str]) -> list[str]:
    """Return the command that runs the tests with pytest; an empty list if no Python has pytest."""
    pythons = [os.path.join(change.repo, name, "bin/python") for name in _ENVIRONMENTS]
    if environ.get("VIRTUAL_ENV"):
        pythons.append(os.path.join(environ["VIRTUAL_ENV"], "bin/python"))
    pythons += [shutil.which("python3", path=environ.get("PATH")) or "", sys.executable]
    for python in pythons:
        if not os.access(python, os.X_OK):
            continue
        import_pytest = [python, "-c", "import pytest"]
        done = subprocess.run(import_pytest, stdin=subprocess.DEVNULL, capture_output=True, cwd=change.work)
        if done.returncode == 0:
            options = ["-q", "--tb=line", "-rfE", "--no-header", "-p", "no:cacheprovider", "--color=no"]
            return [python, "-m", "pytest", *options, "--", *tests]
    return []


def _script_suite(change: Change, tests: list[str]) -> Iterator[Suite]:
    """Yield the suite for the repository's jest or vitest, or else for node, with the tests that use its runner."""
    for name, arguments in (("jest", ["--ci", "--colors=false"]), ("vitest", ["run", "--reporter=tap"])):
        path = os.path.join(change.repo, "node_modules/.bin", name)
        if os.access(path, os.X_OK):
            yield Suite(name, [path, *arguments, *tests], tests, _TAP_FAILURE)
            return
    node_tests = [path for path in tests if "node:test" in content(change.repo, path)]
    if node_tests and (node := shutil.which("node")):
        yield Suite("node --test", [node, "--test", "--test-reporter=tap", *node_tests], node_tests, _TAP_FAILURE)


def test_findings(
    change: Change, git: Git, environ: Mapping[str, str], seconds: float, report: Report
) -> Iterator[Finding]:
    """Yield a finding for each test that fails now, and did not fail before the change. The tests run in copies of the
    repository.
    """
    for suite in _suites(change, git, environ):
        files = text.listed([shown(path) for path in suite.files], 3)
        if not suite.command:  # only the suite of pytest may lack its program
            report(f"{len(suite.files)} test files were found and not run: pytest is not installed")
            continue
        copy = _copy(change, git, "now")
        if not copy:
            report(f"{suite.name} of {files} was not run: {_TOO_LARGE}")
            continue
        failures, problem = _failures(suite, copy, environ, seconds)
        if problem:
            report(f"{suite.name} of {files} could not be run: {problem}")
            continue
        if not failures:
            report(f"{suite.name} ran {files}: all passed")
            continue
        earlier, problem_before = _failures(suite, _copy(change, git, "before"), environ, seconds)
        # If the tests can't be run before the change, it is not known which failures are new.
        new = {} if problem_before else {name: reason for name, reason in failures.items() if name not in earlier}
        report(f"{suite.name} ran {files}: {len(failures)} failed, {len(new)} of them since this change")
        for name, reason in new.items():
            path = name.partition("::")[0]  # pytest names a test `PATH::TEST`
            if path not in suite.files:  # other programs do not say in which file the test is
                path = suite.files[0]
            yield Finding(SERIOUS, path, 0, f"a test fails since this change: {name}: {reason}", "test")


def _copy(change: Change, git: Git, when: str) -> str:
    """Return the path of a new copy of the repository, as it is `now` or was `before` the change. Tests may leave
    traces in it. Return "" if the repository is too large to be copied.
    """
    copy = os.path.join(change.work, f"trial-{when}")
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    if when == "before":
        try:
            archive = git("archive", "--format=tar", change.base)
        except GitFailed:  # then the tests can't be run in the empty copy
            return copy
        subprocess.run(["tar", "-x", "-C", copy], input=archive, check=False, capture_output=True)
    elif not _copy_checkout(git, change.repo, copy):
        return ""
    _link_packages(change.repo, copy)
    return copy


def _copy_checkout(git: Git, repo: str, copy: str) -> bool:
    """Copy the present files that git tracks or would track, and return True. If they have more than `_LARGEST_COPY`
    bytes, copy none and return False, because tests could fail in an incomplete copy.
    """
    names = [name for name in git.listed() if os.path.isfile(os.path.join(repo, name))]
    if sum(os.path.getsize(os.path.join(repo, name)) for name in names) > _LARGEST_COPY:
        return False
    for name in names:
        target = os.path.join(copy, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(os.path.join(repo, name), target, follow_symlinks=False)
    return True


def _link_packages(repo: str, copy: str) -> bool:
    """Link the packages of node, because copying them would take long. Return whether a link was made."""
    packages, link = os.path.join(repo, "node_modules"), os.path.join(copy, "node_modules")
    if not os.path.isdir(packages) or os.path.exists(link):
        return False
    os.symlink(packages, link)
    return True


def _failures(suite: Suite, copy: str, environ: Mapping[str, str], seconds: float) -> tuple[dict[str, str], str]:
    """Run the suite. Return its failed tests, each with the reason, and why the suite could not run; "" if it ran."""
    status, output = _run(suite.command, copy, environ, seconds)
    if status is None:
        return {}, f"it took longer than {seconds:.0f} s"
    failures = {}
    for match in suite.failure.finditer(output):
        name, *reasons = [group for group in match.groups() if group]
        reason = reasons[0] if reasons else "see its output"
        failures[name.strip()] = " ".join(reason.split())[:200]
    if status and (missing := _MISSING.search(output)):
        name = missing[1] or missing[2]
        # If the package is one of the repository's own, its absence is a failure of the tests.
        if not os.path.exists(os.path.join(copy, name.split(".")[0])):
            return {}, f"{name} is not installed"
    if status and not failures:
        lines = output.strip().splitlines()
        return {}, lines[-1][:200] if lines else f"status {status}"  # the last line usually says why
    return failures, ""


def _run(command: list[str], copy: str, environ: Mapping[str, str], seconds: float) -> tuple[int | None, str]:
    """Return the exit status and the output of the tests; None and "" if they took longer than *seconds*."""
    variables = {
        name: value
        for name, value in environ.items()
        if name == processes.TAG or not name.startswith(("TEAMS_", "OPENCODE_"))  # a run finds its processes by the tag
    }
    source_directories = [copy, os.path.join(copy, "src"), os.path.join(copy, "lib")]
    path = os.pathsep.join([directory for directory in source_directories if os.path.isdir(directory)])
    process = subprocess.Popen(
        command,
        cwd=copy,
        env={**variables, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "CI": "1", "NO_COLOR": "1"},
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
        with suppress(ProcessLookupError):  # raised if all processes that the tests started have ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


_AUTHOR = ("-c", "user.name=teams", "-c", "user.email=teams@localhost", "-c", "commit.gpgsign=false")


def try_patch(
    repo: str, patch: str, work: str, environ: Mapping[str, str], is_applied: bool, report: Report
) -> list[Finding]:
    """Run tests in a copy of the checkout. Return a finding for each test that fails with the patch but not without it.
    If *is_applied* is True, the checkout has the patch already, and the patch is first taken out of the copy.

    Raises:
        GitFailed: The patch does not fit.
    """
    copy = os.path.join(work, "tried")
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    if not _copy_checkout(Git(repo, environ), repo, copy):
        report(f"no test was run: {_TOO_LARGE}")
        return []
    variables = dict(environ)
    for name in _ENVIRONMENTS:  # the copy has no virtual environment
        if os.access(f"{repo}/{name}/bin/python", os.X_OK):
            variables["VIRTUAL_ENV"] = f"{repo}/{name}"
            break
    git = Git(copy, variables)
    git("init", "-q")
    if _link_packages(repo, copy):
        with open(os.path.join(copy, ".git/info/exclude"), "a", encoding="utf-8") as file:
            file.write("/node_modules\n")
    if is_applied:  # the first commit must be without the patch
        git("apply", "--reverse", patch)
    git("add", "-A", "-f", "--", ".", ":!node_modules")
    git(*_AUTHOR, "commit", "-q", "--no-verify", "--allow-empty", "-m", "before")
    git("apply", patch)
    change = changes.collect(copy, os.path.join(work, "tried-work"), "HEAD", git.environ)
    return list(test_findings(change, git, git.environ, 120.0, report))
