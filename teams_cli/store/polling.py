"""Waiting for a change by looking again and again, where nothing wakes."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class PollingWatch:
    """Looks every *pause* seconds whether what *look* returns is something else."""

    def __init__(self, look: Callable[[], object], pause: float) -> None:
        self._look = look
        self._pause = pause
        self._seen = look()

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        give_up = time.monotonic() + timeout
        while (seen := self._look()) == self._seen:
            if time.monotonic() >= give_up:
                return False
            time.sleep(self._pause)
        self._seen = seen
        return True

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        return None
