"""What processes take, and what of many times is told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_A_SECOND = os.sysconf("SC_CLK_TCK")


def timed(words: list[str], environ: dict[str, str]) -> float:
    """How long a whole process took, in seconds."""
    started = time.perf_counter()
    nothing = subprocess.DEVNULL
    subprocess.run(words, env=environ, check=True, stdin=nothing, stdout=nothing, stderr=nothing)
    return time.perf_counter() - started


def spent(words: list[str], environ: dict[str, str]) -> float:
    """How long a whole process kept a processor, in seconds."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(words, env=environ, stdin=nothing, stdout=nothing, stderr=nothing)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return used.ru_utime + used.ru_stime


def spent_by(pid: int) -> float:
    """How long a process that goes on kept a processor until now, in seconds.

    Raises:
        OSError: It ended.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _A_SECOND


def beside_bare(measures: Mapping[str, Callable[[], float]], rounds: int) -> tuple[list[float], dict[str, list[float]]]:
    """The processor time of `python -c pass`, in turns with what these measure; and that, by their names."""
    bare: list[float] = []
    found: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        bare.append(spent([sys.executable, "-c", "pass"], dict(os.environ)))
        for name, measure in measures.items():
            found[name].append(measure())
    return bare, found


def lower_quartile(times: list[float]) -> float:
    """The time that a quarter of the times lies below."""
    return sorted(times)[len(times) // 4]
