"""The leader of a run: creates the tasks, starts the workers, watches them, synthesizes, and reports."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from teams_cli import closing, errors, text
from teams_cli.agents import worktrees
from teams_cli.messages import messages
from teams_cli.runs import crew, orders, reports, runs
from teams_cli.runs.crew import Crew
from teams_cli.runs.runs import COMPLETED, FAILED, INCOMPLETE, INTERRUPTED, Run
from teams_cli.runs.synthesis import LeaderAnswer, LeaderTurn
from teams_cli.store import pace
from teams_cli.store.pace import paced
from teams_cli.tasks import attempts, dependencies, leases, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, role_definitions
from teams_cli.views import spending
from teams_cli.workflows import checks, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from teams_cli.runs.conduct import LiveRun

    class Progress(Protocol):
        """Whoever shows how a run gets on."""

        def begins(self, team: str) -> None:
            """The run begins, in that team."""

        def say(self, line: str) -> None:
            """Tell of something worth a line that happened."""

        def update(self, found: list[Task], living: list[str]) -> None:
            """Tell how the tasks are now, and which workers run."""


_LEAVE_TAKING = 5.0
_SEEN_EVERY = 10.0


@dataclass
class Ended:
    """A run at its end."""

    team: str
    run: Run
    tasks: list[Task]
    text: str


class Leader:
    """Leads a run from where it stands to its end."""

    def __init__(self, run: LiveRun, progress: Progress) -> None:
        self.run = run
        self.progress = progress
        self.crew = Crew(run)
        self.synthesis = LeaderTurn(run)
        self.troubles: list[str] = []

    def lead(self) -> Ended:
        """Carry the run on to its end; when that fails, all workers end and the state stays."""
        try:
            for name, role in self.run.workflow.roles.items():
                own: dict[str, Any] = {"skills" if key == "skill" else key: value for key, value in role.items()}
                role_definitions.define(self.run.store, self.run.team, self.run.leader, name, **own)
            if not self.run.leader.is_human:
                presence.register_process(self.run.store, self.run.team, self.run.leader.name, os.getpid())
            planned = orders.expand(self.run.workflow, self.run.record.variables, self.run.record.items)
            orders.create_missing(self.run.store, self.run.team, self.run.leader, planned, bool(self.run.record.thinks))
            workers = ", ".join(agent.name for agent in self.run.record.agents)
            self.progress.say(f"team {self.run.team}: {text.counted(len(planned), 'task')} for {workers}")
            self.progress.begins(self.run.team)
            if self._open(self._tasks(), [agent.name for agent in self.run.record.agents]):
                self._work()
            return self._report(self._synthesize())
        except BaseException:
            self._give_up()
            raise

    def _work(self) -> None:
        try:
            self.crew.start()
            self._broadcast()
            pace.sleep_until(self.run.store, self.run.team, paced(self._look), None)
            self.crew.wait(_LEAVE_TAKING)
            self._note_fallen()  # who fell meanwhile, as it ended
        finally:
            self.crew.stop()
        self.progress.update(self._tasks(), [])

    def _broadcast(self) -> None:
        """Tell all workers, once they have joined, what the workflow has to say to them."""
        if not self.run.workflow.broadcast:
            return
        pace.sleep_until(self.run.store, self.run.team, self._all_joined, None)
        body = model.fill(self.run.workflow.broadcast, self.run.record.variables)
        try:
            sent = messages.broadcast(
                self.run.store, self.run.team, self.run.leader, body, f"{self.run.record.id}-broadcast"
            )
        except errors.NobodyThere:  # they are done, or dead, already
            return
        self.progress.say(f"broadcast to {', '.join(sent.recipients or [])}: {orders.one_line(body)}")

    def _all_joined(self) -> bool:
        self._note_fallen()
        joined = self.run.load_team().active_names()
        return set(self.crew.living()) <= set(joined)

    def _look(self) -> bool:
        """Look at how far it is; whether it is over."""
        self._note_fallen()
        if self.run.store.host and not self.run.leader.is_human:  # other machines see by this that the run is led
            presence.saw(self.run.store, self.run.team, self.run.leader.name, every=_SEEN_EVERY)
        all_tasks = self._tasks()
        living = self.crew.living()
        self.progress.update(all_tasks, living)
        self.crew.call(all_tasks)
        if self._give_up_tasks(all_tasks):
            return False  # look again, at what is left
        if any(task.status == "in_progress" for task in all_tasks):
            leases.release_all(self.run.store, self.run.load_team())
            return False
        return not self._open(all_tasks, living)

    def _give_up_tasks(self, found: list[Task]) -> bool:
        """Let tasks fail that came back too often, or that nobody takes; whether there were any."""
        reasons = {
            task.id: f"nobody claimed it, although all suitable agents were called {crew.CALLS} times"
            for task in self.crew.untaken(found)
        }
        for task in found:
            most = task.attempts or self.run.workflow.attempts  # older versions did not write it
            if task.status == "pending" and (why := attempts.used_up(task, most)):
                reasons[task.id] = why
        has_given_up = False
        for key, why in reasons.items():
            if attempts.give_up(self.run.store, self.run.team, self.run.leader.name, key, why):
                self.progress.say(f"{key} failed: {why}")
                has_given_up = True
        return has_given_up

    def _note_fallen(self) -> None:
        for trouble in self.crew.fallen():
            self.troubles.append(f"{trouble}; its tasks were given to others.")
            self.progress.say(trouble)

    def _open(self, found: list[Task], living: list[str]) -> bool:
        """Whether a living worker could do any of the tasks, now or later."""
        pending = [task for task in found if task.status == "pending"]
        of_user = self.run.leader.config.agent if self.run.leader.config else {}
        roles = {**of_user, **self.run.workflow.roles}
        skills = [
            checks.skills_of(agent.role, agent.type, roles) for agent in self.run.record.agents if agent.name in living
        ]
        beyond = {task.id for task in pending if not any(own.issuperset(task.require) for own in skills)}
        seen = [task.having(status="cancelled") if task.id in beyond else task for task in found]
        return len(pending) > len(beyond | dependencies.stuck_tasks(seen))

    def _tasks(self) -> list[Task]:
        return list(tasks.all_of(self.run.store, self.run.team, []))

    def _synthesize(self) -> LeaderAnswer:
        if not self.synthesis.wanted:
            return LeaderAnswer(None)
        self.progress.say(f"{self.run.leader.name} synthesizes")
        made = self.synthesis.answer(self._tasks())
        if made.problem:
            self.troubles.append(f"The synthesis failed: {made.problem}")
            self.progress.say(self.troubles[-1])
        return made

    def _report(self, answer: LeaderAnswer) -> Ended:
        all_tasks = self._tasks()
        status = FAILED if answer.problem else _status(all_tasks)
        run = self.run.record.having(status=status, verdict=answer.verdict)
        spent = spending.spent(self.run.store, self.run.load_team(), "model", [])
        left = [tree.line(self.run.team) for tree in worktrees.all_of(self.run.store, self.run.team)]
        text = reports.markdown(run, self.run.team, all_tasks, answer.text, self.troubles, left, spent)
        reports.write(run.report, text)
        runs.settle(self.run.store, self.run.team, self.run.record, status, answer.verdict)
        if status == COMPLETED:
            with suppress(errors.TeamsError):  # the report is written; a team left open does no harm
                closing.close(self.run.store, self.run.team, self.run.leader, force=True)
        return Ended(self.run.team, run, all_tasks, text)

    def _give_up(self) -> None:
        try:
            leases.release_all(self.run.store, self.run.load_team())
            runs.settle(self.run.store, self.run.team, self.run.record, INTERRUPTED)
        except errors.TeamsError:  # what can't be noted now is seen by whoever resumes: this process is gone then
            return
        finally:
            self.progress.say(f"stopped; to continue: teams run --resume --team {self.run.team}")


def _status(found: list[Task]) -> str:
    if any(task.status == "failed" for task in found):
        return FAILED
    return COMPLETED if all(task.status in ("completed", "cancelled") for task in found) else INCOMPLETE
