"""The history of a team: one JSON object a line, for people and live views; derived, never the truth."""

from __future__ import annotations

import os
import stat

from teams_cli.records.json_text import dumps, loads
from teams_cli.store.files.disk import failed, release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_MAX_LINE = 1 << 20
_PART = 1 << 16
"""Bytes that are read at once from the end."""


def note(path: str, entries: Sequence[dict[str, Any]]) -> None:
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


def entries(path: str, after: int, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries from byte *after* on, or from the last one back to it, each with the position behind it; lines that
    are none are passed over.
    """
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            yield from _backwards(descriptor, after) if backwards else _entries(descriptor, after)
    except OSError as error:
        raise failed("read", path, error) from None
    finally:
        release(descriptor)


def _entries(descriptor: int, position: int) -> Iterator[tuple[int, dict[str, Any]]]:
    begins = True
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        file.seek(position)
        while part := file.readline(_MAX_LINE):
            ends = part.endswith(b"\n")
            if not ends and len(part) < _MAX_LINE:  # being written, or cut off
                return
            position += len(part)
            if begins and ends and (entry := _entry(part)) is not None:
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
            if len(line) < _MAX_LINE and (entry := _entry(line)) is not None:
                yield position, entry
            position -= len(line) + 1
        data = data[:first] if is_whole else data


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
