"""The repository's own linters, where it has them configured and they are installed; on the lines that changed."""

from __future__ import annotations

import json
import os
import re
from shutil import which

from teams_cli.extensions.review import kinds, python_lint
from teams_cli.extensions.review.findings import NOTE, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from teams_cli.extensions.review.change import Change

_PLACES = (".venv/bin", "venv/bin", "node_modules/.bin")
_LINE = re.compile(r"^(?:\./)?(?P<path>[^:(]+)(?::|\()(?P<line>\d+)(?:[:,]\d+)?\)?:?\s*(?P<what>.+)$")


class Linter:
    """A linter: by which files a repository says that it wants it, how it is called, and what it answers."""

    def __init__(
        self,
        name: str,
        ends: tuple[str, ...],
        wanted: tuple[tuple[str, str], ...],
        words: tuple[str, ...],
        rows: Callable[[str], Iterator[tuple[str, int, str]]] | None = None,
        whole: bool = False,
    ) -> None:
        self.name = name
        self.ends = ends
        self.wanted = wanted
        self.words = words
        self.rows = rows or lines
        self.whole = whole

    def is_wanted(self, repo: str) -> bool:
        """Whether one of its files of configuration is there, with the words in it that stand for the linter."""
        places = ((os.path.join(repo, name), word) for name, word in self.wanted)
        return any(os.path.exists(place) and (not word or word in _text(place)) for place, word in places)


def lines(text: str) -> Iterator[tuple[str, int, str]]:
    """Rows of `path:line: what` or `path(line,column): what`, as most linters write them."""
    for row in text.splitlines():
        if found := _LINE.match(row.strip()):
            yield found["path"], int(found["line"]), re.sub(r"^\d+:\s*", "", found["what"])


def _eslint(text: str) -> Iterator[tuple[str, int, str]]:
    for file in json.loads(text or "[]"):
        for row in file["messages"]:
            yield file["filePath"], row.get("line") or 0, f"{row['message']} ({row.get('ruleId') or 'syntax'})"


def _names(text: str) -> Iterator[tuple[str, int, str]]:
    yield from ((path, 0, "is not formatted by gofmt") for path in text.splitlines())


_ESLINT = tuple((f"eslint.config.{end}", "") for end in ("js", "mjs", "cjs", "ts")) + tuple(
    (f".eslintrc{end}", "") for end in ("", ".js", ".cjs", ".json", ".yml", ".yaml")
)
LINTERS = (
    Linter(
        "ruff",
        (".py", ".pyi"),
        (("ruff.toml", ""), (".ruff.toml", ""), ("pyproject.toml", "[tool.ruff")),
        ("check", "--no-cache", "--quiet", "--no-fix", "--output-format=concise", "--force-exclude"),
    ),
    Linter(
        "flake8",
        (".py",),
        ((".flake8", ""), ("setup.cfg", "[flake8"), ("tox.ini", "[flake8")),
        ("--format=%(path)s:%(row)d: %(code)s %(text)s",),
    ),
    Linter(
        "mypy",
        (".py", ".pyi"),
        (("mypy.ini", ""), (".mypy.ini", ""), ("pyproject.toml", "[tool.mypy"), ("setup.cfg", "[mypy")),
        ("--no-error-summary", "--no-color-output", "--hide-error-context", "--cache-dir={work}/mypy"),
    ),
    Linter("eslint", kinds.SCRIPT, _ESLINT, ("--format=json", "--no-warn-ignored"), _eslint),
    Linter(
        "tsc",
        (".ts", ".tsx", ".mts", ".cts"),
        (("tsconfig.json", ""),),
        ("--noEmit", "--pretty", "false"),
        whole=True,
    ),
    Linter("shellcheck", kinds.SHELL, ((".shellcheckrc", ""),), ("--format=gcc",)),
    Linter(
        "yamllint",
        (".yml", ".yaml"),
        ((".yamllint", ""), (".yamllint.yml", ""), (".yamllint.yaml", "")),
        ("--format=parsable",),
    ),
    Linter("gofmt", (".go",), (("go.mod", ""),), ("-l",), _names),
)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def program(name: str, repo: str) -> str:
    """The linter that the repository has installed, else ours or the machine's."""
    places = (os.path.join(repo, place, name) for place in _PLACES)
    found = next((place for place in places if os.access(place, os.X_OK)), "")
    return found or (python_lint.own(name) if name in ("ruff", "shellcheck") else which(name) or "")


def findings(change: Change, seconds: float, told: Callable[[str], None]) -> Iterator[Finding]:
    """What they say of the lines that changed; which ran, and which could not, goes to *told*."""
    for linter in LINTERS:
        paths = [path for path in change.readable() if path.endswith(linter.ends)]
        if not paths or not linter.is_wanted(change.repo):
            continue
        if not (found := program(linter.name, change.repo)):
            told(f"{linter.name} is configured, and not installed")
            continue
        try:
            yield from _said(linter, found, change, paths, seconds)
            told(f"{linter.name} ran")
        except (python_lint.ToolFailed, ValueError, KeyError) as problem:
            told(f"{linter.name} could not be run: {problem}")


def _said(linter: Linter, program: str, change: Change, paths: list[str], seconds: float) -> Iterator[Finding]:
    words = [word.replace("{work}", change.work) for word in linter.words]
    given = [] if linter.whole else (["--", *paths] if linter.name not in ("gofmt", "flake8", "yamllint") else paths)
    for path, line, what in linter.rows(python_lint.answer([program, *words, *given], change.repo, seconds=seconds)):
        path = os.path.relpath(os.path.join(change.repo, path), change.repo)
        file = change.file(path)
        if file and (line in file.lines or not line) and ": note:" not in f": {what}":
            yield Finding(_weight(linter.name, what), path, line, what[:300], linter.name)


def _weight(name: str, what: str) -> str:
    return WARNING if name in ("mypy", "tsc") and "error" in what else NOTE
