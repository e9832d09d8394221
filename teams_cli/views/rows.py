"""The board as rows, each small and by itself, so that a change needs only a few of them."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import parse_rfc3339
from teams_cli.membership import shutdowns
from teams_cli.messages import messages
from teams_cli.messages.messages import Message
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.records.records import key_of
from teams_cli.store.contract import Store
from teams_cli.tasks import changes, checks, landings, leases, tasks
from teams_cli.tasks.tasks import EDITABLE, Task
from teams_cli.teams import pages, settings, teams
from teams_cli.teams.caller import Caller
from teams_cli.teams.teams import Team
from teams_cli.views import board, course, reach, trouble
from teams_cli.views.course import Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.config import Config

    Rows = dict[str, Any]

FINISHED = 100
_RESULT = 200
_MESSAGE = 3000
_LATEST_STATUSES = 3
_SENT = 200
"""Messages, the newest, of which the person's own and those to acknowledge are told with how far they got."""


def rows(store: Store, team: Team, config: Config, finished: int, problems: list[errors.TeamsError]) -> dict[str, Rows]:
    """The team as the person may see and change it, as tables of rows by key; of the finished tasks the newest,
    and those that failed or hold up others.

    The texts of tasks and the older statuses of agents are left out, for whoever opens one to ask for.
    """
    found = [leases.current(store, team, task) for task in tasks.all_of(store, team.name, problems)]
    graph = course.Graph(found)
    asked = [question for question in questions.all_of(store, team.name, problems) if question.open]
    proposed = board.plans_of_interest(store, team, problems)
    missed = trouble.missed(found)
    deciding = {each["from"]: each["id"] for each in proposed if each["status"] == "proposed"}
    waiting = [shut for shut in shutdowns.all_of(store, team, problems) if shut.status == "requested"]
    return {
        "tasks": _tasks(team, config, graph, finished),
        "agents": {
            row["name"]: _agent(row, asked, deciding, missed) for row in board.agent_rows(store, team, problems)
        },
        "questions": {question.id: questions.to_document(question) for question in asked},
        "plans": {each["id"]: each for each in proposed},
        "shutdowns": {shut.id: shut.to_json() for shut in waiting},
        "mail": {each.id: letter(each) for each in trouble.letters(store, team.name, problems)},
        "sent": {each["id"]: each for each in reach.states_of(store, team, HUMAN, _SENT)},
        "landings": {each["id"]: each for each in landings.of_interest(store, team.name, problems)},
        "pages": {page.key: page.to_row() for page in pages.all_of(store, team.name, problems)},
        "facts": {
            "settings": {row["key"]: row["value"] for row in settings.effective(team, config)},
            "course": course.course(found, parse_rfc3339(teams.now(store))),
            "taskCounts": tasks.count(found),
        },
    }


def _tasks(team: Team, config: Config, graph: Graph, finished: int) -> Rows:
    person = Caller(HUMAN, config=config)
    found = list(graph.tasks.values())
    waiting = graph.waiting_counts()
    failed = {task.id for task in found if task.status == "failed"}
    shown = {task.id for task in board.of_interest(found, finished)} | failed.union(graph.dead_ends)
    return {
        task.id: _card(task, graph, waiting.get(task.id, 0), changes.moves(team, person, task))
        for task in found
        if task.id in shown
    }


def _card(task: Task, graph: Graph, waiting: int, moves: list[str]) -> dict[str, Any]:
    """What is seen of the task without opening it; what is empty is left out."""
    blockers = graph.open_blockers.get(task.id, [])
    check = checks.of(task)
    row: dict[str, Any] = {
        "id": task.id,
        **{key_of(key): getattr(task, key) for key in EDITABLE if key != "description"},
        "status": task.status,
        "owner": task.owner,
        "blocked": bool(blockers),
        "blockedBy": task.blocked_by,
        "openBlockers": blockers,
        "blockers": {key: graph.tasks[key].status if key in graph.tasks else "missing" for key in blockers},
        "heldUp": task.id in graph.held_up,
        "waiting": waiting,
        "require": task.require,
        "planRequired": task.plan_required,
        "touches": task.touches,
        "checked": check and check.brief(),
        "reviewed": task.reviewed,
        "evidence": [one.to_json() for one in task.evidence or ()],
        "landing": task.landing,
        "claim": task.claim,
        "leaseExpiresAt": task.lease_expires_at,
        "createdAt": task.created_at,
        "updatedAt": task.updated_at,
        "completedAt": task.completed_at,
        "result": (task.result or "")[:_RESULT],
        "reason": trouble.reason(task) if task.status == "failed" else None,
        "moves": moves,
        "work": trouble.work(task),
    }
    return {key: value for key, value in row.items() if value or key == "blocked"}


def _agent(
    row: dict[str, Any], asked: list[questions.Question], deciding: dict[str, str], missed: dict[str, str]
) -> dict[str, Any]:
    """The agent's row, with what is wrong with it, if anything, and why; of its statuses the newest."""
    word, why = trouble.of_agent(row, asked, deciding, missed)
    return {**row, "statusHistory": row["statusHistory"][-_LATEST_STATUSES:], "trouble": word, "why": why}


def letter(message: Message, whole: bool = False) -> dict[str, Any]:
    """The message; of a long one the beginning, and how long it is, unless the *whole* is wanted."""
    document = message.to_json()
    if not whole and len(message.message) > _MESSAGE:
        document.update(message=message.message[:_MESSAGE], length=len(message.message))
    return document


def newest(store: Store, team: str, after: int, most: int, problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """The messages after that one, at most so many of the newest."""
    after = max(after, store.last(team, messages.MESSAGE) - most)
    return [letter(message) for message in store.read(team, messages.MESSAGE, None, after, problems)]


def older(store: Store, team: str, before: int, most: int, problems: list[errors.TeamsError]) -> list[Message]:
    """The messages before that one, at most so many of the newest of them."""
    return store.fetch(team, messages.MESSAGE, range(max(1, before - most), before), problems)
