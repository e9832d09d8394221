"""Removing a closed team from the disk: out of sight at once, its own record last, and then file by file."""

from __future__ import annotations

import os
from contextlib import suppress

from teams_cli import errors
from teams_cli.store.files import disk

_PARTS = ("tasks", "index", "teams")
"""Where a team has its files. A crash in between leaves a closed team with less in it, which can be removed again."""


def take_away(root: str, team: str) -> str:
    """Move the team's directories to where nobody looks for them; where that is. All its locks are held.

    Raises:
        StorageFailed: One can't be moved; all are where they were.
        OutcomeUnknown: The disk did not confirm, or some are gone.
    """
    trash = f"{root}/tmp/dropped-{team}-{os.urandom(6).hex()}"
    moved: list[str] = []
    try:
        os.mkdir(trash, 0o700)
        for part in _PARTS:
            with suppress(FileNotFoundError):
                os.rename(f"{root}/{part}/{team}", f"{trash}/{part}")
                moved.append(part)
    except OSError as error:
        _put_back(root, team, trash, moved)
        raise disk.failed("remove", f"team {team} in {root}", error) from None
    for part in moved:
        disk.confirm(f"{root}/{part}", f"{root}/{part}/{team}")
    return trash


def _put_back(root: str, team: str, trash: str, moved: list[str]) -> None:
    try:
        for part in moved:
            os.rename(f"{trash}/{part}", f"{root}/{part}/{team}")
        os.rmdir(trash)
    except OSError as error:
        raise errors.OutcomeUnknown(
            f"team {team} is removed in part, and the disk refuses to go on: {error.strerror}",
            "Repeat the command: it goes on.",
        ) from None


def empty(trash: str) -> None:
    """Remove what was taken away. What can't be removed now takes room, and hurts nobody."""
    import shutil

    shutil.rmtree(trash, ignore_errors=True)
