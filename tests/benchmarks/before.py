"""What stood before, measured in turns with what is here, each on teams of its own."""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from tests.benchmarks import versions
from tests.benchmarks.limits import TOLERANCE, in_every_try
from tests.benchmarks.measuring import lower_quartile, spent
from tests.benchmarks.serving import reads_a_second
from tests.benchmarks.throughput import WORKERS, together
from tests.benchmarks.versions import Version
from tests.support.cli import ALPHA

_LOOPS, _TIMES = 8, 20
_CHANGES = 60
COMMANDS = {
    "send-message": ("lea", "send-message a0 hello"),
    "read-messages": ("a0", "read-messages"),
    "claim-task": ("a1", "claim-task 5"),
    "claim-task --next": ("a1", "claim-task --next"),
    "update-task": ("lea", "update-task 6 --description more"),
    "heartbeat": ("a1", "heartbeat"),
    "wait, with mail": ("a0", "wait --timeout 0"),
    "brief": ("a1", "brief"),
    "get-tasks --limit 100": ("a1", "get-tasks --limit 100"),
}
"""Commands that both have, and as whom: the team has a hundred tasks, and ten unread messages for a0."""
_LOOP = 'n=0; while [ "$n" -lt {times} ]; do n=$((n + 1)); {teams} {words} >/dev/null 2>&1 || exit 1; done'
_IN_LOOPS = {"send-message": "send-message lea hello", "claim-task ID": "claim-task $(({me} * {times} + n))"}
_BY_WORKERS = {"send-message": "send", "claim-task ID": "claim", "claim-task --next, and complete": "next"}
_READS = {"GET list-agents": f"/api/list-agents?team={ALPHA}", "GET board": f"/api/board?team={ALPHA}"}
LEAST_READS = 1.5
"""How many times as many reads a second a server has to answer."""
LEAST = 1.8
"""How many times as many sends and claims a second shell loops have to make."""
LEAST_TURNS = 1.5
"""How many times as many turns of `--next` and complete long-lived processes have to make."""


class Kept:
    """A team as it was first, to be put back after each command."""

    def __init__(self, version: Version, root: Path) -> None:
        self.version = version
        self.root = root
        version.make_place(root, 100)
        for agent, words in COMMANDS.values():  # what only the first command of all makes
            self._run(agent, words)
        root.rename(root.with_name("used"))
        version.make_place(root, 100)
        self._files = dict(self._now())

    def _now(self) -> list[tuple[Path, bytes]]:
        found = (path for path in self.root.rglob("*") if path.is_file() and not path.name.endswith("lock"))
        return [(path, path.read_bytes()) for path in found]

    def _run(self, agent: str, words: str) -> float:
        environ = {**self.version.environ, "TEAMS_HOME": str(self.root), "TEAMS_TEAM": ALPHA, "TEAMS_AGENT_ID": agent}
        return spent([*self.version.teams, *words.split()], environ)

    def seconds(self, agent: str, words: str) -> float:
        """How long a command kept a processor; then all is as it was."""
        taken = self._run(agent, words)
        now = dict(self._now())
        for path in now.keys() - self._files.keys():
            path.unlink()
        for path, data in self._files.items():
            if now.get(path) != data:
                path.write_bytes(data)
        os.sync()
        return taken


def bench_before(directory: Path, teams: list[str], commit: str, quick: bool, show: Callable[..., None]) -> list[str]:
    """The tables, or why that commit can't be had; what is too little faster than it was, in every try."""
    try:
        before = versions.at(commit, directory / "version")
    except subprocess.CalledProcessError as error:
        print(f"\nWhat stood at {commit}: not measured: {error.stderr.decode().strip() if error.stderr else error}")
        return []
    pair, rounds = (before, versions.here(teams)), 1 if quick else 3
    roots = (directory / f"rate {number}" for number in count())
    _bench_commands(directory, *pair, 15 if quick else 40, show)
    print(f"\n{_LOOPS} shell loops together, commands a second, best of {rounds}")
    show("", "before", "now", "of bests", "of medians", "limit")
    slow = in_every_try(list(_IN_LOOPS), lambda names: _slower_loops(names, roots, *pair, rounds, show))
    print(f"\nteams serve, reads a second of four clients, best of {rounds}")
    show("", "before", "now", "of bests", "of medians", "limit")
    for name, path in _READS.items():
        found = _rates(lambda version, path=path: reads_a_second(version, next(roots), path), *pair, rounds)
        _show_rates(name, *found, LEAST_READS, show)
    print(f"\n{WORKERS} long-lived processes together, changes a second, best of {rounds}")
    show("", "before", "now", "of bests", "of medians", "limit")
    for name, what in _BY_WORKERS.items():
        found = _rates(lambda version, what=what: _of_workers(version, next(roots), what), *pair, rounds)
        _show_rates(name, *found, LEAST_TURNS if what == "next" else 0, show)
    return [f"{name} in shell loops" for name in slow]


def _slower_loops(
    names: list[str], roots: Iterator[Path], before: Version, now: Version, rounds: int, show: Callable[..., None]
) -> list[str]:
    """Measure these in shell loops; which are too little faster than before."""
    slow = []
    for name in names:
        words = _IN_LOOPS[name]
        found = _rates(lambda version, words=words: _of_loops(version, next(roots), words), before, now, rounds)
        if _show_rates(name, *found, LEAST, show) < LEAST / TOLERANCE:
            slow.append(name)
    return slow


def _bench_commands(directory: Path, before: Version, now: Version, rounds: int, show: Callable[..., None]) -> None:
    """One command against bare Python, in turns."""
    print(f"\nWhat stood before and now, processor time of the whole process, lower quartile of {rounds}, ms")
    show("", "before", "now", "x python", "x python now", "gain")
    places = [Kept(before, directory / "kept before/root"), Kept(now, directory / "kept now/root")]
    bare: list[float] = []
    taken: dict[str, list[list[float]]] = {name: [[], []] for name in COMMANDS}
    for _ in range(rounds):
        bare.append(spent([sys.executable, "-c", "pass"], dict(os.environ)))
        for name, (agent, words) in COMMANDS.items():
            for place, times in zip(places, taken[name], strict=True):
                times.append(place.seconds(agent, words))
    least = lower_quartile(bare)
    show("python -c pass", least * 1000, least * 1000, "1.00", "1.00")
    for name, (first, second) in taken.items():
        was, is_now = lower_quartile(first), lower_quartile(second)
        ratios = (f"{was / least:.2f}", f"{is_now / least:.2f}", f"{was / is_now:.2f}")
        show(name, was * 1000, is_now * 1000, *ratios)


def _rates(
    measure: Callable[[Version], float], before: Version, now: Version, rounds: int
) -> tuple[list[float], list[float]]:
    """What two versions do a second, in turns, each as often the first of the two."""
    rates: dict[Version, list[float]] = {before: [], now: []}
    for n in range(rounds):
        for version in (before, now) if n % 2 else (now, before):
            rates[version].append(measure(version))
    return rates[before], rates[now]


def _show_rates(name: str, before: list[float], now: list[float], least: float, show: Callable[..., None]) -> float:
    """Show them; how many times as many now."""
    best, medians = max(now) / max(before), statistics.median(now) / statistics.median(before)
    limit = f">= {least:g} {'ok' if best >= least else 'MISSED'}" if least else "-"
    show(name, max(before), max(now), f"{best:.2f}", f"{medians:.2f}", limit)
    return best


def _of_loops(version: Version, root: Path, words: str) -> float:
    """Commands a second that shell loops run together, from their start to the last end."""
    version.make_place(root, _LOOPS * _TIMES)
    environ = {**version.environ, "TEAMS_HOME": str(root), "TEAMS_TEAM": ALPHA}
    teams = shlex.join(version.teams)
    started = time.monotonic()
    running = [
        subprocess.Popen(
            ["sh", "-c", _LOOP.format(teams=teams, words=words.format(me=me, times=_TIMES), times=_TIMES)],
            env={**environ, "TEAMS_AGENT_ID": f"a{me}"},
        )
        for me in range(_LOOPS)
    ]
    assert not any([process.wait() for process in running])
    return _LOOPS * _TIMES / (time.monotonic() - started)


def _of_workers(version: Version, root: Path, what: str) -> float:
    """Changes a second that long-lived processes make together."""
    version.make_place(root, WORKERS * _CHANGES)
    rate, done = together(root, what, _CHANGES, code=version.worker, directory=version.sources)
    assert len(set(done)) == WORKERS * _CHANGES, done
    return rate
