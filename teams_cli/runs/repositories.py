"""Repositories: where a run works."""

from __future__ import annotations

import os
import subprocess

from teams_cli import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HINT = "Give the directory: --var repo=PATH"


def directory(path: str) -> str:
    """The path, if there is a directory.

    Raises:
        InvalidValue: There is none.
    """
    if not os.path.isdir(path):
        raise errors.InvalidValue(f"repo: {path} is not a directory", _HINT)
    return path


def checkout(path: str, environ: Mapping[str, str]) -> str:
    """The top directory of the git checkout that *path* is in.

    Raises:
        InvalidValue: It is in none, git does not trust it, or there is no git.
    """
    try:
        found = subprocess.run(
            ["git", "-C", path, "rev-parse", "--show-toplevel"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    except OSError as error:
        raise errors.InvalidValue(f"this workflow needs git: {error.strerror}", "Install git.") from None
    if found.returncode:
        said = found.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise errors.InvalidValue(f"repo: {path} is not a git checkout ({said})", _HINT)
    return os.fsdecode(found.stdout.removesuffix(b"\n"))
