"""Files that were checked before, or written: the same bytes of the same file are not looked through again."""

from __future__ import annotations

from teams_cli.store.documents import decode, decode_checked, says_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)

_NOTHING = None, None
_REMEMBERED = 1024
_SMALL = 8 * 1024
"""Bytes of the largest file that is remembered: so all of them take no more than eight million."""


class Decoded:
    """What files held when they were found good. No record is kept: whoever has one may change it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bytes, list[str] | None]] = {}
        """The bytes by the path; and of what we wrote, the marks of the record."""

    def get(self, data: bytes, kind: Kind[R], key: str, path: str) -> R:
        """The record in a file; checked unless it has the bytes that it had when it was checked or written last.

        Raises:
            DamagedRecord: They have the wrong shape.
        """
        if self.knows(path, data):
            return decode_checked(data, kind)
        record = decode(data, kind, key, path)
        if says_all(data, kind, key):
            self.remember(path, data)
        return record

    def knows(self, path: str, data: bytes) -> bool:
        """Whether the file had these bytes when it was checked or written last."""
        return self._known.get(path, _NOTHING)[0] == data

    def marks(self, path: str, data: bytes) -> list[str] | None:
        """The marks of the record that was written with these bytes; None if that was another."""
        known, marks = self._known.get(path, _NOTHING)  # once: another thread may forget it meanwhile
        return marks if known == data else None

    def remember(self, path: str, data: bytes, marks: list[str] | None = None) -> None:
        """Take the bytes of the file for good; and those *marks* for those of the record that was written with them."""
        if len(data) <= _SMALL:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[path] = data, marks
