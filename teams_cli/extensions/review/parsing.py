"""Files that their own language can't read: Python, JSON, TOML, YAML, XML, INI and shell."""

from __future__ import annotations

import os
import subprocess
import warnings

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.data_files import data_problems, is_data
from teams_cli.extensions.review.findings import SERIOUS, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

RULE = "syntax"
_BY_PROGRAM = {"gofmt": (".go",), "ruby": (".rb",), "php": (".php",)}
_WORDS = {"gofmt": ["gofmt", "-e"], "ruby": ["ruby", "-wc"], "php": ["php", "-l"]}


def wanted(path: str) -> bool:
    """Whether the file is of a language that is parsed here."""
    return kinds.is_python(path) or is_data(path) or path.endswith(tuple(e for es in _BY_PROGRAM.values() for e in es))


def check(tree: str, paths: list[str]) -> Iterator[Finding]:
    """What does not parse. Wherever the parser stumbles, it is the change that made it stumble."""
    for path in paths:
        if kinds.is_python(path):
            yield from _python(tree, path)
        elif is_data(path):
            yield from data_problems(path, content(tree, path))
        else:
            yield from _by_program(tree, path)


def _python(tree: str, path: str) -> Iterator[Finding]:
    try:
        with warnings.catch_warnings(), open(os.path.join(tree, path), "rb") as file:
            warnings.simplefilter("ignore")  # ruff tells of these
            compile(file.read(), "<file>", "exec", dont_inherit=True)
    except SyntaxError as error:
        yield Finding(SERIOUS, path, error.lineno or 0, f"syntax error: {error.msg}", RULE, anywhere=True)
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        yield Finding(SERIOUS, path, 0, f"does not compile: {error}", RULE, anywhere=True)


def _by_program(tree: str, path: str) -> Iterator[Finding]:
    """By the language's own parser, where it is installed."""
    from shutil import which

    name = next(name for name, ends in _BY_PROGRAM.items() if path.endswith(ends))
    if not (program := which(name)):
        return
    done = subprocess.run(
        [program, *_WORDS[name][1:], "--", path], cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, timeout=30
    )
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        first = next((line for line in said if path in line), said[0] if said else name)
        digits = first.partition(path)[2].lstrip(":").split(":")[0]
        line = int(digits) if digits.isdigit() else 0
        yield Finding(SERIOUS, path, line, f"{name} can't read it: {first[:200]}", RULE, anywhere=True)
