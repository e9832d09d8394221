"""The board of a team: all that a person needs to see to look after it, in documents; computed, never stored."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import parse_rfc3339
from teams_cli.membership import shutdowns
from teams_cli.messages import messages
from teams_cli.messages.messages import Message
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.questions.questions import Question
from teams_cli.records.records import key_of
from teams_cli.store.contract import Store
from teams_cli.tasks import changes, checks, dependencies, landings, leases, plans, tasks
from teams_cli.tasks.plans import Plan
from teams_cli.tasks.tasks import EDITABLE, Task
from teams_cli.teams import pages, presence, settings, teams
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import Team
from teams_cli.views import agents, course, reach, trouble
from teams_cli.views.course import Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.config import Config

    Rows = dict[str, Any]


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


_TASKS = 30
_MESSAGES_SHOWN = 10
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
    far = {row["id"]: row for row in reach.states_of(store, team, HUMAN, _MESSAGES_SHOWN)}
    start = max(0, store.last(team.name, messages.MESSAGE) - _MESSAGES_SHOWN)
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
    for row in agent_rows(store, team, problems):
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
    proposed = plans_of_interest(store, team, problems)
    missed = trouble.missed(found)
    deciding = {each["from"]: each["id"] for each in proposed if each["status"] == "proposed"}
    waiting = [shut for shut in shutdowns.all_of(store, team, problems) if shut.status == "requested"]
    return {
        "tasks": _tasks(store, team, config, graph, finished),
        "agents": {row["name"]: _agent(row, asked, deciding, missed) for row in agent_rows(store, team, problems)},
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


def _tasks(store: Store, team: Team, config: Config, graph: Graph, finished: int) -> Rows:
    seen = {agent.agent: agent for agent, _ in store.scan(team.name, presence.AGENT, [])}
    person = Caller(HUMAN, config=config)
    found = list(graph.tasks.values())
    waiting = graph.waiting_counts()
    failed = {task.id for task in found if task.status == "failed"}
    shown = {task.id for task in of_interest(found, finished)} | failed.union(graph.dead_ends)
    return {
        task.id: _card(task, graph, waiting.get(task.id, 0), changes.moves(team, person, task))
        | (_in_work(seen[task.owner]) if task.status == "in_progress" and task.owner in seen else {})
        for task in found
        if task.id in shown
    }


def _in_work(agent: presence.Agent) -> dict[str, Any]:
    """What the owner of a task in progress changes, and with whose work that conflicts; what is empty is left out."""
    return {key: value for key in ("changing", "conflicts") if (value := getattr(agent, key))}


def _card(task: Task, graph: Graph, waiting: int, moves: list[str]) -> dict[str, Any]:
    """The fields of the task that its card shows; empty ones are left out."""
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
        "after": task.after,
        "inGrace": task.in_grace,
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
        "work": trouble.spans_of_work(task),
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
