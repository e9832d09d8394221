"""Tasks as JSON for answers: for a list, in full, and for a new owner."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import seconds_since
from teams_cli.tasks import dependencies, leases, tasks
from teams_cli.tasks.tasks import IN_PROGRESS, Note, Task
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


_A_WHILE = 60.0
"""Seconds."""


def to_document(call: Call, task: Task) -> dict[str, Any]:
    """The task as JSON, with its open blockers, and whether the member that it is assigned to has yet to join."""
    document = with_lease(call, dependencies.to_document(task, dependencies.stored(call.store, call.team)))
    assignee = task.assignee  # the task may have been made just now, which stands
    if assignee and call.try_to(lambda: call.load_team().member(assignee) is None):
        document["assigneeExpected"] = True
    return document


def with_lease(call: Call, document: dict[str, Any]) -> dict[str, Any]:
    """The task with the end of its lease by the clock as it is now."""
    if "leaseExpiresAt" not in document:
        return document
    return {**document, "leaseExpiresAt": leases.expires_at(call.store, Task.from_json(document))}


def with_blockers(call: Call, document: dict[str, Any]) -> dict[str, Any]:
    """The task with the state and the result of each of its blockers, under `blockers`."""
    blockers = []
    for key in document.get("blockedBy", ()):
        try:
            task = tasks.get(call.store, call.team, key)
        except errors.TeamsError:
            blockers.append({"id": key, "status": "unreadable"})
            continue
        row = {"id": key, "title": task.title, "status": task.status, "owner": task.owner, "result": task.result}
        blockers.append({name: value for name, value in row.items() if value is not None})
    return {**document, "blockers": blockers} if blockers else document


def with_plan(call: Call, task: Task, document: dict[str, Any]) -> dict[str, Any]:
    """The task with the state of its plan, under `plan` and `planId`: its owner's, or the one that was approved.

    `plan` is `required` where the task needs a plan and has none.
    """
    if not task.plan_required and task.status != IN_PROGRESS:
        return document
    from teams_cli.tasks import plans
    from teams_cli.views import work

    status, plan = work.plan_of(task, plans.all_of(call.store, call.team, call.problems))
    return {**document, **{key: value for key, value in (("plan", status), ("planId", plan)) if value}}


def taken(call: Call, task: Task) -> dict[str, Any]:
    """The task as JSON for its new owner: with the results of its blockers, its owner before, and unread pages.

    The next step is to complete it; or to propose a plan, if it needs one and none is approved.
    """
    from teams_cli.views import steps

    planned: dict[str, Any] = {}
    if task.plan_required:
        from teams_cli.tasks import plans

        if approved := call.try_to(lambda: plans.approved(call.store, call.team, task.id)):
            planned = {"approvedPlan": approved.to_document()}  # it holds for whoever has the task
    call.follows = steps.propose(task.id) if task.plan_required and not planned else steps.complete(task.id)
    document = with_blockers(call, to_document(call, task)) | untold_pages(call) | planned
    if task.touches:
        from teams_cli.tasks import touching

        call.try_to(lambda: document.update(meets=touching.others_at(call.store, call.team, task, call.agent)))
    before = leases.lost_before(task)
    if before is None:
        had_for = seconds_since(task.claimed_at, call.store.now()) if task.claimed_at is not None else 0
        # Who claims a task again that it had for a while may have forgotten what it did.
        return document | (_left_behind(call, task, call.agent) if had_for > _A_WHILE else {})
    document |= _left_behind(call, task, before.owner or "")
    taken_over = {"from": before.owner, "how": before.what, "at": before.at, "reason": before.reason}
    call.try_to(lambda: taken_over.update(_last_known(call, before)))  # the task is the caller's by now
    return {**document, "takenOver": {key: value for key, value in taken_over.items() if value is not None}}


def untold_pages(call: Call) -> dict[str, Any]:
    """The pages that the caller has not seen, under `pages`: they matter before work begins."""
    from teams_cli.teams import pages

    untold = call.try_to(lambda: pages.untold(call.store, call.team, call.agent, call.once_told))
    return {"pages": [page.to_row() for page in untold]} if untold else {}


def _last_known(call: Call, before: Note) -> dict[str, str | None]:
    """When the owner before was last heard of, its status line, and its worktree if that is on this machine."""
    agent = presence.load(call.store, call.team, before.owner or "")
    given_back = before.at if before.what == "released" and before.by == before.owner else ""
    worktree = agent.worktree if (agent.host or "") == call.store.host else None
    return {"lastHeard": max(agent.last_seen or "", given_back) or None, "status": agent.status, "worktree": worktree}


def _left_behind(call: Call, task: Task, name: str) -> dict[str, Any]:
    """The uncommitted files of the task where that agent worked, under `uncommitted`."""
    from teams_cli.tasks import touching

    files = call.try_to(lambda: touching.uncommitted(call.store, call.team, task, name))
    return {"uncommitted": files} if files else {}


def refuse_stopped(call: Call, owner: str) -> None:
    """Refuse to give a task to an agent that nothing resumes."""
    from teams_cli.agents import sessions

    if sessions.was_stopped(call.store, call.team, owner):
        raise errors.WrongState(f"{owner} was stopped", "Choose another member, or start one: teams run-agent …")
