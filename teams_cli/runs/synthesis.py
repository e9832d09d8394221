"""The leader's answer at the end of a run: by the workflow's script, or with a model by a turn with its prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass

from teams_cli.agents import ending, interrupting, outputs, shell, starting
from teams_cli.agents.starting import StartRequest
from teams_cli.messages.messages import MESSAGE
from teams_cli.runs import orders, runs
from teams_cli.store import pace
from teams_cli.tasks.tasks import Task
from teams_cli.workflows import model
from teams_cli.workflows.model import REPO, RESULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.runs.conduct import LiveRun

NAME = "synthesis"
_TRIES = 2
_LONGEST = 1800.0
"""Seconds that one turn of the leader may take."""
_IN_HAND = 6000
"""Characters of each result that the prompt holds; the rest is in the file."""
_ALL = 60_000
_INSTRUCTIONS = """\
You take the last turn of {leader}, who leads the team {team}, which carried out the workflow "{workflow}": {about}
All tasks are settled. You do not claim tasks, and change nothing in the repository. Your answer is the report.

{prompt}

The results of the tasks are in the directory {given}: one file for each task, and index.json. They follow here:

{results}"""
_AGAIN = """

Your last answer had no verdict: a part of it must match the regular expression {pattern}"""


@dataclass
class LeaderAnswer:
    """The leader's answer: its text, or None if there is none; the problem, or ""; and the verdict, or None."""

    text: str | None
    problem: str = ""
    verdict: str | None = None


class LeaderTurn:
    """The leader's last turn in a run, which makes the answer from the results."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.how = run.workflow.synthesize

    @property
    def wanted(self) -> bool:
        """Whether the workflow says how to make an answer from the results: a prompt if agents have a model, else a
        script.

        A script understands the output of commands, but not the words of models.
        """
        return bool(self.how.prompt if self.run.record.thinks else self.how.run)

    def answer(self, all_tasks: list[Task]) -> LeaderAnswer:
        """Make the leader's answer from the results of the tasks."""
        root, team, leader = self.run.store.root, self.run.team, self.run.leader.name
        given = runs.give(root, team, leader, all_tasks)
        try:
            # If there was nothing to do, a script has nothing to misread, and a model nothing to report.
            thinks = self.run.record.thinks and (all_tasks or not self.how.run)
            made = self._thought(given, all_tasks) if thinks else self._scripted(given)
        finally:
            runs.take_back(root, team, leader)
        return made

    def _scripted(self, given: str) -> LeaderAnswer:
        variables = self.run.record.variables
        own = self.run.environment_of(self.run.leader.name, "team-leader")
        work = runs.directory(self.run.store.root, self.run.team, "work")
        environment = {**own, **variables, "TEAMS_RESULTS": given, "TEAMS_WORK": work}
        done = shell.run(self.how.run or "", variables[REPO], environment, "the synthesis")
        if done.status:
            return LeaderAnswer(None, orders.one_line(done.reason))
        return LeaderAnswer(done.output, "", self._verdict(done.output))

    def _thought(self, given: str, all_tasks: list[Task]) -> LeaderAnswer:
        """Return the answer of a turn with a model. If it lacks the verdict that the workflow wants, a second turn is
        made.
        """
        prompt = self._prompt(given, all_tasks)
        text = ""
        for _ in range(_TRIES):
            answer = self._turn(prompt)
            if answer.text is None:
                return answer
            text, verdict = answer.text, self._verdict(answer.text)
            if not self.how.verdict or verdict:
                return LeaderAnswer(text, "", verdict)
            prompt += _AGAIN.format(pattern=self.how.verdict.pattern)
        assert self.how.verdict
        return LeaderAnswer(
            text, f"the leader's answer has no verdict: nothing in it matches {self.how.verdict.pattern}"
        )

    def _turn(self, prompt: str) -> LeaderAnswer:
        taken = {member.agent_id.lower() for member in self.run.load_team().roster()}
        names = (NAME if number == 1 else f"{NAME}-{number}" for number in range(1, len(taken) + 2))
        request = StartRequest(
            prompt,
            agent=next(name for name in names if name not in taken),
            description=f"{self.run.record.workflow}: the leader's summary",
            harness=self.run.record.thinks,
            model=self.run.record.model,
            permissions=self.run.record.permissions,
            directory=self.run.record.variables[REPO],
            environ=self.run.surroundings.environ,
            variables={**self.run.record.variables, "PYTHON": self.run.surroundings.python},
        )
        name = starting.run_agent(self.run.store, self.run.team, self.run.leader, request).agent
        try:
            in_time = pace.sleep_until(self.run.store, self.run.team, lambda: self._ended(name), _LONGEST)
        finally:
            if not self._ended(name):
                interrupting.stop(self.run.store, self.run.team, self.run.leader, name)
        session = ending.current(self.run.store, self.run.team, name)
        output = outputs.find(self.run.store, self.run.team, name) or ""
        if session is None or session.outcome != "completed":
            late = "" if in_time else f"it took longer than {_LONGEST:.0f} s; "
            return LeaderAnswer(
                None, late + orders.one_line((session and session.failure) or "the leader's turn failed")
            )
        return LeaderAnswer(output) if output.strip() else LeaderAnswer(None, "the leader's turn said nothing")

    def _ended(self, name: str) -> bool:
        session = ending.current(self.run.store, self.run.team, name)
        return session is None or session.ended

    def _prompt(self, given: str, all_tasks: list[Task]) -> str:
        results = {f"{RESULT}{runs.key_of(task)}": task.result or "" for task in all_tasks}
        parts = [_outcome(task) for task in all_tasks]
        for message in self.run.store.read(self.run.team, MESSAGE, self.run.leader.name, 0, []):
            if message.type == "reply":  # to the broadcast
                parts.append(f"{message.from_} replied:\n{message.message[:_IN_HAND]}")
        return _INSTRUCTIONS.format(
            leader=self.run.leader.name,
            team=self.run.team,
            workflow=self.run.record.workflow,
            about=self.run.about,
            prompt=model.fill(self.how.prompt or "", {**self.run.record.variables, **results}),
            given=given,
            results="\n\n".join(parts)[:_ALL],
        )

    def _verdict(self, text: str) -> str | None:
        """Return the last verdict in the text. None if there is none, or if the workflow wants none."""
        if not self.how.verdict:
            return None
        matches = list(re.finditer(self.how.verdict.pattern, text))
        return (matches[-1][1] if matches[-1].re.groups else matches[-1][0]).strip() if matches else None


def _outcome(task: Task) -> str:
    """Return a paragraph about the outcome of the task, for the leader's prompt."""
    head = f"{runs.key_of(task)} ({task.title}), {task.status}, by {task.owner or 'nobody'}:"
    notes = [note.reason for note in task.notes if note.what == "failed" and note.reason]
    outcome = task.result or (notes[-1] if notes else "no result")
    more = "" if len(outcome) <= _IN_HAND else f"\n[…: all of it is in {runs.key_of(task)}.txt]"
    return f"{head}\n{outcome[:_IN_HAND]}{more}"
