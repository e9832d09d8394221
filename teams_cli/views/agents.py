"""The agents of a team as lists show them, with their state, tasks and trouble; and the failures and messages that need
a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from teams_cli import errors
from teams_cli.agents import ending
from teams_cli.agents.seats import terminals
from teams_cli.agents.sessions import Session, may_have_ended
from teams_cli.clock import seconds_since
from teams_cli.messages import inboxes, messages
from teams_cli.messages.messages import Message
from teams_cli.names import HUMAN
from teams_cli.questions.questions import Question
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams.presence import Agent, is_gone, load_all
from teams_cli.teams.teams import Member, Team
from teams_cli.views.course import Graph

Row = dict[str, Any]


_MOST_LETTERS = 50
_MOST_OF_REASON = 400
_FORMAL = frozenset({"notice", "info", "shutdown", "plan"})
_ENDS = frozenset({"in_review", "completed", "failed", "cancelled", "released", "expired", "reopened"})
_SESSION_KEYS = (
    "takenBy",
    "state",
    "outcome",
    "harness",
    "description",
    "caller",
    "directory",
    "worktree",
    "branch",
    "turns",
)


def agent_rows(
    store: Store, team: Team, problems: list[errors.TeamsError], started: Mapping[str, Session] | None = None
) -> list[Row]:
    """Return a row for each member that has not left, in the order of joining. If `teams` started the member, the row
    also has its session. *started* maps agents to their sessions; if it is None, the sessions are read from the store.

    A member that can't be read is left out, and the error is added to *problems*.
    """
    if started is None:
        started = {session.agent: session for session in ending.all_of(store, team.name, problems)}
    tasks_of: dict[str, list[str]] = {}
    for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS):
        tasks_of.setdefault(task.owner or "", []).append(task.id)
    members = [member for member in team.roster() if member.active or member.stopped_by]
    unread, load_agent = _unread_counts(store, team, members, problems), load_all(store, team.name)
    terminal_of = {terminal.agent: terminal for terminal in terminals.all_of(store, team.name, problems)}
    rows = []
    for member in members:
        name = member.agent_id
        if name not in unread:  # its inbox can't be read
            continue
        try:
            agent = load_agent(name)
        except errors.TeamsError as problem:
            problems.append(problem)
            continue
        session, terminal = started.get(name), terminal_of.get(name)
        is_busy = name in tasks_of or name in team.inside_clients()
        row: Row = {
            "name": name,
            "displayName": member.agent_name,
            "role": member.role,
            "agentType": member.agent_type,
            "status": agent.status,
            "statusHistory": [entry.to_json() for entry in agent.status_history],
            "state": state_of(store, team, member, agent, session, is_busy),
            "queueDepth": unread[name],
            "lastSeen": agent.last_seen or member.joined_at,
            **({"host": agent.host} if agent.host else {}),
            **({"note": agent.note} if agent.note else {}),
            **({"mayHaveEnded": True} if member.active and may_have_ended(store, team, agent) else {}),
            **({"tasks": tasks_of[name]} if name in tasks_of else {}),
            **({"childOf": member.child_of} if member.child_of and member.active else {}),
        }
        if session:
            if row["state"] == "limited":
                row["limitedUntil"] = session.limited_until
            if session.host:
                row["host"] = session.host
            session_document = session.having(worktree=session.present_worktree(store.host)).to_document()
            row["session"] = {key: value for key, value in session_document.items() if key in _SESSION_KEYS}
        if terminal and (session is None or session.taken_by):  # a person sits at the agent's client
            terminals.describe(store, team, terminal, row)
        rows.append(row)
    return rows


def _unread_counts(
    store: Store, team: Team, members: list[Member], problems: list[errors.TeamsError]
) -> dict[str, int]:
    """Return the number of unread messages of each member whose inbox can be read. Errors of the other inboxes are
    added to *problems*.
    """
    names = [member.agent_id for member in members]
    try:
        return inboxes.unread_counts(store, team.name, names)
    except errors.TeamsError:  # one inbox is damaged, so each is read alone
        counts = {}
        for name in names:
            try:
                counts[name] = len(inboxes.unread(store, team.name, name))
            except errors.TeamsError as problem:
                problems.append(problem)
        return counts


def state_of(store: Store, team: Team, member: Member, agent: Agent, session: Session | None, is_busy: bool) -> str:
    """Return the state of a member, as lists show it. The first of these rules that applies decides.

    A member that was stopped is `stopped`. If it has a session, it is `limited` while its provider refuses requests,
    and `active` until the session ends. After that, it is `failed` if the session failed or was lost, else `idle`. If
    it has no session, it is `stale` if its process is gone or it was silent for too long, `active` if *is_busy* is set,
    else `idle`.
    """
    if member.stopped_by or (session and session.ended and session.outcome == "stopped"):
        return "stopped"
    if session:
        if session.is_limited(store.now()):
            return "limited"
        if session.ended:
            return "failed" if session.outcome in ("failed", "lost") else "idle"
        return "active"  # its supervisor knows more than its last command says
    expected_at = agent.expected_at or member.joined_at
    if is_gone(agent) or (expected_at and seconds_since(expected_at, store.now()) > team.silence):
        return "stale"
    return "active" if is_busy else "idle"


def trouble_of(
    row: Row, open_questions: list[Question], plan_by_author: Mapping[str, str], awaited_tasks: Mapping[str, str]
) -> tuple[str | None, str | None]:
    """Return a word for the trouble of the agent in *row*, such as `limited` or `waiting`, and the reason, if known. If
    the agent has no trouble, both are None.

    *plan_by_author* maps each agent to the id of its undecided plan. *awaited_tasks* is what `awaited_task_by_agent`
    returns.
    """
    name, session = row["name"], row.get("session") or {}
    if row["state"] == "limited":
        return "limited", None
    if session.get("outcome") in ("failed", "lost") and session.get("state") == "done":
        reason = "its process is gone" if session["outcome"] == "lost" else None
        return session["outcome"], row.get("failure") or reason
    if row["paused"] and row["state"] != "stopped":
        return "paused", row["pauseReason"]
    if row["state"] == "stale" and name in awaited_tasks:
        return "silent", f"it had {awaited_tasks[name]}, and has been silent since"
    question = next((question for question in open_questions if question.from_ == name), None)
    if question is not None:
        return "waiting", f"{question.id} waits for an answer from {', '.join(question.waiting_for) or 'somebody'}"
    if name in plan_by_author and row["state"] != "stopped":
        return "waiting", f"{plan_by_author[name]} waits for a decision"
    return None, None


def awaited_task_by_agent(all_tasks: list[Task]) -> dict[str, str]:
    """Map each agent to the id of the task that it is still expected to end: the agent has the task, or was the last to
    have it and its claim expired. Of several tasks, take the one that the agent began last.
    """
    newest: dict[str, tuple[str, str]] = {}  # by agent: when the agent began the task, and the task's id
    for task in all_tasks:
        spans = spans_of_work(task)
        agent, start, _, outcome = spans[-1] if spans else (None, None, None, None)
        if agent and start and outcome in (None, "expired"):
            newest[agent] = max(newest.get(agent, ("", "")), (start, task.id))
    return {agent: task_id for agent, (_, task_id) in newest.items()}


def reason(task: Task) -> str:
    """Return why the task failed. Only the end of a long explanation is returned, because the board has little room."""
    return tasks.why_failed(task)[-_MOST_OF_REASON:]


def spans_of_work(task: Task) -> list[list[str | None]]:
    """Return the periods of work on the task, each a list [owner, begin, end, outcome]. A period begins with a claim or
    a rejection. While the owner is at work, the end and the outcome are None.
    """
    spans: list[list[str | None]] = []
    for note in task.notes:
        if note.what == "claimed":
            spans.append([note.by, note.at, None, None])
        elif note.what == "rejected" and spans:
            spans.append([spans[-1][0], note.at, None, None])
        elif spans and spans[-1][2] is None and note.what in _ENDS:  # the last period has no end yet
            spans[-1][2:] = [note.at, note.what]
    if task.claimed_at and task.owner and not spans:  # the notes lack the claim
        spans.append([task.owner, task.claimed_at, task.completed_at, task.status if task.completed_at else None])
    return spans


def failures(graph: Graph) -> list[Row]:
    """Return a row for each failed task, and for each cancelled one that blocks others, those that block most first."""
    counts = graph.waiting_counts()
    rows: list[Row] = []
    for task in graph.tasks.values():
        waiting = counts.get(task.id, 0)
        if task.status == "failed" or (task.status == "cancelled" and waiting):
            row = {"id": task.id, "title": task.title, "status": task.status}
            rows.append({**row, "reason": reason(task), "waiting": waiting})
    return sorted(rows, key=lambda row: -row["waiting"])


def letters(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Message]:
    """Return the newest unhandled messages to the person that agents wrote in their own words. Notices, plans and
    requests are left out.
    """
    inbox = inboxes.load_with_new(store, team, HUMAN, problems)
    # Twice as many are read, because some of them are left out.
    numbers = sorted(entry.number for entry in inbox.open if not entry.quiet)[-2 * _MOST_LETTERS :]
    newest = store.fetch(team, messages.MESSAGE, numbers, problems) if numbers else []
    return [message for message in newest if message.type not in _FORMAL][-_MOST_LETTERS:]
