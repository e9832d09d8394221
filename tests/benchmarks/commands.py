"""What commands cost: one against bare Python, on a full team against a small one, and a listing for each task."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.benchmarks.limits import EVERYDAY, TOLERANCE, against, in_every_try, slower_than_bare
from tests.benchmarks.measuring import spent, timed
from tests.benchmarks.places import Place
from tests.support.cli import ALPHA

FEW, MANY, MOST = 100, 10_000, 100_000
A_TASK = 20.0
"""Microseconds that a task may take of a whole listing."""


def _nothing(place: Place) -> None:
    return


class Case:
    """Words to run, as whom, and how to put the place back afterwards; or how to prepare it *first*."""

    def __init__(
        self,
        words: str,
        agent: str = "a0",
        after: Callable[[Place], object] = _nothing,
        first: Callable[[Place], object] = _nothing,
    ) -> None:
        self.words = words.split()
        self.agent = agent
        self.after = after
        self.first = first

    def seconds(self, place: Place) -> float:
        """How long one whole process took."""
        return self._taken(timed, place)

    def processor_seconds(self, place: Place) -> float:
        """How long one whole process kept a processor, which a busy machine leaves as it is."""
        return self._taken(spent, place)

    def _taken(self, measure: Callable[[list[str], dict[str, str]], float], place: Place) -> float:
        """What it took, by that measure. What is put back goes to the disk at once: whoever is next to bring something
        there would do it as well, which on some file systems takes as much of the processor as the command itself.
        """
        environ = {**os.environ, "TEAMS_HOME": str(place.root), "TEAMS_TEAM": ALPHA, "TEAMS_AGENT_ID": self.agent}
        self.first(place)
        taken = measure([*TEAMS, *self.words], environ)
        self.after(place)
        os.sync()
        return taken


TEAMS = [sys.executable, str(Path(__file__).with_name("entry") / "teams")]
SEND = Case("send-message a0 hello", "lea", Place.drop_sent)
READ = Case("read-messages", "a0", Place.put_inbox)
CLAIM = Case("claim-task 5", "a1", lambda place: place.put_task(5))
NEXT = Case("claim-task --next", "a1", lambda place: place.put_task(1))
FIFTY = Case("get-tasks --limit 50")
ALL = Case("get-tasks --json")
WAIT = Case("wait --timeout 0", "a0", Place.forget_told)
FOR_ONE = Case("wait --timeout 0", "a0", Place.forget_told, lambda place: place.put_inbox(1))
OVER = 3
UPDATE = Case("update-task 6 --description more", "lea", lambda place: place.put_task(6))
START = {
    "--version": (Case("--version"), 1.1),
    "send-message": (SEND, EVERYDAY),
    "read-messages": (READ, EVERYDAY),
    "claim-task": (CLAIM, EVERYDAY),
    "claim-task --next": (NEXT, EVERYDAY),
    "update-task": (UPDATE, EVERYDAY),
    "heartbeat": (Case("heartbeat", "a1"), EVERYDAY),
    "wait, for a task that is over": (Case(f"wait --task {OVER}", "a1"), EVERYDAY),
    "wait, with a message": (FOR_ONE, 2.5),
    "wait, with mail, and work": (WAIT, 2.5),
    "brief": (Case("brief", "a1"), 2.5),
    "get-tasks --limit 100": (Case("get-tasks --limit 100"), 2.25),
}
"""Commands, and how many times bare Python they may take; what looks at all that concerns one, or many tasks, more."""
LEAST = 15
"""Rounds of what may fail: the lower quartile of fewer is what the machine made of it."""
GROWTH = {
    "send-message": (SEND, 1.25),
    "read-messages, 10 unread": (READ, 1.25),
    "claim-task ID": (CLAIM, 1.25),
    "claim-task --next": (NEXT, 1.25),
    "show-task": (Case("show-task 7"), 1.25),
    "wait, with mail, and work": (WAIT, 1.25),
    "get-tasks --limit 50": (FIFTY, 2.0),
    "brief": (Case("brief", "a1"), 2.0),
    "list-agents": (Case("list-agents"), 2.0),
    "history --limit 20": (Case("history --limit 20"), 2.0),
}
"""Commands, and how much longer they may take among a hundred times as many."""
FURTHER = {name: (case, 2.0) for name, (case, limit) in GROWTH.items() if limit < 2 or name.startswith("history")}
"""The same, where there are ten times as many once more."""
_DOCTOR = 1.0
"""Seconds that the doctor may take for 10,000 records."""


def show(*cells: object) -> None:
    """One row of a table."""
    first, *rest = (f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells)
    print(f"  {first:<34}" + "".join(f"{cell:>14}" for cell in rest), flush=True)


def bench_start(place: Place, rounds: int) -> list[str]:
    """One command against bare Python; the names of those that were slower than they may be, in every try."""
    place.put_task(OVER, "completed")
    print(f"\nOne command, processor time of the whole process, lower quartile of {rounds} (best), ms")
    show("", "quartile", "best", "x python", "limit")
    return in_every_try(list(START), lambda names: _slower(place, rounds, names))


def _slower(place: Place, rounds: int, names: list[str]) -> list[str]:
    """Measure these commands; which took more than they may."""
    measures = {name: partial(START[name][0].processor_seconds, place) for name in names}
    return slower_than_bare(measures, {name: START[name][1] for name in names}, rounds, show)


def bench_growth(few: Place, many: Place, rounds: int, growth: dict[str, tuple[Case, float]] = GROWTH) -> list[str]:
    """The same command on a small and on a full team; the names of those that grew too much, in every try."""
    stored = f"{few.count:,} and {many.count:,} messages, tasks and changes stored"
    print(f"\n{stored}, whole process, best of {rounds} (median), ms")
    show("", f"{few.count:,}", f"{many.count:,}", "ratio", "of medians", "limit")
    return in_every_try(list(growth), lambda names: _grown(few, many, rounds, {name: growth[name] for name in names}))


def _grown(few: Place, many: Place, rounds: int, growth: dict[str, tuple[Case, float]]) -> list[str]:
    grown = []
    for name, (case, limit) in growth.items():
        pairs = [(case.seconds(few), case.seconds(many)) for _ in range(rounds)]
        small, full = zip(*pairs, strict=True)
        ratio = min(full) / min(small)
        medians = f"{statistics.median(full) / statistics.median(small):.2f}"
        show(name, min(small) * 1000, min(full) * 1000, f"{ratio:.2f}", medians, against(limit, ratio))
        grown += [name] if ratio > limit * TOLERANCE else []
    return grown


LISTER = """
import sys, time
from teams_cli.cli.main import run

times = []
for _ in range(int(sys.argv[1])):
    started = time.perf_counter()
    run(["get-tasks", "--json", "--team", "alpha"])
    times.append(time.perf_counter() - started)
print(min(times), file=sys.stderr)
"""


def bench_listing(few: Place, many: Place, rounds: int) -> None:
    """A whole listing, for each task: as a process, and without the start of one, which tasks have no part in."""
    print(f"\nget-tasks --json, whole listing, best of {rounds}")
    show("", "process, ms", "us a task", "no start, ms", "us a task", "limit")
    for place in (few, many):
        process = min(ALL.seconds(place) for _ in range(rounds))
        inside = _listing_seconds(place, rounds * MANY // place.count if place is few else rounds)
        each = inside / place.count * 1e6
        whole = process / place.count * 1e6
        limit = against(A_TASK, whole) if place is many else "-"
        show(f"{place.count:,} tasks", process * 1000, whole, inside * 1000, each, limit)


def bench_doctor(place: Place, rounds: int) -> None:
    """Looking through a whole team for what is damaged."""
    taken = min(Case(f"doctor --team {ALPHA}").seconds(place) for _ in range(rounds))
    print(f"\ndoctor, {place.count:,} tasks and as many messages: {taken:.2f} s, {against(_DOCTOR, taken)}")


def _listing_seconds(place: Place, times: int) -> float:
    """The best of so many listings in one process."""
    words = [sys.executable, "-c", LISTER, str(times)]
    environ = {**os.environ, "TEAMS_HOME": str(place.root)}
    done = subprocess.run(words, env=environ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return float(done.stderr)
