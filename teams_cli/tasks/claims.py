"""Claiming a task: one owner at a time."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import length
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN, check_name
from teams_cli.records.owed import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import assigning, dependencies, leases, tasks
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import history, presence, roles, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.caller import Caller


def claim(store: Store, team_name: str, caller: Caller | None, word: str) -> Task:
    """Claim a free task. Its blockers must be completed, and you need its skills.

    Claiming your own task again changes nothing.

    Raises:
        TaskClaimed: Another agent owns the task; the error names it.
        TaskKept: The task is assigned to another agent; the error names it.
        TaskBlocked: A blocker is not completed; the error names it.
        WrongState: The task is finished.
        NotAllowed: Your role may not claim, or you lack a skill.
        TaskNotFound: There is no such task.
    """
    at = require(store, team_name, caller, "claim-task", word)
    team, caller = at.team, at.caller
    found = tasks.find(store, team_name, word)
    return take(store, team, caller, found[0].id, found=found)


def may_claim(team: Team, caller: Caller) -> bool:
    """Whether the caller is a member whose role claims tasks."""
    member = team.member(caller.name)
    return member is not None and roles.verdict(member.role, "claim-task", team, caller.config) != "deny"


def take(
    store: Store, team: Team, caller: Caller, key: str, anew: bool = False, found: tuple[Task, Any] | None = None
) -> Task:
    """Have the caller own the task of that key, which it may have *found* a moment ago; one that it owns already is
    refused if it wants one *anew*.
    """
    lost: list[str] = []
    if found and found[0].owner != caller.name and leases.has_ended(store, found[0]):
        leases.release_if_over(store, team, key)
        found = None

    def change(task: Task) -> Task:
        is_own = task.status == "in_progress" and task.owner == caller.name
        if is_own:  # by whom it is claimed again: it goes on
            presence.forget_ended_process(store, team.name, caller.name)
        lost[:] = [leases.over(store, team, task)]
        if is_own and not lost[0] and not anew:
            return task
        free = leases.expired(store, team, task, lost[0], caller.name) if lost[0] else task
        _refuse_unready(store, team, free, caller)
        presence.forget_ended_process(store, team.name, caller.name)  # before it owns what would be lost with that
        taken = _taken(store, team, free, caller.name)
        return taken if lost[0] else _telling_the_one_before(team, taken)

    before, task = update(store, team.name, TASK, key, change, found=found)
    if lost[0]:
        leases.note_expiry(store, team, before, lost[0])
        leases.end_grace(store, team, before, task)
    if before is not task:
        history.note(store, team.name, caller.name, "task claimed", task=task.id, claim=task.claim)
    deliver(store, team.name, TASK, task)
    return task


def _telling_the_one_before(team: Team, task: Task) -> Task:
    """The task, with a notice to who lost it against its will, and was told that it is free."""
    lost = leases.lost_before(task)
    if lost is None or lost.owner in (lost.by, task.owner) or not team.member(lost.owner or ""):
        return task
    body = f"{task.id} ({task.title}){leases.WAS_YOURS}{task.owner} has it now, and its files."
    return owing(
        task, Owed(to=lost.owner or "", message=body, uid=f"taken-{task.id}-{task.claim}", by=task.owner or "")
    )


def _refuse_unready(store: Store, team: Team, task: Task, caller: Caller) -> None:
    if task.status == "in_progress":
        asked = ""
        if task.in_grace:
            left = length(max(1.0, leases.left(store, task)))
            asked = f", who is silent; it is released in {left} unless {task.owner} answers"
        taken = f"{task.id} is claimed by {task.owner}{asked}"
        raise errors.TaskClaimed(taken, "Claim another: teams claim-task --next")
    if task.status != "pending":
        raise errors.WrongState(
            f"{task.id} is {task.status}", f"Reopen it: teams update-task {task.id} --status pending"
        )
    assigning.refuse_other(store, team, task, caller.name)
    if blockers := dependencies.open_blockers(task, dependencies.stored(store, team.name)):
        named = ", ".join(map(str, blockers))
        raise errors.TaskBlocked(f"{task.id} is blocked by {named}", "Claim another: teams claim-task --next")
    assigning.refuse_unskilled(team, task, caller.name, caller.config)


def refuse_unable(team: Team, name: str, caller: Caller, or_absent: bool = False) -> None:
    """Refuse an owner that could not claim the task itself; *or_absent*: one that has yet to join is none.

    Raises:
        AgentNotFound: It is no active member.
        InvalidValue, NotAllowed: It can't, or may not.
    """
    member = team.member(name)
    if member is None and or_absent and team.find(name) is None and name not in (HUMAN, "leader"):
        check_name(name, "agent")
        return
    if member is None:
        teams.get_recipient(team, name)
        raise errors.InvalidValue(f"{name} can't own a task", f"Members: {team.names_in_words()}.")
    if roles.verdict(member.role, "claim-task", team, caller.config) == "deny":
        raise errors.NotAllowed(f"{name} is a {member.role}, which may not claim-task", "Choose another member.")


def _taken(store: Store, team: Team, task: Task, agent: str) -> Task:
    now = teams.now(store)
    taken = task.having(status="in_progress", owner=agent, assignee=None, claimed_at=now, claim=task.claim + 1)
    return leases.leased(store, team, taken.noted(now, agent, "claimed"))
