"""Finding records by words: records by looking into their files, old messages by an index.

A thousand messages share a directory, which no longer changes once it is full. Its index is one file with a line for
each message, below `<root>/index/<team>/`. The index is derived: whoever searches first makes it, it may be removed at
any time, and one that does not fit its directory is made again.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.names import is_number
from teams_cli.store.documents import decode, is_as_written
from teams_cli.store.files import directories, disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind
    from teams_cli.store.files.message_log import MessageLog

    R = TypeVar("R", bound=Record)

_LARGEST = 1 << 30
_AT_ONCE = 50
_END = b"# end\n"
"""The mark at the end of a whole index. An index is not synced to the disk, so a power failure may leave a part of it.
"""


def in_records(directory: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]) -> Iterator[R]:
    """Yield the records in a directory that may have the words, the last first. A file that was edited by hand is
    always yielded, since its text may leave out what it means.
    """
    for key in reversed(directories.keys_in(directory, kind, problems)):
        path, has_them = f"{directory}/{key}.json", True
        try:
            data = disk.glance(path)
            if not (is_ours := is_as_written(data)):
                data = directories.read(path, kind, key)
                is_ours = is_as_written(data)
            has_them = _has(_folded(data), words)
            if has_them or not is_ours:
                yield decode(data, kind, key, path)
        except FileNotFoundError:
            continue
        except errors.TeamsError as problem:
            if has_them:
                problems.append(problem)


class MessageSearch:
    """Finds messages of one log. Its indexes are in *directory*."""

    def __init__(self, log: MessageLog, directory: str) -> None:
        self.log = log
        self.directory = directory

    def search(self, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]) -> Iterator[R]:
        """Yield the messages that may have the words, newest first."""
        segments = self.log.segments()
        for segment in reversed(segments):
            numbers = self._numbers(segment, words, full=segment < segments[-1])
            while numbers:
                yield from reversed(self.log.fetch(kind, numbers[-_AT_ONCE:], problems))
                del numbers[-_AT_ONCE:]

    def _numbers(self, segment: int, words: Sequence[str], full: bool) -> list[int]:
        """Yield the numbers of the messages in a directory that have the words."""
        index = self._index(segment) if full else self._made(segment)
        return [number for number, line in _lines(index, words) if _has(line, words)]

    def _index(self, segment: int) -> bytes:
        """Return the index of a full directory: the stored one, or one that is made and stored now."""
        stamp = _stamp(f"{self.log.directory}/{segment}")
        path = f"{self.directory}/{segment}"
        try:
            index = disk.read_file(path, _LARGEST)
            if index.startswith(stamp) and index.endswith(_END):
                return index
        except (FileNotFoundError, errors.TeamsError):
            pass
        index = stamp + self._made(segment) + _END
        _keep(path, index)
        return index

    def _made(self, segment: int) -> bytes:
        """Return a line for each message, with its number and text; unreadable messages have none."""
        lines = []
        for number, path in self.log.files(segment):
            try:
                lines.append(b"%d %s\n" % (number, _folded(self.log.content(path)).replace(b"\n", b" ")))
            except (FileNotFoundError, errors.TeamsError):
                continue
        return b"".join(lines)


def _stamp(directory: str) -> bytes:
    """Return the state of a directory as a value that changes when a file is added, removed or replaced."""
    found = os.stat(directory)
    return f"# {found.st_ino} {found.st_mtime_ns}\n".encode()


def _keep(path: str, index: bytes) -> None:
    """Write the index at once. If the disk refuses, the next search is slow, and nothing else happens."""
    temp = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open(temp, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(index)
        os.rename(temp, path)
    except OSError:
        disk.discard(temp)


def _lines(index: bytes, words: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of an index that have the longest of the words, each with its number."""
    wanted = max(words, key=len).encode()
    place = index.find(wanted)
    while place >= 0:
        start, end = index.rfind(b"\n", 0, place) + 1, index.find(b"\n", place)
        number, _, line = index[start:end].partition(b" ")
        if is_number(number.decode("ascii", "replace")):
            yield int(number), line
        place = index.find(wanted, end)


def _folded(data: bytes) -> bytes:
    """Return the text in the form in which texts are compared. Most texts are ASCII, which needs no decoding."""
    return data.lower() if data.isascii() else data.decode(errors="replace").lower().encode()


def _has(text: bytes, words: Sequence[str]) -> bool:
    """Whether all words are in the text. A text with escaped characters may have any word."""
    return b"\\u" in text or all(word.encode() in text for word in words)
