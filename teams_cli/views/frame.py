"""Views: what a team looks like at this moment, to be listed or watched; computed, never stored."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import parse_rfc3339
from teams_cli.messages import messages
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.questions.questions import Question
from teams_cli.store.contract import Store
from teams_cli.tasks import dependencies, plans, tasks
from teams_cli.tasks.plans import Plan
from teams_cli.tasks.tasks import Task
from teams_cli.teams import teams
from teams_cli.teams.teams import Team
from teams_cli.views import board, course, reach, trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TASKS = 30
_MESSAGES = 10
_ORDER = ("in_progress", "in_review", "pending", "failed", "completed", "cancelled")


def frame(store: Store, team_name: str, problems: list[errors.TeamsError]) -> dict[str, Any]:
    """The team at a glance: the course of the work, what waits for the person, what failed, its agents, how many tasks
    are where and those that matter most, the newest messages.
    """
    team = teams.get(store, team_name)
    found = list(tasks.all_of(store, team_name, problems))
    asked = [question for question in questions.all_of(store, team_name, problems) if question.open]
    proposed = list(plans.all_of(store, team_name, problems, only_open=True))
    return {
        "team": team.name,
        "state": team.state,
        "leader": team.leader,
        "course": course.course(found, parse_rfc3339(teams.now(store))),
        "waiting": trouble.for_person(asked, proposed, trouble.letters(store, team_name, problems), found),
        "failed": trouble.failures(course.Graph(found)),
        "agents": _agents(store, team, asked, proposed, found, problems),
        "taskCounts": tasks.count(found),
        "tasks": _foremost(found),
        "messages": _newest(store, team, problems),
    }


def _newest(store: Store, team: Team, problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """The newest messages; those of the person and those to acknowledge with how far they got."""
    far = {row["id"]: row for row in reach.states_of(store, team, HUMAN, _MESSAGES)}
    start = max(0, store.last(team.name, messages.MESSAGE) - _MESSAGES)
    found = store.read(team.name, messages.MESSAGE, None, start, problems)
    return [{**message.to_json(), **far.get(message.id, {})} for message in found]


def _agents(
    store: Store,
    team: Team,
    asked: list[Question],
    proposed: list[Plan],
    found: list[Task],
    problems: list[errors.TeamsError],
) -> list[dict[str, Any]]:
    """The agents, each with what is wrong with it, and why."""
    deciding = {plan.from_: plan.id for plan in proposed}
    had = trouble.missed(found)
    rows = []
    for row in board.agent_rows(store, team, problems):
        word, why = trouble.of_agent(row, asked, deciding, had)
        rows.append({**row, "trouble": word, "why": why})
    return rows


def _foremost(found: list[Task]) -> list[dict[str, Any]]:
    """The tasks in progress, then those to do, what is ready before what waits, then those that ended last."""
    status_of = dependencies.among(found)
    by_end = sorted(found, key=lambda task: task.completed_at or "", reverse=True)
    place = {task.id: number for number, task in enumerate(by_end)}
    place.update((task.id, number) for number, task in enumerate(found) if task.status not in tasks.FINISHED)

    def rank(task: Task) -> tuple[int, bool, int]:
        waits = task.status == "pending" and bool(dependencies.open_blockers(task, status_of))
        return _ORDER.index(task.status), waits, place[task.id]

    return [dependencies.to_document(task, status_of) for task in sorted(found, key=rank)[:_TASKS]]
