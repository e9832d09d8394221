"""What a shell costs a person: completion, the help on a terminal, and the memory of the smallest commands."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.benchmarks.limits import against, in_every_try, slower_than_bare
from tests.benchmarks.measuring import spent
from tests.support.cli import ALPHA

LINES = {
    "a command": "teams cla",
    "a team": "teams get-tasks --team a",
    "an agent": "teams send-message a",
    "a task": "teams claim-task task-",
    "a workflow": "teams run code",
}
_MOST, _MOST_MS, _MOST_MIB = 2.0, 200.0, 12.0
_PEAK = """
import os, resource, sys
where = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=where), 0)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""
"""Runs a command from a process that has little, as the system counts what was there before for what comes of it."""


def bench_completion(root: Path, teams: list[str], rounds: int, show: Callable[..., None]) -> list[str]:
    """Completion in bash against bare Python in turns, processor time; `--help` on a terminal; memory. Gives the names
    of what was completed too slowly in every try.
    """
    environ = {**os.environ, "TEAMS_HOME": str(root), "TEAMS_TEAM": ALPHA, "TEAMS_AGENT_ID": "a0"}
    print(f"\nCompletion, processor time of the whole process, lower quartile of {rounds} (best), ms")
    show("", "quartile", "best", "x python", "limit")
    slower = in_every_try(list(LINES), lambda names: _slower(names, environ, teams, rounds, show))
    shown = min(_on_a_terminal([*teams, "--help"], environ) for _ in range(rounds)) * 1000
    show("--help on a terminal", "", shown, "", against(_MOST_MS, shown))
    for words in (["--version"], ["hook", "claude"]):
        peak = float(subprocess.check_output([sys.executable, "-c", _PEAK, *teams, *words], env=environ, input=b"{}"))
        show(f"{' '.join(words)}, MiB", "", peak, "", against(_MOST_MIB, peak))
    return slower


def _slower(
    names: list[str], environ: dict[str, str], teams: list[str], rounds: int, show: Callable[..., None]
) -> list[str]:
    """Complete these; which took more than they may."""
    asked = {
        name: {"_TEAMS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        for name, line in LINES.items()
        if name in names
    }
    measures = {name: partial(spent, teams, environ | more) for name, more in asked.items()}
    return slower_than_bare(measures, dict.fromkeys(asked, _MOST), rounds, show)


def _on_a_terminal(words: list[str], environ: dict[str, str]) -> float:
    """How long a command takes that writes to a terminal."""
    ours, its = pty.openpty()
    try:
        started = time.perf_counter()
        process = subprocess.Popen(words, env=environ, stdin=its, stdout=its, stderr=its)
        os.close(its)
        while _read(ours):
            continue
        assert process.wait() == 0, words
        return time.perf_counter() - started
    finally:
        os.close(ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # as Linux says that nobody writes there any more
        return b""
