"""What the figures may be, and when one that is not is a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.benchmarks.measuring import beside_bare, lower_quartile

TRIES = 3
EVERYDAY = 2.0
"""Times bare Python that an everyday command may take; above 2.4 in every try it fails."""
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


def slower_than_bare(
    measures: Mapping[str, Callable[[], float]], most: Mapping[str, float], rounds: int, show: Callable[..., None]
) -> list[str]:
    """Measure these in turns with bare Python, a row each; which took more times its time than the *most* they may."""
    bare, found = beside_bare(measures, rounds)
    least = lower_quartile(bare)
    show("python -c pass", least * 1000, min(bare) * 1000, "1.00")
    slower = []
    for name, taken in found.items():
        ratio = lower_quartile(taken) / least
        show(name, lower_quartile(taken) * 1000, min(taken) * 1000, f"{ratio:.2f}", against(most[name], ratio))
        slower += [name] if ratio > most[name] * TOLERANCE else []
    return slower
