"""Signs of life: whatever an agent does renews the leases of its tasks, with a write only now and then."""

from __future__ import annotations

from teams_cli.store.contract import Store
from teams_cli.store.retrying import update, upsert
from teams_cli.tasks import leases, tasks
from teams_cli.tasks.tasks import IN_PROGRESS, TASK, Task
from teams_cli.teams import presence, teams
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Team

_PART = presence.RENEWED_AFTER


def renew(
    store: Store, team: Team, agent: Agent, reading: bool = False, refused: bool = False
) -> tuple[Agent, list[Task]]:
    """Note that the agent is alive, and renew the leases of its tasks, unless both was done a while ago: what is known
    of it then, and those of its tasks whose lease was about to end. Of who only looks nothing is noted unless it has a
    task; of who was refused, unless a quarter of a lease of its tasks is gone.
    """
    if presence.renewed_lately(store, team, agent):
        return agent, []
    own = [task for task in tasks.labelled(store, team.name, IN_PROGRESS) if task.owner == agent.agent]
    if (reading and not own) or (refused and not any(_is_due(store, team, task) for task in own)):
        return agent, []
    found = [_renewed(store, team, task) for task in own]
    return _noted(store, team.name, agent.agent), [task for task in found if task is not None]


def _renewed(store: Store, team: Team, seen: Task) -> Task | None:
    """Renew the lease of a task; the task if it was about to end, and was not over."""
    name, length = seen.owner, leases.length(team)

    def change(task: Task) -> Task:
        if task.owner != name or task.status != IN_PROGRESS or leases.over(store, team, task):
            return task
        return leases.leased(store, team, task) if _is_due(store, team, task) else task

    before, task = update(store, team.name, TASK, seen.id, change)
    leases.end_grace(store, team, before, task)
    return before if before is not task and leases.left(store, before) < length * _PART else None


def _is_due(store: Store, team: Team, task: Task) -> bool:
    """Whether so much of its lease is gone that it is worth a write."""
    return leases.left(store, task) < leases.length(team) * (1 - _PART)


def _noted(store: Store, team: str, name: str) -> Agent:
    now = teams.now(store)

    def change(agent: Agent) -> Agent:
        return agent.having(last_seen=now, renewed_at=now, host=store.host or None)

    return upsert(store, team, presence.AGENT.also_closed, name, presence.Agent(agent=name), change)[1]
