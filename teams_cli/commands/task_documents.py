"""Tasks as they are answered with, and to whom none is given."""

from __future__ import annotations

import os

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


def to_document(call: Call, task: Task) -> dict[str, Any]:
    """The task as JSON, with its open blockers, and whether the one for whom it is kept has yet to join."""
    document = with_lease(call, dependencies.to_document(task, dependencies.stored(call.store, call.team)))

    def look() -> None:
        if task.assignee and not call.load_team().member(task.assignee):
            document["assigneeExpected"] = True

    call.try_to(look)  # the task may have been made just now, which stands
    return document


def with_lease(call: Call, document: dict[str, Any]) -> dict[str, Any]:
    """The task with when its lease ends by the clock as it is now."""
    if "leaseExpiresAt" not in document:
        return document
    return {**document, "leaseExpiresAt": leases.expires_at(call.store, Task.from_json(document))}


def with_blockers(call: Call, document: dict[str, Any]) -> dict[str, Any]:
    """The task with how it stands with what it waits for, and what came of that."""
    blockers = []
    for key in document.get("blockedBy", ()):
        try:
            found = tasks.get(call.store, call.team, key)
        except errors.TeamsError:
            blockers.append({"id": key, "status": "unreadable"})
            continue
        said = {"id": key, "title": found.title, "status": found.status, "owner": found.owner, "result": found.result}
        blockers.append({key: value for key, value in said.items() if value is not None})
    return {**document, "blockers": blockers} if blockers else document


def with_plan(call: Call, task: Task, document: dict[str, Any]) -> dict[str, Any]:
    """The task with how it stands with the plan of its owner, or the one that was approved, under `plan` and `planId`;
    `plan` is `required` where there is none and it takes one.
    """
    if not task.plan_required and task.status != IN_PROGRESS:
        return document
    from teams_cli.tasks import plans
    from teams_cli.views import work

    status, plan = work.plan_of(task, plans.all_of(call.store, call.team, call.problems))
    return {**document, **{key: said for key, said in (("plan", status), ("planId", plan)) if said}}


def taken(call: Call, task: Task) -> dict[str, Any]:
    """The task as JSON for who has it now: with the results of what it waited for, whose it was before, and the pages
    that its owner was not told of. What follows is to complete it, or the plan that it takes, unless one is approved.
    """
    from teams_cli.views import steps

    planned = _approved_plan(call, task) if task.plan_required else {}
    call.follows = steps.propose(task.id) if task.plan_required and not planned else steps.complete(task.id)
    document = with_blockers(call, to_document(call, task)) | untold_pages(call) | planned
    if task.touches:
        from teams_cli.tasks import touching

        call.try_to(lambda: document.update(meets=touching.others_at(call.store, call.team, task, call.agent)))
    before = leases.lost_before(task)
    if before is None:
        return document | (_left_behind(call, task, call.agent) if _was_had(call, task) else {})
    document |= _left_behind(call, task, before.owner or "")
    told = {"from": before.owner, "how": before.what, "at": before.at, "reason": before.reason}
    call.try_to(lambda: told.update(_last_known(call, before)))  # the task is the caller's by now
    return {**document, "takenOver": {key: value for key, value in told.items() if value is not None}}


def _approved_plan(call: Call, task: Task) -> dict[str, Any]:
    """The plan that was approved for the task, under `approvedPlan`: it holds for whoever has the task."""
    from teams_cli.tasks import plans

    found: list[plans.Plan | None] = []
    call.try_to(lambda: found.append(plans.approved(call.store, call.team, task.id)))
    return {"approvedPlan": found[0].to_document()} if found and found[0] else {}


def untold_pages(call: Call) -> dict[str, Any]:
    """The pages that the caller was not told of, under `pages`; who begins work wants to know them before."""
    from teams_cli.teams import pages

    found: list[pages.Page] = []
    call.try_to(lambda: found.extend(pages.untold(call.store, call.team, call.agent, call.once_told)))
    return {"pages": [page.to_row() for page in found]} if found else {}


def _last_known(call: Call, before: Note) -> dict[str, str | None]:
    """What is known of the one who had the task before: when it was last heard of, and its status line."""
    agent = presence.load(call.store, call.team, before.owner or "")
    given = before.at if before.what == "released" and before.by == before.owner else ""
    return {"lastHeard": max(agent.last_seen or "", given) or None, "status": agent.status}


def _was_had(call: Call, task: Task) -> bool:
    """Whether the caller has had the task for a while, and claims it again: it may have forgotten what it did."""
    return task.claimed_at is not None and seconds_since(task.claimed_at, call.store.now()) > _A_WHILE


def _left_behind(call: Call, task: Task, name: str) -> dict[str, Any]:
    """The uncommitted files of the task where the one worked who had it before, under `uncommitted`."""
    from teams_cli.tasks import touching

    found: list[dict[str, Any]] = []
    call.try_to(lambda: found.extend(touching.uncommitted(call.store, call.team, task, name)))
    return {"uncommitted": found} if found else {}


def whole(call: Call, directory: str) -> str:
    """The whole path of a directory that the caller named."""
    return os.path.abspath(os.path.join(call.directory, directory))


def refuse_stopped(call: Call, owner: str) -> None:
    """Refuse to give a task to an agent that nothing resumes."""
    from teams_cli.agents import sessions

    if sessions.was_stopped(call.store, call.team, owner):
        raise errors.WrongState(f"{owner} was stopped", "Choose another member, or start one: teams run-agent …")
