"""Commands on tasks."""

from __future__ import annotations

from teams_cli import claims, leases, task_changes, tasks, teams
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.errors import TeamsError, WrongState, WrongUsage
from teams_cli.names import id_of
from teams_cli.tasks import PRIORITIES, STATUSES, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.shapes import Priority

_GET = """List the tasks, by number, each with what blocks it.

A claim whose lease ran out is released first, and its leader told. A damaged task is named beside the others.
"""
_SHOW = """Show a task: its status, owner, blockers, result and what happened to it.

Raises:
    TaskNotFound: There is none of that id.
"""


def _create(
    call: Call,
    title: str,
    description: str | None,
    priority: Priority,
    blocked_by: list[str],
    require: list[str],
    run: str | None,
    plan_required: bool,
) -> Any:
    draft = Task(
        team_name=call.team,
        title=title,
        description=description,
        priority=priority,
        created_at="",
        blocked_by=list(dict.fromkeys(id_of(word, "task") for word in blocked_by)),
        require=list(require),
        run=run,
        plan_required=plan_required or None,
    )
    return shown(call, tasks.create(call.store, call.team, call.caller, draft))


def shown(call: Call, task: Task) -> dict[str, Any]:
    """The task as JSON, with its open blockers."""
    blockers = []
    for key in task.blocked_by:
        try:
            if tasks.load(call.store, call.team, key).status != "completed":
                blockers.append(key)
        except TeamsError:  # one that can't be read blocks
            blockers.append(key)
    return tasks.as_shown(task, blockers)


def _get(call: Call, status: str | None, owner: str | None, ready: bool, blocked: bool, limit: int | None) -> Any:
    if limit is not None and limit < 1:
        raise WrongUsage(f"{limit} is no limit", "Give a number from 1.")
    rows: list[dict[str, Any]] = []
    for task in _of_interest(call, status, owner, ready or blocked):
        row = shown(call, task)
        waits = row["blocked"]
        if (ready and waits) or (blocked and not waits):
            continue
        rows.append(row)
        if len(rows) == limit:
            break
    return rows


def _of_interest(call: Call, status: str | None, owner: str | None, pending: bool) -> Iterator[Task]:
    """The tasks of that status and owner, as they are once claims that are over are released."""
    team = call.load_team()
    for task in tasks.everything(call.store, call.team, call.problems):
        task = leases.current(call.store, team, task)
        fits = task.status == (status or task.status) and task.owner == (owner or task.owner)
        if fits and (not pending or task.status == "pending"):
            yield task


def _show(call: Call, task: str) -> Any:
    team = call.load_team()
    return shown(call, leases.current(call.store, team, tasks.load(call.store, team.name, task)))


def _claim(call: Call, task: str | None, next: bool) -> Any:
    if (task is None) != next:
        raise WrongUsage("say which task", "Give an id, or --next for the best one that is ready.")
    if task is None:
        return shown(call, claims.claim_next(call.store, call.team, call.caller))
    return shown(call, claims.claim(call.store, call.team, call.caller, task))


def _update(call: Call, task: str, **values: Any) -> Any:
    changes = task_changes.Changes(
        **{key: value for key, value in values.items() if key not in ("blocked_by", "unblock")},
        block=list(values["blocked_by"]),
        unblock=list(values["unblock"]),
    )
    if changes.owner:
        _refuse_stopped(call, changes.owner)
    changed = task_changes.change_task(call.store, call.team, call.caller, task, changes)
    if changes.owner:
        call.wake(changes.owner)
    return shown(call, changed)


def _refuse_stopped(call: Call, owner: str) -> None:
    """Refuse to give a task to an agent that nothing resumes."""
    from teams_cli import sessions

    session = sessions.find(call.store, call.team, owner)
    if session and session.ended and session.outcome == "stopped":
        raise WrongState(f"{owner} was stopped", "Choose another member, or start one: teams run-agent …")


def _release(call: Call, task: str, reason: str | None) -> Any:
    return shown(call, claims.release(call.store, call.team, call.caller, task, reason))


def _heartbeat(call: Call, task: str | None, note: str | None) -> Any:
    renewed = claims.heartbeat(call.store, call.team, call.caller, task, note)
    return {
        "agent": call.agent,
        "lastSeen": teams.now(call.store),
        "tasks": [{"id": task.id, "claim": task.claim, "leaseExpiresAt": task.lease_expires_at} for task in renewed],
    }


_ID = argument("ID", "The task: 7, #7 or task-7.", name="task")

COMMANDS = table(
    Command(
        "create-task",
        _create,
        argument("TITLE", "What is to be done, in a line.", name="title", text=True),
        option("--description", "All that its owner has to know.", text=True),
        option("--priority", "high, normal or low.", choices=PRIORITIES, default="normal"),
        option("--blocked-by", "A task that must be completed first.", metavar="ID", many=True),
        option("--require", "A skill that its owner must have.", metavar="SKILL", many=True),
        option("--run", "The shell command that does it, for workers without a model.", metavar="COMMAND", text=True),
        switch("--plan-required", "Complete it only after its plan was approved."),
        doc=tasks.create,
    ),
    Command(
        "get-tasks",
        _get,
        option("--status", "Only those of this status.", choices=STATUSES),
        option("--owner", "Only those of this member.", metavar="AGENT"),
        switch("--ready", "Only pending ones that wait for nothing."),
        switch("--blocked", "Only pending ones that wait for another."),
        option("--limit", "Show at most N.", type=int, metavar="N"),
        doc=_GET,
        reads=True,
    ),
    Command("show-task", _show, _ID, doc=_SHOW, reads=True),
    Command(
        "claim-task",
        _claim,
        argument("ID", "The task: 7, #7 or task-7.", name="task", required=False),
        switch("--next", "The best task that is ready for you."),
        doc=claims.claim,
    ),
    Command(
        "update-task",
        _update,
        _ID,
        option("--status", "completed, failed, pending (open again) or cancelled.", choices=STATUSES),
        option("--result", "What came out.", text=True),
        option("--title", "Another title.", text=True),
        option("--description", "Another description.", text=True),
        option("--priority", "high, normal or low.", choices=PRIORITIES),
        option("--blocked-by", "One more task that must be completed first.", metavar="ID", many=True),
        option("--unblock", "A task that need not be completed first after all.", metavar="ID", many=True),
        option("--owner", "Hand the task to this member.", metavar="AGENT"),
        option("--claim", "Refuse if the claim is no longer this number.", type=int, metavar="N"),
        option("--reason", "Why, for the record.", text=True),
        doc=task_changes.change_task,
    ),
    Command("release-task", _release, _ID, option("--reason", "Why, for the record.", text=True), doc=claims.release),
    Command(
        "heartbeat",
        _heartbeat,
        option("--task", "Only this one.", metavar="ID"),
        option("--note", "What you are doing, in a line.", text=True),
        doc=claims.heartbeat,
        changes=False,
    ),
)
