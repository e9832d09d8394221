"""What one command costs on a PostgreSQL server on this machine, beside the same on files."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path

from teams_cli.store.files.engine import FILES
from teams_cli.store.opening import open_store
from tests.benchmarks.measuring import timed
from tests.benchmarks.throughput import fill
from tests.support import postgres
from tests.support.cli import ALPHA
from tests.support.postgres import Postgres

COMMANDS = {
    "send-message": ("lea", "send-message a0 hello"),
    "read-messages": ("a0", "read-messages"),
    "claim-task": ("a1", "claim-task {n}"),
    "update-task": ("lea", "update-task {n} --description more"),
    "get-tasks": ("a0", "get-tasks --limit 20"),
    "brief": ("a0", "brief"),
}
"""Commands, and as whom; *n* is the number of the round."""
_MOST = 2.2


def bench_engines(
    directory: Path, teams: list[str], rounds: int, show: Callable[..., None], against: Callable[[float, float], str]
) -> None:
    """Whole processes in turns, by the clock, as the server's part is in nobody's processor time but its own."""
    if why := postgres.missing():
        print(f"\nCommands on PostgreSQL: not measured: {why}")
        return
    print(f"\nOne command on files and on PostgreSQL, whole process, median of {rounds} (of the best), ms")
    show("", "files", "PostgreSQL", "ratio", "of the best", "limit")
    server = Postgres(directory=directory)
    try:
        _bench(directory / "engines", server.address(schema="engines"), teams, rounds, show, against)
    finally:
        server.stop()


def _bench(
    root: Path,
    address: str,
    teams: list[str],
    rounds: int,
    show: Callable[..., None],
    against: Callable[[float, float], str],
) -> None:
    on_files = {**os.environ, "TEAMS_HOME": str(root / "files"), "TEAMS_TEAM": ALPHA}
    on_server = {**on_files, "TEAMS_HOME": str(root / "server"), "TEAMS_STORE": address}
    for environ in (on_files, on_server):
        fill(open_store(environ["TEAMS_HOME"], environ.get("TEAMS_STORE", FILES)), rounds)
    for name, (agent, words) in COMMANDS.items():
        taken: dict[bool, list[float]] = {False: [], True: []}
        for n in range(1, rounds + 1):
            for environ in (on_files, on_server):
                command = [*teams, *words.format(n=n).split()]
                taken[environ is on_server].append(timed(command, {**environ, "TEAMS_AGENT_ID": agent}))
        medians = [statistics.median(times) for times in taken.values()]
        ratio, best = medians[1] / medians[0], min(taken[True]) / min(taken[False])
        cells = (medians[0] * 1000, medians[1] * 1000, f"{ratio:.2f}", f"{best:.2f}", against(_MOST, ratio))
        show(name, *cells)
