"""What a command costs on a local PostgreSQL server, compared with files."""

from __future__ import annotations

import os
from pathlib import Path

from teams_cli.store.files.engine import FILES
from teams_cli.store.opening import open_store
from tests.benchmarks.commands import TEAMS
from tests.benchmarks.measuring import TOLERANCE, TRIES, against, in_every_try, show, timed
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
"""The agent and the words of each command; *n* is the number of a task made for it."""
_MOST = 3


def bench_engines(directory: Path, rounds: int) -> list[str]:
    """Measure whole processes on files and on the server in turns, and return the names of those that were too
    slow on the server in every try. They are measured by the clock, as the server's own processor time is not
    in theirs. The best times count: they are the ones in which the machine did not stop the processes.
    """
    if why := postgres.missing():
        print(f"\nCommands on PostgreSQL: not measured: {why}")
        return []
    print(f"\nOne command on files and on PostgreSQL, whole process, best of {rounds}, ms")
    show("", "files", "PostgreSQL", "ratio", "limit")
    server = Postgres(directory=directory)
    on_files = {**os.environ, "TEAMS_HOME": str(directory / "files"), "TEAMS_TEAM": ALPHA}
    on_server = {**on_files, "TEAMS_HOME": str(directory / "server"), "TEAMS_STORE": server.address(schema="engines")}
    fresh = iter(range(1, rounds * TRIES + 1))

    def measure(names: list[str]) -> list[str]:
        slower, tasks = [], [next(fresh) for _ in range(rounds)]
        for name in names:
            agent, words = COMMANDS[name]
            commands = [[*TEAMS, *words.format(n=n).split()] for n in tasks]
            pairs = [[timed(c, {**e, "TEAMS_AGENT_ID": agent}) for e in (on_files, on_server)] for c in commands]
            files, there = (min(times) * 1000 for times in zip(*pairs, strict=True))
            show(name, files, there, f"{there / files:.2f}", against(_MOST, there / files))
            slower += [name] if there / files > _MOST * TOLERANCE else []
        return slower

    try:
        for environ in (on_files, on_server):
            fill(open_store(environ["TEAMS_HOME"], environ.get("TEAMS_STORE", FILES)), rounds * TRIES)
        return in_every_try(list(COMMANDS), measure)
    finally:
        server.stop()
