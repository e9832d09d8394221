"""The shortest answer to "where am I and what next?", for an agent that lost its context."""

from __future__ import annotations

from teams_cli import agents, history, inboxes, plans, questions, roles, shutdowns, tasks, teams
from teams_cli.errors import TeamsError
from teams_cli.names import HUMAN
from teams_cli.store.contract import upsert
from teams_cli.tasks import IN_PROGRESS
from teams_cli.teams import LEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.caller import Caller
    from teams_cli.store.contract import Store
    from teams_cli.tasks import Task
    from teams_cli.teams import Team

_MINE = 4
_WAITING = 4
_CHANGES = 4
_TITLE = 48


def brief(store: Store, team_name: str, caller: Caller) -> dict[str, Any]:
    """Who am I, what do I own, what waits for me, what changed since I last looked, and the next sensible command."""
    team = teams.load(store, team_name)
    name = caller.name
    found = list(tasks.everything(store, team_name, []))
    mine = [task for task in found if task.status == IN_PROGRESS and task.owner == name]
    ready = _ready(found)
    waiting = _plans_for(store, team, caller)
    asked = next(shutdowns.open_requests(store, team, name), None)
    unread = inboxes.unread(store, team_name, name)
    document: dict[str, Any] = {
        "agent": name,
        "role": role_of(team, caller),
        "team": team_name,
        "leader": team.leader,
        "members": len(team.active_names()),
        "myTasks": [_row(task) for task in mine[:_MINE]],
        "ready": len(ready),
        "tasks": {status: n for status in tasks.STATUSES if (n := sum(t.status == status for t in found))},
        "unread": len(unread),
        "unhandled": inboxes.unhandled(store, team_name, name),
        "questions": _questions_to(store, team_name, name),
        "plans": [plan.id for plan in waiting[:_WAITING]],
        "shutdown": asked.id if asked else None,
        "changes": _changes(store, team_name, name),
    }
    document["next"] = _next(team, caller, document, [task for task in ready if _fits(task, team, caller)])
    return document


def role_of(team: Team, caller: Caller) -> str | None:
    """The caller's role in the team; None for a stranger."""
    if caller.is_human:
        return HUMAN
    member = team.member(caller.name)
    return member.role if member else None


def _row(task: Task) -> dict[str, Any]:
    return {"id": task.id, "title": _short(task.title), "leaseExpiresAt": task.lease_expires_at}


def _short(text: str) -> str:
    return text if len(text) <= _TITLE else text[: _TITLE - 1] + "…"


def _ready(found: list[Task]) -> list[Task]:
    done = {task.id for task in found if task.status == "completed"}
    return [task for task in found if task.status == "pending" and done.issuperset(task.blocked_by)]


def _fits(task: Task, team: Team, caller: Caller) -> bool:
    member = team.member(caller.name)
    return member is not None and roles.skills_of(member, team, caller.config).issuperset(task.require)


def _plans_for(store: Store, team: Team, caller: Caller) -> list[plans.Plan]:
    """The plans that wait for the caller's decision."""
    if not roles.is_any(team, caller, LEADER, HUMAN):
        return []
    return [plan for plan in plans.listing(store, team.name, [], only_open=True) if plan.from_ != caller.name]


def _questions_to(store: Store, team: str, name: str) -> list[str]:
    """The open questions that wait for the caller's answer."""
    asked = [question for question in questions.of_team(store, team, []) if question.open]
    return [question.id for question in asked if name in question.waiting_for][:_WAITING]


def _changes(store: Store, team: str, name: str) -> list[str]:
    """What others did since the caller last looked: the last few, and how many more; notes that it looked."""
    looked_to = agents.load(store, team, name).looked_to or 0
    entries = list(store.history(team, looked_to))
    if entries:
        _looked(store, team, name, entries[-1][0])
    others = [entry for _, entry in entries if entry.get("actor") != name]
    lines = [_short(history.line(entry)) for entry in others[-_CHANGES:]]
    return [f"… {len(others) - _CHANGES} more", *lines] if len(others) > _CHANGES else lines


def _looked(store: Store, team: str, name: str, position: int) -> None:
    """Note how far the caller has seen. On a disk that can't be written it will see the same again."""
    if not teams.load(store, team).member(name):
        return
    try:
        upsert(store, team, agents.AGENT, name, agents.Agent(agent=name), lambda a: a.having(looked_to=position))
    except TeamsError:
        return


def _next(team: Team, caller: Caller, document: dict[str, Any], ready: list[Task]) -> str:
    if team.state == "closed":
        return f"teams {'restore' if document['role'] in (LEADER, HUMAN) else 'show'}-team {team.name}"
    if caller.is_human and document["questions"]:
        return "teams human"
    if document["role"] is None and (left := team.find(caller.name)) and left.stopped_by:
        return f"nothing: {caller.name} was shut down"
    if document["role"] is None:
        return f"teams join-team {team.name} --as {caller.name}"
    if document["shutdown"]:
        return f"teams approve-shutdown {document['shutdown']}, or reject-shutdown with --reason"
    if document["unread"]:
        return "teams read-messages"
    if document["plans"]:
        return "teams get-plans --open"
    if document["myTasks"]:
        return f"teams update-task {document['myTasks'][0]['id']} --status completed --result …"
    if ready and roles.verdict(document["role"], "claim-task", team, caller.config) != "deny":
        return "teams claim-task --next"
    if document["unhandled"]:
        return f"teams reply {document['unhandled'][0]} TEXT, or ack {document['unhandled'][0]}"
    counts = document["tasks"]
    if document["role"] == LEADER:
        if not counts:
            return "teams create-task TITLE"
        return "teams wait --all-tasks" if counts.get("pending") or counts.get(IN_PROGRESS) else "teams close-team"
    return "teams read-messages --wait 300"
