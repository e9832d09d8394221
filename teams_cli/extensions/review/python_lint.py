"""Python by ruff: the rules of `ruff_rules` that stand for mistakes, whatever the repository's taste."""

from __future__ import annotations

import os
import re

from teams_cli.extensions.review import kinds, tools
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, Finding
from teams_cli.extensions.review.ruff_rules import CALLED_ONCE, FROM_ELSEWHERE, GUESSED, METHODS, NOT_IN_TESTS, known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_WORDS = (
    "check",
    "--isolated",
    "--no-cache",
    "--preview",
    "--quiet",
    "--output-format=json",
    "--no-fix",
    "--exit-zero",
)
_FILLED = re.compile(r"\{([\w.]+)|%\s*\(?([\w.]+)|\+\s*([\w.]+)")
_ATTRIBUTE = re.compile(r"\w+(\.\w+)+")
_NAMED = re.compile(r"\s*(async )?def \w+")
_CONSTANT = re.compile(r"[A-Z_]+\s*=")
_TARGET = "--target-version=py314"


def check(table: dict[str, tuple[str, str]]) -> Callable[[str, list[str]], Iterator[Finding]]:
    """The check for the rules of that table."""

    def look(tree: str, paths: list[str]) -> Iterator[Finding]:
        program = tools.own("ruff")
        words = [program, *_WORDS, _TARGET, f"--select={','.join(table)}"]
        for rows in tools.answers(words, paths, tree) if program and paths else []:
            for row in rows:
                if found := _finding(row, tree, table):
                    yield found

    return look


def _finding(row: dict[str, Any], tree: str, table: dict[str, tuple[str, str]]) -> Finding | None:
    code, path, said = row["code"] or "", os.path.relpath(row["filename"], tree), row["message"]
    rule = known(code, table)
    if not rule or (code in NOT_IN_TESTS and kinds.is_test(path)) or not _meant(row, path, tree):
        return None
    weight, why = rule
    if code == "S602" and "seems safe" in said:
        weight, why = NOTE, "a list of words needs no shell"
    what = said.rstrip(".").partition("; consider")[0]
    return Finding(weight, path, row["location"]["row"], f"{what}{f': {why}' if why else ''}", code, "", _far(code))


def _far(code: str) -> bool:
    return code in FROM_ELSEWHERE


def _meant(row: dict[str, Any], path: str, tree: str) -> bool:
    """Whether the rule is right here; some are so only with more to go by than ruff asks for."""
    code = row["code"]
    if code == "F401":  # a package's `__init__` imports what others shall find in it
        return not path.endswith(("__init__.py", "compat.py"))
    if code == "B018":  # some attributes are read for what that does; of a method the call was forgotten
        said = _line(tree, path, row["location"]["row"]).partition("#")[0].strip()
        return not _ATTRIBUTE.fullmatch(said) or said.rpartition(".")[2] in METHODS
    if code == "F811" and kinds.is_test(path):  # a fixture's name is that of what it gives
        return _line(tree, path, row["location"]["row"]).lstrip().startswith(("def ", "async def ", "class "))
    if code == "B008":
        return any(word in _text(tree, path, row) for word in CALLED_ONCE)
    if code == "F403":
        return not path.endswith("__init__.py")
    if code == "ISC004":  # over several lines it is how a long text is written
        return bool(row["location"]["row"] == row["end_location"]["row"])
    if code in ("S311", "S605", "S108", "S608", "N805"):
        return _meant_by_line(code, row["message"], _text(tree, path, row) + _around(code, tree, path, row))
    return True


def _around(code: str, tree: str, path: str, row: dict[str, Any]) -> str:
    """Where it matters what a value is for: the name of the function that makes it."""
    above = content(tree, path).splitlines()[: row["location"]["row"] - 1] if code == "S311" else []
    return next((found[0] for line in reversed(above) if (found := _NAMED.match(line))), "")


def _meant_by_line(code: str, said: str, line: str) -> bool:
    if code == "S311":
        return any(word in line.lower() for word in GUESSED)
    if code == "S605":
        return "seems safe" not in said
    if code == "S608":  # what is in capitals is a constant of the program
        filled = [name for names in _FILLED.findall(line) for name in names if name]
        return not _CONSTANT.match(line) and (not filled or not all(name.isupper() for name in filled))
    if code == "S108" and '/tmp"' in said:
        return False
    if code == "S108":
        return "open(" in line or "=" in line or "write" in line
    return "self" not in line and "cls" not in line


def _text(tree: str, path: str, row: dict[str, Any]) -> str:
    """The lines that a finding spans; of these the first is not stripped, so that its place is seen."""
    lines = content(tree, path).splitlines()
    return "\n".join(lines[row["location"]["row"] - 1 : row["end_location"]["row"]])


def _line(tree: str, path: str, number: int) -> str:
    with open(os.path.join(tree, path), encoding="utf-8", errors="replace") as file:
        return next((line for count, line in enumerate(file, 1) if count == number), "")
