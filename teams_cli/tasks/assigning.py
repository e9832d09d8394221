"""Assignment: keeping a task for a member, refusing it to others, and notifying the assignee."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.clock import length, seconds_since
from teams_cli.messages.messages import Event
from teams_cli.messages.notices import deliver
from teams_cli.names import SYSTEM
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store, update
from teams_cli.tasks import dependencies, leases, tasks
from teams_cli.tasks.tasks import IF_LAST, IF_READY, IN_PROGRESS, IN_REVIEW, KEPT, PRIORITIES, TASK, Task
from teams_cli.teams import history, presence, roles, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from teams_cli.store.pace import Alarm
    from teams_cli.teams.config import Config
    from teams_cli.teams.permission import Caller, Standing


_AT_WORK_WITHIN = 300.0
"""How many seconds after its last sign of life an owner is still said to be at work."""
REPEAT = "repeat the command with"
"""Stands for a command with more options than a hint can repeat."""
_LOOK_AGAIN_AFTER = 1.0
"""Seconds until a wait rechecks a task whose assignee is lost, if this process may not free the task."""


def refuse_unskilled(team: Team, task: Task, name: str, config: Config | None) -> None:
    """Raise NotAllowed if the member *name* has joined and lacks a skill that the task requires."""
    member = team.member(name)
    if member is None:
        return
    if missing := set(task.require) - roles.skills_of(member, team, config):
        raise errors.NotAllowed(
            f"{task.id or 'the task'} requires skills {name} does not have: {', '.join(sorted(missing))}",
            "Skills come from join-team --type, or from a role: teams help define-role",
        )


def refuse_other(store: Store, team: Team, task: Task, name: str) -> None:
    """Raise TaskKept if the task is assigned to a member other than *name* that may still claim it."""
    if task.assignee and task.assignee != name and not _why_assignee_is_lost(store, team, task):
        raise errors.TaskKept(
            f"{task.id} is assigned to {task.assignee}",
            f"Claim another: teams claim-task --next; or ask the leader for: teams update-task {task.id} --unassign",
        )


def of_agent(store: Store, team: str, agent: str) -> list[Task]:
    """Return the tasks that are assigned to the agent, by priority."""
    assigned = [task for task in tasks.labelled(store, team, KEPT) if task.assignee == agent]
    return sorted(assigned, key=lambda task: PRIORITIES.index(task.priority))


def _why_assignee_is_lost(store: Store, team: Team, task: Task) -> str:
    """Return why the assignee will never claim the task; "" if it still may.

    Silence is a reason, except for two kinds of agents: an agent that `teams` started, which is resumed when a task is
    assigned to it, and an agent with a task in progress, whose lease shows whether it is at work.
    """
    name = task.assignee
    if name is None:
        return ""
    member = team.find(name)
    if member is None:  # it has yet to join, unless another member took a name that is too much like this one
        return teams.look_alike(team, name)
    if not teams.is_member(store, team, name):
        return f"{name} {'was shut down' if member.stopped_by else 'left the team'}"
    if name == team.leader:
        return f"{name} leads the team now"
    if member.started_by:  # it is resumed when a task is assigned to it
        return ""
    if presence.is_gone(presence.load_other(store, team.name, name)):
        return f"the process of {name} is gone"
    if presence.is_silent(store, team, name, task.updated_at) and not tasks.held_by(store, team.name, name):
        return f"nothing was heard of {name} for {team.silence:g} seconds"
    return ""


def set_alarm(store: Store, team: Team, assigned_tasks: Iterable[Task], alarm: Alarm) -> None:
    """Set the *alarm* for when an assignee will have been silent for too long, or its process ends."""
    for task in assigned_tasks:
        member = team.member(task.assignee or "")
        if member and not member.started_by:
            agent = presence.load_other(store, team.name, member.agent_id)
            if silent_since := max(filter(None, (agent.last_seen, task.updated_at)), default=""):
                seconds_left = team.silence - seconds_since(silent_since, store.now())
                alarm.ring_after(seconds_left if seconds_left > 0 else _LOOK_AGAIN_AFTER)
            alarm.ring_at_end_of(agent.pid, agent.pid_started, agent.pid_boot)


def free_lost(store: Store, team: Team) -> list[Task]:
    """Free the tasks whose assignees are lost, and notify the leader. If a task can't be freed now, the next call tries
    again. Return all tasks that were assigned when the function was called, whether or not they were freed.
    """
    assigned_tasks = list(tasks.labelled(store, team.name, KEPT))
    for task in assigned_tasks:
        if _why_assignee_is_lost(store, team, task):
            free(store, team, task.id, lambda task: _why_assignee_is_lost(store, team, task))
    return assigned_tasks


def free_all(store: Store, team: Team, agent: str, reason: str) -> None:
    """Free the tasks that are assigned to *agent*, which is gone for the *reason*, and notify the leader."""
    for task in of_agent(store, team.name, agent):
        free(store, team, task.id, lambda task: reason if task.assignee == agent else "")


def free(store: Store, team: Team, task_id: str, why: Callable[[Task], str]) -> None:
    """If *why* returns a reason for the stored task, remove its assignee and notify the leader. Ignore errors."""

    def change(task: Task) -> Task:
        reason = why(task)
        if task.status != "pending" or not task.assignee or not reason:
            return task
        free = task.having(assignee=None).noted(teams.now(store), SYSTEM, "unassigned", reason, owner=task.assignee)
        body = f"{task.named} was assigned to {task.assignee}, and anybody may claim it now: {reason}"
        uid = f"freed-{task.id}-{os.urandom(6).hex()}"
        return owing(free, Owed(to=team.leader, message=body, uid=uid, event=Event.TASK_UNASSIGNED, task=task.id))

    try:
        before, task = update(store, team.name, TASK, task_id, change)
        if before is not task:
            history.note(store, team.name, SYSTEM, "task unassigned", task=task_id, owner=before.assignee)
        deliver(store, team.name, TASK, task)
    except errors.TeamsError:  # another login's task, or a disk that can't be written: a later command frees it
        return


def may_reopen(task: Task, standing: Standing) -> bool:
    """Return whether the caller may reopen the task, once it has ended."""
    return standing.manages or (task.owner == standing.name and not standing.leads)


def how_to_reopen(task: Task, standing: Standing) -> str:
    """Return the sentence that says how the *task*, which has ended, is reopened: the command, if the caller may run
    it, or else who may.
    """
    if may_reopen(task, standing):
        return f"Reopen it: teams update-task {task.id} --status pending"
    owner = f"{task.owner}, " if standing.team.member(task.owner or "") else ""
    more = " For more work: teams create-task TITLE" if standing.leads else ""
    return f"Only {owner}a task-manager or the human reopens it.{more}"


def how_to_claim(store: Store, task: Task, standing: Standing) -> tuple[bool, str]:
    """Return whether the caller can claim the pending *task*, and a sentence that says how, or why not."""
    team = standing.team
    if task.assignee not in (None, standing.name):
        return False, f"It is assigned to {task.assignee}, who has to claim it."
    if standing.caller.is_human:
        return False, f"A member has to do it. If nobody needs it: teams update-task {task.id} --status cancelled"
    if roles.verdict(standing.role, "claim-task", team, standing.caller.config) == "deny":
        return False, "A member has to claim it."
    if dependencies.open_blockers(task, dependencies.stored(store, team.name)):
        return False, "It is blocked. To wait for work: teams wait --claim"
    return True, f"Claim it: teams claim-task {task.id}"


def how_to_review(task: Task) -> str:
    """Return the sentence that says how the work on the task is accepted or returned."""
    return f"It is in review: teams review-task {task.id} --accept, or teams review-task {task.id} --reject WHY"


def refuse_stranger(store: Store, task: Task, standing: Standing) -> None:
    """Refuse a caller who does not own the task.

    Raises:
        StaleClaim: The caller is a former owner of the task. The hint says how to keep the caller's result.
        WrongState: The task is pending.
        NotAllowed: The task belongs to another member, or to nobody.
    """
    name = standing.name
    if task.owner == name:
        return
    can_claim, claim = how_to_claim(store, task, standing) if task.status == "pending" else (False, "")
    if task.was_claimed_by(name):
        last = task.notes[-1]
        reason = f" ({last.what}: {last.reason})" if last.reason else ""
        if can_claim:
            advice = f"teams claim-task {task.id}, and complete it again"
        else:
            has_it = task.owner if task.status in (IN_PROGRESS, IN_REVIEW) else task.assignee
            now_with = f"{has_it} has the task now: leave its files. " if has_it else ""
            advice = f"teams note {task.id} TEXT. {now_with}Continue: teams wait --claim"
        raise errors.StaleClaim(
            f"your claim on {task.id} has ended: it is {state_of(task)}{reason}", f"Keep your result: {advice}"
        )
    if claim:
        raise errors.WrongState(f"{task.id} is pending", claim)
    if task.owner is None:
        raise errors.NotAllowed(f"{task.id} is {state_of(task)}, and nobody's", how_to_reopen(task, standing))
    hint = "Only its owner sets its status and result."
    if task.status == IN_REVIEW and standing.caller.is_human:  # who may always review
        hint = how_to_review(task)
    raise errors.NotAllowed(f"{task.id} is {task.owner}'s", hint)


def refuse_taking(store: Store, team: Team, task: Task, by: Caller, command: str) -> None:
    """Raise Conflict if another owner is at work on the task. A human may take it anyway. The hint tells a member to
    repeat the *command* with `--force`.
    """
    if task.status != IN_PROGRESS or task.owner == by.name or by.is_human:
        return
    if leases.is_grace_due(store, task) or task.in_grace or leases.why_claim_ended(store, team, task):
        return
    owner = presence.load_other(store, team.name, task.owner or "")
    last_seen = max(filter(None, (owner.last_seen, task.claimed_at)), default="")
    silence = max(0.0, seconds_since(last_seen, store.now())) if last_seen else 0.0
    is_at_work = "is at work" if silence < _AT_WORK_WITHIN else "may still be at work"
    last_seen_ago = f": last seen {length(silence)} ago" if last_seen else ""
    raise errors.Conflict(
        f"{task.owner} {is_at_work} on {task.id}{last_seen_ago}; nothing was changed",
        f"To take it anyway, and notify {task.owner}: {command} --force",
    )


def state_of(task: Task) -> str:
    """Return the status of the task in words, with the owner or the reviewer: "in progress by bob"."""
    if task.status == IN_REVIEW:
        return f"in review ({task.review_by})"
    if task.status == "completed" and task.owner:
        return f"completed by {task.owner}"
    return f"in progress by {task.owner}" if task.status == IN_PROGRESS else task.status


def assigned(store: Store, team: Team, task: Task, name: str, by: str) -> Task:
    """Return a copy of *task* in which the member *by* has assigned it to the member *name*. Unless *name* is *by*, the
    copy also holds a notice that is still to be sent to *name*. If *name* is the assignee already, return *task*.
    """
    if task.assignee == name:
        return task
    changed = task.having(assignee=name).noted(teams.now(store), by, "kept", owner=name)
    if name == by:
        return changed
    words, event = _words_and_event(task, dependencies.stored(store, team.name))
    body = f"{task.named}{words}"
    uid = f"kept-{task.id}-{os.urandom(6).hex()}"
    return owing(changed, Owed(to=name, message=body, uid=uid, by=by, about=task.id, event=event, task=task.id))


def draft_assigned(draft: Task, status_of: Callable[[str], str], name: str, by: str) -> Task:
    """Return the *draft* of a task, assigned to the member *name* by the member *by*. Unless *name* is *by*, the draft
    also holds a notice that is still to be sent to *name*. *status_of* maps the ids of tasks to their statuses.

    A draft has no id yet. `Task.numbered` adds the id to the text and the uid of the notice.
    """
    if name == by:
        return draft.having(assignee=name)
    words, event = _words_and_event(draft, status_of)
    notice = Owed(to=name, message=f" ({draft.title}){words}", uid="kept-new", by=by, event=event)
    return draft.having(assignee=name, owed=[notice])


def _words_and_event(task: Task, status_of: Callable[[str], str]) -> tuple[str, str]:
    """Return the end of the notice to the assignee, such as " is assigned to you and ready", and the notice's event."""
    blockers = ", ".join(map(str, dependencies.open_blockers(task, status_of)))
    if not blockers:
        return " is assigned to you and ready: teams claim-task --next", Event.TASK_ASSIGNED
    words = f" is assigned to you, blocked by {blockers}; you will be notified when it is ready (teams show-task ID)"
    if task.plan_required:
        words += ". It needs a plan, which you can propose before: teams propose-plan TEXT --task ID"
    return words, Event.TASK_ASSIGNED_BLOCKED


def unassigned(store: Store, team: Team, task: Task, by: str, reason: str | None) -> Task:
    """Return the task without its assignee, and with a notice to this member unless the member has left or is *by*."""
    if task.assignee is None:
        raise errors.WrongState(f"{task.id} is assigned to nobody", f"See: teams show-task {task.id}")
    free = task.having(assignee=None).noted(teams.now(store), by, "unassigned", reason, owner=task.assignee)
    if task.assignee == by or not team.member(task.assignee):
        return free
    body = f"{task.named} is no longer assigned to you, by {by}"
    if reason:
        body += f": {reason}"
    uid = f"unassigned-{task.id}-{os.urandom(6).hex()}"
    return owing(free, Owed(to=task.assignee, message=body, uid=uid, by=by, event=Event.TASK_UNASSIGNED, task=task.id))


def ready_notices(store: Store, team: Team, done: Task) -> list[Owed]:
    """Return the notices to members whose tasks may be ready, or may be completed, now that *done* is completed.
    `Task.still_due` checks this again before a notice is sent.
    """

    def notice(to: str, task: Task, words: str, uid_prefix: str, event: str) -> Owed:
        body, uid = f"{task.named}{words}", f"{uid_prefix}{task.id}-{done.id}-{done.claim}"
        return Owed(to=to, message=body, uid=uid, by=done.owner or SYSTEM, about=task.id, event=event, task=task.id)

    notices = []
    for task in tasks.labelled(store, team.name, KEPT):
        if done.id in task.blocked_by and task.assignee:
            words = ", kept for you, is ready: teams claim-task --next"
            notices.append(notice(task.assignee, task, words, IF_READY, Event.TASK_READY))
    for task in tasks.labelled(store, team.name, IN_PROGRESS):
        if done.id in task.waits_for and task.owner not in (None, done.owner):
            words = f" can be completed now: {done.named} is completed"
            notices.append(notice(task.owner or "", task, words, IF_LAST, Event.TASK_COMPLETABLE))
    return notices
