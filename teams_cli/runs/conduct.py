"""Carry out a workflow with a new team: begin or resume a run, and lead it to its end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from teams_cli import closing, errors, text
from teams_cli.agents import budgets, worktrees
from teams_cli.clients import environments
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.records.types import Permissions
from teams_cli.runs import crew, orders, reports, runs
from teams_cli.runs.crew import Crew
from teams_cli.runs.runs import COMPLETED, FAILED, INCOMPLETE, INTERRUPTED, RUN, Run
from teams_cli.runs.synthesis import LeaderAnswer, LeaderTurn
from teams_cli.store import pace
from teams_cli.store.contract import Store, update
from teams_cli.store.pace import paced
from teams_cli.tasks import claims, dependencies, leases, tasks
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import history, permission, presence, role_definitions, settings, teams
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import Team
from teams_cli.workflows import checks, model
from teams_cli.workflows.model import Workflow


class Progress(Protocol):
    """Shows the progress of a run to the user."""

    def begins(self, team: str) -> None:
        """Show that the run begins, with this *team*."""

    def say(self, line: str) -> None:
        """Show an event of the run as one line."""

    def update(self, all_tasks: list[Task], living: list[str]) -> None:
        """Show the tasks as they are now. *living* are the names of the workers and agents that have not ended."""


_LAST_WAIT = 5.0
"""Seconds that workers are given to leave the team at the end, before they are stopped."""
_SEEN_EVERY = 10.0
"""Seconds after which the leader again records that it is alive."""


@dataclass
class Ended:
    """The outcome of a run, with the report of the run as *text*."""

    team: str
    run: Run
    tasks: list[Task]
    text: str


class Leader:
    """Leads a run to its end: creates tasks, starts and watches the workers, makes the leader's answer, and reports."""

    def __init__(self, run: LiveRun, progress: Progress) -> None:
        self.run = run
        self.store = run.store
        self.team = run.team
        self.caller = run.leader
        self.progress = progress
        self.crew = Crew(run)
        self.troubles: list[str] = []
        self._noted_reviews: set[tuple[str, int]] = set()

    def lead(self) -> Ended:
        """Lead the run to its end, and return the outcome. An error ends all workers; the run can be resumed later."""
        try:
            record = self.run.record
            for name, role in self.run.workflow.roles.items():
                definition: dict[str, Any] = {**role}
                if "skill" in definition:  # as workflow files call the skills
                    definition["skills"] = definition.pop("skill")
                role_definitions.define(self.store, self.team, self.caller, name, **definition)
            if not self.caller.is_human:
                presence.register_process(self.store, self.team, self.caller.name, os.getpid())
            steps = orders.expand(self.run.workflow, record.variables, record.items)
            orders.create_missing(self.store, self.team, self.caller, steps, bool(record.model_harness))
            workers = [agent.name for agent in record.agents]
            self.progress.say(f"team {self.team}: {text.counted(len(steps), 'task')} for {', '.join(workers)}")
            self.progress.begins(self.team)
            if self._has_doable_task(self._tasks(), workers):
                self._work()
            turn = LeaderTurn(self.run)
            if not turn.is_wanted:
                return self._report(LeaderAnswer(None))
            self.progress.say(f"{self.caller.name} synthesizes")
            answer = turn.answer(self._tasks())
            if answer.problem:
                self.troubles.append(f"The synthesis failed: {answer.problem}")
                self.progress.say(self.troubles[-1])
            return self._report(answer)
        except BaseException:
            try:
                leases.release_all(self.store, self.run.load_team())
                runs.settle(self.store, self.team, self.run.record, INTERRUPTED)
            except errors.TeamsError:  # the resumed run sees that this process is gone
                pass
            finally:
                self.progress.say(f"stopped; to continue: teams run --resume --team {self.team}")
            raise

    def _work(self) -> None:
        """Start the workers, and wait until no living worker can do any remaining task. Then stop all workers."""

        def have_all_joined() -> bool:
            self._note_deaths()  # the dead never join, so they are not waited for
            return set(self.crew.living()) <= set(self.run.load_team().active_names())

        try:
            self.crew.start()
            if self.run.workflow.broadcast:
                pace.sleep_until(self.store, self.team, have_all_joined, None)
                body = model.fill(self.run.workflow.broadcast, self.run.record.variables)
                uid = f"{self.run.record.id}-broadcast"
                with suppress(errors.NobodyThere):  # they are done, or dead, already
                    sent = messages.broadcast(self.store, self.team, self.caller, body, uid)
                    recipients = ", ".join(sent.recipients or [])
                    self.progress.say(f"broadcast to {recipients}: {orders.one_line(body)}")
            pace.sleep_until(self.store, self.team, paced(self._advance), None)
            self.crew.wait(_LAST_WAIT)
            self._note_deaths()  # a worker may have died while it left the team
        finally:
            self.crew.stop()
        self.progress.update(self._tasks(), [])

    def _advance(self) -> bool:
        """Show the progress, call idle agents for ready tasks, fail tasks that nobody will do, and release tasks whose
        claims have expired. Return whether the work of the run has ended.
        """
        self._note_deaths()
        if not self.caller.is_human:  # for other machines and containers, which see that the run is led
            presence.note_sign_of_life(self.store, self.team, self.caller.name, every=_SEEN_EVERY)
        all_tasks = self._tasks()
        living = self.crew.living()
        self.progress.update(all_tasks, living)
        self.crew.call_idle(all_tasks)
        self._note_reviews(all_tasks)
        if self._give_up_tasks(all_tasks):
            return False  # look again, at the remaining tasks
        if any(task.status == "in_progress" for task in all_tasks):
            leases.release_all(self.store, self.run.load_team())
            return False
        return not self._has_doable_task(all_tasks, living)

    def _give_up_tasks(self, all_tasks: list[Task]) -> bool:
        """Fail the tasks that were tried too often, or that nobody will claim. Return whether a task was failed."""
        reasons = {
            task.id: f"nobody claimed it, although all suitable agents were called {crew.MAX_CALLS} times"
            for task in self.crew.unclaimable(all_tasks)
        }
        for task in all_tasks:
            limit = task.attempts or self.run.workflow.attempts  # older versions stored no limit in the task
            if task.status == "pending" and (reason := claims.why_used_up(task, limit)):
                reasons[task.id] = reason
        has_given_up = False
        for task_id, reason in reasons.items():
            if self._fail(task_id, reason):
                self.progress.say(f"{task_id} failed: {reason}")
                has_given_up = True
        return has_given_up

    def _fail(self, task_id: str, reason: str) -> bool:
        """Fail a pending task for *reason*, and return True. Return False if the task is no longer pending."""

        def change(task: Task) -> Task:
            if task.status != "pending":
                return task
            now = teams.now(self.store)
            failed = task.having(status="failed", completed_at=now)
            return failed.noted(now, self.caller.name, "failed", reason)

        before, task = update(self.store, self.team, TASK, task_id, change)
        if before is task:
            return False
        history.note(self.store, self.team, self.caller.name, "task failed", task=task_id, reason=reason)
        return True

    def _note_deaths(self) -> None:
        for death in self.crew.report_deaths():
            self.troubles.append(f"{death}; its tasks were given to others.")
            self.progress.say(death)

    def _note_reviews(self, all_tasks: list[Task]) -> None:
        """Say which tasks wait for a review, once for each time that they were handed in."""
        for task in all_tasks:
            handed_in = (task.id, task.claim)
            if task.status == tasks.IN_REVIEW and handed_in not in self._noted_reviews:
                self._noted_reviews.add(handed_in)
                self.progress.say(reports.waits_for_review(task, self.team))

    def _has_doable_task(self, all_tasks: list[Task], living: list[str]) -> bool:
        """Whether one of the *living* workers could do one of the pending tasks, now or later, or somebody may review a
        task that waits for this.
        """
        user_roles = self.caller.config.agent if self.caller.config else {}
        roles = {**user_roles, **self.run.workflow.roles}
        skill_sets = [
            checks.skills_of(agent.role, agent.type, roles) for agent in self.run.record.agents if agent.name in living
        ]
        in_review = [task for task in all_tasks if task.status == tasks.IN_REVIEW]
        unreviewed = {task.id for task in in_review if not self.crew.may_be_reviewed(task, living)}
        if len(unreviewed) < len(in_review):
            return True
        pending = [task for task in all_tasks if task.status == "pending"]
        unskilled = {task.id for task in pending if not any(skills.issuperset(task.require) for skills in skill_sets)}
        # A task that nobody can do or review blocks other tasks for good, as a cancelled task does.
        undone = unskilled | unreviewed
        assumed = [task.having(status="cancelled") if task.id in undone else task for task in all_tasks]
        impossible = unskilled | dependencies.stuck_tasks(assumed)
        return any(task.id not in impossible for task in pending)

    def _tasks(self) -> list[Task]:
        return list(tasks.all_of(self.store, self.team, []))

    def _report(self, answer: LeaderAnswer) -> Ended:
        """Write the report, record how the run ended, and close the team of a completed run. Return the outcome."""
        all_tasks = self._tasks()
        status = FAILED if answer.problem else _status_by_tasks(all_tasks)
        run = self.run.record.having(status=status, verdict=answer.verdict)
        usage = budgets.spent(self.store, self.run.load_team(), by="model", problems=[])
        trees = [tree.line(self.team) for tree in worktrees.all_of(self.store, self.team)]
        report = reports.markdown(run, self.team, all_tasks, answer.text, self.troubles, trees, usage)
        reports.write(run.report, report)
        runs.settle(self.store, self.team, self.run.record, status, answer.verdict)
        if status == COMPLETED:
            with suppress(errors.TeamsError):  # the report is written; a team left open does no harm
                closing.close(self.store, self.team, self.caller, force=True)
        return Ended(self.team, run, all_tasks, report)


def _status_by_tasks(all_tasks: list[Task]) -> str:
    """Return the status of a run that ends with these tasks."""
    statuses = {task.status for task in all_tasks}
    if "failed" in statuses:
        return FAILED
    return COMPLETED if statuses <= {"completed", "cancelled"} else INCOMPLETE


class LiveRun:
    """A run that this process leads: its *team*, *record* and *leader*, and its *surroundings*, such as the
    environment.
    """

    def __init__(self, store: Store, team: str, record: Run, leader: Caller, surroundings: Surroundings) -> None:
        self.store = store
        self.team = team
        self.record = record
        self.leader = leader
        self.surroundings = surroundings
        self.workflow = Workflow.model_validate(record.definition)

    @property
    def about(self) -> str:
        """The description of the workflow, on one line."""
        return " ".join(self.workflow.description.split())

    def load_team(self) -> Team:
        """Return the team as it is stored now."""
        return teams.get(self.store, self.team)

    def environment_of(self, agent: str, type: str) -> dict[str, str]:
        """Return the environment for the processes of the agent, with the tag by which these processes can be found."""
        return {
            **self.surroundings.environ,
            **self.store.variables,
            **environments.identity(self.team, agent, agent, type),
            "TEAMS_RUN_ID": self.record.tag_of(agent),
            "PYTHON": self.surroundings.python,
        }


LEADER_NAME = "leader"


@dataclass
class RunRequest:
    """A request to run a workflow. *variables* are the values that the user gives. *agents* is the number of agents, or
    None for the number in the workflow. If *team* is "", the team gets a new name. If *report* is "", the report is
    written to a file below the data directory.
    """

    workflow: Workflow
    file: str
    variables: Mapping[str, str]
    agents: int | None = None
    team: str = ""
    report: str = ""
    harness: str = runs.SHELL
    model: str | None = None
    permissions: Permissions | None = None


def start(store: Store, caller: Caller, request: RunRequest, surroundings: Surroundings, progress: Progress) -> Ended:
    """Run a workflow to its end, in a new team, and return the outcome.

    Raises:
        InvalidValue: A variable is unknown, missing or wrong, there are too few agents, or a client is missing or can't
            start; nothing was changed.
        AlreadyExists: A team with the requested name exists.
        TaskFailed: The command that finds what to do failed; nothing was changed.
    """
    values = orders.variables(request.workflow, request.variables, surroundings)
    draft = drafted(request, values, caller)
    crew.refuse_unusable_clients(draft, caller.config, surroundings)
    if not draft.model_harness:
        orders.refuse_impossible(request.workflow, values, surroundings, progress.say)
    for key, value in request.workflow.settings.items():  # refuse those that can't be set, before anything is changed
        settings.known(key).parse(key, value)
        settings.refuse_persons(key, caller)
    items = orders.items(request.workflow, values, surroundings, progress.say)
    team = _spawn_team(store, caller, request)
    for key, value in request.workflow.settings.items():
        settings.change(store, team, caller, key, value)
    report = request.report or os.path.join(store.root, "runs", team, "report.md")
    draft = draft.having(items=items, report=report, started_at=teams.now(store))
    run = store.create(team, RUN, None, draft.led_by_us(store.host))[0]
    return Leader(LiveRun(store, team, run, caller, surroundings), progress).lead()


def drafted(request: RunRequest, values: dict[str, str], caller: Caller) -> Run:
    """Return a record of the requested run that is not stored yet. *values* has the values of all variables.

    Raises:
        InvalidValue: There are too few agents.
    """
    user_roles = dict(caller.config.agent) if caller.config else {}
    return Run(
        workflow=request.workflow.name,
        file=request.file,
        definition=request.workflow.to_json(),
        variables=values,
        agents=orders.staff(request.workflow, request.agents, caller.name, user_roles),
        leader=caller.name,
        harness=request.harness,
        model=request.model,
        permissions=request.permissions,
        mark=secrets.token_hex(8),
        report=request.report,
        started_at="",
    )


def _spawn_team(store: Store, caller: Caller, request: RunRequest) -> str:
    """Create a team and return its name: as requested, or else the workflow's name with the first free number."""
    description = " ".join(request.workflow.description.split())
    if request.team:
        joining.spawn_team(store, request.team, caller, description)
        return request.team
    stem = request.workflow.name[:56]  # leaves space for the number in the name of a team
    number = 0
    while True:
        number += 1
        name = f"{stem}-{number}"
        if name.lower() not in {team.lower() for team in store.teams()}:
            with suppress(errors.AlreadyExists):  # another run took the name just now
                joining.spawn_team(store, name, caller, description)
                return name


def resume(
    store: Store,
    caller: Caller | None,
    config: Config,
    team: str,
    surroundings: Surroundings,
    progress: Progress,
    report: str = "",
) -> Ended:
    """Finish a run that was interrupted or killed, or in which tasks failed. Failed tasks are tried again, and
    completed tasks stay completed. If the run is completed, and nobody has reopened or added tasks since, its report is
    returned, and nothing is changed.

    The variables, agents and leader are those with which the run began. *caller* is the member who resumes the run;
    None stands for the leader. If *report* is "", the report is written to the same file as before.

    Raises:
        WrongState: The team was copied to another store.
    """
    run = runs.get(store, team)
    all_tasks = list(tasks.all_of(store, team, []))
    if run.status == COMPLETED and _status_by_tasks(all_tasks) == COMPLETED:
        progress.say(f"the run of team {team} is completed already; this is its report")
        written = reports.report_of(store, team)["markdown"]
        if report:
            reports.write(report, written)
        return Ended(team, run.having(report=report or run.report), all_tasks, written)
    leader = Caller(run.leader, config=config)
    team_record = teams.get(store, team)
    closing.refuse_copied(team_record)
    if team_record.state == "closed":
        closing.restore(store, team, caller or leader)
    permission.require(store, team, caller or leader, "create-task", "run --resume")
    crew.refuse_unusable_clients(run, config, surroundings)
    run = runs.take(store, team, run)
    crew.end_leftover_processes(run)
    leases.release_all(store, teams.get(store, team))
    if reopened := orders.reopen_failed(store, team):
        progress.say(f"tried again: {', '.join(reopened)}")
    run = run.having(report=report or run.report)
    return Leader(LiveRun(store, team, run, leader, surroundings), progress).lead()


class Surroundings:
    """The environment, the directory and the Python of the process that starts a run.

    *inherited* is the whole environment; an agent gets the part of it that the agent's client keeps. *environ* is for
    shell commands, and lacks the variables that identify an agent.
    """

    def __init__(self, environ: Mapping[str, str], directory: str, python: str) -> None:
        self.inherited = environ
        self.environ = environments.clean(environ)
        self.directory = directory
        self.python = python

    def path(self, path: str) -> str:
        """Return *path* as an absolute path. A leading `~` is expanded, because no shell does so in `--var repo=~`."""
        home = self.environ.get("HOME", "")
        if home and (path == "~" or path.startswith("~/")):
            path = home + path[1:]
        return os.path.abspath(os.path.join(self.directory, path))
