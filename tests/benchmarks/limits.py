"""What the figures may be, and when one that is not is a failure."""

from __future__ import annotations

from collections.abc import Callable

TRIES = 3
TOLERANCE = 1.2
"""What the machine may make of a ratio. Beyond this, in every try, the program has become slower."""


def against(limit: float, ratio: float) -> str:
    """The limit, and whether it is kept."""
    return f"<= {limit:g} {'ok' if ratio <= limit else 'MISSED'}" if limit else "-"


def in_every_try(names: list[str], measure: Callable[[list[str]], list[str]]) -> list[str]:
    """Which of those are too slow whenever they are measured."""
    slower = names
    for _ in range(TRIES):
        slower = measure(slower)
        if not slower:
            break
    return slower
