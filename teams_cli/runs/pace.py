"""Pace: looking again at what others change all the time, without taking a processor for it."""

from __future__ import annotations

import time

from teams_cli.errors import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

_TRIES = 5


def paced(ready: Callable[[], bool]) -> Callable[[], bool]:
    """The same question, with a pause after each no, twice as long as it took to answer: in a team with thousands of
    tasks it takes long, and something changes all the time.
    """

    def ask() -> bool:
        began = time.monotonic()
        if ready():
            return True
        time.sleep(min(2 * (time.monotonic() - began), 1.0))
        return False

    return ask


def insist(change: Callable[[], T]) -> T:
    """Make the change, again when it did not have its turn.

    Raises:
        Busy: It did not have it several times.
    """
    for _ in range(_TRIES - 1):
        try:
            return change()
        except Busy:
            continue
    return change()
