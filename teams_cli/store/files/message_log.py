"""The log of one team's messages as files, a thousand to a directory, each written once and never changed; and the
team's history, a JSON object a line, which is derived and never the truth.

Older versions packed those of a closed team, a directory in one file, `packed.json`, which is there before the others
go. So that file is looked for after the directory was listed: it has what went away meanwhile.
"""

from __future__ import annotations

import os
import stat

from teams_cli import errors
from teams_cli.names import is_name, is_number
from teams_cli.records.json_text import dumps, loads
from teams_cli.store.documents import encode_unnumbered, heading
from teams_cli.store.files import directories, disk
from teams_cli.store.files.directories import PACKED
from teams_cli.store.files.disk import failed, release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.files.disk import Contents
    from teams_cli.store.files.locks import Lock

    R = TypeVar("R", bound=Record)


_SEGMENT = 1000
_SEVERAL = "@"
_NAME = b'\n"'
_BEHIND = b'"\n'
_CORRECT = "Correct the file or its name."


class MessageLog:
    """Messages as `<number div 1000>/<number>.<to>.<uid>.json`; number order is the order of commitment."""

    def __init__(self, directory: str, root: str, lock: Callable[[str], Lock], contents: Contents) -> None:
        self.directory = directory
        self.root = root
        self.lock = lock
        self.contents = contents
        self._packed: dict[str, Packed] = {}

    def append(
        self, kind: Kind[R], to: Sequence[str], record: R, uid: str | None, check: Callable[[], None]
    ) -> tuple[R, bool]:
        """See the contract; *check* refuses, under the lock, what is not to be appended.

        Numbers are given under the lock, and much is sent at the same time: so what takes long is done outside of it.
        Only behind the numbers that were given before, messages with the same uid can have been added meanwhile.
        The file is on the disk before, all but its number, which stands in its name and is filled in for people; the
        entry of the directory is brought to the disk behind. Whoever gives the next number does so too.
        """
        check_addressees(to, uid)
        addressee = _SEVERAL if getattr(record, "recipients", None) else to[0]
        ending = f"{addressee}.{uid or os.urandom(8).hex()}.json"
        disk.make_directories(self.directory, self.root)
        look = _Look(self)
        number, path = directories.highest(look.names) + 1, ""
        segment = (number - 1) // _SEGMENT
        earlier = self._find(look, f".{uid}.json", 0, segment) if uid is not None else None
        while not path and not earlier:  # mostly once: as long as the number has the digits that there is room for
            digits = len(str(number))
            with disk.Written(f"{self.root}/tmp", encode_unnumbered(record, kind, digits)) as temp:
                with self.lock(self.directory):
                    look = _Look(self)
                    if uid is None or not (earlier := self._find(look, f".{uid}.json", segment)):
                        check()
                        number, path = self._put_next(kind, look, temp, digits, ending)
                if not path:
                    disk.discard(temp)
        if earlier:
            disk.confirm(os.path.dirname(earlier), earlier)
            return self.decode(kind, earlier), False
        disk.confirm(os.path.dirname(path), path)
        return kind.numbering(record, number), True

    def _put_next(self, kind: Kind[R], look: _Look, temp: str, digits: int, ending: str) -> tuple[int, str]:
        """Make the file the next message, if its number has so many *digits*: the number, and the path if it is."""
        before, newest = self._given(look)
        number = max(before, newest) + 1
        kind.refuse_too_high(number)
        if len(str(number)) != digits:
            return number, ""
        path = f"{self._segment_for(number, newest)}/{number}.{ending}"
        disk.begin(temp, heading(kind, number))
        disk.put(temp, path)
        directories.note(self.directory, before, number)
        return number, path

    def _segment_for(self, number: int, newest: int) -> str:
        """The directory for the message behind the *newest*; all messages in the directories before it are durable."""
        segment = f"{self.directory}/{number // _SEGMENT}"
        first = not newest or newest // _SEGMENT != number // _SEGMENT
        if first or not os.path.isdir(segment):  # who made it may have been killed before it was durable
            before = f"{self.directory}/{newest // _SEGMENT}"
            if os.path.isdir(before):
                disk.confirm(before, before)
            disk.make_directories(segment, self.root)
        return segment

    def fetch(self, kind: Kind[R], numbers: Sequence[int], problems: list[errors.TeamsError]) -> list[R]:
        found: list[R] = []
        wanted = frozenset(numbers)
        for segment in sorted({number // _SEGMENT for number in wanted}):
            for number, name in self._names(segment, None):
                if number in wanted:
                    self._take(kind, f"{self.directory}/{segment}/{name}", None, found, problems)
        return found

    def read(
        self, kind: Kind[R], agent: str | None, after: int, problems: list[errors.TeamsError], limit: int = 0
    ) -> list[R]:
        found: list[R] = []
        for segment in self.segments():
            if segment >= (after + 1) // _SEGMENT:
                for _, name in self._names(segment, agent, after):
                    self._take(kind, f"{self.directory}/{segment}/{name}", agent, found, problems)
                    if limit and len(found) == limit:
                        return found
        return found

    def news(
        self, kind: Kind[R], agent: str, after: int, problems: list[errors.TeamsError]
    ) -> tuple[list[R], int] | None:
        """See the contract. None if older directories would have to be read too.

        Numbers are given one after the other, and a directory that is listed while messages arrive may show a later one
        and not an earlier: where one is missing, it is listed once more.
        """
        names = disk.names_in(self.directory)
        segment = max(_segments(names), default=0)
        if (after + 1) // _SEGMENT < segment:
            return None
        listed = self._names(segment, None, after)
        last = max([after, directories.highest(names), *(number for number, _ in listed[-1:])])
        if len(listed) < last - after:
            listed = [each for each in self._names(segment, None, after) if each[0] <= last]
        found: list[R] = []
        for name in _names_for(agent, [name for _, name in listed]):
            self._take(kind, f"{self.directory}/{segment}/{name}", agent, found, problems)
        return found, last

    def envelopes(self, kind: Kind[R], after: int) -> Iterator[tuple[int, str, Sequence[str]]]:
        """See the contract. Those to several have to be read for it."""
        for segment in self.segments():
            if segment >= (after + 1) // _SEGMENT:
                for name in _without_most_before(after, segment, self.listed(segment)):
                    number, to, uid = _parts(name)
                    if number > after:
                        path = f"{self.directory}/{segment}/{name}"
                        yield number, uid, [to] if to != _SEVERAL else self._recipients(kind, path)

    def _recipients(self, kind: Kind[R], path: str) -> Sequence[str]:
        """The recipients of a message to several; none if it can't be read."""
        found: list[R] = []
        self._take(kind, path, None, found, [])
        return found[0].recipients or () if found else ()  # type: ignore[attr-defined]

    def _take(
        self, kind: Kind[R], path: str, agent: str | None, found: list[R], problems: list[errors.TeamsError]
    ) -> None:
        try:
            record = self.decode(kind, path)
        except FileNotFoundError:
            return
        except errors.TeamsError as problem:
            if isinstance(problem, errors.DamagedRecord):
                problem.number = _number(os.path.basename(path))
            problems.append(problem)
            return
        if agent is None or record.to == agent or agent in (record.recipients or ()):  # type: ignore[attr-defined]
            found.append(record)

    def get(self, kind: Kind[R], key: str) -> tuple[R, bytes]:
        path = self._path_of(kind, key)
        try:
            return self.decode(kind, path), b""
        except FileNotFoundError:
            raise errors.NotFound(f"there is no {kind.name} {key}") from None

    def confirm(self, kind: Kind[R], key: str) -> None:
        path = self._path_of(kind, key)
        disk.confirm(os.path.dirname(path), path)

    def last(self) -> int:
        """See the contract."""
        return max(self._given(_Look(self)))

    def glance(self, agent: str, after: int, sent: int, to: Sequence[str]) -> int | None:
        """See the contract; what was *sent* last from here, *to* whom, needs no look either. A message whose sender was
        killed before it noted the number is seen with the next one, and by `news`.
        """
        noted = self._noted()
        none_came = noted == after or (noted == after + 1 == sent and agent not in to)
        return noted if noted and none_came else None  # older versions noted none

    def _noted(self) -> int:
        """The highest number that is noted as given."""
        return directories.highest(disk.names_in(self.directory))

    def _given(self, look: _Look) -> tuple[int, int]:
        """The highest number that was given: by what is noted of it, and by the messages that there are."""
        noted = directories.highest(look.names)
        return noted, self._newest(look, noted)

    def _newest(self, look: _Look, noted: int) -> int:
        """The highest number of a message; of those in one directory with the one that was *noted*, mostly only those
        behind it are looked at.
        """
        for segment in reversed(_segments(look.names)):
            names = _without_most_before(noted, segment, look.of(segment))
            if number := _number(max(names, key=_place, default="")):
                return number
            if number := max(map(_number, names), default=0):  # the last by name was no message
                return number
        return 0

    def place_of(self, key: str) -> tuple[int, str]:
        """The number of the message that is packed under the key, and where its file goes.

        Raises:
            DamagedRecord: It is the key of none.
        """
        if number := _number(f"{key}.json"):
            return number, f"{self.directory}/{number // _SEGMENT}/{key}.json"
        raise errors.DamagedRecord(f"{self.directory}/{key!r}: no message has that name", "Remove it.")

    def _path_of(self, kind: Kind[R], key: str) -> str:
        number = kind.number_in(key)
        segment = number // _SEGMENT
        for name in self.listed(segment) if number else ():
            if name.startswith(f"{number}.") and _number(name):
                return f"{self.directory}/{segment}/{name}"
        raise errors.NotFound(f"there is no {kind.name} {key}")

    def _find(self, look: _Look, ending: str, first: int, end: int | None = None) -> str | None:
        """The newest message whose file name ends so, in the directories from the *first* to before the *end*: a retry
        comes soon after what it repeats.
        """
        for segment in reversed(_segments(look.names)):
            if segment < first or (end is not None and segment >= end):
                continue
            names = look.of(segment)
            if f"{ending}/" not in "/".join([*names, ""]):  # as of nearly all: sooner said of all than of each
                continue
            for name in names:
                if name.endswith(ending) and _number(name):
                    return f"{self.directory}/{segment}/{name}"
        return None

    def segments(self) -> list[int]:
        """The numbers of the directories that there are, in order."""
        return _segments(disk.names_in(self.directory))

    def files(self, segment: int) -> list[tuple[int, str]]:
        """The numbers and paths of the messages in a directory, in order."""
        return [(number, f"{self.directory}/{segment}/{name}") for number, name in self._names(segment, None)]

    def _names(self, segment: int, agent: str | None, after: int = 0) -> list[tuple[int, str]]:
        """The numbers and file names of messages after that one that may be for *agent*, in order."""
        names = _without_most_before(after, segment, self.listed(segment))
        if agent is not None:
            names = _names_for(agent, names)
        if after:  # most are not, and are left out without a closer look
            last = (len(str(after)), f"{after}/")
            names = [name for name in names if _place(name) > last]
        return sorted((number, name) for name in names if (number := _number(name)))

    def listed(self, segment: int) -> list[str]:
        """The names of the files in a directory, and of those that were packed there."""
        directory = f"{self.directory}/{segment}"
        names = disk.names_in(directory)
        packed = self._look_for_packed(directory)
        return [*{*names, *packed}] if packed else names

    def _look_for_packed(self, directory: str) -> Packed | None:
        """The packed messages of the directory now."""
        self._packed.pop(directory, None)
        if not os.path.lexists(f"{directory}/{PACKED}"):
            return None

        return self._packed.setdefault(directory, Packed(directory))

    def content(self, path: str) -> bytes:
        """The file of a message that was listed, which may be packed since.

        Raises:
            FileNotFoundError: There is no such message.
            DamagedRecord, StorageFailed: As for `disk.read_file`.
        """
        return self._read(path)[0]

    def _read(self, path: str) -> tuple[bytes, str]:
        """As `content`, and where that is found: packed ones in the file with the others."""
        directory, _, name = path.rpartition("/")
        packed = self._packed.get(directory)
        if packed is None or (data := packed.get(name)) is None:
            try:
                return self.contents.read(path), path
            except FileNotFoundError:
                packed = self._look_for_packed(directory)
                if packed is None or (data := packed.get(name)) is None:
                    raise
        return data, f"{directory}/{PACKED}/{name}"

    def decode(self, kind: Kind[R], path: str) -> R:
        """The message in a file that was listed.

        Raises:
            FileNotFoundError, DamagedRecord, StorageFailed: As for `content`; or it is not one of that name.
        """
        number, to = _number(os.path.basename(path)), os.path.basename(path).split(".")[1]
        data, path = self._read(path)
        record = self.contents.decode(data, kind, f"{kind.prefix}-{number}", path)
        if getattr(record, "number", number) != number:
            raise errors.DamagedRecord(f"{path}: number: does not fit the name of the file", _CORRECT, path)
        if (to == _SEVERAL) != bool(record.recipients) or (to != _SEVERAL and to != record.to):  # type: ignore[attr-defined]
            raise errors.DamagedRecord(f"{path}: to: does not fit the name of the file", _CORRECT, path)
        return record


class _Look:
    """The names in the directory of a log and in the directories below it. Each of those is listed when it is first
    asked for: listing a large one takes long, and others may wait for the lock.
    """

    def __init__(self, log: MessageLog) -> None:
        self._log = log
        self.names = disk.names_in(log.directory)
        self._below: dict[int, list[str]] = {}

    def of(self, segment: int) -> list[str]:
        """The names of the messages in the directory of that number."""
        if segment not in self._below:
            self._below[segment] = self._log.listed(segment)
        return self._below[segment]


class Packed:
    """The messages that an older version packed in a directory, by the names of their files; empty if there is no such
    file.

    It is a row of JSON values: a heading, and each message as it was in its own file, below the name that this had:

        "messages to number 999, 999 of them"
        "1.bob.4f0c9d21a7b3e865.json"
        {
          "id": "msg-1",

    Lines of a message begin with a brace or two spaces, so one that begins with a quote is a name.
    """

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/{PACKED}"
        try:
            self.heading, *parts = disk.read_file(self.path).split(_NAME)
        except FileNotFoundError:
            self.heading, parts = b"", []
        named = (part.partition(_BEHIND) for part in parts)
        self._files = {name.decode("ascii", "replace"): text.rstrip(b"\n") + b"\n" for name, _, text in named}

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def get(self, name: str) -> bytes | None:
        """The bytes of the file that had that name; None if it is not here."""
        return self._files.get(name)

    @property
    def announced(self) -> int:
        """The number of messages that the heading gives; 0 if it gives none."""
        words = self.heading.decode("ascii", "replace").split(" ")
        return int(words[4]) if len(words) > 4 and words[4].isdecimal() else 0


def check_addressees(to: Sequence[str], uid: str | None) -> None:
    """Raises InvalidValue: A recipient or the uid is of another form."""
    for name in to:
        if not is_name(name):
            raise errors.InvalidValue(f"{name!r} is not a valid recipient", "Name an agent.")
    if uid is not None and not all(map(is_name, uid.split("~"))):
        hint = "Use letters, digits, '-' and '_', with '~' between the parts."
        raise errors.InvalidValue(f"{uid!r} is not a valid uid", hint)


def _segments(names: list[str]) -> list[int]:
    return sorted(int(name) for name in names if is_number(name) or name == "0")


def _without_most_before(number: int, segment: int, names: list[str]) -> list[str]:
    """The file names in a directory, without most of those before that number: told by how names are sorted, if they
    have as many digits, which they have in all directories but the first.
    """
    if number // _SEGMENT != segment or number < _SEGMENT // 10:
        return names
    behind = f"{number}."
    return [name for name in names if name >= behind]


def _names_for(agent: str, names: list[str]) -> list[str]:
    """The file names of messages that may be for the agent: to it, or to several."""
    alone, among_several = f".{agent}.", f".{_SEVERAL}."
    return [name for name in names if alone in name or among_several in name]


def _place(file_name: str) -> tuple[int, str]:
    """The sort key of file names by their numbers, without checking that they are numbers."""
    return file_name.find("."), file_name


def _number(file_name: str) -> int:
    """The number in the file name of a message; 0 if it is not one."""
    return _parts(file_name)[0]


def _parts(file_name: str) -> tuple[int, str, str]:
    """The number, the addressee and the uid in the file name of a message; 0 if it is not one."""
    parts = file_name.split(".")
    if len(parts) != 4 or parts[3] != "json" or not is_number(parts[0]):
        return 0, "", ""
    number, to, uid, _ = parts
    return (int(number), to, uid) if to == _SEVERAL or is_name(to) else (0, "", "")


_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_MAX_LINE = 1 << 20
_PART = 1 << 16
"""Bytes that are read at once from the end."""


def note_history(path: str, entries: Sequence[dict[str, Any]]) -> None:
    """Add a line for each. What they tell of was done already, so a disk that refuses is no reason to fail."""
    try:
        descriptor = os.open(path, _APPEND, 0o600)
    except OSError:
        return
    try:
        lines = "".join([f"{dumps(entry)}\n" for entry in entries]).encode()
        os.write(descriptor, lines if _at_line_start(descriptor) else b"\n" + lines)
    except OSError:
        return
    finally:
        release(descriptor)


def _at_line_start(descriptor: int) -> bool:
    """Whether the last line is whole: a power failure may have left a part of one."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    return end == 0 or os.pread(descriptor, 1, end - 1) == b"\n"


def read_history(path: str, after: int, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries from byte *after* on, or from the last one back to it, each with the position behind it; lines that
    are none are passed over.
    """
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            yield from _backwards(descriptor, after) if backwards else _forwards(descriptor, after)
    except OSError as error:
        raise failed("read", path, error) from None
    finally:
        release(descriptor)


def _forwards(descriptor: int, position: int) -> Iterator[tuple[int, dict[str, Any]]]:
    begins = True
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        file.seek(position)
        while part := file.readline(_MAX_LINE):
            ends = part.endswith(b"\n")
            if not ends and len(part) < _MAX_LINE:  # being written, or cut off
                return
            position += len(part)
            if begins and ends and (entry := _parsed_entry(part)) is not None:
                yield position, entry
            begins = ends


def _backwards(descriptor: int, after: int) -> Iterator[tuple[int, dict[str, Any]]]:
    at = os.lseek(descriptor, 0, os.SEEK_END)
    data, is_whole = b"", False
    while at > after:
        begin = max(after, at - _PART)
        data, at = os.pread(descriptor, at - begin, begin) + data, begin
        if not is_whole:  # what stands behind the last line is being written, or cut off
            data = data[: data.rfind(b"\n") + 1] or data
            is_whole = data.endswith(b"\n")
        first = data.find(b"\n") + 1 if at > after else 0  # of this line the beginning is not here yet
        position = at + len(data)
        for line in reversed(data[first:].split(b"\n")[:-1] if is_whole else ()):
            if len(line) < _MAX_LINE and (entry := _parsed_entry(line)) is not None:
                yield position, entry
            position -= len(line) + 1
        data = data[:first] if is_whole else data


def _parsed_entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
