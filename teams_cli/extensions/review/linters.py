"""Running linters: those that come with `teams`, and those that the repository has configured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from shutil import which

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from teams_cli.extensions.review.change import Change

    Rules = dict[str, tuple[str, str]]
    "The weight of each rule, and why it matters where the linter does not say so."

_FILES_PER_CALL = 400
"""A command line has an end."""


class ToolFailed(Exception):
    """A program that should look at files did not."""


def rules(*rows: tuple[str, str, str]) -> Rules:
    """A table of rules from rows of a weight, the rules that have it, and why they matter."""
    return {rule: (weight, reason) for weight, names, reason in rows for rule in names.split()}


def program(name: str) -> str:
    """The program installed beside this Python, else the one on the PATH; empty if there is none."""
    beside = os.path.join(os.path.dirname(sys.executable), name)
    return beside if os.access(beside, os.X_OK) else which(name) or ""


def version(name: str) -> str:
    """The name of a program with its version, or that it is not installed."""
    if not (path := program(name)):
        return f"{name} is not installed"
    words = output([path, "--version"], os.getcwd()).split()
    return f"{name} {next((word for word in words if word[0].isdigit()), '')}".strip()


def output(command: list[str], directory: str, seconds: float = 120.0) -> str:
    """Run a linter; its output, whatever its exit status: linters exit with 1 when they find something.

    Raises:
        ToolFailed: It can't be run, or takes too long.
    """
    name = os.path.basename(command[0])
    try:
        done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolFailed(f"{name} can't be run: {error}") from None
    if not done.stdout.strip() and done.returncode not in (0, 1):
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise ToolFailed(f"{name}: {lines[-1] if lines else f'status {done.returncode}'}")
    return done.stdout.decode(errors="replace")


def documents(command: list[str], paths: list[str], directory: str) -> Iterator[Any]:
    """The JSON that a linter prints about the files, one document for each call that it needs.

    Raises:
        ToolFailed: It can't be run, or prints something else.
    """
    for start in range(0, len(paths), _FILES_PER_CALL):
        text = output([*command, "--", *paths[start : start + _FILES_PER_CALL]], directory)
        try:
            yield json.loads(text or "[]")
        except json.JSONDecodeError:
            raise ToolFailed(f"{os.path.basename(command[0])} printed {text[:200]!r}") from None


_ROW = re.compile(r"^(?:\./)?(?P<path>[^:(]+)(?::|\()(?P<line>\d+)(?:[:,]\d+)?\)?:?\s*(?P<what>.+)$")
_INSTALLED_IN = (".venv/bin", "venv/bin", "node_modules/.bin")


class Linter:
    """A linter of the repository: the files that configure it, how it is called, and what it prints."""

    def __init__(
        self,
        name: str,
        ends: tuple[str, ...],
        configured_by: tuple[tuple[str, str], ...],
        arguments: str,
        rows: Callable[[str], Iterator[tuple[str, int, str]]] | None = None,
    ) -> None:
        self.name = name
        self.ends = ends
        self.configured_by = configured_by
        self.arguments = arguments.split()
        self.rows = rows or _rows

    def is_configured(self, repo: str) -> bool:
        """Whether one of its files of configuration is there, with the section of the linter."""
        return any(
            os.path.exists(os.path.join(repo, name)) and section in content(repo, name)
            for name, section in self.configured_by
        )

    def program(self, repo: str) -> str:
        """The one that the repository has installed, else ours or the machine's."""
        places = (os.path.join(repo, place, self.name) for place in _INSTALLED_IN)
        return next((place for place in places if os.access(place, os.X_OK)), "") or program(self.name)


def _rows(text: str) -> Iterator[tuple[str, int, str]]:
    """Rows of `path:line: what` or `path(line,column): what`, as most linters print them."""
    for row in text.splitlines():
        if match := _ROW.match(row.strip()):
            yield match["path"], int(match["line"]), re.sub(r"^\d+:\s*", "", match["what"])


def _eslint_rows(text: str) -> Iterator[tuple[str, int, str]]:
    for file in json.loads(text or "[]"):
        for row in file["messages"]:
            yield file["filePath"], row.get("line") or 0, f"{row['message']} ({row.get('ruleId') or 'syntax'})"


def _gofmt_rows(text: str) -> Iterator[tuple[str, int, str]]:
    yield from ((path, 0, "is not formatted by gofmt") for path in text.splitlines())


_ESLINT = tuple((f"eslint.config.{end}", "") for end in ("js", "mjs", "cjs", "ts"))
_ESLINT += tuple((f".eslintrc{end}", "") for end in ("", ".js", ".cjs", ".json", ".yml", ".yaml"))
_FLAKE8 = ((".flake8", ""), ("setup.cfg", "[flake8"), ("tox.ini", "[flake8"))
_MYPY = (("mypy.ini", ""), (".mypy.ini", ""), ("pyproject.toml", "[tool.mypy"), ("setup.cfg", "[mypy"))
_RUFF = (("ruff.toml", ""), (".ruff.toml", ""), ("pyproject.toml", "[tool.ruff"))
_YAMLLINT = ((".yamllint", ""), (".yamllint.yml", ""), (".yamllint.yaml", ""))
_LINTERS = (
    Linter("ruff", kinds.PYTHON, _RUFF, "check --no-cache --quiet --no-fix --output-format=concise --force-exclude --"),
    Linter("flake8", (".py",), _FLAKE8, "--format=%(path)s:%(row)d:%(code)s:%(text)s"),
    Linter(
        "mypy",
        kinds.PYTHON,
        _MYPY,
        "--no-error-summary --no-color-output --hide-error-context --cache-dir={work}/mypy --",
    ),
    Linter("eslint", kinds.SCRIPT, _ESLINT, "--format=json --no-warn-ignored --", _eslint_rows),
    Linter("tsc", kinds.TYPED, (("tsconfig.json", ""),), "--noEmit --pretty false"),
    Linter("shellcheck", kinds.SHELL, ((".shellcheckrc", ""),), "--format=gcc --"),
    Linter("yamllint", (".yml", ".yaml"), _YAMLLINT, "--format=parsable"),
    Linter("gofmt", (".go",), (("go.mod", ""),), "-l", _gofmt_rows),
)


def configured_findings(change: Change, seconds: float, report: Callable[[str], None]) -> Iterator[Finding]:
    """Run the repository's linters; their findings in changed lines. *report* hears which ran and which could not."""
    for linter in _LINTERS:
        paths = [path for path in change.readable() if path.endswith(linter.ends)]
        if not paths or not linter.is_configured(change.repo):
            continue
        if not (path := linter.program(change.repo)):
            report(f"{linter.name} is configured, and not installed")
            continue
        arguments = [argument.replace("{work}", change.work) for argument in linter.arguments]
        files = [] if linter.name == "tsc" else paths  # tsc looks at the whole project
        try:
            yield from _in_changed_lines(linter, output([path, *arguments, *files], change.repo, seconds), change)
            report(f"{linter.name} ran")
        except (ToolFailed, ValueError, KeyError) as problem:
            report(f"{linter.name} could not be run: {problem}")


def _in_changed_lines(linter: Linter, text: str, change: Change) -> Iterator[Finding]:
    for path, line, what in linter.rows(text):
        path = os.path.relpath(os.path.join(change.repo, path), change.repo)
        file = change.file(path)
        if file and (line in file.lines or not line) and not what.startswith("note:"):
            weight = WARNING if linter.name in ("mypy", "tsc") and "error" in what else NOTE
            yield Finding(weight, path, line, what[:300], linter.name)
