"""Removing a closed team from the disk: out of sight at once, its own record last, and then file by file."""

from __future__ import annotations

import os

from teams_cli.store.files import disk

_PARTS = ("tasks", "index", "teams")
"""Where a team has its files. A crash in between leaves a closed team with less in it, which can be removed again."""


def take_away(root: str, team: str) -> str:
    """Move the team's directories to where nobody looks for them; where that is. All its locks are held.

    Raises:
        StorageFailed: One can't be moved; those before it are gone.
    """
    trash = f"{root}/tmp/dropped-{team}-{os.urandom(6).hex()}"
    os.mkdir(trash, 0o700)
    for part in _PARTS:
        place = f"{root}/{part}/{team}"
        if os.path.isdir(place):
            try:
                os.rename(place, f"{trash}/{part}")
            except OSError as error:
                raise disk.failed("remove", place, error) from None
            disk.confirm(f"{root}/{part}", f"{root}/{part}")
    return trash


def empty(trash: str) -> None:
    """Remove what was taken away. What can't be removed now takes room, and hurts nobody."""
    import shutil

    shutil.rmtree(trash, ignore_errors=True)
