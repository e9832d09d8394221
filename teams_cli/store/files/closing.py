"""Closing a team: all its locks are held while its record is changed, so that no other change is under way.

Whoever changes something in a team looks at the team's record under the lock of the directory. So who looked while the
team was open has made its change before the team is closed, and who looks later is refused.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.store.files import disk
from teams_cli.store.files.layout import OWED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from teams_cli.store.files.locks import Lock


class Closing:
    """All locks of a team, for the length of a `with` block, and those that came meanwhile once before it ends.

    The lock file of a directory may be younger than the team, so it is made where it is not there yet: whoever comes
    later waits for it.

    Raises:
        Busy: Another process had one of them too long; none is held.
        OutcomeUnknown: The same, of one that came meanwhile; what was done in the block is done.
    """

    def __init__(self, root: str, team: str, lock: Callable[[str], Lock]) -> None:
        self._root = root
        self._team = team
        self._lock = lock
        self._held: dict[str, Lock] = {}

    def __enter__(self) -> None:
        try:
            self._take()
        except BaseException:
            self._release()
            raise

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._take()
        except errors.TeamsError as failure:
            raise errors.OutcomeUnknown(
                f"team {self._team} is closed, but {failure.message}",
                "An earlier change may still follow. Repeat the command: it waits.",
            ) from None
        finally:
            self._release()

    def _take(self) -> None:
        """Take what is not held yet, in the one order that all have who take several."""
        for directory in sorted(filter(os.path.isdir, self._directories())):
            if directory not in self._held:
                lock = self._lock(directory)
                lock.__enter__()
                self._held[directory] = lock

    def _release(self) -> None:
        while self._held:
            self._held.popitem()[1].__exit__()

    def _directories(self) -> list[str]:
        own = f"{self._root}/teams/{self._team}"
        parts = (f"{own}/{name}" for name in disk.names_in(own) if name != OWED)
        return [own, f"{self._root}/tasks/{self._team}", *parts]
