"""Waiting for a change by looking again and again, where nothing wakes."""

from __future__ import annotations

import time

from teams_cli.records.annotations import Callable
from teams_cli.store.topics import EVERY_TOPIC

_LONGEST = 1.0
_SLOWER = 1.5


class PollingWatch:
    """Looks every *pause* seconds whether what *look* returns is something else; while nothing happens, ever less
    often, down to once a second: whoever waits long can wait a little longer.
    """

    heard = EVERY_TOPIC

    def __init__(self, look: Callable[[], object], pause: float, slow: str = "") -> None:
        self._look = look
        self._least = self._pause = pause
        self._seen = look()
        self.slow = slow

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        give_up = time.monotonic() + timeout
        while (seen := self._look()) == self._seen:
            left = give_up - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(self._pause, left))
            self._pause = min(self._pause * _SLOWER, _LONGEST)
        self._seen, self._pause = seen, self._least
        return True

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        return None
