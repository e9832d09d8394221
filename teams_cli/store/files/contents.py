"""The contents of files: each is opened again only once it changed, and checked again only if its bytes changed."""

from __future__ import annotations

import os
import time

from teams_cli.records.records import Record
from teams_cli.store.documents import decode, decode_checked, says_all
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)

_STEP = 20_000_000
"""Nanoseconds by which two changes differ for certain in the times that the file system notes: kernels count these
times in steps of up to 10 ms.
"""
_UNKNOWN: tuple[bytes | None, list[str] | None] = None, None
_REMEMBERED = 1024
_LARGEST = 64 * 1024
"""Bytes of the largest file that is remembered, so that all of them take at most 64 MB."""


class Contents:
    """The contents of files that were read or written, by their paths.

    A file is unchanged while its inode, its size and its times are the same. A file that had just changed when it was
    read may change once more within the same step of these times, so it is opened again the next time. Records are
    not kept, because callers may change them.
    """

    def __init__(self) -> None:
        self._read: dict[str, tuple[tuple[int, ...], bytes]] = {}
        """The state and the bytes of each file that had been unchanged for a while when it was read."""
        self._valid: dict[str, tuple[bytes, list[str] | None]] = {}
        """The bytes of each valid record, and the marks of those that were written here."""

    def read(self, path: str) -> bytes:
        """All bytes of a file, as it is now.

        Raises:
            FileNotFoundError, DamagedRecord, StorageFailed: As for `disk.read_file`.
        """
        state, data = self._read.get(path, (None, b""))
        if state and state == _state_of(path):
            return data
        began = time.time_ns()
        data, found = disk.read_with_state(path)
        if len(data) <= _LARGEST and found.st_ctime_ns + _STEP < began:
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            self._read[path] = _state(found), data
        return data

    def decode(self, data: bytes, kind: Kind[R], key: str, path: str) -> R:
        """The record in a file; checked unless it has the bytes that it had when it was checked or written last.

        Raises:
            DamagedRecord: They have the wrong shape.
        """
        if self.is_valid(path, data):
            return decode_checked(data, kind)
        record = decode(data, kind, key, path)
        if says_all(data, kind, key):
            self.remember(path, data)
        return record

    def is_valid(self, path: str, data: bytes) -> bool:
        """Whether the file had these bytes when it was checked or written last."""
        return self._valid.get(path, _UNKNOWN)[0] == data

    def marks(self, path: str, data: bytes) -> list[str] | None:
        """The marks of the record that was written with these bytes; None if that was another."""
        valid, marks = self._valid.get(path, _UNKNOWN)  # once: another thread may forget it meanwhile
        return marks if valid == data else None

    def remember(self, path: str, data: bytes, marks: list[str] | None = None) -> None:
        """Take the bytes of the file for valid; and *marks* for those of the record that was written with them."""
        if len(data) <= _LARGEST:
            if len(self._valid) >= _REMEMBERED:
                self._valid.clear()
            self._valid[path] = data, marks


def _state_of(path: str) -> tuple[int, ...] | None:
    try:
        return _state(os.lstat(path))
    except OSError:  # reading it says what is wrong
        return None


def _state(found: Any) -> tuple[int, ...]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
