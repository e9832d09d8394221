"""The path of each record's file, and the marks by which it is found; `engine` shows the tree."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.names import is_name
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind
from teams_cli.store.files import disk, marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TypeVar

    R = TypeVar("R", bound=Record)

PACKED = "packed.json"
"""The file of a directory of the log that has messages at rest, many in one."""
OWED = "owed"
"""The directory of a team that has no records, but marks."""
_REMEMBERED = 1000
_PLURALS = {"inbox": "inboxes", "evidence": "evidence"}


class Layout:
    """The paths below a root. What is asked for as a name that can't be one is refused: it becomes a part of a path."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.teams = f"{root}/teams"
        self.temp = f"{root}/tmp"
        self._directories: dict[tuple[str, str], str] = {}

    def team(self, team: str) -> str:
        """The directory of all that a team has but its tasks."""
        return f"{self.teams}/{_checked(team)}"

    def tasks(self, team: str) -> str:
        """The directory of a team's tasks."""
        return f"{self.root}/tasks/{_checked(team)}"

    def directory(self, team: str, kind: Kind[R]) -> str:
        """The directory of all records of a kind."""
        return self._directory(team, kind.name)

    def holds(self, team: str, kinds: Collection[str]) -> set[str]:
        """Those of the kinds, by their names, that have a directory in the team."""
        return {kind for kind in kinds if _is_there(self._directory(team, kind))}

    def _directory(self, team: str, kind: str) -> str:
        if (found := self._directories.get((team, kind))) is None:
            within = "" if kind == "team" else f"/{_PLURALS.get(kind) or f'{kind}s'}"
            found = self.tasks(team) if kind == "task" else self.team(team) + within
            if len(self._directories) >= _REMEMBERED:
                self._directories.clear()
            self._directories[team, kind] = found
        return found

    def path(self, team: str, kind: Kind[R], key: str) -> str:
        """The file of a record.

        Raises:
            DamagedRecord: The team's directory is a link, so that its lock would be that of another.
        """
        directory = self.directory(team, kind)
        if kind.name == "team":
            if os.path.islink(directory):
                raise errors.DamagedRecord(f"{directory}: is a symbolic link, not a directory", "Remove the link.")
            return f"{directory}/team.json"
        return f"{directory}/{_checked(key)}.json"

    def messages(self, team: str) -> str:
        """The directory of the log."""
        return f"{self.team(team)}/messages"

    def history(self, team: str) -> str:
        """The file of the history."""
        return f"{self.team(team)}/history.jsonl"

    def owed(self, team: str) -> str:
        """The directory of the marks of records that owe a notice."""
        return f"{self.team(team)}/{OWED}"

    def index(self, team: str, kind: Kind[R]) -> str:
        """The directory of the marks by which records are found by their label."""
        return f"{self.directory(team, kind)}/index"

    def in_index(self, team: str, kind: Kind[R]) -> Sequence[str]:
        """The names of the directories of marks, in no order."""
        return disk.names_in(self.index(team, kind))

    def labels(self, team: str, kind: Kind[R]) -> list[str]:
        """The labels of which there were ever marks."""
        return sorted({marks.label_of(name) for name in self.in_index(team, kind)}) if kind.label else []

    def label_mark(self, team: str, kind: Kind[R], label: str, key: str) -> str:
        """The mark by which a record of that label is found."""
        return f"{self.index(team, kind)}/{marks.place(label, key)}"

    def owed_mark(self, team: str, kind: Kind[R], key: str) -> str:
        """The mark by which a record is found that owes a notice."""
        return f"{self.owed(team)}/{marks.owed(kind.name, key)}"

    def marks(self, team: str, kind: Kind[R], key: str, record: R) -> list[str]:
        """All marks that the record has as it is now."""
        found = []
        if kind.label and (label := kind.label(record)):
            found.append(self.label_mark(team, kind, label, key))
        if getattr(record, "owed", None):
            found.append(self.owed_mark(team, kind, key))
        return found

    def marks_over(self, team: str, kind: Kind[R], key: str, former: list[str], now: list[str]) -> list[str]:
        """Of the *former* marks of a record, and of those before, all that it does not have *now*. One that owes a
        notice keeps them: they go with that of what it owes, which goes last, so that it tells of them until then.
        """
        owed = self.owed_mark(team, kind, key)
        if owed in now:
            return []
        every = self.all_marks(team, kind, key, self.labels(team, kind)) if owed in former else former
        return [mark for mark in every if mark not in now]

    def all_marks(self, team: str, kind: Kind[R], key: str, labels: Collection[str]) -> list[str]:
        """All marks that a record of that key may have, where there are those labels."""
        return [*(self.label_mark(team, kind, label, key) for label in labels), self.owed_mark(team, kind, key)]


def _is_there(path: str) -> bool:
    """Also where the system does not say: who reads it hears why."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _checked(name: str) -> str:
    if not is_name(name):
        raise errors.NotFound(f"there is nothing called {name!r}")
    return name
