"""Agents do many small tasks on one repository while they are killed: `python -m
tests.extensions.landing.many`.

Each agent is a process with a worktree. It claims a task, commits a part, and completes the task through the
program, which lands it. Some parts conflict in their text, others fail the check together. Agents, with the
commands that they run, and landers are ended by SIGKILL. A killed agent is restarted at once, or so late that
others have taken over its task. In the end the branch must have everything that an agent was told had landed,
and each of its tips must pass the check. For comparison, a single process does the same tasks and merges them
with git one after another.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from teams_cli.tasks import landings
from tests.extensions.landing.storm import AGENTS, CHECK, mend, red_tips, repository, write_part
from tests.support.agents import running
from tests.support.cli import ALPHA, COMMAND, TIMEOUT, Cli, add_tasks, make_team
from tests.support.shop import git

ROOT = Path(__file__).parents[3]
STALE = 30
"""Seconds of silence after which others may take over the task of an agent."""
LANDED = re.compile(r"landed on trunk as ([0-9a-f]+)|: landed, \S+ onto trunk is ([0-9a-f]+)")


def work_time(chance: random.Random) -> None:
    time.sleep(chance.uniform(0.5, 2))


class Agent:
    """An agent in its own process, which may be killed at any moment and started again."""

    def __init__(self, place: Path, name: str) -> None:
        self.name, self.tree = name, place / name
        self.told = place / f"{name}.told"
        self.chance = random.Random(f"{name} {time.time_ns()}")

    def teams(self, *words: str) -> tuple[int, str]:
        """The exit status and the output of a command that is run in the worktree."""
        done = subprocess.run([*COMMAND, *words], cwd=self.tree, capture_output=True, text=True, timeout=TIMEOUT)
        assert "Traceback" not in done.stderr, done
        return done.returncode, done.stdout + done.stderr

    def read(self, *words: str) -> Any:
        """The JSON document that the command answers, once it succeeds."""
        while True:
            status, said = self.teams(*words, "--json")
            if status == 0:
                return json.loads(said.splitlines()[0])
            time.sleep(1)

    def work(self) -> None:
        """Do tasks until all are completed and nothing is left in the queue."""
        while True:
            mine = self.read("get-tasks", "--status", "in_progress", "--owner", self.name)
            for task in mine:
                self.do(task["id"])
            if mine or self.teams("claim-task", "--next")[0] == 0:
                continue
            every = self.read("get-tasks")
            if all(one["status"] == "completed" for one in every) and not self.read("get-landings", "--open"):
                return
            self.teams("wait", "--timeout", "5")

    def do(self, key: str) -> None:
        """Commit the part of a task on top of the branch, complete the task, and note its commit if the answer
        says that it landed.
        """
        own = git(self.tree, "rev-parse", "--absolute-git-dir")
        Path(own, "index.lock").unlink(missing_ok=True)  # left by a git that was killed
        is_again = git(self.tree, "ls-files", f"parts/{key}") != ""
        git(self.tree, "reset", "-q", "--hard")
        git(self.tree, "clean", "-qfd")
        mend(self.tree)
        write_part(self.tree, key, self.chance, is_again)
        work_time(self.chance)
        _, said = self.teams("update-task", key, "--status", "completed", "--result", "done")
        while "not landed yet" in said or "so already" in said:
            landing = [one["id"] for one in self.read("get-landings") if one["task"] == key][-1]
            _, said = self.teams("wait", "--landing", landing, "--timeout", "20")
            if "queued" not in said and "checking" not in said:
                break
        if found := LANDED.search(said):
            with self.told.open("a") as file:
                file.write(f"{key} {found[1] or found[2]}\n")


class Many:
    """One run: a team, its agents, and their kills."""

    def __init__(self, place: Path, agents: int, tasks: int, kills: int, seed: int) -> None:
        self.place, self.names, self.tasks, self.kills = place, AGENTS[:agents], tasks, kills
        self.main = repository(place, self.names)
        self.cli: Cli = make_team(place / "root", *self.names)
        self.cli.more["PYTHONPATH"] = str(ROOT)
        for key, value in {"landing": "completed", "landingCheck": CHECK, "staleAfterSeconds": str(STALE)}.items():
            self.cli.ok("set", key, value, agent="lea")
        add_tasks(self.cli, *[f"part {number}" for number in range(tasks)])
        self.chance = random.Random(seed)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.back_at: dict[str, float] = {}
        self.killed = {"agents": 0, "landers": 0}

    def start(self, name: str) -> None:
        """Start the agent in a process group of its own."""
        command = [sys.executable, "-m", __name__ if __name__ != "__main__" else __spec__.name]
        command += ["--work-as", name, "--place", str(self.place)]
        environ = self.cli.environ(name)
        with (self.place / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, env=environ, start_new_session=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def run(self) -> dict[str, Any]:
        """Let the agents work, kill some of them, and return the results."""
        began = time.monotonic()
        for name in self.names:
            self.start(name)
        try:
            for number in range(self.kills):
                self._await(lambda due=(number + 0.5) * self.tasks / self.kills: self._landed() >= due)
                time.sleep(self.chance.uniform(0, 3))
                self._kill()
            self._await(lambda: False)
        finally:
            for name in self.names:
                self._end(name)
        return {"minutes": (time.monotonic() - began) / 60, **self._judge()}

    def _landed(self) -> int:
        return len(git(self.main, "ls-tree", "--name-only", "trunk:parts").split()) - 1

    def _await(self, is_due: Any) -> None:
        """Wait until *is_due* or until every agent is done, and restart killed agents in time."""
        while not is_due():
            for name in [name for name, at in self.back_at.items() if time.monotonic() >= at]:
                del self.back_at[name]
                self.start(name)
            states = [process.poll() for process in self.running.values()]
            said = "".join(path.read_text()[-2000:] for path in self.place.glob("*.log"))
            assert not any(state not in (None, 0) for state in states), said
            if not self.back_at and all(state == 0 for state in states):
                return
            time.sleep(0.5)

    def _kill(self) -> None:
        """Kill the lander, or an agent together with the command that it runs."""
        if self.chance.random() < 0.4 and (lander := self._lander()):
            with suppress(ProcessLookupError):
                os.kill(lander, signal.SIGKILL)
                self.killed["landers"] += 1
            return
        alive = [name for name, process in self.running.items() if process.poll() is None]
        if alive:
            name = self.chance.choice(alive)
            self._end(name)
            del self.running[name]
            self.killed["agents"] += 1
            self.back_at[name] = time.monotonic() + self.chance.choice([0, 0, 3 * STALE])

    def _end(self, name: str) -> None:
        process = self.running.get(name)
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _lander(self) -> int | None:
        """The process id of the lander; waits some seconds for one, and returns None if there is none."""
        for _ in range(200):
            if found := running(self.cli.root, "extensions.landing.lander"):
                return found[0]
            time.sleep(0.05)
        return None

    def _judge(self) -> dict[str, Any]:
        """Compare the branch with what the agents were told."""
        told = [line.split() for path in self.place.glob("*.told") for line in path.read_text().splitlines()]
        lost = [
            key
            for key, commit in told
            if git(self.main, "cat-file", "-t", f"{commit}:parts/{key}", ok=False) != "blob"
            or git(self.main, "cat-file", "-t", f"trunk:parts/{key}", ok=False) != "blob"
            or git(self.main, "rev-list", f"trunk..{commit}", ok=False)
        ]
        every = landings.all_of(self.cli.store(), ALPHA, [])
        owners: dict[str, list[str]] = {}
        for note in self.cli.ok("history", agent="lea"):
            if note["what"] == "task claimed":
                owners.setdefault(note["task"], []).append(note["actor"])
        changes = sum(one != other for names in owners.values() for one, other in pairwise(names))
        unfinished = [one["id"] for one in self.cli.ok("get-tasks", agent="lea") if one["status"] != "completed"]
        assert git(self.main, "status", "--porcelain") == ""
        sys.stderr.writelines(f"lost: {key}\n" for key in [*lost, *unfinished])
        return {
            "landed": self._landed(),
            "told": len({key for key, _ in told}),
            "lost": len(lost) + len(unfinished),
            "red tips": red_tips(self.main),
            "came back": sum(one.state in ("conflict", "red") for one in every),
            "takeovers": changes,
            "killed": f"{self.killed['agents']} agents, {self.killed['landers']} landers",
        }


def by_hand(place: Path, agents: int, tasks: int, seed: int) -> dict[str, Any]:
    """Do the same tasks in a single process, merge each with git, and return the results."""
    main, chance, back = repository(place, AGENTS[:agents]), random.Random(seed), 0
    began = time.monotonic()
    for number in range(1, tasks + 1):
        name, is_again = AGENTS[number % agents], False
        tree = place / name
        while True:
            write_part(tree, f"task-{number}", chance, is_again)
            work_time(chance)
            git(main, "merge", "-q", "--no-ff", "--no-edit", name, ok=False)
            clash = git(main, "ls-files", "--unmerged") != ""
            if not clash and subprocess.run(["sh", "-c", CHECK], cwd=main, timeout=TIMEOUT).returncode == 0:
                break
            git(main, *(("merge", "--abort") if clash else ("reset", "-q", "--hard", "HEAD^")))
            mend(tree)
            back, is_again = back + 1, True
    minutes = (time.monotonic() - began) / 60
    landed = len(git(main, "ls-tree", "--name-only", "trunk:parts").split()) - 1
    return {"minutes": minutes, "landed": landed, "lost": tasks - landed, "came back": back, "red tips": 0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=8, choices=range(1, len(AGENTS) + 1))
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work-as", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work_as:
        Agent(options.place, options.work_as).work()
        return 0
    with tempfile.TemporaryDirectory(prefix="many-", ignore_cleanup_errors=True) as temporary:
        place, size = Path(temporary), (options.agents, options.tasks)
        found = {
            "with teams": Many(place / "teams", *size, options.kills, options.seed).run(),
            "by hand": by_hand(place / "hand", *size, options.seed),
        }
    for how, each in found.items():
        print(f"{how}: {each['landed'] / each['minutes']:.1f} landings a minute; {each}")
    outcome = found["with teams"]
    return bool(outcome["lost"] or outcome["red tips"] or outcome["landed"] != options.tasks)


if __name__ == "__main__":
    sys.exit(main())
