"""What a team costs its agents: `python -m tests.benchmarks.economy` has a scripted team of four do twenty
tasks that wait for each other.

The agents know only how to begin, the lines `next:` and `teams wait`. On the way a plan is rejected and
revised, a task is edited while it is done, a member falls silent, and some thirty messages are sent. The
program prints the commands, and the characters of all answers, for each completed task, and fails if they
exceed the limits below.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator

COMMANDS, CHARACTERS = 8.0, 1000
"""The most that a completed task may cost. Lower these limits when the program gets cheaper."""
TASKS = 20
_SILENCE = 40
"""Seconds after which the silent member's claim expires, which is far longer than a step of the others
takes.
"""
_PATIENCE = 300.0
_NEXT = re.compile(r"^ *next: (.+)$", re.MULTILINE)
_UNREAD = re.compile(r"^ *\d+ unread: teams read-messages", re.MULTILINE)
_ASKING = re.compile(r"^(msg-\d+)[^\n]*\n\[From agent \"\w+\"\]:\n\| [^\n]*\?$", re.MULTILINE)
_REMINDED = re.compile(r"^ *(msg-\d+) from \w+: [^\n]*\? \(teams reply", re.MULTILINE)
_CLAIMED = re.compile(r"^(task-\d+): in_progress by (\w+)", re.MULTILINE)


class Office:
    """Runs `teams`, and counts what that cost."""

    def __init__(self, root: str) -> None:
        self.environ = {**os.environ, "TEAMS_HOME": root, "TEAMS_TEAM": "alpha"}
        self.commands: Counter[str] = Counter()
        self.refused: Counter[int] = Counter()
        self.characters = 0

    def begin(self, agent: str, command: str) -> subprocess.Popen[str]:
        """Start a command, `teams …`, as the agent."""
        words = [sys.executable, "-m", "teams_cli", *shlex.split(command)[1:]]
        environ = {**self.environ, "TEAMS_AGENT_ID": agent}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(words, env=environ, text=True, **pipes)  # type: ignore[call-overload,no-any-return]

    def end(self, command: str, process: subprocess.Popen[str]) -> str:
        """Wait for the process, and count and return what it printed."""
        said, _ = process.communicate(timeout=_PATIENCE)
        self.commands[shlex.split(command)[1]] += 1
        self.characters += len(said)
        if process.returncode:
            self.refused[process.returncode] += 1
        return said

    def run(self, agent: str, command: str) -> str:
        """Run a command to its end."""
        return self.end(command, self.begin(agent, command))


class Agent:
    """An agent that does what the answers tell it to do next, and waits if they tell nothing."""

    def __init__(self, office: Office, name: str, *first: str) -> None:
        self.office = office
        self.name = name
        self.steps: deque[str] = deque(first)
        self.waiting: subprocess.Popen[str] | None = None
        self.wait = "teams wait"
        self.asked = ""
        self.done = False

    def turn(self) -> bool:
        """Take one step; returns False while the agent waits."""
        if self.done:
            return False
        if self.waiting is not None:
            if self.waiting.poll() is None:
                return False
            said, self.waiting = self.office.end(self.asked, self.waiting), None
            self.hear(said)
        elif self.steps:
            self.take(self.steps.popleft())
        else:
            self.begin(self.wait)
            self.wait = "teams wait"
        return True

    def begin(self, command: str) -> None:
        """Start a command that may have to wait for other agents."""
        self.asked, self.waiting = command, self.office.begin(self.name, command)

    def take(self, step: str) -> None:
        """Do a suggested step: the first of several ways, with the placeholders filled in."""
        command = step.partition(", or ")[0]
        if command.startswith("teams wait"):
            self.wait = command
            return
        for word, said in (("TEXT", "'so it is'"), ("RESULT", "'done, see the branch'"), ("WHY", "'because'")):
            command = re.sub(rf"\b{word}\b", said, command)
        if " --wait " in command:
            self.begin(command)
            return
        self.hear(self.office.run(self.name, command))

    def hear(self, said: str) -> None:
        """Plan the next steps from an answer."""
        for step in _NEXT.findall(said):
            if step not in self.steps and not step.startswith("teams reply"):
                self.steps.append(step)
        if said.startswith(f"{self.name}: ") and self.steps and self.steps[-1] == "teams read-messages":
            self.steps.append("teams brief")  # the brief says what to do once the mail is read
        self.steps.extend(f"teams reply {message} TEXT" for message in _ASKING.findall(said) + _REMINDED.findall(said))
        if _UNREAD.search(said):
            self.steps.appendleft("teams read-messages")
        self.heed(said)

    def heed(self, said: str) -> None:
        """Do what the agent's role does about an answer."""


class Leader(Agent):
    """Creates the tasks, decides plans, edits a task that is in progress, and ends the team."""

    def __init__(self, office: Office) -> None:
        super().__init__(office, "lea", "teams spawn-team alpha", f"teams set staleAfterSeconds {_SILENCE}")
        self.tasks = deque(_tasks())
        self.rejected = False
        self.edited = False
        self.told = False

    def take(self, step: str) -> None:
        if step.startswith("teams create-task"):
            while self.tasks:
                self.office.run(self.name, self.tasks.popleft())
            self.steps.append("teams wait")
        elif step.startswith("teams approve-plan") and not self.rejected:
            self.rejected = True
            plan = step.split()[2].rstrip(",")
            self.hear(self.office.run(self.name, f"teams reject-plan {plan} --feedback 'Say how it is tested'"))
        else:
            super().take(step)
        if not self.edited and "task-5: in_progress" in self.office.run(self.name, "teams show-task 5"):
            self.edited = True
            self.office.run(self.name, "teams update-task 5 --description 'Also for empty files'")

    def heed(self, said: str) -> None:
        if "free again" in said and not self.told:
            self.told = True
            self.office.run(self.name, "teams broadcast-message 'One of us is lost; go on without'")
        self.done = "closed" in said


class Member(Agent):
    """Claims tasks, asks a colleague about every other one, and completes its tasks."""

    def __init__(self, office: Office, name: str, colleague: str, silent_after: int = TASKS) -> None:
        super().__init__(office, name, "teams join-team --claim --wait 540")
        self.colleague = colleague
        self.left = silent_after

    def heed(self, said: str) -> None:
        if "you are done" in said:
            self.done = True
        for task, owner in _CLAIMED.findall(said):
            if owner == self.name and re.search(rf"^ *next: teams .*\b{task}\b", said, re.MULTILINE):
                self._begin(task)

    def _begin(self, task: str) -> None:
        if self.left == 0:
            self.done = True  # and never heard of again
            return
        self.left -= 1
        number = int(task.removeprefix("task-"))
        to, what = ("lea", "Begun --fyi") if number % 2 else (self.colleague, "'Which way?'")
        self.office.run(self.name, f"teams send-message {to} {what}")
        end = f"teams update-task {task} --status completed --result RESULT --next --wait 540"
        step = "teams brief" if number == 4 else end
        if step not in self.steps:
            self.steps.append(step)


def _tasks() -> Iterator[str]:
    """The commands that create the tasks: three at the start, and each further one waits for the task three
    before it, so that three agents have work.
    """
    for number in range(1, TASKS + 1):
        blocked = f" --blocked-by {number - 3}" if number > 3 else ""
        planned = " --plan-required" if number == 4 else ""
        yield f"teams create-task 'Build part {number} of the program'{blocked}{planned}"


def _work(office: Office) -> None:
    team = [
        Leader(office),
        Member(office, "bob", "mia"),
        Member(office, "mia", "bob"),
        Member(office, "tom", "bob", silent_after=3),
    ]
    give_up = time.monotonic() + _PATIENCE
    while not team[0].done:
        if not any([agent.turn() for agent in team]):
            time.sleep(0.02)
        if time.monotonic() > give_up:
            at = [(agent.name, agent.done, agent.waiting is not None, list(agent.steps)) for agent in team]
            raise SystemExit(f"the team got stuck: {at}\n{office.run('lea', 'teams get-tasks')}")
    for agent in team:
        if agent.waiting is not None:
            office.end(agent.asked, agent.waiting)


def _completed(office: Office) -> int:
    said = office.end("teams get-tasks", office.begin("lea", "teams get-tasks --status completed"))
    return len(re.findall(r"^task-\d+ +completed ", said, re.MULTILINE))


def main() -> int:
    with tempfile.TemporaryDirectory() as root:
        office = Office(root)
        _work(office)
        commands, characters = sum(office.commands.values()), office.characters
        if (completed := _completed(office)) != TASKS:
            print(f"only {completed} of {TASKS} tasks were completed")
            return 1
    print(f"{TASKS} tasks, {commands} commands ({dict(office.commands)}), refused: {dict(office.refused)}")
    per_task = commands / TASKS, characters / TASKS
    print(f"for each task: {per_task[0]:.1f} commands (at most {COMMANDS})")
    print(f"               {per_task[1]:.0f} characters (at most {CHARACTERS})")
    return int(per_task[0] > COMMANDS or per_task[1] > CHARACTERS)


if __name__ == "__main__":
    sys.exit(main())
