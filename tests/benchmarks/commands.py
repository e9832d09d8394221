"""What commands cost: one command against bare Python, a full team against a small one, and a listing of all
tasks.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from teams_cli.clients import known
from tests.benchmarks.measuring import EVERYDAY, TOLERANCE, against, in_every_try, show, slower_than_bare, spent, timed
from tests.benchmarks.places import Place
from tests.support.cli import ALPHA

FEW, MANY, MOST = 100, 10_000, 100_000
TEAMS = [sys.executable, str(Path(__file__).with_name("entry") / "teams")]


def _nothing(place: Place) -> None:
    return


class Case(NamedTuple):
    """A command (*words*) and its *agent*, what to do before it (*first*), and how to restore the place *after*
    it.
    """

    words: str
    agent: str = "a0"
    after: Callable[[Place], object] = _nothing
    first: Callable[[Place], object] = _nothing
    completed: bool = False
    given: bytes = b""
    program: list[str] = TEAMS

    def seconds(self, place: Place) -> float:
        """The seconds that one whole process takes."""
        return self._taken(timed, place)

    def processor_seconds(self, place: Place) -> float:
        """The seconds of processor time of one whole process, which do not depend on how busy the machine
        is.
        """
        return self._taken(partial(spent, given=self.given), place)

    def _taken(self, measure: Callable[[list[str], dict[str, str]], float], place: Place) -> float:
        """What *measure* says of the command. Restored files are synced at once, so that the next command does
        not have to.
        """
        environ = {**os.environ, "TEAMS_HOME": str(place.root), "TEAMS_TEAM": ALPHA, "TEAMS_AGENT_ID": self.agent}
        words = self.words.split()
        if self.completed:
            asked = {"COMP_WORDS": f"teams {self.words}", "COMP_CWORD": str(len(words))}
            environ, words = {**environ, **asked, "_TEAMS_COMPLETE": "complete_bash"}, []
        self.first(place)
        taken = measure([*self.program, *words], environ)
        self.after(place)
        os.sync()
        return taken


SEND = Case("send-message a0 hello", "lea", Place.drop_sent)
READ = Case("read-messages", "a0", Place.put_inbox)
CLAIM = Case("claim-task 5", "a1", lambda place: place.put_task(5))
NEXT = Case("claim-task --next", "a1", lambda place: place.put_task(1))
WAIT = Case("wait --timeout 0", "a0", Place.forget_told)
COMPLETE = Case("update-task 8 --status completed --result r", "a1", Place.drop_sent, lambda place: place.claim_task(8))
OVER = 3
HOOK = Case(
    "",
    given=json.dumps({"hook_event_name": "PostToolBatch", "tool_response": "x" * 20_000}).encode(),
    program=shlex.split(known.get("claude").hook_command(sys.executable)),
)
START = {
    "--version": (Case("--version"), 1.1),
    "a hook with nothing to say": (HOOK, 1.1),
    "send-message": (SEND, EVERYDAY),
    "read-messages": (READ, EVERYDAY),
    "claim-task": (CLAIM, EVERYDAY),
    "claim-task --next": (NEXT, EVERYDAY),
    "update-task": (Case("update-task 6 --description more", "lea", lambda place: place.put_task(6)), EVERYDAY),
    "update-task --status completed": (COMPLETE, 2.25),
    "heartbeat": (Case("heartbeat", "a1"), EVERYDAY),
    "wait, for a task that is over": (Case(f"wait --task {OVER}", "a1"), 2.25),
    "wait, with a message": (WAIT._replace(first=lambda place: place.put_inbox(1)), 2.6),
    "wait, with mail, and work": (WAIT, 2.6),
    "brief": (Case("brief", "a1"), 2.6),
    "get-tasks --limit 100": (Case("get-tasks --limit 100"), 2.25),
    "completion of an agent": (Case("send-message a", completed=True), EVERYDAY),
    "completion of a workflow": (Case("run code", completed=True), EVERYDAY),
}
"""Commands, and how many times bare Python they may take: those that read all that concerns an agent, or many
tasks, may take more.
"""
GROWTH = {
    "send-message": (SEND, 1.25),
    "read-messages, 10 unread": (READ, 1.25),
    "claim-task ID": (CLAIM, 1.25),
    "claim-task --next": (NEXT, 1.25),
    "show-task": (Case("show-task 7"), 1.25),
    "wait, with mail, and work": (WAIT, 1.25),
    "get-tasks --limit 50": (Case("get-tasks --limit 50"), 2.0),
    "brief": (Case("brief", "a1"), 2.0),
    "list-agents": (Case("list-agents"), 2.0),
    "history --limit 20": (Case("history --limit 20"), 2.0),
}
"""Commands, and how much longer they may take with a hundred times as many records."""
FURTHER = {name: (case, 2.0) for name, (case, limit) in GROWTH.items() if limit < 2 or name.startswith("history")}
"""The commands that are measured with ten times as many records again."""
_A_TASK, _DOCTOR = 20.0, 1.0
"""Microseconds that a listing may take for each task, and seconds that the doctor may take for 10,000 records."""


def bench_start(place: Place, rounds: int) -> list[str]:
    """Compare commands with bare Python, and return the names of those that were too slow in every try."""
    place.put_task(OVER, "completed")
    print(f"\nOne command, processor time of the whole process, best of {rounds} (median), ms")
    show("", "best", "median", "x python", "limit")

    def measure(names: list[str]) -> list[str]:
        measures = {name: partial(START[name][0].processor_seconds, place) for name in names}
        return slower_than_bare(measures, {name: START[name][1] for name in names}, rounds)

    return in_every_try(list(START), measure)


def bench_growth(few: Place, many: Place, rounds: int, growth: dict[str, tuple[Case, float]] = GROWTH) -> list[str]:
    """Run commands on a small and on a full team, and return the names of those that grew too much in every
    try.
    """
    stored = f"{few.count:,} and {many.count:,} messages, tasks and changes stored"
    print(f"\n{stored}, whole process, best of {rounds} (median), ms")
    show("", f"{few.count:,}", f"{many.count:,}", "ratio", "of medians", "limit")

    def measure(names: list[str]) -> list[str]:
        grown = []
        for name, (case, limit) in ((name, growth[name]) for name in names):
            small, full = zip(*[(case.seconds(few), case.seconds(many)) for _ in range(rounds)], strict=True)
            ratio = min(full) / min(small)
            medians = f"{statistics.median(full) / statistics.median(small):.2f}"
            show(name, min(small) * 1000, min(full) * 1000, f"{ratio:.2f}", medians, against(limit, ratio))
            grown += [name] if ratio > limit * TOLERANCE else []
        return grown

    return [f"{name} among {many.count:,}" for name in in_every_try(list(growth), measure)]


def bench_whole(place: Place, rounds: int) -> None:
    """Measure commands that read everything: a listing of all tasks, and the doctor."""
    listing = min(Case("get-tasks --json").seconds(place) for _ in range(rounds)) / place.count * 1e6
    print(f"\nget-tasks --json, {place.count:,} tasks: {listing:.1f} us a task, {against(_A_TASK, listing)}")
    taken = min(Case(f"doctor --team {ALPHA}").seconds(place) for _ in range(rounds)) * 5000 / place.count
    print(f"doctor, for 5,000 tasks and as many messages: {taken:.2f} s, {against(_DOCTOR, taken)}")
