"""Owners: whose a task is, and who is refused what only its owner does."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import length, seconds_since
from teams_cli.store.contract import Store
from teams_cli.tasks import leases
from teams_cli.tasks.tasks import IN_PROGRESS, IN_REVIEW, Task
from teams_cli.teams import presence
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller


def refuse_stranger(task: Task, name: str) -> None:
    """Let only the owner pass; one who lost the claim is told so."""
    if task.owner == name:
        return
    if task.was_claimed_by(name):
        last = task.notes[-1]
        raise errors.StaleClaim(
            f"your claim on {task.id} has ended: it is {state_of(task)}"
            + (f" ({last.what}: {last.reason})" if last.reason else ""),
            f"Keep your result: {_how_back(task)}",
        )
    if task.status == "pending":
        raise errors.WrongState(f"{task.id} is pending", f"Claim it first: teams claim-task {task.id}")
    if task.owner is None:
        hint = f"Reopen it: teams update-task {task.id} --status pending"
        raise errors.NotAllowed(f"{task.id} is {state_of(task)}, and nobody's", hint)
    raise errors.NotAllowed(f"{task.id} is {task.owner}'s", "Only its owner sets its status and result.")


def _how_back(task: Task) -> str:
    """What who lost the task does with what came out."""
    if task.status == "pending":
        return f"teams claim-task {task.id}, and complete it again"
    if not task.owner:
        return f"see: teams show-task {task.id}"
    return f"teams note {task.id} TEXT; its files are {task.owner}'s now. Continue: teams wait --claim"


def refuse_taking(store: Store, team: Team, task: Task, by: Caller, command: str) -> None:
    """Raises Conflict: The owner of the task is at work on it, and another than the person would take it."""
    is_quiet = leases.has_ended(store, task) or task.in_grace or leases.over(store, team, task)
    if task.status != IN_PROGRESS or task.owner == by.name or by.is_human or is_quiet:
        return
    seen = max(filter(None, (presence.load(store, team.name, task.owner or "").last_seen, task.claimed_at)), default="")
    last = f": last seen {length(max(0.0, seconds_since(seen, store.now())))} ago" if seen else ""
    raise errors.Conflict(
        f"{task.owner} is at work on {task.id}{last}; nothing was changed",
        f"To take it anyway, and notify {task.owner}: {command} --force",
    )


def state_of(task: Task) -> str:
    """Say the status in words, with who has the task: "in progress by bob"."""
    if task.status == IN_REVIEW:
        return f"in review ({task.review_by})"
    if task.status == "completed" and task.owner:
        return f"completed by {task.owner}"
    return f"in progress by {task.owner}" if task.status == "in_progress" else task.status
