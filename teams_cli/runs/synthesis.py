"""The leader's answer at the end of a run. Either a script of the workflow makes the answer, or a model takes a turn
with a prompt of the workflow.
"""

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

_NAME = "synthesis"
"""The name of the agent that takes the leader's turn. If this name is taken, a number is added."""
_MAX_TURNS = 2
_TIMEOUT = 1800.0
"""Seconds that one turn of the leader may take."""
_MAX_RESULT = 6000
"""The maximum number of characters of each result in the prompt; the rest is in the file of the result."""
_MAX_RESULTS = 60_000
"""The maximum number of characters of all results together in the prompt."""
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
    """The leader's answer. *text* is None if there is no answer, and *problem* is "" if there was no problem. *verdict*
    is the verdict in the text; None if the text has none, or if the workflow wants none.
    """

    text: str | None
    problem: str = ""
    verdict: str | None = None


class LeaderTurn:
    """The leader's last turn in a run, which makes the leader's answer from the results of the tasks."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.store = run.store
        self.team = run.team
        self.leader = run.leader
        self.record = run.record
        self.synthesize = run.workflow.synthesize

    @property
    def is_wanted(self) -> bool:
        """Whether the workflow says how to make the answer: by a prompt if the run has agents with a model, else by a
        script.

        The script is for the output of commands; it would not understand the words of models.
        """
        return bool(self.synthesize.prompt if self.record.model_harness else self.synthesize.run)

    def answer(self, all_tasks: list[Task]) -> LeaderAnswer:
        """Make the leader's answer from the results of the tasks."""
        results = runs.write_results(self.store.root, self.team, self.leader.name, all_tasks)
        try:
            # If there was nothing to do, a script has nothing to misread, and a model nothing to report.
            if self.record.model_harness and (all_tasks or not self.synthesize.run):
                return self._answer_of_model(results, all_tasks)
            environment = {
                **self.run.environment_of(self.leader.name, "team-leader"),
                **self.record.variables,
                "TEAMS_RESULTS": results,
                "TEAMS_WORK": runs.directory(self.store.root, self.team, "work"),
            }
            finished = shell.run(self.synthesize.run or "", self.record.variables[REPO], environment, "the synthesis")
            if finished.status:
                return LeaderAnswer(None, orders.one_line(finished.reason))
            return LeaderAnswer(finished.output, "", self._verdict(finished.output))
        finally:
            runs.remove_results(self.store.root, self.team, self.leader.name)

    def _answer_of_model(self, results: str, all_tasks: list[Task]) -> LeaderAnswer:
        """Return the answer of a turn with a model. If a wanted verdict is missing, a second turn is made."""
        verdict = self.synthesize.verdict
        prompt = self._prompt(results, all_tasks)
        for _ in range(_MAX_TURNS):
            answer = self._take_turn(prompt)
            if answer.text is None or verdict is None:
                return answer
            answer.verdict = self._verdict(answer.text)
            if answer.verdict:
                return answer
            prompt += _AGAIN.format(pattern=verdict.pattern)
            answer.problem = f"the leader's answer has no verdict: nothing in it matches {verdict.pattern}"
        return answer

    def _take_turn(self, prompt: str) -> LeaderAnswer:
        """Start an agent that takes the leader's turn, and return its answer, without a verdict."""
        taken_names = {member.agent_id.lower() for member in self.run.load_team().roster()}
        name, number = _NAME, 1
        while name in taken_names:
            number += 1
            name = f"{_NAME}-{number}"
        request = StartRequest(
            prompt,
            agent=name,
            description=f"{self.record.workflow}: the leader's summary",
            harness=self.record.model_harness,
            model=self.record.model,
            permissions=self.record.permissions,
            directory=self.record.variables[REPO],
            environ=self.run.surroundings.environ,
            variables={**self.record.variables, "PYTHON": self.run.surroundings.python},
        )
        name = starting.run_agent(self.store, self.team, self.leader, request).agent
        try:
            in_time = pace.sleep_until(self.store, self.team, lambda: self._has_ended(name), _TIMEOUT)
        finally:
            if not self._has_ended(name):
                interrupting.stop(self.store, self.team, self.leader, name)
        session = ending.current(self.store, self.team, name)
        output = outputs.find(self.store, self.team, name) or ""
        if session is None or session.outcome != "completed":
            late = "" if in_time else f"it took longer than {_TIMEOUT:.0f} s; "
            reason = (session and session.failure) or "the leader's turn failed"
            return LeaderAnswer(None, late + orders.one_line(reason))
        return LeaderAnswer(output) if output.strip() else LeaderAnswer(None, "the leader's turn said nothing")

    def _has_ended(self, name: str) -> bool:
        session = ending.current(self.store, self.team, name)
        return session is None or session.ended

    def _prompt(self, results_directory: str, all_tasks: list[Task]) -> str:
        """Return the prompt for the leader's model: what to do, the outcomes of tasks, and replies to the broadcast."""
        results = {f"{RESULT}{runs.key_of(task)}": task.result or "" for task in all_tasks}
        paragraphs = []
        for task in all_tasks:
            head = f"{runs.key_of(task)} ({task.title}), {task.status}, by {task.owner or 'nobody'}:"
            notes = [note.reason for note in task.notes if note.what == "failed" and note.reason]
            outcome = task.result or (notes[-1] if notes else "no result")
            remark = "" if len(outcome) <= _MAX_RESULT else f"\n[…: all of it is in {runs.key_of(task)}.txt]"
            paragraphs.append(f"{head}\n{outcome[:_MAX_RESULT]}{remark}")
        for message in self.store.read(self.team, MESSAGE, self.leader.name, 0, []):
            if message.type == "reply":  # to the broadcast
                paragraphs.append(f"{message.from_} replied:\n{message.message[:_MAX_RESULT]}")
        return _INSTRUCTIONS.format(
            leader=self.leader.name,
            team=self.team,
            workflow=self.record.workflow,
            about=self.run.about,
            prompt=model.fill(self.synthesize.prompt or "", {**self.record.variables, **results}),
            given=results_directory,
            results="\n\n".join(paragraphs)[:_MAX_RESULTS],
        )

    def _verdict(self, text: str) -> str | None:
        """Return the last match of the workflow's pattern in the text. If the pattern has a group that took part in the
        match, return this group. Return None if there is no match, or if the workflow has no pattern.
        """
        if self.synthesize.verdict is None:
            return None
        matches = list(re.finditer(self.synthesize.verdict.pattern, text))
        if not matches:
            return None
        match = matches[-1]
        group = match[1] if match.re.groups else None
        return str(match[0] if group is None else group).strip()
