"""Marks: empty files by which records are found without reading all, by their label or as ones that owe a notice."""

from __future__ import annotations

import os

from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


def make(paths: Collection[str]) -> None:
    """Make a record findable before it says why: a mark too many does no harm, one too few might.

    Raises:
        StorageFailed: The system refused.
    """
    for path in paths:
        parent = os.path.dirname(path)
        try:
            for made in (os.path.dirname(parent), parent):
                if not os.path.isdir(made):
                    os.mkdir(made, 0o700)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise disk.failed("write", path, error) from None


def clear(paths: Collection[str], kept: Collection[str] = ()) -> None:
    """Remove marks by which a record is not to be found any more."""
    for path in paths:
        if path not in kept:
            disk.discard(path)
