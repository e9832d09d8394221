"""What one command costs on a PostgreSQL server on this machine, beside the same on files."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

from teams_cli.store.files.engine import FILES
from teams_cli.store.opening import open_store
from tests.benchmarks.limits import TOLERANCE, TRIES, against, in_every_try
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
"""Commands, and as whom; *n* is the number of a task that is there for it."""
_MOST = 2.2


def bench_engines(directory: Path, teams: list[str], rounds: int, show: Callable[..., None]) -> list[str]:
    """Whole processes in turns, by the clock, as the server's part is in nobody's processor time but its own; which
    took too long on the server in every try.
    """
    if why := postgres.missing():
        print(f"\nCommands on PostgreSQL: not measured: {why}")
        return []
    print(f"\nOne command on files and on PostgreSQL, whole process, median of {rounds} (of the best), ms")
    show("", "files", "PostgreSQL", "ratio", "of the best", "limit")
    server = Postgres(directory=directory)
    try:
        places = _filled(directory / "engines", server.address(schema="engines"), rounds * TRIES)
        fresh = iter(range(1, rounds * TRIES + 1))
        return in_every_try(list(COMMANDS), lambda names: _slower(names, places, teams, rounds, fresh, show))
    finally:
        server.stop()


def _filled(root: Path, address: str, tasks: int) -> list[dict[str, str]]:
    """The environments of a team with so many tasks on files, and of one on the server."""
    on_files = {**os.environ, "TEAMS_HOME": str(root / "files"), "TEAMS_TEAM": ALPHA}
    on_server = {**on_files, "TEAMS_HOME": str(root / "server"), "TEAMS_STORE": address}
    for environ in (on_files, on_server):
        fill(open_store(environ["TEAMS_HOME"], environ.get("TEAMS_STORE", FILES)), tasks)
    return [on_files, on_server]


def _slower(
    names: list[str],
    places: list[dict[str, str]],
    teams: list[str],
    rounds: int,
    fresh: Iterator[int],
    show: Callable[..., None],
) -> list[str]:
    slower, tasks = [], [next(fresh) for _ in range(rounds)]
    for name in names:
        agent, words = COMMANDS[name]
        commands = [[*teams, *words.format(n=n).split()] for n in tasks]
        pairs = [[timed(command, {**place, "TEAMS_AGENT_ID": agent}) for place in places] for command in commands]
        on_files, on_server = zip(*pairs, strict=True)
        ratio = statistics.median(on_server) / statistics.median(on_files)
        best = min(on_server) / min(on_files)
        cells = (statistics.median(on_files) * 1000, statistics.median(on_server) * 1000)
        show(name, *cells, f"{ratio:.2f}", f"{best:.2f}", against(_MOST, ratio))
        slower += [name] if ratio > _MOST * TOLERANCE else []
    return slower
