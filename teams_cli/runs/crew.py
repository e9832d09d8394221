"""The crew of a run: its worker processes and its agents with a model; and checks before the run that the clients of
the agents can start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from shutil import which

from teams_cli import errors, processes
from teams_cli.agents import ending, interrupting, resuming, shell, starting
from teams_cli.agents.sessions import Session
from teams_cli.agents.starting import StartRequest
from teams_cli.clients import known, permissions, profiles
from teams_cli.messages import messages
from teams_cli.names import HUMAN
from teams_cli.runs import runs
from teams_cli.runs.runs import SHELL, Assigned, Run
from teams_cli.store import pace
from teams_cli.tasks import dependencies, reviews
from teams_cli.tasks.tasks import IN_REVIEW, Task
from teams_cli.teams import roles, teams
from teams_cli.workflows.model import REPO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from teams_cli.runs.conduct import LiveRun, Surroundings
    from teams_cli.teams.config import Config


_INSTRUCTIONS = """\
You are {name}{kind} in the team {team}, which carries out the workflow "{workflow}": {description}

Work with the command `teams`; who you are and in which team is set. Until no task is ready for you:
1. Take the best one that is ready: teams claim-task --next (exit status 10: no task is ready, and you are done for now)
2. Do what its prompt says, or its description or command, in this directory. What the tasks before it found:
   teams show-task ID
   Files for the others go to {work}
3. While it takes long: teams heartbeat
4. End it: teams update-task ID --status completed --result TEXT, or --status failed --result WHY
Messages to you come along with your work; answer with teams reply ID TEXT. When nothing is ready, end your turn: you
will be called when there is more.
"""
MAX_CALLS = 3
"""The maximum number of times that an agent is called for the same task."""
_CALL = "Tasks are ready: teams claim-task --next"
_CALL_TO_REVIEW = (
    "{task} waits for your review: teams review-task {task} --accept, or teams review-task {task} --reject WHY"
)


_GRACE = 6.0
"""Seconds that workers are given to end by themselves after SIGTERM."""
_KILL = (("KILL", 2.0),)
"""The signal for leftover processes, and the seconds to wait for their end."""


class WorkerProcess:
    """A worker process. It is started in a new process session, so that Ctrl-C in the terminal does not reach it."""

    def __init__(self, run: LiveRun, assigned: Assigned) -> None:
        self.name = assigned.name
        self.tag = run.record.tag_of(assigned.name)
        self.log = os.path.join(runs.directory(run.store.root, run.team, "logs"), f"{self.name}.log")
        environment = run.environment_of(self.name, assigned.type or assigned.role)
        # -P: modules of the repository must not take the place of ours.
        words = [run.surroundings.python, "-P", "-m", "teams_cli.runs.worker", run.record.id, str(os.getpid())]
        try:
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(
                    words, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
        except OSError as error:
            raise errors.StorageFailed(f"can't start {self.name}: {error.strerror}", f"Look at {self.log}.") from None

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def cause_of_death(self) -> str:
        """Return the exit status of the process or the signal that ended it, and the last line of its log."""
        end = shell.ending(self.process.returncode)
        try:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                last_line = log.read()[-2000:].strip().rpartition("\n")[2]
        except OSError:
            last_line = ""
        return f"{end}: {last_line}" if last_line else end


def _review_of(task: Task) -> str:
    """Return the key under which calls for the review of the task are counted: of the work that was handed in last."""
    return f"review of {task.id}, {task.claim}"


class Crew:
    """All members of a run: the workers, which are processes without a model, and the agents, which have one."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.store = run.store
        self.team = run.team
        self.workers: list[WorkerProcess] = []
        self.agents = [assigned for assigned in run.record.agents if run.record.harness_of(assigned) != SHELL]
        self._reported_dead: set[str] = set()
        self._calls: Counter[tuple[str, str]] = Counter()
        """How often each agent was called for each task, by the agent's name and the task's id or `_review_of` it."""
        self._ended_before: dict[str, int] = {}
        """The generations of the sessions that failed, were lost or were stopped in an earlier attempt at the run."""

    def start(self) -> None:
        """Start all workers, and all agents that have no session yet. An agent with a session, from an earlier attempt
        at the run, is resumed when there is work, unless somebody else than the run stopped it.
        """
        for assigned in self.run.record.agents:
            if assigned not in self.agents:
                self.workers.append(WorkerProcess(self.run, assigned))
        for assigned in self.agents:
            session = ending.current(self.store, self.team, assigned.name)
            if session is None:
                starting.run_agent(self.store, self.team, self.run.leader, self._start_request(assigned))
            elif session.ended and session.outcome != "completed":
                session = resuming.undo_stop(self.store, self.team, assigned.name, self.run.leader.name)
                self._ended_before[assigned.name] = session.generation

    def _start_request(self, assigned: Assigned) -> StartRequest:
        record = self.run.record
        kind = assigned.type or assigned.role
        prompt = _INSTRUCTIONS.format(
            name=assigned.name,
            kind=f" ({kind})",
            team=self.team,
            workflow=record.workflow,
            description=self.run.about,
            work=runs.directory(self.store.root, self.team, "work"),
        )
        return StartRequest(
            prompt,
            agent=assigned.name,
            description=f"{record.workflow}: {kind}",
            harness=record.harness_of(assigned),
            model=assigned.model or record.model,
            permissions=assigned.permissions or record.permissions,
            type=kind,
            worktree=bool(assigned.worktree),
            answer=assigned.answer,
            directory=os.path.join(record.variables[REPO], assigned.cwd or ""),
            environ=self.run.surroundings.inherited,
            variables={**record.variables, "PYTHON": self.run.surroundings.python},
        )

    def _sessions(self) -> dict[str, Session | None]:
        return {agent.name: ending.current(self.store, self.team, agent.name) for agent in self.agents}

    def _why_lost(self, session: Session) -> str:
        """Return why the agent of the session can't be called any more, or "" if it can. Its last turn in this attempt
        at the run failed, it was lost or stopped, or it may begin no turn now.
        """
        if not session.ended:
            return ""
        ended_before = self._ended_before.get(session.agent) == session.generation
        if session.outcome == "stopped" or (session.outcome != "completed" and not ended_before):
            return f"{session.agent} died ({session.failure or session.outcome})"
        resting = resuming.at_rest(self.store, self.team, [session.agent])
        return f"{session.agent} begins no turn now ({resting[session.agent]})" if resting else ""

    def _callable_agents(self) -> dict[str, Session]:
        """Return the agents that work, or that can be called to work, with their sessions."""
        return {name: session for name, session in self._sessions().items() if session and not self._why_lost(session)}

    def living(self) -> list[str]:
        """Return the names of the workers that run, and of the agents that work or can be called."""
        return [*(worker.name for worker in self.workers if worker.is_running), *self._callable_agents()]

    def report_deaths(self) -> list[str]:
        """Return a line, with name and reason, for each worker or agent that failed, was lost or may begin no more
        turns since the last call of this method. Processes that a failed worker left behind are ended.
        """
        lines: dict[str, str] = {}
        for worker in self.workers:
            has_failed = not worker.is_running and worker.process.returncode != 0
            if has_failed and worker.name not in self._reported_dead:
                processes.end_tagged(worker.tag, _KILL)
                lines[worker.name] = f"{worker.name} died ({worker.cause_of_death()})"
        for name, session in self._sessions().items():
            why_lost = self._why_lost(session) if session else f"{name} died (it was not started)"
            if why_lost and name not in self._reported_dead:
                lines[name] = why_lost
        self._reported_dead.update(lines)
        return list(lines.values())

    def call_idle(self, all_tasks: Sequence[Task]) -> None:
        """Resume idle agents for which a task is ready or waits for their review, at most MAX_CALLS times for the same
        task or review.
        """
        ready = self._ready(all_tasks)
        team = self.run.load_team()
        for name, session in self._callable_agents().items():
            if not session.ended:
                continue
            task_ids = [task.id for task in ready if self._may_be_called(team, name, task)]
            if task_ids:
                self._calls.update((name, task_id) for task_id in task_ids)
                messages.send(self.store, self.team, self.run.leader, name, _CALL)
            for task in all_tasks:
                is_reviewer = task.status == IN_REVIEW and reviews.reviews(team, task, name, self.run.leader.config)
                if is_reviewer and self._calls[name, _review_of(task)] < MAX_CALLS:
                    self._calls[name, _review_of(task)] += 1
                    messages.send(self.store, self.team, self.run.leader, name, _CALL_TO_REVIEW.format(task=task.id))

    def unclaimable(self, all_tasks: Iterable[Task]) -> list[Task]:
        """Return the ready tasks that nobody will claim: all agents with the required skills are idle, and each was
        called for the task MAX_CALLS times. A task is left out if no living agent has the skills. While a worker is
        running, the list is empty, because workers claim tasks without being called.
        """
        if any(worker.is_running for worker in self.workers):
            return []
        team = self.run.load_team()
        living = self._callable_agents()
        unclaimable = []
        for task in self._ready(all_tasks):
            skilled = [name for name in living if self._has_skills(team, name, task)]
            may_yet_claim = any(not living[name].ended or self._may_be_called(team, name, task) for name in skilled)
            if skilled and not may_yet_claim:
                unclaimable.append(task)
        return unclaimable

    def may_be_reviewed(self, task: Task, living: list[str]) -> bool:
        """Whether somebody may still review the task: the human, a member from outside the run, or one of the *living*
        agents with a model that is at work or can be called. Workers without a model review nothing.
        """
        if task.review_by == HUMAN:
            return True
        team = self.run.load_team()
        sessions = self._sessions()

        def may_review(name: str) -> bool:
            if not reviews.reviews(team, task, name, self.run.leader.config):
                return False
            if name not in sessions:
                return all(assigned.name != name for assigned in self.run.record.agents)
            session = sessions[name]
            is_idle = session is not None and session.ended
            return name in living and not (is_idle and self._calls[name, _review_of(task)] >= MAX_CALLS)

        return any(may_review(name) for name in team.active_names())

    def _ready(self, all_tasks: Iterable[Task]) -> list[Task]:
        stored = dependencies.stored(self.store, self.team)
        return [task for task in all_tasks if task.status == "pending" and not dependencies.open_blockers(task, stored)]

    def _may_be_called(self, team: teams.Team, name: str, task: Task) -> bool:
        return self._calls[name, task.id] < MAX_CALLS and self._has_skills(team, name, task)

    def _has_skills(self, team: teams.Team, name: str, task: Task) -> bool:
        member = team.member(name)
        return member is not None and roles.skills_of(member, team, self.run.leader.config).issuperset(task.require)

    def wait(self, seconds: float) -> None:
        """Wait until all workers have ended, for at most *seconds*. If they have, wait until all agents have ended
        their turns, again for at most *seconds*.
        """

        def have_agents_ended() -> bool:
            return all(session is None or session.ended for session in self._sessions().values())

        if self._wait_for_workers(seconds):
            pace.sleep_until(self.store, self.team, have_agents_ended, seconds)

    def _wait_for_workers(self, seconds: float) -> bool:
        """Wait until all workers have ended, for at most *seconds*. Return False if one still runs then."""
        deadline = time.monotonic() + seconds
        for worker in self.workers:
            try:
                worker.process.wait(max(deadline - time.monotonic(), 0.001))
            except subprocess.TimeoutExpired:
                return False
        return True

    def stop(self) -> None:
        """End all workers and their processes, and stop the agents that still work. The workers are first asked to end,
        and are killed after a grace period or a second Ctrl-C.
        """
        try:
            for worker in self.workers:
                if worker.is_running:
                    worker.process.send_signal(signal.SIGTERM)
            try:
                self._wait_for_workers(_GRACE)
            finally:
                for worker in self.workers:
                    if worker.is_running:
                        worker.process.kill()
                    worker.process.wait()
                    processes.end_tagged(worker.tag, _KILL)
        finally:
            for name, session in self._sessions().items():
                if session and not session.ended:
                    with suppress(errors.TeamsError):  # the others are stopped all the same
                        interrupting.stop(self.store, self.team, self.run.leader, name)


def end_leftover_processes(run: Run) -> None:
    """End the processes of the run that are left from an earlier attempt, which was killed."""
    for name in [*(assigned.name for assigned in run.agents), run.leader]:
        processes.end_tagged(run.tag_of(name), _KILL)


_VERSION_TIMEOUT = 60.0
"""Seconds that a client is given to print its version."""


def refuse_unusable_clients(run: Run, config: Config | None, surroundings: Surroundings) -> None:
    """Refuse the run if the program of one of its clients is missing or can't start, or if `refuse_unfit` refuses it.

    Raises:
        InvalidValue: The run is refused, or there is no such harness.
    """
    hint = "Try it by hand; nothing was changed."
    for harness in run.harnesses:
        profile = profiles.get(harness, config)
        if harness == SHELL:
            continue
        name = profile.program
        program = which(name, path=surroundings.environ.get("PATH"))
        if program is None:
            raise errors.InvalidValue(
                f"the program {name} of the harness {profile.name} is not on PATH",
                "Install it, or choose another with --harness. Nothing was changed.",
            )
        if profile.name not in known.names():  # a client of the user's own may not know --version
            continue
        words, environ = [program, "--version"], profile.environment(surroundings.environ, {})
        try:
            done = subprocess.run(
                words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_TIMEOUT
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise errors.InvalidValue(f"{name} can't be started: {error}", hint) from None
        if done.returncode:
            lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            reason = lines[-1] if lines else f"exit status {done.returncode}"
            raise errors.InvalidValue(f"{name} can't be started: {reason}", hint)
    refuse_unfit(run, config)


def refuse_unfit(run: Run, config: Config | None) -> None:
    """Raise an error if a client of the run does not support the model or the permissions of its agent, or if the
    directory of an agent does not exist.

    Raises:
        InvalidValue: The run is refused. The error names the agent.
    """
    for agent in run.agents:
        profile = profiles.get(run.harness_of(agent), config)
        if profile.name == SHELL:
            keys = {"model": agent.model, "permissions": agent.permissions, "worktree": agent.worktree}
            if key := next((key for key, value in keys.items() if value), None):
                raise errors.InvalidValue(
                    f"{agent.name} only runs commands, so its `{key}` changes nothing",
                    f"Give it a `harness`, use --harness, or leave out `{key}`.",
                )
        else:
            if model := agent.model or run.model:
                profiles.refuse_model(profile, model)
            if level := agent.permissions or run.permissions:
                permissions.refuse_missing(profile, level)
        directory = os.path.join(run.variables[REPO], agent.cwd or "")
        if not os.path.isdir(directory):
            raise errors.InvalidValue(
                f"{agent.name} can't work in {directory}: there is no such directory",
                "Make it; or start a new run with another `repo` or `cwd`.",
            )
