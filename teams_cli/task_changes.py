"""Changing a task: its words, its blockers, its status. Who may do what depends on the role and on whose it is."""

from __future__ import annotations

from teams_cli import agents, claims, history, leases, messages, plans, roles, tasks, teams, text
from teams_cli.errors import (
    InvalidValue,
    NotAllowed,
    PlanRequired,
    StaleClaim,
    TaskBlocked,
    TeamsError,
    WrongState,
    WrongUsage,
)
from teams_cli.names import HUMAN, id_of
from teams_cli.roles import require
from teams_cli.store.contract import update
from teams_cli.tasks import FINISHED, TASK
from teams_cli.teams import LEADER, MANAGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.caller import Caller
    from teams_cli.store.contract import Store
    from teams_cli.tasks import Task
    from teams_cli.teams import Team


class Changes:
    """What to change; None leaves a field as it is."""

    def __init__(
        self,
        *,
        status: str | None = None,
        result: str | None = None,
        title: str | None = None,
        description: str | None = None,
        priority: str | None = None,
        block: list[str] | None = None,
        unblock: list[str] | None = None,
        owner: str | None = None,
        claim: int | None = None,
        reason: str | None = None,
    ) -> None:
        self.status = status
        self.result = result
        self.title = title
        self.description = description
        self.priority = priority
        self.block = [id_of(word, "task") for word in block or ()]
        self.unblock = [id_of(word, "task") for word in unblock or ()]
        self.owner = owner
        self.claim = claim
        self.reason = reason

    @property
    def words(self) -> bool:
        """Whether title, description, priority or blockers change."""
        return bool(self.title or self.priority or self.block or self.unblock) or self.description is not None

    def check(self) -> None:
        """Refuse what no task could take.

        Raises:
            InvalidValue: A text is blank or too long, a priority or status unknown.
            WrongUsage: Nothing is to be changed.
        """
        if not (self.words or self.status or self.owner) and self.result is None:
            raise WrongUsage("nothing to change was named", "Say what: --status, --result, --title, …")
        if self.title is not None:
            text.one_line(self.title, "title", 500)
        if self.status == "in_progress":
            raise InvalidValue("in_progress is not set by hand", "Claim the task: teams claim-task ID")
        text.within(self.description or "", "description", text.MAX_MESSAGE)
        text.within(self.result or "", "result", text.MAX_RESULT)
        text.within(self.reason or "", "reason", text.MAX_MESSAGE)


class _Who:
    """The caller, in its relation to the tasks of the team."""

    def __init__(self, team: Team, caller: Caller) -> None:
        self.name = caller.name
        self.config = caller.config
        self.leads = roles.is_any(team, caller, LEADER)
        self.manages = roles.is_any(team, caller, MANAGER, HUMAN)


def change_task(store: Store, team_name: str, caller: Caller | None, word: str, changes: Changes) -> Task:
    """Change a task. Its owner completes or fails it; whoever manages the tasks reopens and cancels.

    Completing one's completed task again changes nothing.

    Raises:
        TaskNotFound: The task, or a new blocker, does not exist.
        NotAllowed: The change is not the caller's to make.
        WrongState: The status does not follow on the one that it has.
        StaleClaim: The claim that was quoted, or the caller's own, is over.
        PlanRequired: It can't be completed before its plan is approved.
        DependencyCycle: It would wait for itself.
    """
    team = require(store, team_name, caller, "update-task", word)
    assert caller is not None
    changes.check()
    task_id = tasks.load(store, team_name, word).id
    _refuse_new_owner(store, team, changes.owner, caller)
    if changes.block:
        tasks.refuse_cycle(store, team_name, task_id, changes.block)
    who = _Who(team, caller)

    def change(task: Task) -> Task:
        return _changed(store, team, task, changes, who)

    before, task = update(store, team_name, TASK, task_id, change)
    if before is not task:
        _refuse_late_cycle(store, team_name, task, before)
        _tell(store, team, before, task, changes, who)
    return task


def moves(team: Team, caller: Caller, task: Task) -> list[str]:
    """The statuses that a caller who does not own the task may bring it to: by releasing it if it is in progress, else
    by an update.
    """
    who = _Who(team, caller)
    if team.state == "closed":
        return []
    if task.status == "in_progress":
        return ["pending"] if who.leads or who.manages else []
    return _AFTER[task.status] if who.manages and not who.leads else []


_AFTER = {"pending": ["cancelled"], **{status: ["pending"] for status in FINISHED}}


def _changed(store: Store, team: Team, task: Task, changes: Changes, who: _Who) -> Task:
    if changes.claim is not None and changes.claim != task.claim:
        raise StaleClaim(
            f"claim {changes.claim} of {task.id} is over: it is {_state(task)}, claim {task.claim}",
            "Look at it again: teams show-task " + task.id,
        )
    changed = task
    if changes.words:
        _refuse_words(task, who)
        changed = _with_words(store, changed, changes, who)
    if changes.status or changes.result is not None:
        changed = _with_status(store, team, changed, changes, who)
    if changes.owner:
        changed = _with_owner(store, team, changed, changes.owner, who)
    return changed


def _refuse_words(task: Task, who: _Who) -> None:
    if not (who.leads or who.manages or task.owner == who.name):
        raise NotAllowed(
            f"{task.id} is not yours to change: it is {_state(task)}", "Ask the leader, or claim the task first."
        )


def _with_words(store: Store, task: Task, changes: Changes, who: _Who) -> Task:
    blockers = [blocker for blocker in task.blocked_by if blocker not in changes.unblock]
    if missing := set(changes.unblock) - set(task.blocked_by):
        raise WrongState(f"{task.id} does not wait for {', '.join(sorted(missing))}", f"See teams show-task {task.id}")
    blockers += [blocker for blocker in dict.fromkeys(changes.block) if blocker not in blockers]
    changed = task.having(
        title=changes.title or task.title,
        description=task.description if changes.description is None else changes.description,
        priority=changes.priority or task.priority,
        blocked_by=blockers,
    )
    return task if changed == task else changed.noted(teams.now(store), who.name, "edited", changes.reason)


def _with_status(store: Store, team: Team, task: Task, changes: Changes, who: _Who) -> Task:
    if who.leads:
        raise NotAllowed(
            "leaders monitor tasks; they do not set their status or result", "Ask the owner, or a task-manager."
        )
    if changes.status is None:
        _refuse_stranger(task, who)
        return task.having(result=changes.result, updated_at=teams.now(store))
    if changes.status in ("completed", "failed"):
        return _finished(store, team, task, changes, who)
    if changes.status == "cancelled":
        return _cancelled(store, task, changes, who)
    return _reopened(store, task, changes, who)


def _refuse_stranger(task: Task, who: _Who) -> None:
    """Let only the owner pass; one who lost the claim is told so."""
    if task.owner == who.name:
        return
    if task.was_claimed_by(who.name):
        last = task.notes[-1]
        raise StaleClaim(
            f"your claim on {task.id} is over: it is {_state(task)}"
            + (f" ({last.what}: {last.reason})" if last.reason else ""),
            "Keep your result, and claim the task again if it is free.",
        )
    if task.status == "pending":
        raise WrongState(f"{task.id} is pending", f"Claim it first: teams claim-task {task.id}")
    raise NotAllowed(f"{task.id} is {task.owner}'s", "Only its owner sets its status and result.")


def _finished(store: Store, team: Team, task: Task, changes: Changes, who: _Who) -> Task:
    _refuse_stranger(task, who)
    same = changes.result is None or changes.result == task.result
    if task.status == changes.status and same:
        return task
    if task.status != "in_progress":
        raise WrongState(
            f"{task.id} is {task.status} already", f"Open it again first: teams update-task {task.id} --status pending"
        )
    if changes.status == "completed":
        _refuse_unfinishable(store, team, task)
    now = teams.now(store)
    done = task.having(
        status=changes.status,
        result=task.result if changes.result is None else changes.result,
        completed_at=now,
        lease_expires_at=None,
        lease_epoch=None,
        lease_until=None,
    )
    return done.noted(now, who.name, str(changes.status), changes.reason)


def _refuse_unfinishable(store: Store, team: Team, task: Task) -> None:
    if task.plan_required and not plans.is_approved(store, team.name, task.id):
        raise PlanRequired(
            f"{task.id} needs an approved plan before it is completed",
            f"Propose one: teams propose-plan TEXT --task {task.id}",
        )
    if blockers := tasks.open_blockers(store, team.name, task):
        named = ", ".join(f"{blocker.id} ({blocker.status})" for blocker in blockers)
        raise TaskBlocked(f"{task.id} waits for {named}", f"Complete it when they are, or release it: {task.id}")


def _cancelled(store: Store, task: Task, changes: Changes, who: _Who) -> Task:
    if not who.manages:
        raise NotAllowed("only a task-manager or the human cancels tasks", "Ask one, or release the task.")
    if task.status == "cancelled":
        return task
    if task.status != "pending":
        raise WrongState(
            f"{task.id} is {task.status}; only pending tasks are cancelled", f"First: teams release-task {task.id}"
        )
    now = teams.now(store)
    return task.having(status="cancelled", completed_at=now).noted(now, who.name, "cancelled", changes.reason)


def _reopened(store: Store, task: Task, changes: Changes, who: _Who) -> Task:
    if not (who.manages or task.owner == who.name):
        raise NotAllowed(f"{task.id} is not yours to open again", "Ask its owner, a task-manager or the human.")
    if task.status == "pending":
        return task
    if task.status not in FINISHED:
        raise WrongState(f"{task.id} is {_state(task)}", f"Give it back: teams release-task {task.id}")
    return task.freed().noted(teams.now(store), who.name, "reopened", changes.reason)


def _refuse_new_owner(store: Store, team: Team, owner: str | None, caller: Caller) -> None:
    """Refuse an owner that could not claim the task itself."""
    if owner is None:
        return
    member = team.member(owner)
    if member is None:
        teams.find_recipient(team, owner)
        raise InvalidValue(f"{owner} can't own a task", f"Members: {', '.join(team.active_names())}.")
    if roles.verdict(member.role, "claim-task", team, caller.config) == "deny":
        raise NotAllowed(f"{owner} is a {member.role}, which may not claim-task", "Choose another member.")


def _with_owner(store: Store, team: Team, task: Task, owner: str, who: _Who) -> Task:
    """Hand the task to another member, under a new claim."""
    if not (who.manages or task.owner == who.name):
        raise NotAllowed(
            f"{task.id} is not yours to hand over: it is {_state(task)}", "Ask a task-manager or the human."
        )
    if task.status in FINISHED:
        raise WrongState(f"{task.id} is {task.status}", f"Open it again: teams update-task {task.id} --status pending")
    if task.owner == owner:
        return task
    if blockers := tasks.open_blockers(store, team.name, task):
        raise TaskBlocked(f"{task.id} waits for {', '.join(b.id for b in blockers)}", "Wait until they are completed.")
    member = team.member(owner)
    claims.refuse_unskilled(task, roles.skills_of(member, team, who.config) if member else set(), owner)
    agents.forget_ended_process(store, team.name, owner)
    now = teams.now(store)
    taken = task.having(status="in_progress", owner=owner, claimed_at=now, claim=task.claim + 1)
    return leases.leased(store, team, taken.noted(now, owner, "claimed", f"handed over by {who.name}"))


def _refuse_late_cycle(store: Store, team: str, task: Task, before: Task) -> None:
    """Two changes at once may close a circle that neither would alone: the one who sees it takes its own back."""
    if set(task.blocked_by) <= set(before.blocked_by):
        return
    try:
        tasks.refuse_cycle(store, team, task.id, task.blocked_by)
    except TeamsError:
        update(store, team, TASK, task.id, lambda now: now.having(blocked_by=before.blocked_by))
        raise


def _tell(store: Store, team: Team, before: Task, task: Task, changes: Changes, who: _Who) -> None:
    what = f"task {task.status}" if task.status != before.status else "task edited"
    if task.status == "pending" and before.status in FINISHED:
        what = "task reopened"
    if changes.owner and task.owner != before.owner:
        what = "task handed over"
        body = f"{who.name} gave you {task.id} ({task.title}): teams show-task {task.id}"
        messages.notify(store, team.name, changes.owner, body, f"given-{task.id}-{task.claim}")
    history.note(store, team.name, who.name, what, task=task.id, title=task.title, reason=changes.reason)
    if task.status == "failed" and before.status != "failed" and team.leader != who.name:
        body = f"{task.id} ({task.title}) failed by {who.name}: teams show-task {task.id}"
        messages.notify(store, team.name, team.leader, body, f"failed-{task.id}-{task.claim}")


def _state(task: Task) -> str:
    return f"in progress by {task.owner}" if task.status == "in_progress" else task.status
