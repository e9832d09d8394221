"""The board of a team: all that a person needs to see to look after it, in one document; computed, never stored."""

from __future__ import annotations

from teams_cli import (
    leases,
    messages,
    plans,
    questions,
    sessions,
    settings,
    shutdowns,
    task_changes,
    tasks,
    teams,
    views,
)
from teams_cli.caller import Caller
from teams_cli.names import HUMAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.config import Config
    from teams_cli.errors import TeamsError
    from teams_cli.store.contract import Store
    from teams_cli.tasks import Task
    from teams_cli.teams import Team

_FINISHED = 100
_MESSAGES = 200
_DECIDED = 20


def board(store: Store, team: Team, config: Config, problems: list[TeamsError]) -> dict[str, Any]:
    """The team as the person may see and change it.

    Of the tasks all that are not finished and the newest 100 that are; `moves` says for each the statuses that the
    person may bring it to: from `in_progress` by releasing it, else by updating it. Of the messages the newest 200, of
    the questions and shutdowns those that are open, of the plans those and the newest 20 that are decided.
    """
    found = [leases.current(store, team, task) for task in tasks.everything(store, team.name, problems)]
    shown = _of_interest(found)
    done = {task.id for task in found if task.status == "completed"}
    person = Caller(HUMAN, config=config)
    recent = max(0, store.last(team.name, messages.MESSAGE) - _MESSAGES)
    return {
        "settings": {row["key"]: row["value"] for row in settings.effective(team, config)},
        "agents": agent_rows(store, team, problems),
        "tasks": [tasks.as_shown(task, [key for key in task.blocked_by if key not in done]) for task in shown],
        "taskCounts": {status: sum(task.status == status for task in found) for status in tasks.STATUSES},
        "moves": {task.id: task_changes.moves(team, person, task) for task in shown},
        "messages": [m.to_json() for m in store.read(team.name, messages.MESSAGE, None, recent, problems)],
        "questions": [questions.as_shown(q) for q in questions.of_team(store, team.name, problems) if q.open],
        "plans": _plans(store, team, problems),
        "shutdowns": [s.to_json() for s in shutdowns.listing(store, team, problems) if s.status == "requested"],
        "now": teams.now(store),
    }


def agent_rows(store: Store, team: Team, problems: list[TeamsError]) -> list[dict[str, Any]]:
    """The agents as they are listed, with where those that were started work, and whether they are paused."""
    rows = views.agent_rows(store, team, problems)
    for row in rows:
        session = sessions.find(store, team.name, row["name"]) if "session" in row else None
        row["harness"] = session and session.harness
        row["worktree"] = session and session.worktree
        row["branch"] = session and session.branch
        row["sessionState"] = session and session.state
        row["paused"] = bool(session and (session.state == "paused" or session.pause_asked))
        row["pauseReason"] = (session.pause_asked or session.failure) if session and row["paused"] else None
    return rows


def _of_interest(found: list[Task]) -> list[Task]:
    finished = [task for task in found if task.status in tasks.FINISHED]
    finished.sort(key=lambda task: task.completed_at or task.updated_at or "")
    newest = {task.id for task in finished[-_FINISHED:]}
    return [task for task in found if task.status not in tasks.FINISHED or task.id in newest]


def _plans(store: Store, team: Team, problems: list[TeamsError]) -> list[dict[str, Any]]:
    found = plans.listing(store, team.name, problems)
    decided = sorted((plan for plan in found if plan.status != "proposed"), key=lambda plan: plan.decided_at or "")
    newest = {plan.id for plan in decided[-_DECIDED:]}
    return [plan.to_json() for plan in found if plan.status == "proposed" or plan.id in newest]
