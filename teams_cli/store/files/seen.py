"""What seldom changes, and is looked at again only when the system says that it did."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_FINE, _COARSE = 0.1, 3.0
"""Seconds after which a change has another time than the one before it: where times have fractions of a second, and on
any file system.
"""
_REMEMBERED = 256


class Seen:
    """What *look* finds at paths; found again without looking where what is there was not changed. It is remembered
    only of what has been there so long that each further change shows.
    """

    def __init__(self, look: Callable[[str], Any], clock: Callable[[], float] = time.time) -> None:
        self._look = look
        self._clock = clock
        self._known: dict[str, tuple[tuple[int, ...], Any]] = {}

    def at(self, path: str) -> Any:
        """What the look finds there now; what it raises is raised."""
        now = self._clock()  # first: who stands still from here on takes what is there for younger than it is
        try:
            found = os.stat(path)
        except OSError:
            return self._look(path)
        is_now = found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        known = self._known.get(path)
        if known and known[0] == is_now:
            return known[1]
        value = self._look(path)  # what is changed from here on has another time
        sure = _FINE if found.st_ctime_ns % 1_000_000_000 else _COARSE
        if now - max(found.st_mtime, found.st_ctime) > sure:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[path] = is_now, value
        return value
