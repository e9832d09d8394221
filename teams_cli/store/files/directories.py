"""The directories of a file store: their paths, the numbers of the records in them, changes of several records in one
commit, and marks.

No number is given twice, even if the file that had the number is gone. The highest number is noted in the name of an
empty file, `.last.<number>`. The listing of the directory, which is needed anyway, shows this note. The note becomes
durable together with the directory's entry for the record. It is updated after the record was stored. If the note is
missing or too low, as after a crash or with files of an older version, the records show the number.

Records that are created or changed together are first written into one file, `.together`. The rename of this file is
the commit, so either all of them are stored or none. The next change in the directory, usually made by the same
process, gives each record its own file and removes `.together`. Until then readers find the records in `.together`.

Marks are empty files that show which records have a label or owe a notice, so that not all records need to be read.
Marks of a label are in `<label>/` for numbers below a thousand, and in `<label>.<thousand>/` for each further thousand.
With 10,000 tasks in a single directory, `claim-task --next` would take 9 ms instead of 1.6 ms. Version 0.1 put all
marks of a label into `<label>/`.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.names import is_id, is_name, is_number
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind
from teams_cli.store.documents import decode, encode, indented, loads, own_document
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    R = TypeVar("R", bound=Record)
    T = TypeVar("T")


PACKED = "packed.json"
"""The file in which older versions packed the messages of a directory of the log."""
OWED = "owed"
"""The name of a team's directory for the marks of records that owe a notice. It has no records."""
TOGETHER = ".together"
"""The file with the records that were committed together, as long as they have no files of their own."""
_LARGEST_TOGETHER = 1 << 30
_LAST = ".last."
_NEW = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
_DIRECTORIES_REMEMBERED = 1000
_PLURALS = {"inbox": "inboxes", "evidence": "evidence"}


class Layout:
    """The paths below a root. Each name becomes a part of a path, so an invalid name is refused."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.teams = f"{root}/teams"
        self.temp = f"{root}/tmp"
        self._directories: dict[tuple[str, str], str] = {}

    def team(self, team: str) -> str:
        """Return the directory that has everything of a team except its tasks."""
        return f"{self.teams}/{_checked(team)}"

    def tasks(self, team: str) -> str:
        """Return the directory of a team's tasks."""
        return f"{self.root}/tasks/{_checked(team)}"

    def directory(self, team: str, kind: Kind[R]) -> str:
        """Return the directory that has all records of a kind."""
        return self._directory(team, kind.name)

    def holds(self, team: str, kinds: Collection[str]) -> set[str]:
        """Return the *kinds* that have a directory in the team."""
        return {kind for kind in kinds if _is_there(self._directory(team, kind))}

    def _directory(self, team: str, kind: str) -> str:
        if directory := self._directories.get((team, kind)):
            return directory
        if kind == "task":
            directory = self.tasks(team)
        elif kind == "team":
            directory = self.team(team)
        else:
            directory = f"{self.team(team)}/{_PLURALS.get(kind) or f'{kind}s'}"
        if len(self._directories) >= _DIRECTORIES_REMEMBERED:
            self._directories.clear()
        self._directories[team, kind] = directory
        return directory

    def path(self, team: str, kind: Kind[R], key: str) -> str:
        """Return the path of a record's file. Raise an error if the team's directory is a symbolic link: it may lead to
        the directory of another team, and so to that team's lock.
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
        """Return the path of the team's history."""
        return f"{self.team(team)}/history.jsonl"

    def owed(self, team: str) -> str:
        """Return the directory with the marks of records that owe a notice."""
        return f"{self.team(team)}/{OWED}"

    def index(self, team: str, kind: Kind[R]) -> str:
        """Return the directory with the marks that show the labels of a kind's records."""
        return f"{self.directory(team, kind)}/index"

    def names_in_index(self, team: str, kind: Kind[R]) -> Sequence[str]:
        """Return the names of the directories in the index of a kind, each with marks of one label, in any order."""
        return disk.names_in(self.index(team, kind))

    def labels(self, team: str, kind: Kind[R]) -> list[str]:
        """Return the labels of a kind that have a directory of marks, even if the directory is empty by now."""
        if not kind.label:
            return []
        return sorted({label_of(name) for name in self.names_in_index(team, kind)})

    def _label_mark(self, team: str, kind: Kind[R], label: str, key: str) -> str:
        return f"{self.index(team, kind)}/{path_in_index(label, key)}"

    def _owed_mark(self, team: str, kind: Kind[R], key: str) -> str:
        return f"{self.owed(team)}/{name_of_owed(kind.name, key)}"

    def marks(self, team: str, kind: Kind[R], key: str, record: R) -> list[str]:
        """Return the paths of the marks that *record* should have. Marks are empty files by which records are found:
        one shows its label, and one shows that it owes a notice.
        """
        paths = []
        if kind.label and (label := kind.label(record)):
            paths.append(self._label_mark(team, kind, label, key))
        if getattr(record, "owed", None):
            paths.append(self._owed_mark(team, kind, key))
        return paths

    def outdated_marks(
        self, team: str, kind: Kind[R], key: str, marks_before: list[str], marks_now: list[str]
    ) -> list[str]:
        """Return the marks to remove after a change of a record, by its marks before and after the change.

        As long as a record owes a notice, it keeps the marks of its earlier labels, so that its change also wakes
        agents that wait for these labels. The change that notes that the notice was sent removes these marks.
        """
        owed_mark = self._owed_mark(team, kind, key)
        if owed_mark in marks_now:
            return []
        paths = marks_before
        if owed_mark in marks_before:
            paths = self.all_marks(team, kind, key, self.labels(team, kind))
        return [path for path in paths if path not in marks_now]

    def all_marks(self, team: str, kind: Kind[R], key: str, labels: Collection[str]) -> list[str]:
        """Return all marks that the record under *key* could have, if *labels* are all labels of its kind."""
        return [*(self._label_mark(team, kind, label, key) for label in labels), self._owed_mark(team, kind, key)]


def _is_there(path: str) -> bool:
    """Whether the file exists. Also True if the system refuses to say; an attempt to read the file then shows why."""
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


def noted_number(names: Iterable[str]) -> int:
    """Return the highest number noted by a file `.last.<number>` among the *names* in a directory; 0 if none is."""
    digits = [name[len(_LAST) :] for name in names if name.startswith(_LAST)]
    return max(map(int, filter(is_number, digits)), default=0)


def numbers_given(names: Collection[str], kind: Kind[Any]) -> tuple[int, int]:
    """Return two numbers for a directory with these file *names*: the highest number that a note in the directory says
    was given to a record, and the highest number of a record. The higher of the two is the one that was given last.
    """
    numbers = (kind.number_in(name[:-5]) for name in names if name.endswith(".json"))
    return noted_number(names), max(numbers, default=0)


def raise_note(directory: str, noted: int, number: int) -> None:
    """Record that *number* was given in the directory: rename the file `.last.<noted>`, which shows the highest number
    so far.

    The record with the new number is stored already, so errors of the disk are ignored.
    """
    try:
        os.rename(f"{directory}/{_LAST}{noted}", f"{directory}/{_LAST}{number}")
    except FileNotFoundError:
        try:
            note_number(directory, number)
        except errors.StorageFailed:
            return
    except OSError:
        return


def note_number(directory: str, number: int) -> None:
    """Record that *number* was given in the directory, by the empty file `.last.<number>`.

    Raises:
        StorageFailed: The system refused.
    """
    path = f"{directory}/{_LAST}{number}"
    try:
        os.close(os.open(path, _NEW, 0o600))
    except OSError as error:
        raise disk.failed("create", path, error) from None


def remove_lower_notes(directory: str) -> None:
    """Remove the files in the directory whose names note a number, except for the one with the highest number."""
    names = disk.names_in(directory)
    highest = f"{_LAST}{noted_number(names)}"
    for name in names:
        if name.startswith(_LAST) and name != highest:
            disk.discard(f"{directory}/{name}")


def commit_together(layout: Layout, team: str, kind: Kind[R], records: Sequence[R]) -> None:
    """Store either all the *records*, in one commit, or none of them. The caller holds the lock of their directory, and
    has called `settle`, so that no earlier records are in the common file.

    Raises:
        InvalidValue: A record can't be stored; none was.
        StorageFailed: The system refused; no record was stored.
        OutcomeUnknown: All records were stored, but the disk did not confirm it.
    """
    files = {getattr(record, kind.key): encode(record) for record in records}
    texts = {key: data.decode() for key, data in files.items()}
    content = indented(texts).encode()
    with disk.Written(layout.temp, content) as temp:
        for record in records:
            make_marks(layout.marks(team, kind, getattr(record, kind.key), record))
        disk.commit(temp, f"{layout.directory(team, kind)}/{TOGETHER}")
    try:
        settle(layout, team, kind)
    except errors.TeamsError:  # the records are stored: the next change in the directory tries again
        return


def settle(layout: Layout, team: str, kind: Kind[R]) -> None:
    """Give a file of its own to each of the records that were committed together. The caller holds the lock of their
    directory. If this fails, the records are still in their common file.

    The last record gets its file first. So a reader that goes through the records by number, and finds the file of one
    of them, also finds the files of all later ones.
    """
    directory = layout.directory(team, kind)
    if not (files := _committed_together(directory, kind)):
        return
    written: list[tuple[str, str]] = []
    outdated: list[str] = []
    # Everything that may fail comes first: new marks and temporary files. Then the files are moved to their places.
    for key, data in reversed([*files.items()]):
        path = f"{directory}/{key}.json"
        try:
            data_before = disk.read_file(path)
        except FileNotFoundError:
            data_before = None
        if data_before != data:
            marks_now = layout.marks(team, kind, key, decode(data, kind, key, f"{directory}/{TOGETHER}"))
            make_marks(marks_now)
            if data_before is not None:  # it is not decoded here, so it may have the mark of any label
                marks_before = layout.all_marks(team, kind, key, layout.labels(team, kind))
                outdated += layout.outdated_marks(team, kind, key, marks_before, marks_now)
            written.append((disk.write_temp(layout.temp, data), path))
    for temp, path in written:
        disk.put(temp, path)
    try:
        disk.sync_directory(directory)
    except OSError as error:
        raise disk.failed("write", directory, error) from None
    noted = noted_number(disk.names_in(directory))
    highest = max(map(kind.number_in, files))
    if highest > noted:
        raise_note(directory, noted, highest)
    disk.discard(f"{directory}/{TOGETHER}")
    clear_marks(outdated)


def read(path: str, kind: Kind[R], key: str, read_file: Callable[[str], bytes] = disk.read_file) -> bytes:
    """Read all bytes of the record at *path*. If the record was committed together with others, it may still be in the
    common file.

    Raises:
        FileNotFoundError: There is no such record.
        DamagedRecord, StorageFailed: As for `disk.read_file`.
    """
    data = _committed_together(os.path.dirname(path), kind).get(key)
    return read_file(path) if data is None else data


def document_in(path: str, kind: Kind[Any], key: str) -> dict[str, Any]:
    """Return the JSON object of the record at *path*, with every field that has a value. A file that this program wrote
    is not checked field by field, which would take longer. Errors are as for `read`.
    """
    are_some_together = os.path.lexists(f"{os.path.dirname(path)}/{TOGETHER}")  # this record may be among them
    if not are_some_together and (document := own_document(disk.glance(path), kind, key)) is not None:
        return document
    record: Record = decode(read(path, kind, key), kind, key, path)
    return record.to_complete_json()


def each_record(
    directory: str,
    kind: Kind[R],
    problems: list[errors.TeamsError],
    keys: Collection[str] | None,
    look: Callable[[str, Kind[R], str], T],
) -> Iterator[T]:
    """Yield what *look* returns for the path, the kind and the key of each record in the directory, or only of the
    records under *keys*, ordered by number or name. Missing files are skipped. The error of a file that cannot be read
    is appended to *problems*.
    """
    if keys is None:
        keys = keys_in(directory, kind, problems)
    else:  # ids of equal length are sorted like their numbers, which have no leading zeros
        keys = sorted(sorted(keys), key=len) if kind.numbered else sorted(keys)
    for key in keys:
        try:
            yield look(f"{directory}/{key}.json", kind, key)
        except FileNotFoundError:
            continue
        except errors.TeamsError as problem:
            problems.append(problem)


def pack(layout: Layout, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
    """Yield the key and the bytes of each record of a kind, to be copied to another store.

    Raises:
        DamagedRecord: A record has the wrong shape, or a file has a name that no record can have. Such a file is
            reported after all records.
    """
    problems: list[errors.TeamsError] = []
    directory = layout.directory(team, kind)
    for key in [team] if kind.name == "team" else keys_in(directory, kind, problems):
        path = layout.path(team, kind, key)
        data = read(path, kind, key)
        decode(data, kind, key, path)
        yield key, data
    if problems:
        raise problems[0]


def names_in(directory: str, kind: Kind[R], problems: list[errors.TeamsError]) -> list[str]:
    """Return the names of the files in the directory. For records that are still in a common file, because they were
    committed together, return the names that their own files will have. If the common file is damaged, an error is
    appended to *problems*.

    Raises:
        StorageFailed: The system refused.
    """
    while TOGETHER in (names := disk.names_in(directory)):
        try:
            if files := _committed_together(directory, kind):
                return [*{*names, *(f"{key}.json" for key in files)}]
        except errors.DamagedRecord as damage:
            problems.append(damage)
            break
        # Another process has given the records their own files meanwhile, so the directory is listed again.
    return names


def keys_in(directory: str, kind: Kind[R], problems: list[errors.TeamsError]) -> list[str]:
    """Return the keys of the records in a directory, by number or name. If the name of a file can't be a key, an error
    is appended to *problems*.
    """
    stems = [name.removesuffix(".json") for name in names_in(directory, kind, problems) if name.endswith(".json")]
    keys = _numbered_keys(stems, kind.prefix) if kind.numbered else sorted(filter(is_name, stems))
    if len(keys) < len(stems):  # some stems are no keys
        hint = f"Make it anew, as {kind.name}s are made, then remove it." if kind.numbered else "Remove it."
        valid = {*keys}
        for stem in stems:
            if stem not in valid:
                what = f"{directory}/{stem + '.json'!r}: no {kind.name} has that name"
                problems.append(errors.DamagedRecord(what, hint))
    return keys


def _numbered_keys(stems: Iterable[str], prefix: str) -> list[str]:
    """Return the *stems* that are ids with this *prefix*: first those with a number, lowest first, then those with a
    name instead, such as tasks of other programs.
    """
    begin = f"{prefix}-"
    ends = [stem[len(begin) :] for stem in stems if stem.startswith(begin)]
    numbers = sorted(map(int, filter(is_number, ends)))
    keys = [f"{begin}{number}" for number in numbers]
    if len(numbers) < len(ends):
        named = sorted(f"{begin}{end}" for end in ends if not is_number(end))
        keys += [key for key in named if is_id(key, prefix)]
    return keys


def _committed_together(directory: str, kind: Kind[R]) -> dict[str, bytes]:
    """Return, by key, the bytes of the records that are still in the common file; none if there is no such file."""
    path = f"{directory}/{TOGETHER}"
    if not (kind.numbered and os.path.lexists(path)):
        return {}
    try:
        files = loads(disk.read_file(path, _LARGEST_TOGETHER).decode())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        files = None
    if not isinstance(files, dict) or not files or not all(is_id(key, kind.prefix) for key in files):
        raise errors.DamagedRecord(f"{path}: does not say which records were created", "Move it away.", path)
    return {key: str(text).encode() for key, text in files.items()}


def path_in_index(label: str, key: str) -> str:
    """Return the path of the mark of a *label* for the record under *key*, relative to the index."""
    thousand = _thousand(key)
    return f"{label}.{thousand}/{key}" if thousand else f"{label}/{key}"


def _thousand(key: str) -> str:
    """Return the thousands of the number in *key*, such as "2" for `task-2345`; "" below a thousand or without one."""
    digits = key.rpartition("-")[2]
    return digits[:-3] if digits.isdecimal() else ""


def label_of(directory: str) -> str:
    """Return the label whose marks are in that *directory* of the index."""
    return directory.partition(".")[0]


def name_of_owed(kind: str, key: str) -> str:
    """Return the file name of the mark of a record that owes a notice."""
    return f"{kind}~{key}"


def kind_and_key_owing(file_name: str) -> tuple[str, str]:
    """Return the kind and the key of the record whose mark has the *file_name* that `name_of_owed` returned."""
    kind, _, key = file_name.partition("~")
    return kind, key


def keys_labelled(index: str, directories: Collection[str], labels: Collection[str]) -> Iterator[str]:
    """Yield the keys of records that have marks of these *labels*, lowest number first. *directories* are the names of
    all directories in the index. Each thousand of numbers has its own directories, which are read only once the caller
    has taken all keys with lower numbers.
    """
    directories_by_thousand: dict[str, list[str]] = {}
    for directory in directories:
        label, _, thousand = directory.partition(".")
        if label in labels:
            directories_by_thousand.setdefault(thousand, []).append(directory)
    # Directories without a thousand in their name may have any keys: version 0.1 put all marks into them.
    keys_by_thousand: dict[str, set[str]] = {}
    for directory in directories_by_thousand.pop("", ()):
        for key in disk.names_in(f"{index}/{directory}"):
            keys_by_thousand.setdefault(_thousand(key), set()).add(key)
    # Sorted by length and then as texts, numbers without leading zeros are in their order, and so are ids.
    for thousand in sorted(sorted({*keys_by_thousand, *directories_by_thousand}), key=len):
        keys = keys_by_thousand.get(thousand, set())
        for directory in directories_by_thousand.get(thousand, ()):
            keys.update(disk.names_in(f"{index}/{directory}"))
        yield from sorted(sorted(keys), key=len)


def keys_by_label(index: str, directories: Collection[str], names: Collection[str]) -> dict[str, Collection[str]]:
    """Return, by label, the keys of the records whose files have these *names*. Records that the *index* lists under
    no label, or under several, are under "". *directories* are the names of all directories in the index.
    """
    marked_by_label: dict[str, list[str]] = {}
    for directory in directories:
        if directory.startswith("."):  # file managers leave such files
            continue
        marked_by_label.setdefault(label_of(directory), []).extend(disk.names_in(f"{index}/{directory}"))
    unmarked = set(names)
    for keys in marked_by_label.values():
        unmarked.difference_update([f"{key}.json" for key in keys])
    count_of_marks = sum(map(len, marked_by_label.values()))
    if count_of_marks == len(names) - len(unmarked):
        # The usual case, fast even with thousands of tasks: each mark belongs to a record, and no record has two.
        return {"": _keys(unmarked), **marked_by_label}
    labels_of: dict[str, set[str]] = {key: set() for key in _keys(names)}
    for label, keys in marked_by_label.items():
        for key in keys:
            if key in labels_of:  # else the record of the mark is gone
                labels_of[key].add(label)
    keys_of_label: dict[str, list[str]] = {label: [] for label in ("", *marked_by_label)}
    for key, labels in labels_of.items():
        label = labels.pop() if len(labels) == 1 else ""
        keys_of_label[label].append(key)
    return {**keys_of_label}


def _keys(names: Collection[str]) -> set[str]:
    return {name[:-5] for name in names if name.endswith(".json")}


def make_marks(paths: Collection[str]) -> None:
    """Make the marks by which a record is found. This is done before the record is stored: an extra mark does no harm,
    but a record without its mark might not be found.
    """
    for path in paths:
        try:
            try:
                _make_file(path)
            except FileNotFoundError:
                directory = os.path.dirname(path)
                for missing in (os.path.dirname(directory), directory):
                    try:
                        os.mkdir(missing, 0o700)
                    except FileExistsError:  # it was not missing, or another process has just made it
                        continue
                _make_file(path)
        except OSError as error:
            raise disk.failed("write", path, error) from None


def _make_file(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def clear_marks(paths: Collection[str], kept: Collection[str] = ()) -> None:
    """Remove the marks at these *paths*, except those in *kept*. Version 0.1 put some marks into another directory;
    they are removed from there, too.
    """
    for path in set(paths).difference(kept):
        disk.discard(path)
        index, directory, key = path.rsplit("/", 2)
        label, dot, _ = directory.partition(".")
        if dot:  # LABEL.N holds the further thousands of marks; version 0.1 had all of them in LABEL
            disk.discard(f"{index}/{label}/{key}")
