"""The board of a team: documents with what a person needs to see to look after the team. They are computed, never
stored.
"""

from __future__ import annotations

from typing import Any

from teams_cli import errors
from teams_cli.agents import ending
from teams_cli.clock import parse_rfc3339
from teams_cli.membership import shutdowns
from teams_cli.messages import messages
from teams_cli.messages.messages import Message
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.questions.questions import Question
from teams_cli.records.records import key_of
from teams_cli.store.contract import Store
from teams_cli.tasks import changes, checks, dependencies, landings, leases, plans, reviews, tasks
from teams_cli.tasks.plans import Plan
from teams_cli.tasks.tasks import EDITABLE, Task
from teams_cli.teams import pages, presence, settings, teams
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import Team
from teams_cli.views import agents, course, receipts
from teams_cli.views.course import Graph

Problems = list[errors.TeamsError]
Rows = dict[str, Any]


FINISHED = 100
"""How many of the newest finished tasks a board shows."""
_MESSAGES = 200
_DECIDED = 20
_TASKS_OF_FRAME = 30
_MESSAGES_OF_FRAME = 10
_ORDER = ("in_progress", "in_review", "pending", "failed", "completed", "cancelled")
_RESULT = 200
_MESSAGE = 3000
_LATEST_STATUSES = 3


def board(store: Store, team: Team, config: Config, problems: Problems) -> dict[str, Any]:
    """Return the team as one document with all that the person may see and change.

    The document has all unfinished tasks and the newest 100 finished ones, the newest 200 messages, and the open
    questions and shutdown requests. It has the undecided plans and the newest 20 decided ones, the landings in progress
    and the newest ended ones, and the first lines of the pages.

    `moves` maps each task to the statuses that the person may give it. The person moves a task in progress by releasing
    it, and any other task by updating it.
    """
    all_tasks = _current_tasks(store, team, problems)
    shown = of_interest(all_tasks)
    status_of = dependencies.among(all_tasks)
    person = Caller(HUMAN, config=config)
    return {
        "settings": {row["key"]: row["value"] for row in settings.effective(team, config)},
        "agents": agent_rows(store, team, problems),
        "tasks": [dependencies.with_open(task.to_document(), status_of) for task in shown],
        "taskCounts": tasks.count(all_tasks),
        "moves": {task.id: changes.moves(team, person, task) for task in shown},
        "messages": [message.to_json() for message in _newest_messages(store, team.name, 0, _MESSAGES, problems)],
        "questions": [questions.to_document(question) for question in _open_questions(store, team.name, problems)],
        "plans": plans_of_interest(store, team, problems),
        "shutdowns": [request.to_document() for request in _open_shutdowns(store, team, problems)],
        "landings": landings.of_interest(store, team.name, problems),
        "pages": [page.to_row() for page in pages.all_of(store, team.name, problems)],
        "now": (now := teams.now(store)),
        "course": course.course(all_tasks, parse_rfc3339(now)),
    }


def _current_tasks(store: Store, team: Team, problems: Problems) -> list[Task]:
    return [leases.current(store, team, task) for task in tasks.all_of(store, team.name, problems)]


def _open_questions(store: Store, team: str, problems: Problems) -> list[Question]:
    return [question for question in questions.all_of(store, team, problems) if question.open]


def _open_shutdowns(store: Store, team: Team, problems: Problems) -> list[shutdowns.Shutdown]:
    return [request for request in shutdowns.all_of(store, team, problems) if request.status == "requested"]


def _newest_messages(store: Store, team: str, after: int, most: int, problems: Problems) -> list[Message]:
    """Return the newest messages with numbers above *after*, at most *most* of them, oldest first."""
    after = max(after, store.last(team, messages.MESSAGE) - most)
    return list(store.read(team, messages.MESSAGE, None, after, problems))


def agent_rows(store: Store, team: Team, problems: Problems) -> list[dict[str, Any]]:
    """Return the rows of `agents.agent_rows`, with fields about each agent's session, which are None if it has none."""
    started = {session.agent: session for session in ending.all_of(store, team.name, problems)}
    rows = agents.agent_rows(store, team, problems, started)
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


def of_interest(all_tasks: list[Task], newest: int = FINISHED) -> list[Task]:
    """Return the unfinished tasks, and those that finished last, as many as *newest* says."""
    finished = [task for task in all_tasks if task.status in tasks.FINISHED]
    finished.sort(key=lambda task: task.completed_at or task.updated_at or "")
    kept = {task.id for task in finished[-newest:]}
    return [task for task in all_tasks if task.status not in tasks.FINISHED or task.id in kept]


def plans_of_interest(store: Store, team: Team, problems: Problems) -> list[dict[str, Any]]:
    """Return the plans that wait for a decision, and the 20 that were decided last."""
    all_plans = plans.all_of(store, team.name, problems)
    decided = sorted((plan for plan in all_plans if plan.status != "proposed"), key=lambda plan: plan.decided_at or "")
    shown = {plan.id for plan in [*plans.open_ones(all_plans), *decided[-_DECIDED:]]}
    return [plan.to_document() for plan in all_plans if plan.id in shown]


def frame(store: Store, team_name: str, problems: Problems) -> dict[str, Any]:
    """Return one view of the team as a document: the progress of the work, what waits for the person, what failed, the
    agents, the most important tasks, and the newest messages.
    """
    team = teams.get(store, team_name)
    all_tasks = list(tasks.all_of(store, team_name, problems))
    open_questions = _open_questions(store, team_name, problems)
    proposed = plans.all_of(store, team_name, problems, only_open=True)
    plan_by_author = {plan.from_: plan.id for plan in proposed}
    awaited_tasks = agents.awaited_task_by_agent(all_tasks)
    # The person's own messages, and those that ask for a receipt, are shown with how far they got.
    states = {row["id"]: row for row in receipts.states_of(store, team, HUMAN, _MESSAGES_OF_FRAME)}
    newest = _newest_messages(store, team_name, 0, _MESSAGES_OF_FRAME, problems)
    return {
        "team": team.name,
        "state": team.state,
        "leader": team.leader,
        "course": course.course(all_tasks, parse_rfc3339(teams.now(store))),
        "waiting": _for_person(open_questions, proposed, agents.letters(store, team_name, problems), all_tasks),
        "failed": agents.failures(Graph(all_tasks)),
        "agents": [
            _with_trouble(row, open_questions, plan_by_author, awaited_tasks)
            for row in agent_rows(store, team, problems)
        ],
        "taskCounts": tasks.count(all_tasks),
        "tasks": _foremost(all_tasks),
        "messages": [{**message.to_json(), **states.get(message.id, {})} for message in newest],
    }


def _with_trouble(
    row: dict[str, Any], open_questions: list[Question], plan_by_author: dict[str, str], awaited_tasks: dict[str, str]
) -> dict[str, Any]:
    """Return the agent's *row* with its `trouble` and the reason, `why`. Both are None if the agent has no trouble."""
    trouble, why = agents.trouble_of(row, open_questions, plan_by_author, awaited_tasks)
    return {**row, "trouble": trouble, "why": why}


def _for_person(
    open_questions: list[Question], proposed: list[Plan], letters: list[Message], all_tasks: list[Task]
) -> list[dict[str, Any]]:
    """Return a row for each question, plan, review and message that waits for the person, in this order. Among the
    questions, those whose answers nobody waits for any more come last.
    """
    to_answer = sorted((q for q in open_questions if HUMAN in q.waiting_for), key=lambda q: q.is_abandoned)
    return [
        *(
            _waiting_row("question", q.id, q.from_, q.question, expiresAt=q.expires_at, leftAlone=q.is_abandoned)
            for q in to_answer
        ),
        *(_waiting_row("plan", plan.id, plan.from_, plan.plan) for plan in proposed),
        *(_waiting_row("review", t.id, t.owner or "", f"to review: {t.title}") for t in reviews.for_person(all_tasks)),
        *(_waiting_row("message", message.id, message.from_, message.message) for message in letters),
    ]


def _waiting_row(kind: str, key: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "id": key, "from": sender, "text": text, **more}


def _foremost(all_tasks: list[Task]) -> list[dict[str, Any]]:
    """Return the 30 most important tasks as documents. They are sorted by status (see `_ORDER`); blocked tasks come
    after ready ones, and tasks that finished last come before those that finished earlier.
    """
    status_of = dependencies.among(all_tasks)
    unfinished = [task for task in all_tasks if task.status not in tasks.FINISHED]
    finished = [task for task in all_tasks if task.status in tasks.FINISHED]
    finished.sort(key=lambda task: task.completed_at or "", reverse=True)

    def rank(task: Task) -> tuple[int, bool]:
        is_blocked = task.status == "pending" and bool(dependencies.open_blockers(task, status_of))
        return _ORDER.index(task.status), is_blocked

    foremost = sorted([*unfinished, *finished], key=rank)[:_TASKS_OF_FRAME]
    return [dependencies.with_open(task.to_document(), status_of) for task in foremost]


def rows(store: Store, team: Team, config: Config, finished: int, problems: Problems) -> dict[str, Rows]:
    """Return what the person may see and change in the team, as tables. Each table maps keys to rows.

    The table of tasks has all unfinished tasks, the newest finished ones (as many as *finished*), and older ones that
    failed or block others. It lacks the descriptions of tasks, and the table of agents lacks older statuses: a client
    requests these when somebody opens the task or the agent.
    """
    all_tasks = _current_tasks(store, team, problems)
    open_questions = _open_questions(store, team.name, problems)
    shown_plans = plans_of_interest(store, team, problems)
    awaited_tasks = agents.awaited_task_by_agent(all_tasks)
    plan_by_author = {plan["from"]: plan["id"] for plan in shown_plans if plan["status"] == "proposed"}
    rows_of_agents = agent_rows(store, team, problems)
    for row in rows_of_agents:
        row["statusHistory"] = row["statusHistory"][-_LATEST_STATUSES:]
    return {
        "tasks": _cards(store, team, config, Graph(all_tasks), finished),
        "agents": {
            row["name"]: _with_trouble(row, open_questions, plan_by_author, awaited_tasks) for row in rows_of_agents
        },
        "questions": {question.id: questions.to_document(question) for question in open_questions},
        "plans": {plan["id"]: plan for plan in shown_plans},
        "shutdowns": {request.id: request.to_json() for request in _open_shutdowns(store, team, problems)},
        "mail": {message.id: letter(message) for message in agents.letters(store, team.name, problems)},
        "sent": {row["id"]: row for row in receipts.states_of(store, team, HUMAN, _MESSAGES)},
        "landings": {landing["id"]: landing for landing in landings.of_interest(store, team.name, problems)},
        "pages": {page.key: page.to_row() for page in pages.all_of(store, team.name, problems)},
        "facts": {
            "settings": {row["key"]: row["value"] for row in settings.effective(team, config)},
            "course": course.course(all_tasks, parse_rfc3339(teams.now(store))),
            "taskCounts": tasks.count(all_tasks),
        },
    }


def _cards(store: Store, team: Team, config: Config, graph: Graph, finished: int) -> Rows:
    """Return the cards of tasks by id: unfinished tasks, the newest finished ones (as many as *finished*), and older
    ones that failed or block others.
    """
    agent_of = {agent.agent: agent for agent, _ in store.scan(team.name, presence.AGENT, [])}
    person = Caller(HUMAN, config=config)
    all_tasks = list(graph.tasks.values())
    waiting = graph.waiting_counts()
    failed = {task.id for task in all_tasks if task.status == "failed"}
    shown = {task.id for task in of_interest(all_tasks, finished)} | failed.union(graph.dead_ends)
    cards = {}
    for task in all_tasks:
        if task.id in shown:
            cards[task.id] = _card(task, graph, waiting.get(task.id, 0), changes.moves(team, person, task))
            owner = agent_of.get(task.owner or "") if task.status == "in_progress" else None
            if owner:  # the files that it changes, and with whose work these conflict
                files_of_owner = {"changing": owner.changing, "conflicts": owner.conflicts}
                cards[task.id] |= {key: value for key, value in files_of_owner.items() if value}
    return cards


def _card(task: Task, graph: Graph, waiting: int, moves: list[str]) -> dict[str, Any]:
    """Return the fields of a task that the board shows. Empty fields are left out, except for `blocked`. *waiting* is
    the number of tasks that wait for this one, and *moves* are the statuses that the person may give it.
    """
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
        "evidence": [attachment.to_json() for attachment in task.evidence or ()],
        "landing": task.landing,
        "claim": task.claim,
        "leaseExpiresAt": task.lease_expires_at,
        "createdAt": task.created_at,
        "updatedAt": task.updated_at,
        "completedAt": task.completed_at,
        "result": (task.result or "")[:_RESULT],
        "reason": agents.reason(task) if task.status == "failed" else None,
        "moves": moves,
        "work": agents.spans_of_work(task),
    }
    return {key: value for key, value in row.items() if value or key == "blocked"}


def letter(message: Message, whole: bool = False) -> dict[str, Any]:
    """Return the message as a document. Unless *whole* is set, a long text is cut, and `length` is its full length."""
    document = message.to_json()
    if not whole and len(message.message) > _MESSAGE:
        document.update(message=message.message[:_MESSAGE], length=len(message.message))
    return document


def newest(store: Store, team: str, after: int, most: int, problems: Problems) -> list[dict[str, Any]]:
    """Return the newest *most* messages with numbers above *after* as documents. Long messages are cut."""
    return [letter(message) for message in _newest_messages(store, team, after, most, problems)]


def older(store: Store, team: str, before: int, most: int, problems: Problems) -> list[Message]:
    """Return the newest messages with numbers below *before*, at most *most* of them."""
    return store.fetch(team, messages.MESSAGE, range(max(1, before - most), before), problems)
