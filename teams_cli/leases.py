"""Leases: a claim lasts as long as its owner is heard from; after that the task is free, and everybody is told."""

from __future__ import annotations

from datetime import timedelta

from teams_cli import agents, history, messages, tasks, teams
from teams_cli.clock import rfc3339
from teams_cli.errors import NotAllowed, TeamsError
from teams_cli.names import SYSTEM
from teams_cli.store.contract import update
from teams_cli.tasks import TASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.store.contract import Store
    from teams_cli.tasks import Task
    from teams_cli.teams import Team


def leased(store: Store, team: Team, task: Task) -> Task:
    """The task with a lease from now on, for the team's `staleAfterSeconds`."""
    length = float(team.settings.get("staleAfterSeconds", 300))
    epoch, seconds = store.steady()
    expires = rfc3339(store.now() + timedelta(seconds=length))
    return task.having(lease_epoch=epoch, lease_until=round(seconds + length, 3), lease_expires_at=expires)


def over(store: Store, team: Team, task: Task) -> str:
    """Why the claim on a task in progress is over; empty while it holds."""
    if task.status != "in_progress":
        return ""
    if task.owner is None or not team.member(task.owner):
        return f"{task.owner or 'its owner'} is no member any more"
    epoch, seconds = store.steady()
    if task.lease_until is None or task.lease_epoch != epoch:
        return f"the machine was started anew since {task.owner} claimed it"
    if seconds > task.lease_until:
        return f"nothing was heard of {task.owner} until {task.lease_expires_at}"
    if agents.is_gone(agents.load(store, team.name, task.owner)):
        return f"the process of {task.owner} is gone"
    return ""


def current(store: Store, team: Team, task: Task) -> Task:
    """The task as it is once claims that are over are released. On a disk that can't be written, only shown so."""
    if not over(store, team, task):
        return task
    try:
        return release_if_over(store, team, task.id)
    except TeamsError:
        return task.freed()


def release_if_over(store: Store, team: Team, task_id: str) -> Task:
    """Release the task if the claim on it is over, and tell the leader."""
    reasons: list[str] = []

    def change(task: Task) -> Task:
        reasons[:] = [over(store, team, task)]
        return expired(store, task, reasons[0]) if reasons[0] else task

    before, task = update(store, team.name, TASK, task_id, change)
    if before is not task:
        tell(store, team, before, reasons[0])
    return task


def expired(store: Store, task: Task, reason: str) -> Task:
    """The task free again, with the reason."""
    return task.noted(teams.now(store), SYSTEM, "expired", reason).freed()


def tell(store: Store, team: Team, task: Task, reason: str) -> None:
    """Note that the claim on *task* expired, and tell the leader once."""
    history.note(store, team.name, SYSTEM, "claim expired", task=task.id, owner=task.owner, reason=reason)
    body = f"{task.id} ({task.title}) is free again: {reason}."
    messages.notify(store, team.name, team.leader, body, f"expired-{task.id}-{task.claim}")


def release_all(store: Store, team: Team) -> list[str]:
    """Release every task in progress whose claim is over; their ids. Some are for others' logins to release."""
    found = [task for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS) if over(store, team, task)]
    released = []
    for task in found:
        try:
            released.append(release_if_over(store, team, task.id).id)
        except NotAllowed:
            continue
    return released
