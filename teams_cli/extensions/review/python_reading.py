"""Reading Python: its syntax tree, and the `print` that was put in to look for a mistake and forgotten."""

from __future__ import annotations

import ast
import re
import warnings

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

_SAYS_DEBUG = re.compile(
    r"(?i)\b(debug|dbg|xxx|(got )?here|test(ing)?|foo|wtf|remove me)\b|[-=*#>]{3,}|\{\s*[\w.]+\s*=\s*[!:}]"
)
_FOR_PEOPLE = re.compile(
    r"(^|/)(cli|main|__main__|console|setup|manage|commands?|scripts?|tools?|bin|examples?|docs?|demo|benchmarks?|bench)"
    r"[^/]*(/|\.py$)"
)


def parsed(text: str) -> ast.Module | None:
    """The syntax tree; None if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def left_prints(tree: str, paths: list[str]) -> Iterator[Finding]:
    """`print` that was put in to look for a mistake, and forgotten."""
    for path in paths:
        if kinds.is_test(path) or not (module := parsed(content(tree, path))):
            continue
        calls = [node for node in ast.walk(module) if _is_print(node)]
        speaks = bool(_FOR_PEOPLE.search(path)) or _is_program(module)
        for call in calls:
            said = ast.unparse(call)
            if _SAYS_DEBUG.search(said):
                yield Finding(WARNING, path, call.lineno, f"print debugging: {said[:60]}", "print", anywhere=False)
            elif not speaks and len(calls) < 3 and not _named_for_it(module, call):
                yield Finding(NOTE, path, call.lineno, f"was this left behind? {said[:60]}", "print", anywhere=False)


def _is_print(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("print", "pprint", "pp")
        and not any(word.arg == "file" for word in node.keywords)
    )


def _is_program(module: ast.Module) -> bool:
    return any(isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) for node in module.body)


def _named_for_it(module: ast.Module, call: ast.AST) -> bool:
    """Whether the function around it says by its name that it prints."""
    words = (
        "print",
        "show",
        "display",
        "main",
        "usage",
        "help",
        "report",
        "dump",
        "echo",
        "say",
        "log",
        "output",
        "run",
    )
    return any(
        any(word in node.name.lower() for word in words)
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and call in ast.walk(node)
    )
