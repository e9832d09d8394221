"""Marking records anew, where their marks are found wrong: as a process that was killed leaves them, or a loss."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.files import disk, marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.files.engine import FileStore

    R = TypeVar("R", bound=Record)

_AT_ONCE = 500
"""How many are marked while others wait for their turn."""


def mark_anew(store: FileStore, team: str, kind: Kind[R], keys: Collection[str]) -> None:
    """See the contract."""
    waiting, labels = list(keys), store.layout.labels(team, kind)
    try:
        while waiting:
            with store.lock(directory := store.layout.directory(team, kind), 0.0):
                disk.confirm(directory, directory)  # or a power cut brings back what had the marks that go
                for key in waiting[:_AT_ONCE]:
                    _mark(store, team, kind, key, labels)
            del waiting[:_AT_ONCE]
    except errors.TeamsError:  # somebody is changing one
        return


def _mark(store: FileStore, team: str, kind: Kind[R], key: str, labels: Collection[str]) -> None:
    try:
        kept = store.layout.marks(team, kind, key, store.get(team, kind, key)[0])
    except errors.NotFound:
        kept = []
    except errors.TeamsError:  # nobody can tell what belongs there
        return
    marks.make(kept)
    marks.clear(store.layout.all_marks(team, kind, key, labels), kept)
