"""Candidacy: those who are about to change one record hear of each other, so that each can take another."""

from __future__ import annotations

import os

try:
    import fcntl
except ImportError:  # no flock here: nobody hears of anybody
    fcntl = None  # type: ignore[assignment]

_LOOK = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Candidacy:
    """That one is about to change a record, for the length of a `with` block: whether nobody else is about to. It is a
    hint, and no right: where nobody can tell, nobody is.

    It is known by a lock on the *file* of the record, the kernel's, which dies with its holder; where there is none,
    nobody can tell. Whoever changes the record puts another file there, which is free.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._held: int | None = None

    def __enter__(self) -> bool:
        if not (self._file and fcntl):
            return True
        try:
            self._held = os.open(self._file, _LOOK)
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # it is gone, or can't be locked here: the change itself will tell
            return True
        return True

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            os.close(self._held)
