"""Crews of agents with a model behind them: each is started once with instructions, and resumed when there is work."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.agents import ending, interrupting, sessions, starting
from teams_cli.agents.sessions import Session
from teams_cli.agents.starting import StartRequest
from teams_cli.messages import messages
from teams_cli.runs import hand_offs
from teams_cli.runs.runs import SHELL, Assigned
from teams_cli.store import pace
from teams_cli.tasks import dependencies
from teams_cli.tasks.tasks import Task
from teams_cli.teams import roles, teams
from teams_cli.workflows.model import REPO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from teams_cli.runs.live import LiveRun

_INSTRUCTIONS = """\
You are {name}{kind} in the team {team}, which carries out the workflow "{workflow}": {description}

Work with the command `teams`; who you are and in which team is set. Until no task is ready for you:
1. Take the best one that is ready: teams claim-task --next (exit status 10: none is ready; then you are done for now)
2. Do what its prompt says, or its description or command, in this directory. What the tasks before it found:
   teams show-task ID
   Files for the others go to {work}
3. While it takes long: teams heartbeat
4. End it: teams update-task ID --status completed --result TEXT, or --status failed --result WHY
Messages to you come along with your work; answer with teams reply ID TEXT. When nothing is ready, end your turn: you
will be called when there is more.
"""
CALLS = 3
"""How often an agent is told of the same task."""
_MORE = "Tasks are ready: teams claim-task --next"


class CrewAgent:
    """One agent of the crew."""

    def __init__(self, name: str, session: Session | None) -> None:
        self.name = name
        self.session = session

    def how_it_ended(self) -> str:
        """What is known of its end."""
        return (self.session and (self.session.failure or self.session.outcome)) or "it was not started"


class AgentCrew:
    """The agents of a run that have a model, each started with its harness."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.ours = [assigned for assigned in run.record.agents if run.record.harness_of(assigned) != SHELL]
        self.names = [assigned.name for assigned in self.ours]
        self._missed: set[str] = set()
        self._calls: dict[tuple[str, str], int] = {}

    def start(self) -> None:
        """Start all agents; one that an earlier attempt started is resumed when there is work for it.

        Raises:
            TeamsError: One can't be started.
        """
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
            work=hand_offs.directory(self.run.store.root, self.run.team, "work"),
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
        """The names of the agents that work or can be called to."""
        return [name for name, session in self._sessions().items() if session and not _is_lost(session)]

    def fallen(self) -> list[CrewAgent]:
        """The agents that failed or were lost since this was asked last."""
        found = []
        for name, session in self._sessions().items():
            if (session is None or _is_lost(session)) and name not in self._missed:
                self._missed.add(name)
                found.append(CrewAgent(name, session))
        return found

    def call(self, found: Iterable[Task]) -> None:
        """Resume the agents that are idle while a task is ready for them; for each such task a few times at most."""
        ready = self._ready(found)
        team = self.run.load_team()
        for name, session in self._sessions().items():
            new = [task.id for task in ready if self._may_be_called(team, name, task)]
            if session and session.ended and not _is_lost(session) and new:
                for key in new:
                    self._calls[name, key] = self._calls.get((name, key), 0) + 1
                messages.send(self.run.store, self.run.team, self.run.leader, name, _MORE)

    def untaken(self, found: Iterable[Task]) -> list[Task]:
        """Tasks that are ready, and that nobody will take: all who could are idle, and were called often enough."""
        team = self.run.load_team()
        current = self._sessions()
        left = []
        for task in self._ready(found):
            able = [name for name in self.living() if self._can(team, name, task)]
            idle = [name for name in able if (session := current[name]) and session.ended]
            if able and idle == able and all(not self._may_be_called(team, name, task) for name in able):
                left.append(task)
        return left

    def _ready(self, found: Iterable[Task]) -> list[Task]:
        return [task for task in found if task.status == "pending" and not self._waits(task)]

    def _may_be_called(self, team: teams.Team, name: str, task: Task) -> bool:
        return self._calls.get((name, task.id), 0) < CALLS and self._can(team, name, task)

    def _can(self, team: teams.Team, name: str, task: Task) -> bool:
        member = team.member(name)
        return member is not None and roles.skills_of(member, team, self.run.leader.config).issuperset(task.require)

    def _waits(self, task: Task) -> bool:
        return bool(dependencies.open_blockers(task, dependencies.stored(self.run.store, self.run.team)))

    def wait(self, seconds: float) -> bool:
        """Wait until all agents have ended their turns, at most so long; whether they did."""
        return pace.sleep_until(self.run.store, self.run.team, self._all_ended, seconds)

    def _all_ended(self) -> bool:
        return all(session is None or session.ended for session in self._sessions().values())

    def stop(self) -> None:
        """End the agents that still work."""
        for name, session in self._sessions().items():
            if session and not session.ended:
                try:
                    interrupting.stop(self.run.store, self.run.team, self.run.leader, name)
                except errors.TeamsError:
                    continue


def _is_lost(session: Session) -> bool:
    """Whether nothing is to be expected of the agent any more."""
    return session.ended and session.outcome != "completed"
