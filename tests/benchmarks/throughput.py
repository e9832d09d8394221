"""What many processes do together in a second, on files and on PostgreSQL, against a bare loop of writes."""

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
from tests.benchmarks.places import Place
from tests.support import postgres
from tests.support.cli import ALPHA
from tests.support.postgres import Postgres

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

NOW = "2030-01-01T00:00:00.000Z"
WORKERS = 8

WORKER = """
import sys, time
from teams_cli.errors import NotFound
from teams_cli.tasks import choosing, claims
from teams_cli.messages import messages
from teams_cli.teams.permission import Caller
from teams_cli.store.opening import open_store
from teams_cli.tasks.changes import Edit, change_task

root, me, what, times = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
store, caller, done = open_store(root, sys.argv[5], 120), Caller(f"a{me}"), []
if hasattr(store, "lock_timeout"):
    store.lock_timeout = 120
sys.stdin.readline()
started = time.monotonic()
if what == "send":
    done = [messages.send(store, "alpha", caller, "lea", "hello").number for _ in range(times)]
elif what == "claim":
    done = [claims.claim(store, "alpha", caller, str(me * times + n + 1)).id for n in range(times)]
elif what == "next":
    try:
        while True:
            done.append(choosing.claim_next(store, "alpha", caller).id)
            change_task(store, "alpha", caller, done[-1], Edit(status="completed"))
    except NotFound:
        pass
else:
    import os
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


def together(
    root: Path,
    what: str,
    each: int,
    workers: int = WORKERS,
    address: str = FILES,
    code: str = WORKER,
    directory: Path | None = None,
) -> tuple[float, list[str]]:
    """Let long-lived processes work together: changes a second from the first start to the last end, and what of. The
    *code* of another version is run in the *directory* of its sources.
    """
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(root), str(me), what, str(each), address],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for me in range(workers)
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


def bench_throughput(directory: Path, each: int, rounds: int, show: Callable[..., None]) -> None:
    """Long-lived processes, beside a bare loop of temporary file, fsync, rename, fsync of the directory."""
    total = each * WORKERS
    print(f"\n{WORKERS} long-lived processes together, syncs on, {total} changes, best of {rounds} (median)")
    show("", "a second", "median", "x bare loop", "lost", "twice", "limit")
    rates: dict[str, list[float]] = {}
    wrong: dict[str, tuple[int, int]] = {}
    for n in range(rounds):
        for what in ("bare", "send", "claim", "next"):
            root = directory / f"{what}{n}"
            if what == "bare":
                root.mkdir()
            else:
                Place(root, total if what != "send" else 0)
            rate, done = together(root, what, each)
            rates.setdefault(what, []).append(rate)
            lost, twice = wrong.get(what, (0, 0))
            wrong[what] = lost + total - len(set(done)), twice + len(done) - len(set(done))
        alone = directory / f"alone{n}"
        alone.mkdir()
        rates.setdefault("alone", []).append(together(alone, "bare", each, workers=1)[0])
    bare = max(rates["bare"])
    show("bare loop, 8 processes", bare, statistics.median(rates["bare"]), "1.00")
    show(
        "bare loop, 1 process",
        max(rates["alone"]),
        statistics.median(rates["alone"]),
        f"{max(rates['alone']) / bare:.2f}",
    )
    for what, name in (
        ("send", "send-message"),
        ("claim", "claim-task ID"),
        ("next", "claim-task --next, and complete"),
    ):
        rate = max(rates[what])
        ok = ">= 500 " + ("ok" if rate >= 500 and wrong[what] == (0, 0) else "MISSED") if what != "next" else "-"
        show(name, rate, statistics.median(rates[what]), f"{rate / bare:.2f}", *wrong[what], ok)


def bench_postgres(directory: Path, each: int, rounds: int, show: Callable[..., None]) -> None:
    """The same work on a PostgreSQL server at its defaults, on the same disk, reached through a socket."""
    total = each * WORKERS
    if why := postgres.missing():
        print(f"\nPostgreSQL: not measured: {why}")
        return
    print(f"\n{WORKERS} long-lived processes together on PostgreSQL, {total} changes, best of {rounds} (median)")
    show("", "a second", "median", "", "lost", "twice")
    server = Postgres(directory=directory)
    try:
        for what, name in (("send", "send-message"), ("claim", "claim-task ID"), ("next", "claim-task --next, …")):
            rates, lost, twice = [], 0, 0
            for n in range(rounds):
                address = server.address(schema=f"{what}{n}")
                fill(open_store(str(directory / "pg"), address), total if what != "send" else 0)
                rate, done = together(directory / "pg", what, each, address=address)
                rates.append(rate)
                lost, twice = lost + total - len(set(done)), twice + len(done) - len(set(done))
            show(name, max(rates), statistics.median(rates), "", lost, twice)
    finally:
        server.stop()


def fill(store: Store, count: int) -> None:
    """A team with so many tasks."""
    joining.spawn_team(store, ALPHA, Caller("lea"))
    for n in range(WORKERS):
        joining.join(store, ALPHA, Caller(f"a{n}"))
    for n in range(count):
        tasks.create(store, ALPHA, Caller("lea"), Task(team_name=ALPHA, title=f"number {n}", created_at=NOW))
    store.close()
