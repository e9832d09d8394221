"""Crews of agents with a model behind them: each is started once with instructions, and resumed when there is work."""

from __future__ import annotations

from teams_cli import conditions, interruptions, launching, messages, roles, sessions, tasks, teams
from teams_cli.caller import Caller
from teams_cli.errors import TeamsError
from teams_cli.launching import Order
from teams_cli.runs import hand_offs
from teams_cli.workflows.model import REPO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from teams_cli.runs.records import Assigned, Run
    from teams_cli.runs.surroundings import Surroundings
    from teams_cli.sessions import Session
    from teams_cli.store.contract import Store
    from teams_cli.tasks import Task

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
_MORE = "Tasks are ready: teams claim-task --next"


class Member:
    """One agent of the crew."""

    def __init__(self, name: str, session: Session | None) -> None:
        self.name = name
        self.session = session

    def how_it_ended(self) -> str:
        """What is known of its end."""
        return (self.session and (self.session.failure or self.session.outcome)) or "it was not started"


class AgentCrew:
    """The agents of a run, started with a harness."""

    def __init__(self, harness: str, leader: Caller, about: str) -> None:
        self.harness = harness
        self.leader = leader
        self.about = " ".join(about.split())
        self._missed: set[str] = set()
        self._called_for: dict[str, set[str]] = {}

    def start(self, store: Store, team: str, run: Run, surroundings: Surroundings) -> None:
        """Start all agents; one that an earlier attempt started is resumed when there is work for it.

        Raises:
            TeamsError: One can't be started.
        """
        self.store, self.team, self.surroundings = store, team, surroundings
        self.names = [assigned.name for assigned in run.agents]
        for assigned in run.agents:
            if sessions.find(store, team, assigned.name) is None:
                launching.run_agent(store, team, self.leader, self._order(run, assigned))

    def _order(self, run: Run, assigned: Assigned) -> Order:
        kind = assigned.type or assigned.role
        prompt = _INSTRUCTIONS.format(
            name=assigned.name,
            kind=f" ({kind})" if kind else "",
            team=self.team,
            workflow=run.workflow,
            description=self.about,
            work=hand_offs.directory(self.store.root, self.team, "work"),
        )
        return Order(
            prompt,
            agent=assigned.name,
            description=f"{run.workflow}: {kind or 'worker'}",
            harness=self.harness,
            type=assigned.type or assigned.role,
            directory=run.variables[REPO],
            environ=self.surroundings.environ,
            variables={**run.variables, "PYTHON": self.surroundings.python},
        )

    def _sessions(self) -> dict[str, Session | None]:
        return {name: sessions.current(self.store, self.team, name) for name in self.names}

    def living(self) -> list[str]:
        """The names of the agents that work or can be called to."""
        return [name for name, session in self._sessions().items() if session and not _is_lost(session)]

    def fallen(self) -> list[Member]:
        """The agents that failed or were lost since this was asked last."""
        found = []
        for name, session in self._sessions().items():
            if (session is None or _is_lost(session)) and name not in self._missed:
                self._missed.add(name)
                found.append(Member(name, session))
        return found

    def call(self, found: Iterable[Task]) -> None:
        """Resume the agents that are idle while a task is ready for them; for each such task once."""
        ready = {task.id for task in found if task.status == "pending" and not self._waits(task)}
        team = teams.load(self.store, self.team)
        for name, session in self._sessions().items():
            new = {key for key in ready - self._called_for.get(name, set()) if self._can(team, name, key)}
            if session and session.ended and not _is_lost(session) and new:
                self._called_for.setdefault(name, set()).update(new)
                messages.send(self.store, self.team, self.leader, name, _MORE)
                launching.wake(
                    self.store, team, self.leader.config, [name], self.leader.name, self.surroundings.environ
                )

    def _can(self, team: teams.Team, name: str, key: str) -> bool:
        member = team.member(name)
        task = tasks.load(self.store, self.team, key)
        return member is not None and roles.skills_of(member, team, self.leader.config).issuperset(task.require)

    def _waits(self, task: Task) -> bool:
        return bool(tasks.open_blockers(self.store, self.team, task))

    def wait(self, seconds: float) -> bool:
        """Wait until all agents have ended their turns, at most so long; whether they did."""
        return conditions.sleep_until(self.store, self.team, self._all_ended, seconds)

    def _all_ended(self) -> bool:
        return all(session is None or session.ended for session in self._sessions().values())

    def stop(self) -> None:
        """End the agents that still work."""
        for name, session in self._sessions().items():
            if session and not session.ended:
                try:
                    interruptions.stop(self.store, self.team, self.leader, name)
                except TeamsError:
                    continue


def _is_lost(session: Session) -> bool:
    """Whether nothing is to be expected of the agent any more."""
    return session.ended and session.outcome != "completed"
