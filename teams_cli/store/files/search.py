"""Find records and messages by words. Records are found by reading their files, and messages by reading indexes.

A thousand messages share a directory, which no longer changes once it is full. The index of such a directory is one
file with a line for each message, below `<root>/index/<team>/`. The first search makes this file. The index may be
removed at any time, and is made again if it does not match its directory.
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
_READ_AT_ONCE = 50
_END = b"# end\n"
"""The last line of a complete index. An index is not synced to the disk, so after a power failure only a part of it may
be there.
"""


def in_records(directory: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]) -> Iterator[R]:
    """Yield the records in a directory that may have the *words*, the last record first. A record that was edited by
    hand is always yielded: it may lack fields whose defaults have the words.
    """
    for key in reversed(directories.keys_in(directory, kind, problems)):
        path = f"{directory}/{key}.json"
        may_match = True  # so that the error of a record that can't be read is reported
        try:
            data = disk.glance(path)
            if not is_as_written(data):
                data = directories.read(path, kind, key)
            may_match = _has(_folded(data), words)
            if may_match or not is_as_written(data):
                yield decode(data, kind, key, path)
        except FileNotFoundError:
            continue
        except errors.TeamsError as problem:
            if may_match:
                problems.append(problem)


def in_messages(
    log: MessageLog, directory: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]
) -> Iterator[R]:
    """Yield the messages of the log that may have the *words*, newest first. The indexes are files in *directory*."""
    segments = log.segments()
    for segment in reversed(segments):
        if segment == segments[-1]:
            index = _made_index(log, segment)
        else:
            index = _stored_index(log, segment, f"{directory}/{segment}")
        numbers = [number for number, line in _lines(index, words) if _has(line, words)]
        while numbers:
            yield from reversed(log.fetch(kind, numbers[-_READ_AT_ONCE:], problems))
            del numbers[-_READ_AT_ONCE:]


def _stored_index(log: MessageLog, segment: int, path: str) -> bytes:
    """Return the index at *path* of a full directory of messages. If it is missing, or belongs to an earlier state of
    the directory, make and store it now.
    """
    state = os.stat(f"{log.directory}/{segment}")
    stamp = f"# {state.st_ino} {state.st_mtime_ns}\n".encode()
    try:
        index = disk.read_file(path, _LARGEST)
        if index.startswith(stamp) and index.endswith(_END):
            return index
    except (FileNotFoundError, errors.TeamsError):
        pass
    index = stamp + _made_index(log, segment) + _END
    try:
        disk.replace_unsynced(path, index)
    except OSError:  # without an index, only the next search takes longer
        pass
    return index


def _made_index(log: MessageLog, segment: int) -> bytes:
    """Return a new index of a directory: for each readable message, a line with its number and its whole file."""
    lines = []
    for number, path in log.files(segment):
        try:
            lines.append(b"%d %s\n" % (number, _folded(log.content(path)).replace(b"\n", b" ")))
        except (FileNotFoundError, errors.TeamsError):
            continue
    return b"".join(lines)


def _lines(index: bytes, words: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each message in the *index* that has the longest of the *words*. The caller
    looks for the other words.
    """
    longest = max(words, key=len).encode()
    position = index.find(longest)
    while position >= 0:
        start, end = index.rfind(b"\n", 0, position) + 1, index.find(b"\n", position)
        number, _, text = index[start:end].partition(b" ")
        if is_number(number.decode("ascii", "replace")):  # else it is the first line
            yield int(number), text
        position = index.find(longest, end)


def _folded(data: bytes) -> bytes:
    # A text in ASCII, as most are, is not decoded, which is faster.
    return data.lower() if data.isascii() else data.decode(errors="replace").lower().encode()


def _has(text: bytes, words: Sequence[str]) -> bool:
    # A character escaped as `\u…` may be part of any word.
    return b"\\u" in text or all(word.encode() in text for word in words)
