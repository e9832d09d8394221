"""The texts of the program that people and agents read, from its declarations and its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from teams_cli import commands, errors
from teams_cli.cli import guide
from teams_cli.teams import settings
from tests.docs.pages import CHECKOUT

PROGRAM = CHECKOUT / "teams_cli"
SHOWN = {"agents", "cli", "commands", "extensions", "hooks", "membership", "messages", "questions", "runs", "tasks"}
SHOWN |= {"teams", "views"}
"""The rooms with answers, notices and instructions."""
_NO_PROSE = re.compile(r"\s*(SELECT|UPDATE|INSERT|DELETE|WITH|gone AS|of AS|WHERE|S102)\b|[a-z /\n-]{60,}\Z")
"""SQL, and lists of names."""
_NOT_OURS = (" is kept for you", ", kept for you, is ready: ", "task kept for ", "no more connections allowed")
"""Texts of older versions and of other programs, which the program compares with its own."""


def help_texts() -> Iterator[str]:
    """Return help and the manual page: docstrings, options and exit statuses."""
    for command in commands.every().values():
        paragraphs, refusals = guide.parts_of_help(command)
        yield from paragraphs
        yield from (refusal.partition(": ")[2] for refusal in refusals)
        yield from (parameter.help for parameter in command.own)
        yield command.want
    for kind in errors.kinds().values():
        yield (kind.__doc__ or "").partition("\n")[0]


def setting_texts() -> Iterator[str]:
    for setting in settings.every().values():
        yield setting.help


def error_texts() -> Iterator[str]:
    """Return the message and the hint of each error, with CODE for the parts that are filled in."""
    kinds = set(errors.kinds())
    for tree in _trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) in kinds:
                yield from (said for part in node.args for said in _texts(part))


def other_texts() -> Iterator[str]:
    """Return answers, notices, reminders and instructions: every other text with a blank, from the packages that show
    any.
    """
    kinds = set(errors.kinds())
    for path, tree in _trees().items():
        if path.relative_to(PROGRAM).parts[0] in SHOWN and path.name not in ("commands.py", "old_notices.py"):
            yield from _others(tree, kinds)


def module_texts() -> Iterator[str]:
    for tree in _trees().values():
        doc = ast.get_docstring(tree)
        yield " ".join((doc or "").partition("\n\n")[0].split())


def _others(node: ast.AST, kinds: set[str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and _name(child.func) in kinds:
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        if isinstance(child, ast.keyword) and child.arg == "also":
            continue  # words that people type
        if isinstance(child, ast.JoinedStr) or (isinstance(child, ast.Constant) and isinstance(child.value, str)):
            yield from (
                said
                for said in _texts(child)
                if said.count(" ") > 1 and said not in _NOT_OURS and not _NO_PROSE.match(said)
            )
        else:
            yield from _others(child, kinds)


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "CODE" for part in node.values)  # type: ignore[misc]


@cache
def _trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PROGRAM.rglob("*.py"))}


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
