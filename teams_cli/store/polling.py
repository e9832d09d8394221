"""Waiting for a change by looking again and again, where nothing wakes."""

from __future__ import annotations

import time

from teams_cli.store.topics import EVERY_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 1.0
_SLOWER = 1.5


class PollingWatch:
    """Looks every *pause* seconds whether what *look* returns is something else; while nothing happens, ever less
    often, down to once a second: whoever waits long can wait a little longer. Of two changes within *grain* seconds the
    second may leave no trace: so long after each, and after its beginning, it says once that there was another.
    """

    heard = EVERY_TOPIC

    def __init__(self, look: Callable[[], object], pause: float, slow: str = "", grain: float = 0.0) -> None:
        self._look = look
        self._least = self._pause = pause
        self.slow = slow
        self._grain = grain
        self._to_be_sure = float("inf")
        self._note(look())

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        give_up = time.monotonic() + timeout
        while (seen := self._look()) == self._seen:
            now = time.monotonic()
            if now >= self._to_be_sure:
                self._to_be_sure = float("inf")
                return True
            if now >= give_up:
                return False
            time.sleep(min(self._pause, give_up - now))
            self._pause = min(self._pause * _SLOWER, _LONGEST)
        self._note(seen)
        return True

    def _note(self, seen: object) -> None:
        self._seen, self._pause = seen, self._least
        if self._grain:
            self._to_be_sure = time.monotonic() + self._grain

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        return None
