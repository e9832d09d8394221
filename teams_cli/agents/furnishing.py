"""Furnishing worktrees: what git does not bring along is copied, and a command is run, before an agent starts there."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.agents import git
from teams_cli.teams import settings
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_END = 2000


class SetupFailed(errors.TeamsError):
    """The command that prepares a worktree failed; nothing is started in it."""


def furnish(team: Team, top: str, tree: str, environ: Mapping[str, str], otherwise: str) -> None:
    """Bring into the new worktree *tree* of the checkout *top* what the team's settings say: `worktree.copy`, then
    `worktree.setup`, which is run with *environ*. *otherwise* says what did not happen if that fails.

    Raises:
        SetupFailed: The command failed, with the end of what it said.
        InvalidValue: The patterns lead out of the repository.
        StorageFailed: A file could not be copied.
    """
    _copy(str(settings.value(team, settings.WORKTREE_COPY)).split(), top, tree)
    script = str(settings.value(team, settings.WORKTREE_SETUP))
    if not script:
        return
    from teams_cli.agents import shell

    seconds = float(settings.value(team, "checkTimeout"))
    done = shell.run(script, tree, environ, settings.WORKTREE_SETUP, seconds)
    if done.status:
        said = (done.errors.strip() or done.output.strip())[-_END:]
        how = f"exit status {done.status}" if done.status > 0 else f"ended by signal {-done.status}"
        raise SetupFailed(
            f"{settings.WORKTREE_SETUP} failed in the new worktree ({how}), so {otherwise}"
            + (f": {said}" if said else ""),
            f"Try it in your own worktree; change it: teams set {settings.WORKTREE_SETUP} COMMAND",
        )


def _copy(patterns: list[str], top: str, tree: str) -> None:
    """Copy the files of the checkout that git ignores and a pattern names; those that are there already stay."""
    if not patterns:
        return
    from shutil import copy2

    named = [f":(glob){pattern}" for pattern in text.file_patterns(patterns)]
    try:
        listed = git.names(top, "ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", *named)
    except errors.StorageFailed as problem:  # a pattern that is outside the repository, say
        raise SetupFailed(problem.message, f"Fix it: teams set {settings.WORKTREE_COPY} PATTERNS") from None
    for name in listed:
        target = f"{tree}/{name}"
        if os.path.lexists(target):
            continue
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            copy2(f"{top}/{name}", target, follow_symlinks=False)
        except OSError as error:
            why = f"can't copy {name} to {tree}: {error.strerror}"
            raise errors.StorageFailed(why, f"See {settings.WORKTREE_COPY}: teams settings") from None
