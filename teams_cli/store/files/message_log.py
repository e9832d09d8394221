"""The log of a team's messages as files, and the team's history.

A thousand messages share a directory. Each is written once and never changed. The history has one JSON object a line;
it is derived from changes and never decides anything.

Older versions packed the messages of a closed team, one directory into one file, `packed.json`, which they wrote before
they removed the messages. So that file is looked for after the directory was listed.
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
    """Messages as `<number div 1000>/<number>.<to>.<uid>.json`. The order of numbers is the order of commits."""

    def __init__(self, directory: str, root: str, lock: Callable[[str], Lock], contents: Contents) -> None:
        self.directory = directory
        self.root = root
        self.lock = lock
        self.contents = contents
        self._packed: dict[str, Packed] = {}

    def append(
        self, kind: Kind[R], to: Sequence[str], record: R, uid: str | None, check: Callable[[], None]
    ) -> tuple[R, bool]:
        """See the contract. *check* is called under the lock and may refuse the message.

        Numbers are given under the lock, and many messages are sent at the same time, so slow work is done outside of
        it. Only messages behind the numbers that were given before can have the same uid.

        The file is synced before it gets its number, which is in its name and is filled in for people; then the entry
        of the directory is synced, also by whoever gives the next number.
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
        """Make the file the next message if its number has so many *digits*. Return the number, and the path if it was
        made.
        """
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
        """Return the directory for the message after the *newest*. All messages in earlier directories are durable."""
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

        A directory that is listed while messages arrive may show a later message but not an earlier one. If a number is
        missing, it is listed once more.
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
        """See the contract. Messages to several agents are read for this."""
        for segment in self.segments():
            if segment >= (after + 1) // _SEGMENT:
                for name in _without_most_before(after, segment, self.listed(segment)):
                    number, to, uid = _parts(name)
                    if number > after:
                        path = f"{self.directory}/{segment}/{name}"
                        yield number, uid, [to] if to != _SEVERAL else self._recipients(kind, path)

    def _recipients(self, kind: Kind[R], path: str) -> Sequence[str]:
        """Return the recipients of a message to several agents; none if it cannot be read."""
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
        """See the contract. The message that was *sent* last from here, *to* these agents, needs no look either.

        If a sender was killed before it noted the number, its message is seen with the next one, and by `news`.
        """
        noted = self._noted()
        none_came = noted == after or (noted == after + 1 == sent and agent not in to)
        return noted if noted and none_came else None  # older versions noted none

    def _noted(self) -> int:
        """Return the noted highest number."""
        return directories.highest(disk.names_in(self.directory))

    def _given(self, look: _Look) -> tuple[int, int]:
        """Return the highest number that was given, by the note and by the existing messages."""
        noted = directories.highest(look.names)
        return noted, self._newest(look, noted)

    def _newest(self, look: _Look, noted: int) -> int:
        """Return the highest number of a message. In the directory of the *noted* number, mostly only later names are
        looked at.
        """
        for segment in reversed(_segments(look.names)):
            names = _without_most_before(noted, segment, look.of(segment))
            if number := _number(max(names, key=_place, default="")):
                return number
            if number := max(map(_number, names), default=0):  # the last by name was no message
                return number
        return 0

    def place_of(self, key: str) -> tuple[int, str]:
        """Return the number of the message that is packed under the key, and the path of its file.

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
        """Return the newest message whose file name has that end, in the directories from *first* to before *end*: a
        repeated message comes soon after the first.
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
        """Return the numbers of the existing directories, in order."""
        return _segments(disk.names_in(self.directory))

    def files(self, segment: int) -> list[tuple[int, str]]:
        """Yield the numbers and paths of the messages in a directory, in order."""
        return [(number, f"{self.directory}/{segment}/{name}") for number, name in self._names(segment, None)]

    def _names(self, segment: int, agent: str | None, after: int = 0) -> list[tuple[int, str]]:
        """Yield the numbers and file names of messages after that number that may be for *agent*, in order."""
        names = _without_most_before(after, segment, self.listed(segment))
        if agent is not None:
            names = _names_for(agent, names)
        if after:  # most are not, and are left out without a closer look
            last = (len(str(after)), f"{after}/")
            names = [name for name in names if _place(name) > last]
        return sorted((number, name) for name in names if (number := _number(name)))

    def listed(self, segment: int) -> list[str]:
        """Return the names of the files in a directory, and of the messages that were packed there."""
        directory = f"{self.directory}/{segment}"
        names = disk.names_in(directory)
        packed = self._look_for_packed(directory)
        return [*{*names, *packed}] if packed else names

    def _look_for_packed(self, directory: str) -> Packed | None:
        """Read the packed messages of the directory."""
        self._packed.pop(directory, None)
        if not os.path.lexists(f"{directory}/{PACKED}"):
            return None

        return self._packed.setdefault(directory, Packed(directory))

    def content(self, path: str) -> bytes:
        """Read the file of a listed message, which may have been packed since.

        Raises:
            FileNotFoundError: There is no such message.
            DamagedRecord, StorageFailed: As for `disk.read_file`.
        """
        return self._read(path)[0]

    def _read(self, path: str) -> tuple[bytes, str]:
        """Read a listed message, and return it with the file in which it is: packed messages share one."""
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
        """Return the message in a listed file.

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
    """The names in the directory of a log and in the directories below it. Each of these is listed when it is first
    needed: listing a large one takes long, while others may wait for the lock.
    """

    def __init__(self, log: MessageLog) -> None:
        self._log = log
        self.names = disk.names_in(log.directory)
        self._below: dict[int, list[str]] = {}

    def of(self, segment: int) -> list[str]:
        """Return the names of the messages in the directory of that number."""
        if segment not in self._below:
            self._below[segment] = self._log.listed(segment)
        return self._below[segment]


class Packed:
    """The messages of a directory that an older version packed, by their file names; empty without such a file.

    It is a list of JSON values: a heading, then each message after the name of its former file:

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
        """Return the bytes of the file that had that name; None if it is not here."""
        return self._files.get(name)

    @property
    def announced(self) -> int:
        """Return the number of messages in the heading; 0 without one."""
        words = self.heading.decode("ascii", "replace").split(" ")
        return int(words[4]) if len(words) > 4 and words[4].isdecimal() else 0


def check_addressees(to: Sequence[str], uid: str | None) -> None:
    """Raises InvalidValue: A recipient or the uid is not valid."""
    for name in to:
        if not is_name(name):
            raise errors.InvalidValue(f"{name!r} is not a valid recipient", "Name an agent.")
    if uid is not None and not all(map(is_name, uid.split("~"))):
        hint = "Use letters, digits, '-' and '_', with '~' between the parts."
        raise errors.InvalidValue(f"{uid!r} is not a valid uid", hint)


def _segments(names: list[str]) -> list[int]:
    return sorted(int(name) for name in names if is_number(name) or name == "0")


def _without_most_before(number: int, segment: int, names: list[str]) -> list[str]:
    """Return the file names in a directory without most of those before that number. This uses the order of names, so
    it needs numbers with equally many digits, which all directories but the first have.
    """
    if number // _SEGMENT != segment or number < _SEGMENT // 10:
        return names
    behind = f"{number}."
    return [name for name in names if name >= behind]


def _names_for(agent: str, names: list[str]) -> list[str]:
    """Return the file names of messages to the agent or to several agents."""
    alone, among_several = f".{agent}.", f".{_SEVERAL}."
    return [name for name in names if alone in name or among_several in name]


def _place(file_name: str) -> tuple[int, str]:
    """Return the sort key of file names with numbers, without checking them."""
    return file_name.find("."), file_name


def _number(file_name: str) -> int:
    """Return the number in the file name of a message; 0 if it is no message."""
    return _parts(file_name)[0]


def _parts(file_name: str) -> tuple[int, str, str]:
    """Return the number, the addressee and the uid in a message's file name; for other files the number is 0."""
    parts = file_name.split(".")
    if len(parts) != 4 or parts[3] != "json" or not is_number(parts[0]):
        return 0, "", ""
    number, to, uid, _ = parts
    return (int(number), to, uid) if to == _SEVERAL or is_name(to) else (0, "", "")


_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_MAX_LINE = 1 << 20
_PART = 1 << 16
"""The number of bytes that are read at once from the end."""


def note_history(path: str, entries: Sequence[dict[str, Any]]) -> None:
    """Add a line for each entry. Errors of the disk are ignored, since the changes themselves are stored."""
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
    """Whether the last line is whole. A power failure may have left a part of one."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    return end == 0 or os.pread(descriptor, 1, end - 1) == b"\n"


def read_history(path: str, after: int, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the entries from byte *after* on, or from the last one back to it, each with the position that follows it.
    Damaged lines are skipped.
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
