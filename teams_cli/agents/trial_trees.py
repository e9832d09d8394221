"""Trial trees: a commit in a checkout of its own, for as long as something is tried there."""

from __future__ import annotations

import os
from contextlib import contextmanager

from teams_cli import errors, text
from teams_cli.agents import git, isolation, submodules
from teams_cli.store.files import disk, locks
from teams_cli.teams import settings
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_OWN, _LOCK = ".own-", ".lock"


@contextmanager
def tree(
    team: Team, repository: str, commit: str, path: str, environ: Mapping[str, str], otherwise: str
) -> Iterator[str]:
    """Have the commit checked out at *path*, with its submodules as far as this machine has them, and furnished as
    worktrees of the team are; what is said of a failure there: which submodules are missing. It is gone afterwards, and
    so is what one that was killed left there. *otherwise* says what does not happen if it can't be had.

    Raises:
        SetupFailed, StorageFailed: It can't be furnished.
    """
    if os.path.lexists(path):
        clear(repository, path)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    except OSError as error:
        raise disk.failed("make", os.path.dirname(path), error) from None
    try:  # forced twice: git may know of one there that is gone, locked while it was made
        git.must(repository, "worktree", "add", "--quiet", "--detach", "--force", "--force", path, commit)
        missing = submodules.fill(path, commit)
        isolation.furnish(team, repository, path, environ, otherwise)
        yield _lacking(
            [name for name in missing if not os.path.isdir(f"{path}/{name}") or not os.listdir(f"{path}/{name}")]
        )
    finally:
        clear(repository, path)


def _lacking(names: list[str]) -> str:
    if not names:
        return ""
    set_up = f"teams set {settings.WORKTREE_SETUP} 'git submodule update --init --recursive'"
    return f"[no repository on this machine has the commits of submodules: {text.listed(names)}; get them: {set_up}]"


@contextmanager
def own_place(root: str, team: str, repository: str) -> Iterator[str]:
    """A place for a tree that no other process has, as long as it is used. What those left who were killed is cleared
    away.
    """
    directory = f"{root}/worktrees/{team}"
    for name in disk.names_in(directory):
        lock = f"{directory}/{name}"
        if name.startswith(_OWN) and name.endswith(_LOCK) and (held := locks.hold(lock, root)) is not None:
            clear(repository, lock.removesuffix(_LOCK))
            _give_back(lock, held)
    lock = f"{directory}/{_OWN}{os.urandom(6).hex()}{_LOCK}"
    held = locks.hold(lock, root)
    if held is None:  # somebody clears it already
        raise errors.StorageFailed(f"{lock} is locked by another", "Try again.")
    try:
        yield lock.removesuffix(_LOCK)
    finally:
        _give_back(lock, held)


def _give_back(lock: str, held: int) -> None:
    disk.discard(lock)
    os.close(held)


def clear(repository: str, path: str) -> None:
    """Remove the checkout, also one that was half made or half removed by one that was ended."""
    if git.run(repository, "worktree", "remove", "--force", "--force", path).returncode == 0:
        return
    import shutil  # dear, and a check on the commit alone is rare

    shutil.rmtree(path, ignore_errors=True)
    git.run(repository, "worktree", "unlock", path)
    git.run(repository, "worktree", "prune")
