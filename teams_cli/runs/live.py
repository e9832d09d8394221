"""A run that is going on, as the process that leads it knows it."""

from __future__ import annotations

from teams_cli.teams import teams
from teams_cli.workflows.model import Workflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.runs.runs import Run
    from teams_cli.runs.surroundings import Surroundings
    from teams_cli.store.contract import Store
    from teams_cli.teams.caller import Caller
    from teams_cli.teams.teams import Team


class LiveRun:
    """A run that this process carries out: its *team*, its *record*, who leads it, and in which *surroundings*."""

    def __init__(self, store: Store, team: str, record: Run, leader: Caller, surroundings: Surroundings) -> None:
        self.store = store
        self.team = team
        self.record = record
        self.leader = leader
        self.surroundings = surroundings
        self.workflow = Workflow.model_validate(record.definition)

    @property
    def about(self) -> str:
        """What the workflow is for, in a line."""
        return " ".join(self.workflow.description.split())

    def load_team(self) -> Team:
        """The team, as it is now."""
        return teams.get(self.store, self.team)

    def environment_of(self, agent: str, kind: str) -> dict[str, str]:
        """The environment of that agent's processes, by which all of them can be found."""
        return self.surroundings.of_agent(self.store, self.team, agent, kind, self.record.tag_of(agent))
