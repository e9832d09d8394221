"""Records that were decoded before: the same bytes of the same file are not looked through again."""

from __future__ import annotations

from teams_cli.records.records import Record
from teams_cli.store.contract import Kind
from teams_cli.store.documents import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    R = TypeVar("R", bound=Record)

_REMEMBERED = 64
_SMALL = 256 * 1024


class Decoded:
    """What files were found to hold."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bytes, Record]] = {}

    def get(self, data: bytes, kind: Kind[R], key: str, path: str) -> R:
        """The record in a file: that of the last time where the bytes are those of the last time.

        Raises:
            DamagedRecord: They have the wrong shape.
        """
        known = self._known.get(path)
        if known and known[0] == data:
            return known[1]  # type: ignore[return-value]  # one path is one kind
        record = decode(data, kind, key, path)
        if len(data) <= _SMALL:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[path] = data, record
        return record
