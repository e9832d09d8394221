"""Measuring processes, printing the figures, and deciding which of them are failures."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

EVERYDAY = 2.0
"""How many times bare Python an everyday command may take."""
TRIES = 3
TOLERANCE = 1.2
"""The factor by which the machine may distort a ratio: a ratio fails only if it is beyond that in every try."""
_A_SECOND = os.sysconf("SC_CLK_TCK")


def timed(words: list[str], environ: dict[str, str]) -> float:
    """The seconds that a whole process takes."""
    started = time.perf_counter()
    nothing = subprocess.DEVNULL
    subprocess.run(words, env=environ, check=True, stdin=nothing, stdout=nothing, stderr=nothing)
    return time.perf_counter() - started


def spent(words: list[str], environ: dict[str, str], given: bytes = b"") -> float:
    """The seconds of processor time of a whole process that gets *given* on its standard input."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(words, env=environ, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing)
    assert process.stdin
    with process.stdin as stdin:
        stdin.write(given)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return used.ru_utime + used.ru_stime


def spent_by(pid: int) -> float:
    """The seconds of processor time that a running process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _A_SECOND


def show(*cells: object) -> None:
    """Print one row of a table."""
    first, *rest = (f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells)
    print(f"  {first:<34}" + "".join(f"{cell:>14}" for cell in rest), flush=True)


def against(limit: float, value: float) -> str:
    """The limit, and whether it is kept."""
    return f"<= {limit:g} {'ok' if value <= limit else 'MISSED'}" if limit else "-"


def in_every_try(names: list[str], measure: Callable[[list[str]], list[str]]) -> list[str]:
    """The names that *measure* returns in every try."""
    for _ in range(TRIES):
        names = measure(names) if names else []
    return names


def slower_than_bare(measures: Mapping[str, Callable[[], float]], most: Mapping[str, float], rounds: int) -> list[str]:
    """Print a row for each measure, in turns with bare Python, and return the names of those that took more
    than *most* times as long. The best times count, because a busy machine adds processor time, too.
    """
    bare: list[float] = []
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        bare.append(spent([sys.executable, "-c", "pass"], dict(os.environ)))
        for name, measure in measures.items():
            taken[name].append(measure())
    show("python -c pass", min(bare) * 1000, statistics.median(bare) * 1000, "1.00")
    ratios = {name: min(times) / min(bare) for name, times in taken.items()}
    for name, ratio in ratios.items():
        row = min(taken[name]) * 1000, statistics.median(taken[name]) * 1000
        show(name, *row, f"{ratio:.2f}", against(most[name], ratio))
    return [name for name, ratio in ratios.items() if ratio > most[name] * TOLERANCE]
