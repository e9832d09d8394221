"""How many changes a second many processes make together, on files and on PostgreSQL, compared with a bare loop
of writes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from teams_cli.membership import joining
from teams_cli.store.files.engine import FILES
from teams_cli.store.opening import open_store
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams.permission import Caller
from tests.benchmarks.measuring import show
from tests.benchmarks.places import NOW, WORKERS, Place
from tests.support import postgres
from tests.support.cli import ALPHA
from tests.support.postgres import Postgres

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

WORKER = """
import os, sys, time
from teams_cli.errors import NotFound
from teams_cli.tasks import claims
from teams_cli.messages import messages
from teams_cli.teams.permission import Caller
from teams_cli.store.opening import open_store
from teams_cli.tasks.changes import Edit, change_task

root, me, what, times = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
store, caller, done = open_store(root, sys.argv[5], 120), Caller(f"a{me}"), []
sys.stdin.readline()
started = time.monotonic()
if what == "send":
    done = [messages.send(store, "alpha", caller, "lea", "hello").number for _ in range(times)]
elif what == "claim":
    done = [claims.claim(store, "alpha", caller, str(me * times + n + 1)).id for n in range(times)]
elif what == "next":
    try:
        while True:
            done.append(claims.claim_next(store, "alpha", caller).id)
            change_task(store, "alpha", caller, done[-1], Edit(status="completed"))
    except NotFound:
        pass
else:
    for n in range(times):
        temp = os.open(f"{root}/{me}.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(temp, b"x" * 400)
        os.fsync(temp)
        os.close(temp)
        os.rename(f"{root}/{me}.tmp", f"{root}/{me}.{n}")
        directory = os.open(root, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
        done.append(n + me * times)
print(started, time.monotonic(), *done)
"""
WORK = {"send": "send-message", "claim": "claim-task ID", "next": "claim-task --next, and complete"}
_LEAST = 500
"""The changes a second that `send-message` and `claim-task ID` must reach."""


def together(root: Path, what: str, each: int, address: str = FILES) -> tuple[float, list[str]]:
    """Let long-lived processes work together; returns the changes a second, from the first start to the last
    end, and the changes.
    """
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(root), str(me), what, str(each), address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for me in range(WORKERS)
    ]
    time.sleep(0.5)  # for all to have imported
    for process in running:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate()[0].split() for process in running]
    begin, end = min(float(a[0]) for a in answers), max(float(a[1]) for a in answers)
    done = [word for answer in answers for word in answer[2:]]
    return len(done) / (end - begin), done


def bench_throughput(directory: Path, each: int, rounds: int) -> None:
    """Measure long-lived processes on files, beside a bare loop that writes and syncs a temporary file, renames
    it and syncs the directory; then on a PostgreSQL server with default settings, on the same disk and through
    a socket.
    """
    total = each * WORKERS
    print(f"\n{WORKERS} long-lived processes together, syncs on, {total} changes, best of {rounds} (median)")
    show("", "a second", "median", "x bare loop", "lost", "twice", "limit")
    for n in range(rounds):
        (directory / f"bare{n}").mkdir()
    bare = [together(directory / f"bare{n}", "bare", each)[0] for n in range(rounds)]
    show("bare loop", max(bare), statistics.median(bare), "1.00")

    def on_files(what: str, n: int) -> tuple[float, list[str]]:
        Place(directory / f"{what}{n}", total if what != "send" else 0)
        return together(directory / f"{what}{n}", what, each)

    _rows("", on_files, total, rounds, max(bare), _LEAST)
    if why := postgres.missing():
        print(f"  PostgreSQL: not measured: {why}")
        return
    server = Postgres(directory=directory)

    def on_server(what: str, n: int) -> tuple[float, list[str]]:
        address = server.address(schema=f"{what}{n}")
        fill(open_store(str(directory / "pg"), address), total if what != "send" else 0)
        return together(directory / "pg", what, each, address)

    try:
        _rows(", PostgreSQL", on_server, total, rounds, max(bare), 0)
    finally:
        server.stop()


def _rows(
    where: str, work: Callable[[str, int], tuple[float, list[str]]], total: int, rounds: int, bare: float, least: int
) -> None:
    for what, name in WORK.items():
        rates, done = zip(*[work(what, n) for n in range(rounds)], strict=True)
        lost, twice = sum(total - len(set(d)) for d in done), sum(len(d) - len(set(d)) for d in done)
        kept = max(rates) >= least and (lost, twice) == (0, 0)
        limit = f">= {least} {'ok' if kept else 'MISSED'}" if least and what != "next" else "-"
        show(name + where, max(rates), statistics.median(rates), f"{max(rates) / bare:.2f}", lost, twice, limit)


def fill(store: Store, count: int) -> None:
    joining.spawn_team(store, ALPHA, Caller("lea"))
    for n in range(WORKERS):
        joining.join(store, ALPHA, Caller(f"a{n}"))
    for n in range(count):
        tasks.create(store, ALPHA, Caller("lea"), Task(team_name=ALPHA, title=f"number {n}", created_at=NOW))
    store.close()
