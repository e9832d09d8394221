"""Many branches land at once, with kills: `python -m tests.extensions.landing.storm --landings 200`.

Eight agents each add parts, which clash in one line of a list (by text) or in the slots of the parts (by
meaning); some parts are more urgent than others. The lander, and the commands that ask for landings, are killed
at random calls of git, before or after the call. Every tip of the branch must pass the check, every task must
land once, none may be tried while a more urgent or older one waits, and no lock or worktree may be left behind.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from teams_cli.tasks import landings
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.tasks.tasks import PRIORITIES
from tests.support.cli import ALPHA, TIMEOUT, add_tasks, make_team, program
from tests.support.shop import git, teams_in

AGENTS = [f"agent{letter}" for letter in "ABCDEFGH"]
PROMISES = ["red tips", "out of turn", "lost"]
"""What must be zero in every run."""
CHECK = "test -z \"$(cat parts/* | sort | uniq -d)\" && test ! -e broken && ! grep -q '<<<' list"


KILLER = """#!/bin/sh
asker() {{ tr '\\0' '\\n' </proc/$PPID/environ | grep -qxF TEAMS_HOME={root}; }}
case $(($(od -An -N1 -tu1 /dev/urandom) % 100)) in
0) asker && kill -9 $PPID; echo before "$@" >>{log}; exit 1 ;;
1) {git} "$@"; status=$?; asker && kill -9 $PPID; echo after "$@" >>{log}; exit $status ;;
esac
exec {git} "$@"
"""
"""A script in place of git: one call of fifty kills the process that made the call, before or after git has
run.

The script kills its parent only if that belongs to the team of this test: if the caller was killed meanwhile,
the parent is the process that adopts orphans, which may run all of the tests.
"""


def repository(place: Path, agents: Sequence[str] = AGENTS) -> Path:
    """A repository whose branch `trunk` passes the check, with a worktree for each agent."""
    main = place / "main"
    (main / "parts").mkdir(parents=True)
    git(main, "init", "-q", "-b", "trunk")
    (main / "parts" / "first").write_text("slot 0\n")
    (main / "list").write_text("last: 0\n")
    git(main, "add", ".")
    git(main, "commit", "-q", "-m", "first")
    for agent in agents:
        git(main, "worktree", "add", "-q", "-b", agent, str(place / agent))
    return main


def write_part(tree: Path, key: str, chance: random.Random, again: bool) -> None:
    """Commit a part, which may clash with parts of others by text or by meaning unless *again*."""
    slot = key if again or chance.random() < 0.6 else str(chance.randrange(1, 6) * 1000)
    (tree / "parts" / key).write_text(f"slot {slot}\n")
    if not again and chance.random() < 0.3:
        (tree / "list").write_text(f"last: {key}\n")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "--allow-empty", "-m", key)


def mend(tree: Path) -> None:
    """Merge the branch into the worktree, and take the side of the branch in conflicts."""
    git(tree, "merge", "-q", "--no-edit", "-X", "theirs", "trunk")


class Storm:
    """One run with eight agents."""

    def __init__(self, place: Path, tasks: int, seed: int, together: int = 1) -> None:
        self.place, self.tasks, self.seed = place, tasks, seed
        self.main = repository(place)
        self.cli = make_team(place / "root", *AGENTS)
        self.cli.ok("set", "landingTogether", str(together), agent="lea")
        self.cli.ok("set", "landingOrder", "priority", agent="lea")
        chance = random.Random(seed)
        for number in range(tasks):
            add_tasks(self.cli, f"part {number}", check=CHECK, priority=chance.choice(PRIORITIES))
        self.log = place / "kills"
        self.log.touch()
        script = KILLER.format(root=place / "root", log=self.log, git=shutil.which("git"))
        deadly = program(place / "bin/git", script)
        self.cli.more["PATH"] = f"{deadly.parent}:{os.environ['PATH']}"
        self.failures: list[BaseException] = []

    def teams(self, agent: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the agent's worktree, and repeat it if it was killed or could not reach the store."""
        while True:
            done = teams_in(self.place / agent, self.cli, agent, *words)
            if done.returncode >= 0 and done.returncode != 12:
                return done

    def work(self, agent: str) -> None:
        """Do tasks until none is left."""
        chance = random.Random(f"{self.seed} {agent}")
        try:
            while True:
                free = self.teams(agent, "claim-task", "--next").returncode == 0
                mine = self.own(agent)  # two tasks, if a claim was killed after it succeeded
                for one in mine:
                    self.do(agent, chance, one["id"])
                assert not self.own(agent)  # nobody owns a task that has landed
                if not free and not mine:
                    return
        except BaseException as problem:
            self.failures.append(problem)

    def do(self, agent: str, chance: random.Random, key: str) -> None:
        """Do one task until it has landed."""
        store, again = self.cli.store(), False
        while True:
            if again:
                mend(self.place / agent)
            write_part(self.place / agent, key, chance, again)
            again = True
            if self.teams(agent, "update-task", key, "--status", "completed").returncode:
                continue
            asked = self.teams(agent, "land", key)
            landing = landings.last_of(store, ALPHA, key)
            assert landing is not None, asked
            if not landing.returned:
                self.teams(agent, "wait", "--landing", landing.id, "--timeout", "100")
            if landings.get(store, ALPHA, landing.id).state == "landed":
                return mend(self.place / agent)

    def own(self, agent: str) -> list[dict[str, Any]]:
        return self.cli.ok("get-tasks", "--status", "in_progress", "--owner", agent, agent=agent)

    def run(self) -> dict[str, Any]:
        """Let all agents work, and return the results."""
        workers = [threading.Thread(target=self.work, args=(agent,)) for agent in AGENTS]
        for thread in workers:
            thread.start()
        for thread in workers:
            thread.join()
        assert not self.failures, self.failures
        return {"kills": self.log.read_text().count("\n"), **self.judge()}

    def judge(self) -> dict[str, Any]:
        """Check the branch, the queue and the repository, and return the results."""
        every = landings.all_of(self.cli.store(), ALPHA, [])
        counts = {state: sum(one.state == state for one in every) for state in sorted({one.state for one in every})}
        landed = [one.task for one in every if one.state == "landed"]
        parts = set(git(self.main, "ls-tree", "--name-only", "trunk:parts").split()) - {"first"}
        assert sorted(landed) == sorted(set(landed)) and set(landed) == parts, (counts, parts)
        lost = {f"task-{number + 1}" for number in range(self.tasks)} - parts
        left = [one["id"] for one in self.cli.ok("get-tasks", agent=AGENTS[0]) if one["status"] != "completed"]
        assert not left, left
        assert git(self.main, "status", "--porcelain") == ""
        assert git(self.main, "worktree", "list").count("\n") == len(AGENTS)
        assert not list(self.main.glob(".git/**/*.lock"))
        overtaken = out_of_turn(every, self.cli.ok("history", agent="lea"))
        sys.stderr.writelines(f"out of turn: {one}\n" for one in overtaken)
        return {**counts, "red tips": red_tips(self.main), "out of turn": len(overtaken), "lost": len(lost)}


def out_of_turn(every: list[Landing], history: list[dict[str, Any]]) -> list[str]:
    """Landings that began to be checked while another one waited that was more urgent, or as urgent and older.

    Only landings that were asked for before the previous one ended count, as the lander has surely seen these.
    """
    by_id = {one.id: one for one in every}
    turn = {one.id: (PRIORITIES.index(one.priority), LANDING.number_in(one.id)) for one in every}
    seen, asked, begun, found = list[str](), list[str](), set[str](), list[str]()
    for note in history:
        key = note.get("landing")
        if note["what"] == "landing asked for":
            asked.append(key)
        elif note["what"] == "landing checking":
            begun.add(key)
            waits = [one for one in seen if one not in begun and (by_id[one].ended_at or "~") > note["at"]]
            found += [f"{key} before {one}" for one in waits if turn[one] < turn[key]]
        elif key and by_id[key].over:
            seen, begun = list(asked), set()
    return found


def red_tips(main: Path, branch: str = "trunk", check: str = CHECK) -> int:
    """The number of tips that the branch ever had and that fail the check."""
    found = 0
    for commit in git(main, "log", "-g", "--format=%H", branch).split():
        git(main, "checkout", "-q", "--detach", commit)
        found += subprocess.run(["sh", "-c", check], cwd=main, capture_output=True, timeout=TIMEOUT).returncode != 0
    git(main, "checkout", "-q", branch)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--landings", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=4)
    options = parser.parse_args()
    broken = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        for together in sorted({1, options.together}):
            outcome = Storm(Path(place) / str(together), options.landings, options.seed, together).run()
            print(f"up to {together} together: {outcome}", flush=True)
            broken += sum(outcome[promise] for promise in PROMISES)
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
