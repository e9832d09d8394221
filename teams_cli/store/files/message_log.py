"""The log of a team's messages as files, and the team's history.

A thousand messages share a directory. Each message is written once and never changed. The history has one JSON object
on each line. It only describes changes: nothing is decided by it.

Older versions packed the messages of a closed team: all messages of a directory went into one file, `packed.json`. This
file was written before the messages were removed. So a reader lists the directory first and then looks for
`packed.json`.
"""

from __future__ import annotations

import os
import stat

from teams_cli import errors
from teams_cli.names import is_name, is_number
from teams_cli.store.documents import dumps, encode_unnumbered, heading, loads
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
"""Takes the place of the recipient in the file name of a message to several agents."""
_BEFORE_NAME = b'\n"'
_AFTER_NAME = b'"\n'
_CORRECT = "Correct the file or its name."


class MessageLog:
    """The log of a team. Messages are files `<number div 1000>/<number>.<to>.<uid>.json`. The order of their numbers is
    the order of the commits.
    """

    def __init__(self, directory: str, root: str, lock: Callable[[str], Lock], contents: Contents) -> None:
        self.directory = directory
        self.root = root
        self.lock = lock
        self.contents = contents
        self._packed: dict[str, Packed] = {}

    def append(
        self, kind: Kind[R], to: Sequence[str], record: R, uid: str | None, check: Callable[[], None]
    ) -> tuple[R, bool]:
        """Append a message: see `Store.append`. *check* is called under the lock, and raises an error if the message
        must be refused.

        Numbers are given under the lock, and many messages are sent at the same time. So slow work is done before the
        lock is taken, such as the search of full directories for an earlier message with the *uid*. Directories to
        which other processes may still add messages are searched under the lock.

        The file is synced before it gets its number. The number is in the file's name and, for people, also in its
        text. Then the directory is synced, so that the file's entry is durable. The process that gives the next number
        syncs this directory, too.
        """
        check_addressees(to, uid)
        addressee = _SEVERAL if getattr(record, "recipients", None) else to[0]
        ending = f"{addressee}.{uid or os.urandom(8).hex()}.json"
        disk.make_directories(self.directory, self.root)
        listing = _Listing(self)
        number = directories.noted_number(listing.names) + 1  # the one that is expected, then the one that is given
        segment = (number - 1) // _SEGMENT  # no more messages are added to the directories before this one
        path = self._path_with_uid(listing, uid, 0, segment)
        is_new = False
        # The number is only known under the lock. The file has room for the digits of the number that is expected; if
        # others have sent so many messages meanwhile that the number has more digits, the file is written once more.
        while not path:
            digits = len(str(number))
            with disk.Written(f"{self.root}/tmp", encode_unnumbered(record, kind, digits)) as temp:
                with self.lock(self.directory):
                    listing = _Listing(self)
                    path = self._path_with_uid(listing, uid, segment)
                    if not path:
                        check()
                        number, path = self._put_next(kind, listing, temp, digits, ending)
                        is_new = bool(path)
                if not is_new:
                    disk.discard(temp)
        disk.confirm(os.path.dirname(path), path)
        return (kind.with_number(record, number), True) if is_new else (self.decode(kind, path), False)

    def _put_next(self, kind: Kind[R], listing: _Listing, temp: str, digits: int, ending: str) -> tuple[int, str]:
        """Make the file *temp* the next message, and return its number and its path. If the number does not have as
        many *digits* as *temp* has room for, do nothing, and return the number with an empty path.
        """
        noted, newest = self._numbers_given(listing)
        number = max(noted, newest) + 1
        kind.refuse_too_high(number)
        if len(str(number)) != digits:
            return number, ""
        path = f"{self._segment_for(number, newest)}/{number}.{ending}"
        disk.overwrite_beginning(temp, heading(kind, number))
        disk.put(temp, path)
        directories.raise_note(self.directory, noted, number)
        return number, path

    def _segment_for(self, number: int, newest: int) -> str:
        """Return the directory for the message with that *number*; make it if it is missing. *newest* is the highest
        number of a message so far, or 0. Before a new directory is made, the messages in the previous one become
        durable.
        """
        segment = f"{self.directory}/{number // _SEGMENT}"
        is_first = not newest or newest // _SEGMENT != number // _SEGMENT
        if is_first or not os.path.isdir(segment):  # one that exists may not be durable: its maker may have been killed
            previous = f"{self.directory}/{newest // _SEGMENT}"
            if os.path.isdir(previous):
                disk.confirm(previous, previous)
            disk.make_directories(segment, self.root)
        return segment

    def fetch(self, kind: Kind[R], numbers: Sequence[int], problems: list[errors.TeamsError]) -> list[R]:
        messages: list[R] = []
        wanted = frozenset(numbers)
        for segment in sorted({number // _SEGMENT for number in wanted}):
            for number, path in self.files(segment):
                if number in wanted:
                    self._add_message(kind, path, None, messages, problems)
        return messages

    def read(
        self, kind: Kind[R], agent: str | None, after: int, problems: list[errors.TeamsError], limit: int = 0
    ) -> list[R]:
        """Return the messages with a number above *after*: those to *agent*, or all if *agent* is None. *limit* is the
        most messages that are returned; 0 sets no limit.
        """
        messages: list[R] = []
        for segment in self.segments():
            if segment >= (after + 1) // _SEGMENT:
                for _, name in self._names(segment, agent, after):
                    self._add_message(kind, f"{self.directory}/{segment}/{name}", agent, messages, problems)
                    if limit and len(messages) == limit:
                        return messages
        return messages

    def news(
        self, kind: Kind[R], agent: str, after: int, problems: list[errors.TeamsError]
    ) -> tuple[list[R], int] | None:
        """Return new messages: see `Store.news`. Only the newest directory is read. Return None if older directories
        may have new messages, too.

        If messages arrive while the directory is listed, the list may have a later message but lack an earlier one. So
        the directory is listed once more if a number is missing.
        """
        names = disk.names_in(self.directory)
        segment = max(_segments(names), default=0)
        if (after + 1) // _SEGMENT < segment:
            return None
        listed = self._names(segment, None, after)
        last = max(after, directories.noted_number(names))
        if listed:
            last = max(last, listed[-1][0])
        if len(listed) < last - after:
            listed = [(number, name) for number, name in self._names(segment, None, after) if number <= last]
        messages: list[R] = []
        for name in _names_for(agent, [name for _, name in listed]):
            self._add_message(kind, f"{self.directory}/{segment}/{name}", agent, messages, problems)
        return messages, last

    def envelopes(self, kind: Kind[R], after: int) -> Iterator[tuple[int, str, Sequence[str]]]:
        """Yield the number, the uid and the recipients of messages: see `Store.envelopes`. A message to several agents
        is read, because its file name does not have the recipients.
        """
        for segment in self.segments():
            if segment >= (after + 1) // _SEGMENT:
                for name in _without_most_before(after, segment, self.listed(segment)):
                    number, to, uid = _parts(name)
                    if number <= after:
                        continue
                    recipients: Sequence[str] = [to]
                    if to == _SEVERAL:
                        try:
                            message: Any = self.decode(kind, f"{self.directory}/{segment}/{name}")
                            recipients = message.recipients or ()
                        except (FileNotFoundError, errors.TeamsError):
                            recipients = ()
                    yield number, uid, recipients

    def _add_message(
        self, kind: Kind[R], path: str, agent: str | None, messages: list[R], problems: list[errors.TeamsError]
    ) -> None:
        """Append the listed message at *path* to *messages* if it is to *agent*, or if *agent* is None. If it can't be
        read, append the error to *problems*. Skip it if its file is gone.
        """
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
            messages.append(record)

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
        """Return the highest number that was given to a message; 0 if there is none."""
        return max(self._numbers_given(_Listing(self)))

    def glance(self, agent: str, after: int, sent: int, recipients: Sequence[str]) -> int | None:
        """Check quickly for new messages: see `Store.glance`. *sent* is the number of the last message that this
        process sent, and *recipients* are the recipients of that message. If it is the only new message, and *agent* is
        not a recipient, there is nothing new for *agent*.

        If a sender was killed before it noted the number of its message, `glance` misses the message until the next
        message is sent. `news` finds it.
        """
        noted = directories.noted_number(disk.names_in(self.directory))
        if noted == 0:  # there is no message, or an older version, which noted nothing, wrote them
            return None
        is_own_to_others = noted == after + 1 == sent and agent not in recipients
        return noted if noted == after or is_own_to_others else None

    def _numbers_given(self, listing: _Listing) -> tuple[int, int]:
        """Return the highest number noted, and the highest that a message has. The higher of the two was given last."""
        noted = directories.noted_number(listing.names)
        for segment in reversed(_segments(listing.names)):
            names = _without_most_before(noted, segment, listing.messages_in(segment))
            if number := _number(max(names, key=_sort_key, default="")):
                return noted, number
            # The last by name is no message, so each name is looked at.
            if number := max(map(_number, names), default=0):
                return noted, number
        return noted, 0

    def place_of(self, key: str) -> tuple[int, str]:
        """Return the number and the path of the message with this *key*, which is the name of its file without `.json`.

        Raises:
            DamagedRecord: No message can have that key.
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

    def _path_with_uid(self, listing: _Listing, uid: str | None, first: int, end: int | None = None) -> str:
        """Return the path of the message with the *uid*; empty if there is none. Only directories from *first* to below
        *end* are searched, the newest first, because most repeated messages are recent.
        """
        if uid is None:
            return ""
        ending = f".{uid}.json"
        for segment in reversed(_segments(listing.names)):
            if segment < first or (end is not None and segment >= end):
                continue
            names = listing.messages_in(segment)
            has_name = f"{ending}/" in "/".join([*names, ""])  # one search for all names is faster than one for each
            if not has_name:
                continue
            for name in names:
                if name.endswith(ending) and _number(name):
                    return f"{self.directory}/{segment}/{name}"
        return ""

    def segments(self) -> list[int]:
        """Return the numbers of the existing directories of messages, in order."""
        return _segments(disk.names_in(self.directory))

    def files(self, segment: int) -> list[tuple[int, str]]:
        """Return the number and the path of each message in the directory with the number *segment*, in order."""
        return [(number, f"{self.directory}/{segment}/{name}") for number, name in self._names(segment, None)]

    def _names(self, segment: int, agent: str | None, after: int = 0) -> list[tuple[int, str]]:
        """Return the numbers and file names of the messages above *after* in the directory *segment*, in order. If
        *agent* is not None, messages to other single agents are left out.
        """
        names = _without_most_before(after, segment, self.listed(segment))
        if agent is not None:
            names = _names_for(agent, names)
        if after:  # leaves out earlier names without taking each apart; in a name, "." follows the number
            key_of_after = (len(str(after)), f"{after}/")
            names = [name for name in names if _sort_key(name) > key_of_after]
        numbers_and_names = ((_number(name), name) for name in names)
        return sorted((number, name) for number, name in numbers_and_names if number)  # other files have the number 0

    def listed(self, segment: int) -> list[str]:
        """Return the file names in the directory with the number *segment*, and the former file names of messages that
        were packed in it.
        """
        directory = f"{self.directory}/{segment}"
        names = disk.names_in(directory)
        packed = self._look_for_packed(directory)
        return [*{*names, *packed}] if packed else names

    def _look_for_packed(self, directory: str) -> Packed | None:
        """Return the messages that are packed into one file in the directory, and remember them; None if there is no
        such file. What was remembered before is forgotten.
        """
        self._packed.pop(directory, None)
        if not os.path.lexists(f"{directory}/{PACKED}"):
            return None
        return self._packed.setdefault(directory, Packed(directory))

    def content(self, path: str) -> bytes:
        """Return the bytes of a listed message, which may be packed.

        Raises:
            FileNotFoundError: There is no such message.
            DamagedRecord, StorageFailed: As for `disk.read_file`.
        """
        return self._read(path)[0]

    def _read(self, path: str) -> tuple[bytes, str]:
        """Return the bytes of a listed message, and the path of its file, which may be one with packed messages. If the
        message is not among the remembered packed ones and has no file, it was packed after the listing.
        """
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
        """Return the message whose listed file is at *path*.

        Raises:
            FileNotFoundError, DamagedRecord, StorageFailed: As for `content`.
            DamagedRecord: The message does not have the number or the recipient that the name of its file shows.
        """
        number, to, _ = _parts(os.path.basename(path))
        data, path = self._read(path)
        record = self.contents.decode(data, kind, f"{kind.prefix}-{number}", path)
        if getattr(record, "number", number) != number:
            raise errors.DamagedRecord(f"{path}: number: does not fit the name of the file", _CORRECT, path)
        if to != (_SEVERAL if record.recipients else record.to):  # type: ignore[attr-defined]
            raise errors.DamagedRecord(f"{path}: to: does not fit the name of the file", _CORRECT, path)
        return record


class _Listing:
    """The names in the directory of a log, and in its directories of messages. A directory of messages is listed only
    when needed: a large one takes long, and other processes may be waiting for the lock.
    """

    def __init__(self, log: MessageLog) -> None:
        self._log = log
        self.names = disk.names_in(log.directory)
        self._messages: dict[int, list[str]] = {}

    def messages_in(self, segment: int) -> list[str]:
        if segment not in self._messages:
            self._messages[segment] = self._log.listed(segment)
        return self._messages[segment]


class Packed(dict[str, bytes]):
    """The messages of a directory that an older version packed, by their former file names. Empty if no messages were
    packed.

    The file of packed messages is a list of JSON values: a heading, then each message after its former file name:

        "messages to number 999, 999 of them"
        "1.bob.4f0c9d21a7b3e865.json"
        {
          "id": "msg-1",

    Lines of a message begin with a brace or two spaces, so one that begins with a quote is a name.
    """

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/{PACKED}"
        try:
            self.heading, *parts = disk.read_file(self.path).split(_BEFORE_NAME)
        except FileNotFoundError:
            self.heading, parts = b"", []
        super().__init__()
        for part in parts:
            name, _, data = part.partition(_AFTER_NAME)
            self[name.decode("ascii", "replace")] = data.rstrip(b"\n") + b"\n"

    @property
    def announced(self) -> int:
        """Return how many messages the file has according to its heading; 0 if the heading does not say."""
        words = self.heading.decode("ascii", "replace").split(" ")  # such as "messages to number 999, 999 of them"
        count = words[4] if len(words) > 4 else ""
        return int(count) if count.isdecimal() else 0


def check_addressees(to: Sequence[str], uid: str | None) -> None:
    """Raise InvalidValue if a recipient in *to* or the *uid* is not valid."""
    for name in to:
        if not is_name(name):
            raise errors.InvalidValue(f"{name!r} is not a valid recipient", "Name an agent.")
    if uid is not None and not all(map(is_name, uid.split("~"))):
        hint = "Use letters, digits, '-' and '_', with '~' between the parts."
        raise errors.InvalidValue(f"{uid!r} is not a valid uid", hint)


def _segments(names: list[str]) -> list[int]:
    return sorted(int(name) for name in names if is_number(name) or name == "0")


def _without_most_before(number: int, segment: int, names: list[str]) -> list[str]:
    """Return the *names* in the directory *segment* without most of those below *number*, so that fewer names need to
    be parsed. Names are compared as texts, which works only for numbers with equally many digits. So all names are
    returned if *number* is below 100, or belongs to another directory.
    """
    if number // _SEGMENT != segment or number < _SEGMENT // 10:
        return names
    begin = f"{number}."
    return [name for name in names if name >= begin]


def _names_for(agent: str, names: list[str]) -> list[str]:
    """Return the *names* of files with messages to the agent, or to several agents, who may include it."""
    to_agent, to_several = f".{agent}.", f".{_SEVERAL}."
    return [name for name in names if to_agent in name or to_several in name]


def _sort_key(file_name: str) -> tuple[int, str]:
    return file_name.find("."), file_name  # sorts by number, faster than reading the number


def _number(file_name: str) -> int:
    return _parts(file_name)[0]


def _parts(file_name: str) -> tuple[int, str, str]:
    """Return the number, the recipient (`@` for several) and the uid in the name of a message's file. For any other
    file, the number is 0, and the texts are empty.
    """
    parts = file_name.split(".")
    if len(parts) != 4 or parts[3] != "json" or not is_number(parts[0]):
        return 0, "", ""
    number, to, uid, _ = parts
    if to != _SEVERAL and not is_name(to):
        return 0, "", ""
    return int(number), to, uid


_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_MAX_LINE = 1 << 20
_BLOCK = 1 << 16
"""The number of bytes read at once from the end of a history."""


def note_history(path: str, entries: Sequence[dict[str, Any]]) -> None:
    """Add a line to the history for each entry. Errors of the disk are ignored, because the changes themselves are
    stored.
    """
    try:
        descriptor = os.open(path, _APPEND, 0o600)
    except OSError:
        return
    try:
        lines = "".join([f"{dumps(entry)}\n" for entry in entries]).encode()
        end = os.lseek(descriptor, 0, os.SEEK_END)
        if end > 0 and os.pread(descriptor, 1, end - 1) != b"\n":  # a power failure has left a part of a line
            lines = b"\n" + lines
        os.write(descriptor, lines)
    except OSError:
        return
    finally:
        release(descriptor)


def read_history(path: str, after: int, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the entries of a history from byte *after* on, each with the position of its end, where the next entry
    begins. With *backwards*, the last entry comes first. Damaged lines are skipped.
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
    """Yield the entries of a history as `read_history` does, from byte *position* to the end."""
    at_line_start = True
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        file.seek(position)
        while part := file.readline(_MAX_LINE):  # a line, or a part of one that is too long and therefore skipped
            at_line_end = part.endswith(b"\n")
            if not at_line_end and len(part) < _MAX_LINE:  # the last line is being written, or was cut off
                return
            position += len(part)
            if at_line_start and at_line_end and (entry := _parsed_entry(part)) is not None:
                yield position, entry
            at_line_start = at_line_end


def _backwards(descriptor: int, after: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the entries of a history as `read_history` does, the last one first. The file is read in blocks, from its
    end back to byte *after*.
    """
    begin = os.lseek(descriptor, 0, os.SEEK_END)
    data, has_line_end = b"", False
    while begin > after:  # data has the bytes from begin on that were not yielded yet
        end, begin = begin, max(after, begin - _BLOCK)
        data = os.pread(descriptor, end - begin, begin) + data
        if not has_line_end:
            if b"\n" not in data:
                continue
            has_line_end = True
            data = data[: data.rfind(b"\n") + 1]  # after the last line end, a line is being written, or was cut off
        # The first line in the data may have begun earlier: it waits for the block before.
        first_length = data.find(b"\n") + 1 if begin > after else 0
        position = begin + len(data)
        for line in reversed(data[first_length:].split(b"\n")[:-1]):
            if len(line) < _MAX_LINE and (entry := _parsed_entry(line)) is not None:
                yield position, entry
            position -= len(line) + 1
        data = data[:first_length]


def _parsed_entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
