"""Owners: whose a task is, and who may be one, or do what only the owner does."""

from __future__ import annotations

from teams_cli.errors import InvalidValue, NotAllowed, StaleClaim, WrongState
from teams_cli.tasks.tasks import IN_REVIEW, Task
from teams_cli.teams import roles, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller


def refuse_unable(team: Team, name: str, caller: Caller) -> None:
    """Refuse an owner that could not claim the task itself.

    Raises:
        AgentNotFound: It is no active member.
        InvalidValue, NotAllowed: It can't, or may not.
    """
    member = team.member(name)
    if member is None:
        teams.get_recipient(team, name)
        raise InvalidValue(f"{name} can't own a task", f"Members: {', '.join(team.active_names())}.")
    if roles.verdict(member.role, "claim-task", team, caller.config) == "deny":
        raise NotAllowed(f"{name} is a {member.role}, which may not claim-task", "Choose another member.")


def refuse_stranger(task: Task, name: str) -> None:
    """Let only the owner pass; one who lost the claim is told so."""
    if task.owner == name:
        return
    if task.was_claimed_by(name):
        last = task.notes[-1]
        raise StaleClaim(
            f"your claim on {task.id} is over: it is {state_of(task)}"
            + (f" ({last.what}: {last.reason})" if last.reason else ""),
            "Keep your result, and claim the task again if it is free.",
        )
    if task.status == "pending":
        raise WrongState(f"{task.id} is pending", f"Claim it first: teams claim-task {task.id}")
    raise NotAllowed(f"{task.id} is {task.owner}'s", "Only its owner sets its status and result.")


def state_of(task: Task) -> str:
    """Say the status in words, with who has the task: "in progress by bob"."""
    if task.status == IN_REVIEW:
        return f"in review ({task.review_by})"
    return f"in progress by {task.owner}" if task.status == "in_progress" else task.status
