"""Files that were checked before: the same bytes of the same file are not looked through again."""

from __future__ import annotations

from teams_cli.store.documents import decode, decode_checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)

_REMEMBERED = 256
_SMALL = 32 * 1024
"""Bytes of the largest file that is remembered: so all of them take no more than eight million."""


class Decoded:
    """What files held when they were found good. No record is kept: whoever has one may change it."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def get(self, data: bytes, kind: Kind[R], key: str, path: str) -> R:
        """The record in a file; checked unless it has the bytes that it had when it was checked last.

        Raises:
            DamagedRecord: They have the wrong shape.
        """
        if self._known.get(path) == data:
            return decode_checked(data, kind)
        record = decode(data, kind, key, path)
        if len(data) <= _SMALL:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[path] = data
        return record
