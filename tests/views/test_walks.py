"""Teams whose agents do what the answers say, while their leader and the human change tasks at random.

No command after `next:` is refused. Once the changes stop, the team comes to its end.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from random import Random

import pytest

from tests.support.cli import ALPHA, Answer, Cli, lapse, make_team

MEMBERS = ["bob", "mia", "tom"]
WAIT = {"lea": "wait --needed", "human": "wait --needed", **dict.fromkeys(MEMBERS, "wait --claim")}
FILLED = {"RESULT": "done", "TEXT": "some text", "WHY": "because", "TITLE": "a title"}
LEFT_OUT = ("run-agent", "close-team", "spawn-team", "create-task")
STEP = re.compile(
    r"^next: (.*)$|(?:waits for you|nothing blocks it|in vain for [^:]*): (.*?)\. Keep waiting"
    r"|are settled: (teams .*)$|To wait no longer for [^:]*: (.*?)\.?$",
    re.MULTILINE,
)
"""How answers name the command to run next."""
SAID_BEFORE = (
    "To wait until it can be:",
    "To wait no longer for",
    "is still in review: it waits for",
    "so do it first:",
)
"""Refusals that the answer before has announced: the task waits for another."""
CHANGES = [
    "lea update-task {task} --append more",
    "lea update-task {task} --owner {member}",
    "lea update-task {task} --owner {member} --force",
    "lea update-task {task} --unassign",
    "lea update-task {task} --priority high",
    "lea update-task {task} --blocked-by {other}",
    "lea update-task {task} --after {other}",
    "lea update-task {task} --review-by {member}",
    "lea release-task {task}",
    "lea send-message {member} hello",
    "lea send-message {member} hello --ack-required",
    "lea broadcast-message hello",
    "lea ask-others which? --to {member} --no-wait",
    "lea share page hello",
    "lea request-shutdown {member}",
    "human update-task {task} --status cancelled",
    "human update-task {task} --status pending",
    "human review-task {task} --reject because",
    "human send-message {member} hello",
    "{member} update-task {task} --status failed",
    "{member} release-task {task} --reason because",
    "{member} propose-plan so --task {task}",
    "{member} note {task} seen",
    "{member} claim-task --next",
    "{member} send-message lea hello",
    "{member} share page there",
    "{member} leave-team",
]
NEW_TASKS = [
    "",
    "--blocked-by {other}",
    "--after {other}",
    "--blocks {other}",
    "--for {member}",
    "--review-by {member}",
    "--review-by lea",
    "--review-by human",
    "--plan-required",
]


class Walk:
    """A team, the next command of each of its agents, and what was wrong so far."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.random = Random(seed)
        self.cli = make_team(directory / "root", *MEMBERS)
        self.copy = directory / "copy"
        self.next: dict[str, str] = {}
        self.wrong: list[str] = []
        self.cli.ok("set", "broadcast", "agents", agent="lea")

    def change(self) -> None:
        """Change something at random; a refusal changes nothing."""
        ids = [task["id"] for task in self.tasks()]
        if len(ids) < 2 or self.random.random() < 0.3:
            change = f"lea create-task job {self.random.choice(NEW_TASKS if ids else [''])}"
        else:
            change = self.random.choice(CHANGES)
        task, other = self.random.choice(ids or [""]), self.random.choice(ids or [""])
        agent, *words = change.format(task=task, other=other, member=self.random.choice(MEMBERS)).split()
        self.run(agent, words)
        held = [task["id"] for task in self.tasks() if task["status"] == "in_progress"]
        if held and self.random.random() < 0.1:
            lapse(self.cli.store(), self.random.choice(held))

    def tasks(self) -> list[dict[str, str]]:
        tasks: list[dict[str, str]] = self.cli.ok("get-tasks", agent="human")
        return tasks

    def follow(self, agent: str) -> bool:
        """Let the agent run its next command. Return whether it was not a wait in vain, or another command follows."""
        answer = self.run(agent, at_once(self.next.pop(agent, None) or WAIT[agent]))
        return answer.status != 14 or agent in self.next

    def run(self, agent: str, words: list[str]) -> Answer:
        """Run a command. The agent will run one of the commands that its answer names; none of them is refused."""
        answer = self.cli(*words, agent=agent)
        steps = [step for found in STEP.findall(answer.stdout + answer.stderr) for step in commands(max(found))]
        for step in steps if answer.status == 0 else ():
            shutil.rmtree(self.copy, ignore_errors=True)
            shutil.copytree(self.cli.root, self.copy)
            tried = Cli(self.copy, team=ALPHA)(*at_once(step), agent=agent)
            if tried.status not in (0, 14) and not any(each in tried.stderr for each in SAID_BEFORE):
                self.wrong.append(f"{agent}: {answer}\n{tried}")
        if steps:
            self.next[agent] = self.random.choice(steps)
        return answer


def commands(alternatives: str) -> list[str]:
    """Return the commands among the *alternatives* of a next step, without `teams`."""
    found = re.split(r",? or (?=teams )", alternatives)
    named = [step.removeprefix("teams ") for step in found if step.startswith("teams ") and "<<" not in step]
    return [step for step in named if not step.startswith(LEFT_OUT)]


def at_once(step: str) -> list[str]:
    """Return the words of the command, with texts for its placeholders, and without a time to wait."""
    words = [FILLED.get(word, word) for word in shlex.split(step)]
    for place, word in enumerate(words[:-1]):
        if word in ("--wait", "--timeout"):
            words[place + 1] = "0"
    return [*words, "--timeout", "0"] if words[0] == "wait" and "--timeout" not in words else words


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_team_that_does_what_it_is_told_comes_to_its_end(seed: int, tmp_path: Path) -> None:
    walk = Walk(seed, tmp_path)
    for _ in range(90):
        if walk.random.random() < 0.3:
            walk.change()
        else:
            walk.follow(walk.random.choice(["lea", *MEMBERS]))
    for _ in range(40):
        if not any([walk.follow(agent) for agent in (*MEMBERS, "lea", "human")]):
            break
    assert not walk.wrong, "\n".join(walk.wrong)
    assert not [task for task in walk.tasks() if task["status"] not in ("completed", "failed", "cancelled")]
