"""The crew of a run: worker processes and agents with a model; and checking that their clients can start."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from shutil import which

from teams_cli import errors, processes
from teams_cli.agents import ending, interrupting, sessions, starting
from teams_cli.agents.sessions import Session
from teams_cli.agents.starting import StartRequest
from teams_cli.clients import known, permissions, profiles
from teams_cli.clients.profiles import Profile
from teams_cli.messages import messages
from teams_cli.runs import runs
from teams_cli.runs.runs import SHELL, Assigned, Run
from teams_cli.store import pace
from teams_cli.tasks import dependencies
from teams_cli.tasks.tasks import Task
from teams_cli.teams import roles, teams
from teams_cli.workflows.model import REPO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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
CALLS = 3
"""How often an agent is called for the same task, at most."""
_MORE = "Tasks are ready: teams claim-task --next"


class AgentCrew:
    """The agents of a run that have a model. Each is started with its harness."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.ours = [assigned for assigned in run.record.agents if run.record.harness_of(assigned) != SHELL]
        self.names = [assigned.name for assigned in self.ours]
        self._missed: set[str] = set()
        self._calls: dict[tuple[str, str], int] = {}

    def start(self) -> None:
        """Start all agents that have no session. Agents of an earlier attempt are resumed when there is work."""
        for assigned in self.ours:
            if sessions.find(self.run.store, self.run.team, assigned.name) is None:
                starting.run_agent(self.run.store, self.run.team, self.run.leader, self._request(assigned))

    def _request(self, assigned: Assigned) -> StartRequest:
        record = self.run.record
        kind = assigned.type or assigned.role
        prompt = _INSTRUCTIONS.format(
            name=assigned.name,
            kind=f" ({kind})" if kind else "",
            team=self.run.team,
            workflow=record.workflow,
            description=self.run.about,
            work=runs.directory(self.run.store.root, self.run.team, "work"),
        )
        return StartRequest(
            prompt,
            agent=assigned.name,
            description=f"{record.workflow}: {kind or 'worker'}",
            harness=record.harness_of(assigned),
            model=assigned.model or record.model,
            permissions=assigned.permissions or record.permissions,
            type=assigned.type or assigned.role,
            worktree=bool(assigned.worktree),
            answer=assigned.answer,
            directory=os.path.join(record.variables[REPO], assigned.cwd or ""),
            environ=self.run.surroundings.inherited,
            variables={**record.variables, "PYTHON": self.run.surroundings.python},
        )

    def _sessions(self) -> dict[str, Session | None]:
        return {name: ending.current(self.run.store, self.run.team, name) for name in self.names}

    def living(self) -> list[str]:
        """Return the names of the agents that work or can be called."""
        return [name for name, session in self._sessions().items() if session and not _is_lost(session)]

    def fallen(self) -> list[str]:
        """Return a line for each agent that failed or was lost since the last call of this method. The line has the
        agent's name and the reason.
        """
        fallen = []
        for name, session in self._sessions().items():
            if (session is None or _is_lost(session)) and name not in self._missed:
                self._missed.add(name)
                how = session and (session.failure or session.outcome)
                fallen.append(f"{name} died ({how or 'it was not started'})")
        return fallen

    def call(self, all_tasks: Iterable[Task]) -> None:
        """Resume the idle agents for which a task is ready. An agent is called for the same task a few times at
        most.
        """
        ready = self._ready(all_tasks)
        team = self.run.load_team()
        for name, session in self._sessions().items():
            new = [task.id for task in ready if self._may_be_called(team, name, task)]
            if session and session.ended and not _is_lost(session) and new:
                for key in new:
                    self._calls[name, key] = self._calls.get((name, key), 0) + 1
                messages.send(self.run.store, self.run.team, self.run.leader, name, _MORE)

    def untaken(self, all_tasks: Iterable[Task]) -> list[Task]:
        """Return the ready tasks that nobody will claim: all suitable agents are idle, and were called often enough."""
        team = self.run.load_team()
        current = self._sessions()
        left = []
        for task in self._ready(all_tasks):
            able = [name for name in self.living() if self._can(team, name, task)]
            idle = [name for name in able if (session := current[name]) and session.ended]
            if able and idle == able and all(not self._may_be_called(team, name, task) for name in able):
                left.append(task)
        return left

    def _ready(self, all_tasks: Iterable[Task]) -> list[Task]:
        stored = dependencies.stored(self.run.store, self.run.team)
        return [task for task in all_tasks if task.status == "pending" and not dependencies.open_blockers(task, stored)]

    def _may_be_called(self, team: teams.Team, name: str, task: Task) -> bool:
        return self._calls.get((name, task.id), 0) < CALLS and self._can(team, name, task)

    def _can(self, team: teams.Team, name: str, task: Task) -> bool:
        member = team.member(name)
        return member is not None and roles.skills_of(member, team, self.run.leader.config).issuperset(task.require)

    def wait(self, seconds: float) -> bool:
        """Wait until all agents have ended their turns, but no longer than *seconds*. Return whether they have."""

        def have_ended() -> bool:
            return all(session is None or session.ended for session in self._sessions().values())

        return pace.sleep_until(self.run.store, self.run.team, have_ended, seconds)

    def stop(self) -> None:
        """Stop the agents that still work."""
        for name, session in self._sessions().items():
            if session and not session.ended:
                try:
                    interrupting.stop(self.run.store, self.run.team, self.run.leader, name)
                except errors.TeamsError:
                    continue


def _is_lost(session: Session) -> bool:
    return session.ended and session.outcome != "completed"


_GRACE = 6.0
_KILL = (("KILL", 2.0),)


class WorkerProcess:
    """A worker process, in a session of its own, so that Ctrl-C does not reach it."""

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

    def runs(self) -> bool:
        return self.process.poll() is None

    def how_it_ended(self) -> str:
        """Return the exit status or the signal that ended the process, and the last line of its log."""
        status = self.process.returncode
        how = f"exit status {status}" if status >= 0 else f"ended by signal {-status}"
        try:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                last_line = log.read()[-2000:].strip().rpartition("\n")[2]
        except OSError:
            last_line = ""
        return f"{how}: {last_line}" if last_line else how


class WorkerCrew:
    """The worker processes of a run."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.workers: list[WorkerProcess] = []
        self._missed: set[str] = set()

    def start(self) -> None:
        """Start all workers."""
        record = self.run.record
        for assigned in record.agents:
            if record.harness_of(assigned) == SHELL:
                self.workers.append(WorkerProcess(self.run, assigned))

    def living(self) -> list[str]:
        """Return the names of the workers whose processes are running."""
        return [worker.name for worker in self.workers if worker.runs()]

    def fallen(self) -> list[str]:
        """Return a line for each worker that failed since the last call of this method, with the worker's name and the
        reason. Processes that these workers left behind are ended.
        """
        fallen = [w for w in self.workers if not w.runs() and w.process.returncode and w.name not in self._missed]
        for worker in fallen:
            self._missed.add(worker.name)
            processes.end_tagged(worker.tag, _KILL)
        return [f"{worker.name} died ({worker.how_it_ended()})" for worker in fallen]

    def wait(self, seconds: float) -> bool:
        """Wait until all workers have ended, but no longer than *seconds*. Return whether they have."""
        give_up = time.monotonic() + seconds
        for worker in self.workers:
            try:
                worker.process.wait(max(give_up - time.monotonic(), 0.001))
            except subprocess.TimeoutExpired:
                return False
        return True

    def stop(self) -> None:
        """End all workers and their processes. They are asked first, and killed after a grace period or a second
        Ctrl-C.
        """
        for worker in self.workers:
            if worker.runs():
                worker.process.send_signal(signal.SIGTERM)
        try:
            self.wait(_GRACE)
        finally:
            for worker in self.workers:
                if worker.runs():
                    worker.process.kill()
                worker.process.wait()
                processes.end_tagged(worker.tag, _KILL)


def reap(run: Run) -> None:
    """End the processes that an earlier attempt at the run left behind when it was killed."""
    for name in [*(assigned.name for assigned in run.agents), run.leader]:
        processes.end_tagged(run.tag_of(name), _KILL)


class Crew:
    """All workers and agents of a run."""

    def __init__(self, run: LiveRun) -> None:
        self.workers = WorkerCrew(run)
        self.agents = AgentCrew(run)

    def start(self) -> None:
        """Start all workers and agents."""
        self.workers.start()
        self.agents.start()

    def living(self) -> list[str]:
        """Return the names of the workers and agents that work or can be called."""
        return [*self.workers.living(), *self.agents.living()]

    def call(self, all_tasks: list[Task]) -> None:
        """Call the idle agents for which there is work."""
        self.agents.call(all_tasks)

    def untaken(self, all_tasks: list[Task]) -> list[Task]:
        """Return the ready tasks that nobody will claim. There are none while a worker is running, because workers
        claim by themselves.
        """
        return [] if self.workers.living() else self.agents.untaken(all_tasks)

    def fallen(self) -> list[str]:
        """Return a line for each worker or agent that failed since the last call of this method, with its name and the
        reason.
        """
        return [*self.workers.fallen(), *self.agents.fallen()]

    def wait(self, seconds: float) -> bool:
        """Wait until all workers and agents have ended, but no longer than *seconds*. Return whether they have."""
        return self.workers.wait(seconds) and self.agents.wait(seconds)

    def stop(self) -> None:
        """End all workers and agents that still work."""
        try:
            self.workers.stop()
        finally:
            self.agents.stop()


_PATIENCE = 60.0


def refuse_missing(run: Run, config: Config | None, surroundings: Surroundings) -> None:
    """Refuse a run if a client is missing, can't start, or does not take its model, permissions or directory.

    Raises:
        InvalidValue: The run is refused, or there is no such harness.
    """
    for name in run.harnesses:
        profile = profiles.get(name, config)
        if name != SHELL:
            _refuse_unable(profile, surroundings)
    refuse_unfit(run, config)


def refuse_unfit(run: Run, config: Config | None) -> None:
    """Refuse a run if a client does not take its agent's model or permissions, or the directory does not exist.

    Raises:
        InvalidValue: The run is refused. The error names the agent.
    """
    for agent in run.agents:
        profile = profiles.get(run.harness_of(agent), config)
        if profile.name == SHELL:
            _refuse_idle(agent)
        else:
            if model := agent.model or run.model:
                profiles.refuse_model(profile, model)
            if level := agent.permissions or run.permissions:
                permissions.refuse_missing(profile, level)
        place = os.path.join(run.variables[REPO], agent.cwd or "")
        if not os.path.isdir(place):
            raise errors.InvalidValue(
                f"{agent.name} can't work in {place}: there is no such directory", "Change its `cwd`."
            )


def _refuse_idle(agent: Assigned) -> None:
    """Refuse an agent that only runs commands if the workflow gives it a key that has no effect on such an agent."""
    for key, value in (("model", agent.model), ("permissions", agent.permissions), ("worktree", agent.worktree)):
        if value:
            raise errors.InvalidValue(
                f"{agent.name} only runs commands, so its `{key}` changes nothing",
                f"Give it a `harness`, use --harness, or leave out `{key}`.",
            )


def _refuse_unable(profile: Profile, surroundings: Surroundings) -> None:
    """Refuse a client that is not installed, or does not start."""
    name = profile.program
    program = which(name, path=surroundings.environ.get("PATH"))
    if program is None:
        raise errors.InvalidValue(
            f"the program {name} of the harness {profile.name} is not on PATH",
            "Install it, or choose another with --harness. Nothing was changed.",
        )
    if profile.name not in known.names():  # others need not know --version
        return
    environ = profile.environment(surroundings.environ, {})
    try:
        done = subprocess.run(
            [program, "--version"], env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise errors.InvalidValue(f"{name} can't be started: {error}", _TRY) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"exit status {done.returncode}"
        raise errors.InvalidValue(f"{name} can't be started: {why}", _TRY)


_TRY = "Try it by hand; nothing was changed."
