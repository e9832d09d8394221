"""What one command costs on a PostgreSQL server on this machine, beside the same on files."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from teams_cli.membership import founding, joining
from teams_cli.store.files.engine import FILES
from teams_cli.store.opening import open_store
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams.caller import Caller
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
_NOW = "2030-01-01T00:00:00.000Z"


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
        _fill(environ["TEAMS_HOME"], environ.get("TEAMS_STORE", FILES), rounds)
    for name, (agent, words) in COMMANDS.items():
        taken: dict[bool, list[float]] = {False: [], True: []}
        for n in range(1, rounds + 1):
            for environ in (on_files, on_server):
                command = [*teams, *words.format(n=n).split()]
                taken[environ is on_server].append(_seconds(command, {**environ, "TEAMS_AGENT_ID": agent}))
        medians = [statistics.median(times) for times in taken.values()]
        ratio, best = medians[1] / medians[0], min(taken[True]) / min(taken[False])
        cells = (medians[0] * 1000, medians[1] * 1000, f"{ratio:.2f}", f"{best:.2f}", against(_MOST, ratio))
        show(name, *cells)


def _fill(root: str, address: str, count: int) -> None:
    """A team with so many tasks."""
    store = open_store(root, address)
    founding.spawn_team(store, ALPHA, Caller("lea"))
    for name in ("a0", "a1"):
        joining.join(store, ALPHA, Caller(name))
    for n in range(count):
        tasks.create(store, ALPHA, Caller("lea"), Task(team_name=ALPHA, title=f"number {n}", created_at=_NOW))
    store.close()


def _seconds(words: list[str], environ: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(words, env=environ, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
