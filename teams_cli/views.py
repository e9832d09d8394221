"""Views: what a team looks like at this moment, to be listed or watched; computed, never stored."""

from __future__ import annotations

from teams_cli import agents, messages, sessions, tasks, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.errors import TeamsError
    from teams_cli.store.contract import Store
    from teams_cli.tasks import Task
    from teams_cli.teams import Team

_TASKS = 30
_MESSAGES = 10
_ORDER = ("in_progress", "pending", "failed", "completed", "cancelled")


def agent_rows(store: Store, team: Team, problems: list[TeamsError]) -> list[dict[str, Any]]:
    """All members that did not leave, in the order of joining, with what is known of those that were started."""
    started = {session.agent: session for session in sessions.of_team(store, team.name, problems)}
    working = {task.owner or "" for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS)}
    working |= {name for name, session in started.items() if not session.ended}
    rows = agents.listing(store, team, working, problems)
    for row in rows:
        if row["name"] in started:
            sessions.describe(started[row["name"]], row)
    return rows


def frame(store: Store, team_name: str, problems: list[TeamsError]) -> dict[str, Any]:
    """The team at a glance: its agents, how many tasks are where and those that matter most, the newest messages."""
    team = teams.load(store, team_name)
    found = list(tasks.everything(store, team_name, problems))
    recent = store.read(
        team_name, messages.MESSAGE, None, max(0, store.last(team_name, messages.MESSAGE) - _MESSAGES), problems
    )
    return {
        "team": team.name,
        "state": team.state,
        "leader": team.leader,
        "agents": agent_rows(store, team, problems),
        "taskCounts": {status: sum(task.status == status for task in found) for status in tasks.STATUSES},
        "tasks": _foremost(found),
        "messages": [message.to_json() for message in recent],
    }


def _foremost(found: list[Task]) -> list[dict[str, Any]]:
    """The tasks in progress, then those to do, then those that ended last."""
    done = {task.id for task in found if task.status == "completed"}
    by_age = {task.id: place for place, task in enumerate(found)}

    def rank(task: Task) -> tuple[int, int]:
        newest_first = task.status in tasks.FINISHED
        return _ORDER.index(task.status), -by_age[task.id] if newest_first else by_age[task.id]

    return [
        tasks.as_shown(task, [key for key in task.blocked_by if key not in done])
        for task in sorted(found, key=rank)[:_TASKS]
    ]
