"""Git worktrees: a checkout and a branch of its own for an agent, kept when it is done."""

from __future__ import annotations

import os
import subprocess

from teams_cli.errors import AlreadyExists, InvalidValue, StorageFailed


def repository(directory: str) -> str:
    """The top of the git checkout that holds *directory*.

    Raises:
        InvalidValue: It is in none.
    """
    done = _git(directory, "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        raise InvalidValue(
            f"{directory} is in no git repository, so there is nothing to make a worktree of",
            "Go to a checkout, or leave out --worktree.",
        )
    return done.stdout.strip()


def add(root: str, team: str, agent: str, top: str) -> tuple[str, str]:
    """Make a worktree of the checkout *top*, on a new branch from what is checked out; its path and branch.

    Raises:
        AlreadyExists: There is one of that name, with somebody's work in it.
        StorageFailed: git did not make it.
    """
    path, branch = f"{root}/worktrees/{team}/{agent}", f"teams/{team}/{agent}"
    if os.path.lexists(path):
        raise AlreadyExists(
            f"{path} is there already", "It may hold work: look, then remove it with git worktree remove."
        )
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    done = _git(top, "worktree", "add", "--quiet", "-b", branch, path)
    if done.returncode != 0:
        raise StorageFailed(f"git made no worktree {path}: {done.stderr.strip()}", "See `git worktree list`.")
    return path, branch


def _git(directory: str, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", "-C", directory, *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise InvalidValue(f"git can't be run: {error.strerror}", "Install git, or leave out --worktree.") from None
