"""The records of one directory: their numbers, several changed in one commit, and what was read or written before.

No number is given again, also when the file that had it is gone. The highest stands in the name of an empty file,
`.last.<number>`, which the listing of the directory shows for nothing and which becomes durable with the entry of the
record itself. It is raised behind the record: where it is missing or late, as after a crash or with files of an older
version, the records tell.

Records that are created or changed together are in one file, `.together`, until each is in its own. Its rename is the
commit. The next change in the directory, mostly that by the same process, gives each its file and removes that one;
until then readers find in it how they are. So it is all or none.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.names import is_id, is_name, is_number
from teams_cli.records.json_text import indented, loads
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind
from teams_cli.store.documents import decode, encode, own_document
from teams_cli.store.files import disk, marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    R = TypeVar("R", bound=Record)
    T = TypeVar("T")


PACKED = "packed.json"
"""The file in which older versions packed the messages of a directory of the log."""
OWED = "owed"
"""The directory of a team that has marks, but no records."""
_DIRECTORIES_REMEMBERED = 1000
_PLURALS = {"inbox": "inboxes", "evidence": "evidence"}


class Layout:
    """The paths below a root. A name that could not be a name is refused, since it becomes a part of a path."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.teams = f"{root}/teams"
        self.temp = f"{root}/tmp"
        self._directories: dict[tuple[str, str], str] = {}

    def team(self, team: str) -> str:
        """Return the directory of everything of a team but its tasks."""
        return f"{self.teams}/{_checked(team)}"

    def tasks(self, team: str) -> str:
        """Return the directory of a team's tasks."""
        return f"{self.root}/tasks/{_checked(team)}"

    def directory(self, team: str, kind: Kind[R]) -> str:
        """Return the directory of all records of a kind."""
        return self._directory(team, kind.name)

    def holds(self, team: str, kinds: Collection[str]) -> set[str]:
        """Return those of the kinds that have a directory in the team."""
        return {kind for kind in kinds if _is_there(self._directory(team, kind))}

    def _directory(self, team: str, kind: str) -> str:
        if (found := self._directories.get((team, kind))) is None:
            within = "" if kind == "team" else f"/{_PLURALS.get(kind) or f'{kind}s'}"
            found = self.tasks(team) if kind == "task" else self.team(team) + within
            if len(self._directories) >= _DIRECTORIES_REMEMBERED:
                self._directories.clear()
            self._directories[team, kind] = found
        return found

    def path(self, team: str, kind: Kind[R], key: str) -> str:
        """Return the file of a record.

        Raises:
            DamagedRecord: The team's directory is a link, so that its lock would be that of another.
        """
        directory = self.directory(team, kind)
        if kind.name == "team":
            if os.path.islink(directory):
                raise errors.DamagedRecord(
                    f"{directory}: is a symbolic link, not a directory", "Remove the link.", directory
                )
            return f"{directory}/team.json"
        return f"{directory}/{_checked(key)}.json"

    def messages(self, team: str) -> str:
        """Return the directory of the log."""
        return f"{self.team(team)}/messages"

    def history(self, team: str) -> str:
        """Return the file of the history."""
        return f"{self.team(team)}/history.jsonl"

    def owed(self, team: str) -> str:
        """Return the directory with the marks of records that owe a notice."""
        return f"{self.team(team)}/{OWED}"

    def index(self, team: str, kind: Kind[R]) -> str:
        """Return the directory with the marks that find records by label."""
        return f"{self.directory(team, kind)}/index"

    def in_index(self, team: str, kind: Kind[R]) -> Sequence[str]:
        """Return the names of the directories with marks, in no order."""
        return disk.names_in(self.index(team, kind))

    def labels(self, team: str, kind: Kind[R]) -> list[str]:
        """Return the labels that have or had marks."""
        return sorted({marks.label_of(name) for name in self.in_index(team, kind)}) if kind.label else []

    def label_mark(self, team: str, kind: Kind[R], label: str, key: str) -> str:
        """Return the mark that finds a record by that label."""
        return f"{self.index(team, kind)}/{marks.place(label, key)}"

    def owed_mark(self, team: str, kind: Kind[R], key: str) -> str:
        """Return the mark of a record that owes a notice."""
        return f"{self.owed(team)}/{marks.owed(kind.name, key)}"

    def marks(self, team: str, kind: Kind[R], key: str, record: R) -> list[str]:
        """Return all marks of the record as it is now."""
        found = []
        if kind.label and (label := kind.label(record)):
            found.append(self.label_mark(team, kind, label, key))
        if getattr(record, "owed", None):
            found.append(self.owed_mark(team, kind, key))
        return found

    def marks_over(self, team: str, kind: Kind[R], key: str, former: list[str], now: list[str]) -> list[str]:
        """Return those of the *former* marks of a record, and of earlier ones, that it does not have *now*.

        A record that owes a notice keeps all of them: they are removed after the mark of the notice, and wake waiting
        agents until then.
        """
        owed = self.owed_mark(team, kind, key)
        if owed in now:
            return []
        every = self.all_marks(team, kind, key, self.labels(team, kind)) if owed in former else former
        return [mark for mark in every if mark not in now]

    def all_marks(self, team: str, kind: Kind[R], key: str, labels: Collection[str]) -> list[str]:
        """Return all marks that a record of that key may have, given those labels."""
        return [*(self.label_mark(team, kind, label, key) for label in labels), self.owed_mark(team, kind, key)]


def _is_there(path: str) -> bool:
    """Whether the file exists. True also if the system refuses to say: reading it then gives the reason."""
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


_LAST = ".last."
_NEW = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC


def highest(names: Iterable[str]) -> int:
    """Return the highest number that is noted in the names of a directory, or 0."""
    said = [name[len(_LAST) :] for name in names if name.startswith(_LAST)]
    return max((int(digits) for digits in said if is_number(digits)), default=0)


def given(names: Collection[str], kind: Kind[Any]) -> tuple[int, int]:
    """Return the highest number that was given in a directory with these names, by the note and by the records."""
    return highest(names), max((in_name(name, kind) for name in names), default=0)


def in_name(file_name: str, kind: Kind[Any]) -> int:
    """Return the number in the file name of a numbered record; 0 if it is not one."""
    return kind.number_in(file_name[:-5]) if file_name.endswith(".json") else 0


def keys_among(words: Iterable[str], kind: Kind[Any]) -> list[str]:
    """Return the words that are keys of numbered records, lowest number first. Keys that are names come last."""
    begin = f"{kind.prefix}-"
    own = [word[len(begin) :] for word in words if word.startswith(begin)]
    numbers = sorted(map(int, filter(is_number, own)))
    named = () if len(numbers) == len(own) else sorted(f"{begin}{word}" for word in own if not is_number(word))
    return [*(f"{begin}{number}" for number in numbers), *(key for key in named if is_id(key, kind.prefix))]


def in_order(keys: Iterable[str], kind: Kind[Any]) -> list[str]:
    """Return the keys by number or name."""
    return sorted(sorted(keys), key=len) if kind.numbered else sorted(keys)


def note(directory: str, before: int, number: int) -> None:
    """Raise the noted highest number of the directory from *before* to *number*.

    The record with that number exists already, so errors of the disk are ignored.
    """
    try:
        os.rename(f"{directory}/{_LAST}{before}", f"{directory}/{_LAST}{number}")
    except FileNotFoundError:
        keep(directory, number)
    except OSError:
        return


def keep(directory: str, number: int) -> None:
    """Note *number* as the highest of the directory unless it is higher already, if possible."""
    try:
        os.close(os.open(f"{directory}/{_LAST}{number}", _NEW, 0o600))
    except OSError:
        return


def tidy(directory: str, names: Iterable[str]) -> None:
    """Remove notes below the highest."""
    top = f"{_LAST}{highest(names)}"
    for name in names:
        if name.startswith(_LAST) and name != top:
            disk.discard(f"{directory}/{name}")


NAME = ".together"
_LARGEST = 1 << 30


def commit(layout: Layout, team: str, kind: Kind[R], records: Sequence[R]) -> None:
    """Store all given records, or none. The caller holds the lock of their directory, and has settled it.

    Raises:
        InvalidValue: One can't be stored.
        StorageFailed: None is there.
        OutcomeUnknown: All are, but the disk did not confirm it.
    """
    files = {getattr(record, kind.key): encode(record) for record in records}
    content = indented({key: data.decode() for key, data in files.items()}).encode()
    with disk.Written(layout.temp, content) as temp:
        for record in records:
            marks.make(layout.marks(team, kind, getattr(record, kind.key), record))
        disk.commit(temp, f"{layout.directory(team, kind)}/{NAME}")
    try:
        settle(layout, team, kind)
    except errors.TeamsError:  # they are there: whoever comes next tries again
        return


def settle(layout: Layout, team: str, kind: Kind[R]) -> None:
    """Give records that were committed together their own files. The caller holds the lock of their directory.

    The first record comes last: a reader that goes by number and finds its own file finds those of the others too.

    Raises:
        DamagedRecord: Nobody can tell which they are.
        StorageFailed: The system refused; they are where they were.
    """
    directory = layout.directory(team, kind)
    if not (files := _waiting(directory, kind)):
        return
    written: list[tuple[str, str]] = []
    over: list[str] = []
    for key, data in reversed([*files.items()]):
        path = f"{directory}/{key}.json"
        if (former := _content(path)) != data:
            now = layout.marks(team, kind, key, decode(data, kind, key, f"{directory}/{NAME}"))
            marks.make(now)
            if former is not None:
                every = layout.all_marks(team, kind, key, layout.labels(team, kind))
                over += layout.marks_over(team, kind, key, every, now)
            written.append((disk.write_temp(layout.temp, data), path))
    for temp, path in written:
        disk.put(temp, path)
    try:
        disk.sync_directory(directory)
    except OSError as error:
        raise disk.failed("write", directory, error) from None
    before, last = highest(disk.names_in(directory)), max(map(kind.number_in, files))
    if last > before:
        note(directory, before, last)
    disk.discard(f"{directory}/{NAME}")
    marks.clear(over)


def _content(path: str) -> bytes | None:
    """Return the content of the file; None if it does not exist."""
    try:
        return disk.read_file(path)
    except FileNotFoundError:
        return None


def read(path: str, kind: Kind[R], key: str, read_file: Callable[[str], bytes] = disk.read_file) -> bytes:
    """Read all bytes of a record, whose file at *path* may not exist yet.

    Raises:
        FileNotFoundError: There is no such record.
        DamagedRecord, StorageFailed: As for `disk.read_file`.
    """
    data = _waiting(os.path.dirname(path), kind).get(key)
    return read_file(path) if data is None else data


def document_in(path: str, kind: Kind[Any], key: str) -> dict[str, Any]:
    """Return the JSON object of the record at *path*, with every field that has a value. A file of our own is only
    parsed.

    Raises:
        FileNotFoundError, DamagedRecord, StorageFailed: As for `read`.
    """
    is_waiting = os.path.lexists(f"{os.path.dirname(path)}/{NAME}")
    own = None if is_waiting else own_document(disk.glance(path), kind, key)
    return own or decode(read(path, kind, key), kind, key, path).having().to_json()


def each(
    directory: str,
    kind: Kind[R],
    problems: list[errors.TeamsError],
    keys: Collection[str] | None,
    look: Callable[[str, Kind[R], str], T],
) -> Iterator[T]:
    """Yield `look(path, kind, key)` for each file of the directory, or only for *keys*, in order.

    Missing files are skipped. The error of a file that cannot be read is appended to *problems*.
    """
    for key in keys_in(directory, kind, problems) if keys is None else in_order(keys, kind):
        try:
            yield look(f"{directory}/{key}.json", kind, key)
        except FileNotFoundError:
            continue
        except errors.TeamsError as problem:
            problems.append(problem)


def files(layout: Layout, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
    """Yield the key and the bytes of each record of a kind.

    Raises:
        DamagedRecord: One is not good, or nobody can tell which records there are; the others come first.
    """
    problems: list[errors.TeamsError] = []
    directory = layout.directory(team, kind)
    for key in [team] if kind.name == "team" else keys_in(directory, kind, problems):
        path = layout.path(team, kind, key)
        data = read(path, kind, key)
        decode(data, kind, key, path)
        yield key, data
    for problem in problems:
        raise problem


def names_in(directory: str, kind: Kind[R], problems: list[errors.TeamsError]) -> list[str]:
    """Return the names in the directory, with the names of records that have no file of their own yet. If these are
    unknown, an error is appended to *problems*.

    Raises:
        StorageFailed: The system refused.
    """
    while NAME in (names := disk.names_in(directory)):
        try:
            if files := _waiting(directory, kind):
                return [*{*names, *(f"{key}.json" for key in files)}]
        except errors.DamagedRecord as damage:
            problems.append(damage)
            break
    return names  # where there were any, all have their files by now, and this is a later look


def keys_in(directory: str, kind: Kind[R], problems: list[errors.TeamsError]) -> list[str]:
    """Return the keys of the files in a directory, by number or name. For other files errors are appended to
    *problems*.
    """
    found = [name[:-5] for name in names_in(directory, kind, problems) if name.endswith(".json")]
    keys = keys_among(found, kind) if kind.numbered else sorted(filter(is_name, found))
    if len(keys) < len(found):
        known = {*keys}
        hint = f"Make it anew, as {kind.name}s are made, then remove it." if kind.numbered else "Remove it."
        for word in found:
            if word not in known:
                problems.append(
                    errors.DamagedRecord(f"{directory}/{word + '.json'!r}: no {kind.name} has that name", hint)
                )
    return keys


def _waiting(directory: str, kind: Kind[R]) -> dict[str, bytes]:
    """Return the records in the file that have no file of their own yet, by name; empty if the file does not exist."""
    path = f"{directory}/{NAME}"
    if not (kind.numbered and os.path.lexists(path)):
        return {}
    try:
        files = loads(disk.read_file(path, _LARGEST).decode())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        files = None
    if not isinstance(files, dict) or not files or not all(is_id(key, kind.prefix) for key in files):
        raise errors.DamagedRecord(f"{path}: does not say which records were created", "Move it away.", path)
    return {key: str(text).encode() for key, text in files.items()}
