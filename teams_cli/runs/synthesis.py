"""The leader's answer at the end of a run: by the workflow's script, or with a model by a turn with its prompt."""

from __future__ import annotations

import re

from teams_cli.agents import ending, interrupting, outputs, shell, starting
from teams_cli.agents.starting import StartRequest
from teams_cli.messages.messages import MESSAGE
from teams_cli.runs import hand_offs, steps
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.tasks.tasks import Task
from teams_cli.teams import teams
from teams_cli.teams.caller import Caller
from teams_cli.workflows import templates
from teams_cli.workflows.model import REPO, Workflow
from teams_cli.workflows.templates import RESULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.runs.runs import Run
    from teams_cli.runs.surroundings import Surroundings

NAME = "synthesis"
_TRIES = 2
_LONGEST = 1800.0
"""Seconds that one turn of the leader may take."""
_IN_HAND = 6000
"""Characters of each result that the prompt holds; the rest is in the file."""
_ALL = 60_000
_INSTRUCTIONS = """\
You take the last turn of {leader}, who leads the team {team}, which carried out the workflow "{workflow}": {about}
All tasks are over. You do not claim tasks, and change nothing in the repository. What you answer is the report.

{prompt}

What came of the tasks is in the directory {given}, a file each, with index.json. It follows here:

{results}"""
_AGAIN = """

Your last answer had no verdict: a part of it must match the regular expression {pattern}"""


class LeaderAnswer:
    """What the leader says: the text, None if there is nothing to say; and what went wrong, if anything did."""

    def __init__(self, text: str | None, problem: str = "", verdict: str | None = None) -> None:
        self.text = text
        self.problem = problem
        self.verdict = verdict


class LeaderTurn:
    """The leader's last work in a run."""

    def __init__(
        self, store: Store, team: str, run: Run, caller: Caller, surroundings: Surroundings, workflow: Workflow
    ) -> None:
        self.store = store
        self.team = team
        self.run = run
        self.caller = caller
        self.surroundings = surroundings
        self.how = workflow.synthesize
        self.about = " ".join(workflow.description.split())

    @property
    def wanted(self) -> bool:
        """Whether the workflow says how to make an answer of what these agents say.

        A script was made for what the commands of tasks print; what models say it does not understand.
        """
        return bool(self.how.prompt if self.run.thinks else self.how.run)

    def answer(self, found: list[Task]) -> LeaderAnswer:
        """Make the answer of all tasks."""
        root, leader = self.store.root, self.caller.name
        given = hand_offs.give(root, self.team, leader, found)
        try:
            # Where nothing was to be done there is nothing that a script could misread, and a model could tell of.
            thinks = self.run.thinks and (found or not self.how.run)
            made = self._thought(given, found) if thinks else self._scripted(given)
        finally:
            hand_offs.take_back(root, self.team, leader)
        return made

    def _scripted(self, given: str) -> LeaderAnswer:
        leader = self.caller.name
        own = self.surroundings.of_agent(self.store, self.team, leader, "team-leader", self.run.tag_of(leader))
        work = hand_offs.directory(self.store.root, self.team, "work")
        environment = {**own, **self.run.variables, "TEAMS_RESULTS": given, "TEAMS_WORK": work}
        done = shell.run(self.how.run or "", self.run.variables[REPO], environment, "the synthesis")
        if done.status:
            return LeaderAnswer(None, steps.one_line(done.reason))
        return LeaderAnswer(done.output, "", self._verdict(done.output))

    def _thought(self, given: str, found: list[Task]) -> LeaderAnswer:
        """A turn with a model; another one when the verdict that the workflow wants is not in its answer."""
        prompt = self._prompt(given, found)
        text = ""
        for _ in range(_TRIES):
            said = self._turn(prompt)
            if said.text is None:
                return said
            text, verdict = said.text, self._verdict(said.text)
            if not self.how.verdict or verdict:
                return LeaderAnswer(text, "", verdict)
            prompt += _AGAIN.format(pattern=self.how.verdict.pattern)
        assert self.how.verdict
        return LeaderAnswer(
            text, f"the leader's answer has no verdict: nothing in it matches {self.how.verdict.pattern}"
        )

    def _turn(self, prompt: str) -> LeaderAnswer:
        request = StartRequest(
            prompt,
            agent=self._free_name(),
            description=f"{self.run.workflow}: the leader's summary",
            harness=self.run.thinks,
            model=self.run.model,
            permissions=self.run.permissions,
            directory=self.run.variables[REPO],
            environ=self.surroundings.environ,
            variables={**self.run.variables, "PYTHON": self.surroundings.python},
        )
        name = starting.run_agent(self.store, self.team, self.caller, request).agent
        try:
            in_time = pace.sleep_until(self.store, self.team, lambda: self._ended(name), _LONGEST)
        finally:
            if not self._ended(name):
                interrupting.stop(self.store, self.team, self.caller, name)
        session = ending.current(self.store, self.team, name)
        said = outputs.find(self.store, self.team, name) or ""
        if session is None or session.outcome != "completed":
            late = "" if in_time else f"it took longer than {_LONGEST:.0f} s; "
            return LeaderAnswer(
                None, late + steps.one_line((session and session.failure) or "the leader's turn failed")
            )
        return LeaderAnswer(said) if said.strip() else LeaderAnswer(None, "the leader's turn said nothing")

    def _ended(self, name: str) -> bool:
        session = ending.current(self.store, self.team, name)
        return session is None or session.ended

    def _free_name(self) -> str:
        taken = {member.agent_id.lower() for member in teams.get(self.store, self.team).roster()}
        names = (NAME if number == 1 else f"{NAME}-{number}" for number in range(1, len(taken) + 2))
        return next(name for name in names if name not in taken)

    def _prompt(self, given: str, found: list[Task]) -> str:
        results = {f"{RESULT}{steps.key_of(task)}": task.result or "" for task in found}
        said = [_told(task) for task in found] + self._replies()
        return _INSTRUCTIONS.format(
            leader=self.caller.name,
            team=self.team,
            workflow=self.run.workflow,
            about=self.about,
            prompt=templates.fill(self.how.prompt or "", {**self.run.variables, **results}),
            given=given,
            results="\n\n".join(said)[:_ALL],
        )

    def _replies(self) -> list[str]:
        """What members answered to a broadcast of the leader's."""
        found = self.store.read(self.team, MESSAGE, self.caller.name, 0, [])
        replies = [message for message in found if message.type == "reply"]
        return [f"{message.from_} replied:\n{message.message[:_IN_HAND]}" for message in replies]

    def _verdict(self, text: str) -> str | None:
        """The last verdict in the text, where the workflow says how to find it."""
        if not self.how.verdict:
            return None
        found = list(re.finditer(self.how.verdict.pattern, text))
        return (found[-1][1] if found[-1].re.groups else found[-1][0]).strip() if found else None


def _told(task: Task) -> str:
    """What came of a task, as the leader reads it."""
    head = f"{steps.key_of(task)} ({task.title}), {task.status}, by {task.owner or 'nobody'}:"
    notes = [note.reason for note in task.notes if note.what == "failed" and note.reason]
    said = task.result or (notes[-1] if notes else "no result")
    more = "" if len(said) <= _IN_HAND else f"\n[…: all of it is in {steps.key_of(task)}.txt]"
    return f"{head}\n{said[:_IN_HAND]}{more}"
