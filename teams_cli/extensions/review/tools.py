"""The programs that look at files: where they are, and what they answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from shutil import which
from typing import Any

PATIENCE = 120.0
_AT_ONCE = 400
"""Files that are named in one call: a command line has an end."""


def own(name: str) -> str:
    """The program that was installed beside this Python, else the one on the PATH; empty if there is none."""
    beside = os.path.join(os.path.dirname(sys.executable), name)
    return beside if os.access(beside, os.X_OK) else which(name) or ""


def answer(words: list[str], directory: str, environ: dict[str, str] | None = None, seconds: float = PATIENCE) -> str:
    """What a program prints, whatever its status: linters end with 1 when they have something to say.

    Raises:
        ToolFailed: It can't be run, or takes too long.
    """
    try:
        done = subprocess.run(
            words, cwd=directory, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolFailed(f"{os.path.basename(words[0])} can't be run: {error}") from None
    if not done.stdout.strip() and done.returncode not in (0, 1):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ToolFailed(f"{os.path.basename(words[0])}: {said[-1] if said else f'status {done.returncode}'}")
    return done.stdout.decode(errors="replace")


class ToolFailed(Exception):
    """A program that was to look at files did not."""


def answers(words: list[str], paths: list[str], directory: str) -> list[Any]:
    """The JSON that a program answers of the files, in as many calls as it needs.

    Raises:
        ToolFailed: It can't be run, or answers something else.
    """
    found = []
    for start in range(0, len(paths), _AT_ONCE):
        text = answer([*words, "--", *paths[start : start + _AT_ONCE]], directory)
        try:
            found.append(json.loads(text or "[]"))
        except json.JSONDecodeError:
            raise ToolFailed(f"{os.path.basename(words[0])} answered {text[:200]!r}") from None
    return found


def version(name: str) -> str:
    """The name of a program with its version, or that it is not there."""
    if not (program := own(name)):
        return f"{name} is not installed"
    words = answer([program, "--version"], os.getcwd()).split()
    number = next((word for word in words if word[0].isdigit()), "")
    return f"{name} {number}".strip()
