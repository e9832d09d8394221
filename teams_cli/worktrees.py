"""Git worktrees: a checkout and a branch of its own for an agent, kept when it is done."""

from __future__ import annotations

import os
import subprocess

from teams_cli.errors import AlreadyExists, InvalidValue, StorageFailed


def repository(directory: str) -> str:
    """The top of the git checkout that holds *directory*.

    Raises:
        InvalidValue: It is in none, or nothing was committed yet.
    """
    done = _git(directory, "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        raise InvalidValue(
            f"{directory} is in no git repository, so there is nothing to make a worktree of",
            "Go to a checkout, or leave out --worktree.",
        )
    top = done.stdout.removesuffix("\n")
    if _git(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode != 0:
        raise InvalidValue(f"{top} has no commit yet, so there is nothing to branch off", "Commit something first.")
    return top


def place_of(root: str, team: str, agent: str) -> tuple[str, str]:
    """The path and the branch of the agent's worktree."""
    return f"{root}/worktrees/{team}/{agent}", f"teams/{team}/{agent}"


def refuse_stale(root: str, team: str, agent: str, top: str) -> None:
    """Leave alone what is there from another time.

    Raises:
        AlreadyExists: There is a worktree or a branch of that name, with somebody's work in it.
    """
    path, branch = place_of(root, team, agent)
    if os.path.lexists(path):
        raise AlreadyExists(
            f"{path} is there already", "It may hold work: look, then remove it with git worktree remove."
        )
    if _git(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").returncode == 0:
        raise AlreadyExists(
            f"the branch {branch} is there already", f"It may hold work: look, then git branch -D {branch}."
        )


def add(root: str, team: str, agent: str, top: str) -> tuple[str, str]:
    """Make a worktree of the checkout *top*, on a new branch from what is checked out; its path and branch.

    Raises:
        AlreadyExists: There is one of that name, with somebody's work in it.
        StorageFailed: git did not make it.
    """
    refuse_stale(root, team, agent, top)
    path, branch = place_of(root, team, agent)
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    done = _git(top, "worktree", "add", "--quiet", "-b", branch, path)
    if done.returncode != 0:
        raise StorageFailed(f"git made no worktree {path}: {done.stderr.strip()}", "See `git worktree list`.")
    return path, branch


def _git(directory: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git there, whatever repository the environment speaks of: a hook's is not the agent's."""
    unset = [word for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE") for word in ("-u", name)]
    done = subprocess.run(
        ["env", *unset, "git", "-C", directory, *words],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    if done.returncode in (126, 127):
        raise InvalidValue(f"git can't be run: {done.stderr.strip()}", "Install git, or leave out --worktree.")
    return done
