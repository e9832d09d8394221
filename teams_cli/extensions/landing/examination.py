"""What `teams doctor` finds out about the landings of a team."""

from __future__ import annotations

from teams_cli.tasks import landings, tasks
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from teams_cli.doctor.teams import Problem
    from teams_cli.store.contract import Store
    from teams_cli.teams.teams import Team


def unqueued(store: Store, team: Team, fix: bool) -> Iterator[Problem]:
    """Yield a problem for each completed task whose landing was not queued. The command that completed the task was
    killed before it could queue the landing.
    """
    known = {task.id: task for task in tasks.all_of(store, team.name, [])}
    for agent, _ in store.scan(team.name, presence.AGENT, []):
        task = known.get(agent.completing or "")
        if task and task.status == "completed" and landings.last_of(store, team.name, task.id) is None:
            what = f"{task.id} is completed, but it was not queued to land: the command was killed"
            yield "warning", what, f"teams land {task.id}"
