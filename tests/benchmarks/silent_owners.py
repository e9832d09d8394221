"""Nobody takes a task from an owner who is at work: `python -m tests.benchmarks.silent_owners`.

A hundred owners work on a task each and send no heartbeat. Each shows life in one way only, from a refused
command to a changed file. Ten more owners stop without a word. Another agent tries again and again to claim all
of these tasks. The program prints for each way how many owners were asked whether they are at work, and how
many tasks were taken.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

LEASE = 60
"""Seconds of a lease, and of the grace period, which is never longer than a lease."""
LASTS = 2.3 * LEASE
"""Seconds for which the other agent tries to take tasks, once all owners have theirs."""
EACH = 100
DEAD = 10
_LATE = 15.0
"""Seconds after the grace period by which a dead owner's task must have been tried again on a busy machine."""
_AT_ONCE = threading.Semaphore(3)
_ONE_GIT = threading.Lock()


class Place:
    """The team and the repository that the owners share."""

    def __init__(self, top: Path) -> None:
        self.root, self.main = top / "root", top / "main"
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.main)], check=True)
        self.git("commit", "-q", "--allow-empty", "-m", "begin")
        self.over = threading.Event()

    def git(self, *words: str) -> None:
        name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        with _ONE_GIT:  # git fails if two make worktrees of a repository at once
            subprocess.run(["git", "-C", str(self.main), *name, *words], check=True, stdout=subprocess.DEVNULL)

    def environ(self, agent: str) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("TEAMS_")}
        return {**own, "TEAMS_HOME": str(self.root), "TEAMS_TEAM": "alpha", "TEAMS_AGENT_ID": agent}

    def run(
        self, agent: str, *words: str, cwd: Path | None = None, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "teams_cli", *words]
        with _AT_ONCE:
            return subprocess.run(
                command, env=self.environ(agent), cwd=cwd or self.root, input=given, capture_output=True, text=True
            )


class Owner(threading.Thread):
    """An agent that claims a task, and shows life in its *way* until the benchmark is over."""

    def __init__(self, place: Place, number: int, way: str) -> None:
        super().__init__(daemon=True)
        self.place, self.way, self.title, self.agent = place, way, f"t{number}", f"agent{number}"
        self.chance = random.Random(number)
        self.task, self.claimed_at = "", 0.0
        self.claimed: subprocess.CompletedProcess[str] | None = None
        self.directory = place.main if way == "file that the task touches" else place.root

    def run(self) -> None:
        if self.way == "file in its worktree":
            self.directory = self.place.main.parent / self.agent
            self.place.git("worktree", "add", "-q", str(self.directory))
        self.teams("join-team", "alpha")
        touches = ["--touches", f"{self.title}.txt"] if self.way == "file that the task touches" else []
        made = self.place.run("lea", "create-task", self.title, *touches, "--json")
        self.task = json.loads(made.stdout)["id"]
        self.claimed = self.teams("claim-task", self.task)
        self.claimed_at = time.monotonic()
        show = WAYS.get(self.way)
        while show and not self.place.over.is_set():
            show(self)
            self.place.over.wait(LEASE * self.chance.uniform(0.2, 0.45))

    def teams(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return self.place.run(self.agent, *words, cwd=self.directory, given=given)

    def hook(self, event: str, **more: object) -> None:
        said = {"hook_event_name": event, "session_id": self.agent, "cwd": str(self.directory), **more}
        self.teams("hook", "claude", given=json.dumps(said))

    def write(self) -> None:
        (self.directory / f"{self.title}.txt").write_text(str(time.monotonic()))

    def wait(self) -> None:
        words = [sys.executable, "-m", "teams_cli", "read-messages", "--wait", str(LEASE * 5)]
        waiting = subprocess.Popen(
            words, env=self.place.environ(self.agent), cwd=self.directory, stdout=subprocess.DEVNULL
        )
        self.place.over.wait()
        waiting.terminate()
        waiting.wait()

    def announce(self) -> None:
        self.teams("heartbeat", "--for", "10m")
        self.place.over.wait()


WAYS: dict[str, Callable[[Owner], object]] = {
    "help": lambda owner: owner.teams("help", "claim-task"),
    "refused command": lambda owner: owner.teams("update-task", owner.task, "--stats", "done"),
    "read": lambda owner: owner.teams("get-tasks"),
    "tool call of its client": lambda owner: owner.hook("PostToolUse", tool_name="Bash", tool_input={"command": "x"}),
    "wait": Owner.wait,
    "file in its worktree": Owner.write,
    "file that the task touches": Owner.write,
    "announced silence": Owner.announce,
}


def main() -> int:
    with tempfile.TemporaryDirectory() as top:
        place = Place(Path(top).resolve())
        place.root.mkdir(mode=0o700)
        place.run("lea", "spawn-team", "alpha")
        place.run("lea", "set", "staleAfterSeconds", str(LEASE))
        place.run("eve", "join-team", "alpha")
        ways = [*WAYS] * EACH
        owners = [Owner(place, number, way) for number, way in enumerate([*ways[:EACH], *["none"] * DEAD])]
        for owner in owners:
            owner.start()
        while not all(owner.claimed_at or not owner.is_alive() for owner in owners):
            time.sleep(0.1)
        if refused := [owner.claimed for owner in owners if owner.claimed is None or owner.claimed.returncode]:
            raise SystemExit(f"the owners could not begin: {refused[0]}")
        taken = _try_to_take(place, owners)
        asked = Counter(owner.way for owner in owners if _was_asked(place, owner))
        place.over.set()
        for owner in owners:
            owner.join()
    return _report(owners, taken, asked)


def _try_to_take(place: Place, owners: list[Owner]) -> dict[str, float]:
    """The tasks that the other agent got, each with the seconds since its owner had claimed it."""
    taken: dict[str, float] = {}
    end = time.monotonic() + LASTS
    while time.monotonic() < end:
        for owner in owners:
            if owner.task not in taken and not place.run("eve", "claim-task", owner.task).returncode:
                taken[owner.task] = time.monotonic() - owner.claimed_at
                place.run("eve", "update-task", owner.task, "--status", "completed")
    return taken


def _was_asked(place: Place, owner: Owner) -> bool:
    found = json.loads(place.run(owner.agent, "read-messages", "--all", "--json").stdout)
    return any(message.get("event") == "lease-ending" for message in found)


def _report(owners: list[Owner], taken: dict[str, float], asked: Counter[str]) -> int:
    print(f"{'sign of life':28} owners  asked  taken")
    for way in [*WAYS, "none"]:
        own = [owner for owner in owners if owner.way == way]
        print(f"{way:28} {len(own):6} {asked[way]:6} {sum(owner.task in taken for owner in own):6}")
    dead = [taken[owner.task] for owner in owners if owner.way == "none" and owner.task in taken]
    longest = max(dead, default=0.0)
    print(f"a dead owner's task was taken after {longest:.0f} s at most, lease and grace period take {2 * LEASE} s")
    living = sum(owner.task in taken for owner in owners if owner.way != "none")
    needless = sum(count for way, count in asked.items() if way != "none")
    return int(living + needless > 0 or len(dead) < DEAD or longest > 2 * LEASE + _LATE)


if __name__ == "__main__":
    sys.exit(main())
