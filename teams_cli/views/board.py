"""The board of a team: all that a person needs to see to look after it, in one document; computed, never stored."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import parse_rfc3339
from teams_cli.membership import shutdowns
from teams_cli.messages import messages
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.store.contract import Store
from teams_cli.tasks import changes, dependencies, landings, leases, plans, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import pages, settings, teams
from teams_cli.teams.caller import Caller
from teams_cli.teams.teams import Team
from teams_cli.views import agents, course

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.config import Config

_FINISHED = 100
_MESSAGES = 200
_DECIDED = 20


def board(store: Store, team: Team, config: Config, problems: list[errors.TeamsError]) -> dict[str, Any]:
    """The team as the person may see and change it.

    Of the tasks all that are not finished and the newest 100 that are; `moves` says for each the statuses that the
    person may bring it to: from `in_progress` by releasing it, else by updating it. Of the messages the newest 200, of
    the questions and shutdowns those that are open, of the plans those and the newest 20 that are decided, of the
    landings those that are not over and the newest 50 that are, of the pages their first lines.
    """
    found = [leases.current(store, team, task) for task in tasks.all_of(store, team.name, problems)]
    shown = of_interest(found)
    status_of = dependencies.among(found)
    person = Caller(HUMAN, config=config)
    recent = max(0, store.last(team.name, messages.MESSAGE) - _MESSAGES)
    return {
        "settings": {row["key"]: row["value"] for row in settings.effective(team, config)},
        "agents": agent_rows(store, team, problems),
        "tasks": [dependencies.to_document(task, status_of) for task in shown],
        "taskCounts": tasks.count(found),
        "moves": {task.id: changes.moves(team, person, task) for task in shown},
        "messages": [m.to_json() for m in store.read(team.name, messages.MESSAGE, None, recent, problems)],
        "questions": [questions.to_document(q) for q in questions.all_of(store, team.name, problems) if q.open],
        "plans": plans_of_interest(store, team, problems),
        "shutdowns": [s.to_document() for s in shutdowns.all_of(store, team, problems) if s.status == "requested"],
        "landings": landings.of_interest(store, team.name, problems),
        "pages": [page.to_row() for page in pages.all_of(store, team.name, problems)],
        "now": (now := teams.now(store)),
        "course": course.course(found, parse_rfc3339(now)),
    }


def agent_rows(store: Store, team: Team, problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """The agents as they are listed, with where those that were started work, and whether they are paused."""
    started = agents.sessions_by_agent(store, team, problems)
    rows = agents.rows_with(store, team, started, problems)
    for row in rows:
        session = started.get(row["name"])
        row["harness"] = session and session.harness
        row["worktree"] = session and session.worktree
        row["branch"] = session and session.branch
        row["sessionState"] = session and session.state
        row["paused"] = bool(session and (session.state == "paused" or session.pause_asked))
        row["failure"] = session and session.failure
        row["pauseReason"] = (session.pause_asked or session.failure) if session and row["paused"] else None
    return rows


def of_interest(found: list[Task], newest: int = _FINISHED) -> list[Task]:
    """All tasks that are not finished, and the newest that are."""
    finished = [task for task in found if task.status in tasks.FINISHED]
    finished.sort(key=lambda task: task.completed_at or task.updated_at or "")
    kept = {task.id for task in finished[-newest:]}
    return [task for task in found if task.status not in tasks.FINISHED or task.id in kept]


def plans_of_interest(store: Store, team: Team, problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """The plans that are to be decided, and the newest that are decided."""
    found = plans.all_of(store, team.name, problems)
    decided = sorted((plan for plan in found if plan.status != "proposed"), key=lambda plan: plan.decided_at or "")
    newest = {plan.id for plan in decided[-_DECIDED:]}
    return [plan.to_document() for plan in found if plan.status == "proposed" or plan.id in newest]
