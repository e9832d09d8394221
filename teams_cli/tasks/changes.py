"""Changes of tasks: texts, blockers and status. The caller's role and the task's owner decide which changes are
allowed.
"""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.messages.notices import deliver
from teams_cli.names import id_of
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update, update_all
from teams_cli.tasks import assigning, checks, dependencies, editing, leases, tasks
from teams_cli.tasks.assigning import refuse_stranger, refuse_taking, state_of
from teams_cli.tasks.checks import Check, Evidence
from teams_cli.tasks.tasks import EDITABLE, FINISHED, IN_PROGRESS, IN_REVIEW, TASK, Task
from teams_cli.teams import history, presence, teams
from teams_cli.teams.permission import Standing, require, standing_of
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import MessageType
    from teams_cli.teams.permission import Caller


class Edit:
    """The changes to a task; None leaves a field as it is. Every field in `EDITABLE` may be given."""

    def __init__(
        self,
        *,
        status: str | None = None,
        result: str | None = None,
        block: list[str] | None = None,
        unblock: list[str] | None = None,
        after: list[str] | None = None,
        owner: str | None = None,
        claim: int | None = None,
        reason: str | None = None,
        append: str | None = None,
        unassign: bool = False,
        force: bool = False,
        checked: Check | None = None,
        **fields: Any,
    ) -> None:
        if strange := fields.keys() - set(EDITABLE):
            raise TypeError(f"a task has no field to edit called {', '.join(sorted(strange))}")
        self.status = status
        self.result = result
        self.fields = {key: value for key, value in fields.items() if value is not None}
        self.block = [id_of(word, "task") for word in block or ()]
        self.unblock = [id_of(word, "task") for word in unblock or ()]
        self.after = [id_of(word, "task") for word in after or ()]
        self.owner = owner
        self.claim = claim
        self.reason = reason
        self.append = append
        self.unassign = unassign
        self.force = force
        """Whether it is taken from an owner that is at work, too."""
        self.checked = checked
        self.check_from: str | None = None
        """The checkout in which a check is set, if it is in one."""
        self.submitted: str | None = None
        """The commit that is handed in to be reviewed, if it is one."""
        self.evidence: list[Evidence] = []
        self.notified: dict[str, list[str]] = {}
        """The members who are notified of the edit, by the id of the task."""
        self.hands_in_again = False
        """Whether it hands in newer work of a task in review."""
        self.unseen: str | None = None
        """The member who edited the task before it was completed, if its owner was not yet notified."""
        self.keeping = False
        """Whether evidence is to be kept with it."""
        self.uid: str | None = None
        """The uid of the command: a repeat appends nothing twice."""
        self.options = ""
        """The other options of the command, for the hint to repeat it."""

    @property
    def words(self) -> bool:
        """Whether fields or blockers change."""
        return bool(self.fields or self.block or self.unblock or self.after) or self.append is not None

    def refuse_senseless(self) -> None:
        """Refuse an edit that is wrong for every task.

        Raises:
            InvalidValue: A text is blank or too long, or the status can't be set.
            WrongUsage: Nothing is to be changed, or options contradict each other.
        """
        if self.force and not self.owner:
            raise errors.WrongUsage("--force needs --owner", "It assigns a task although its owner is at work.")
        if self.owner and self.unassign:
            raise errors.WrongUsage("--owner and --unassign can't be combined", "Choose one.")
        if not (self.words or self.status or self.owner or self.unassign or self.keeping) and self.result is None:
            raise errors.WrongUsage("nothing to change is given", "Give: --status, --result, --title, …")
        if "title" in self.fields:
            text.one_line(self.fields["title"], "title", 500)
        if self.status == "in_progress":
            raise errors.InvalidValue("in_progress can't be set", "Claim the task: teams claim-task ID")
        if self.status == "in_review":
            raise errors.InvalidValue("in_review can't be set", "Complete the task: --status completed")
        text.within(self.fields.get("description", ""), "description", text.MAX_MESSAGE)
        if self.append is not None:
            text.checked(self.append, "text to append")
        if "check" in self.fields:
            text.checked(self.fields["check"], "check")
        text.within(self.result or "", "result", text.MAX_RESULT)
        text.within(self.reason or "", "reason", text.MAX_MESSAGE)


def change_task(store: Store, team_name: str, caller: Caller | None, word: str, changes: Edit) -> Task:
    """Change a task, or finish it.

    Its owner completes or fails it; a task-manager or the human reopens or cancels it. Completing it again changes
    nothing; while it is in review, it hands in newer work.

    Raises:
        TaskNotFound: The task, or a new blocker, does not exist.
        NotAllowed: You may not make this change.
        WrongState: The task can't change from its present status to this one.
        StaleClaim: The claim has expired, or is not the one of --claim.
        PlanRequired: Its plan must be approved first.
        NotChecked, CheckFailed: Its check must pass first.
        DependencyCycle: The task would block itself.
        Conflict: Its owner is at work on it. `--force` assigns it anyway.
    """
    who = require(store, team_name, caller, "update-task", word)
    changes.refuse_senseless()
    seen = tasks.get(store, team_name, word)
    _refuse(store, who, seen.id, changes)

    def change(task: Task) -> Task:
        return changed_by(store, who, task, changes)

    if changes.owner:
        change(seen)  # what refuses it does so before anything is written
        presence.forget_ended_process(store, team_name, changes.owner)
    before, task = update(store, team_name, TASK, seen.id, change)
    return followed(store, who, before, task, changes)


def changed_by(store: Store, who: Standing, task: Task, changes: Edit) -> Task:
    """Return the changed task, with the notices that the change owes."""
    changed = _changed(store, who.team, task, changes, who)
    if changes.status == "completed" != task.status:
        changes.unseen = editing.unseen_by(store, who.team, task, who.name)
    edited = editing.notices(task, changed, changes, who.name)
    notices = _notices(store, who.team, task, changed, changes, who)
    again: list[Owed] = []
    if task.status == IN_REVIEW == changed.status and task is not changed:
        from teams_cli.tasks import reviews

        edited = reviews.of_edit(who.team, changed, who.caller.config, edited)
        changes.hands_in_again = changes.status == "completed"
        if changes.hands_in_again:
            again = reviews.asked_again(who.team, task, changed, who.caller.config)
    changes.notified[task.id] = [notice.to for notice in again + edited]
    return changed if changed is task else owing(changed, *notices, *again, *edited)


def followed(store: Store, who: Standing, before: Task, task: Task, changes: Edit) -> Task:
    """Finish a change that was stored: write the history and send the notices. Return the task."""
    team = who.team
    if before is not task:
        dependencies.refuse_late_cycle(store, team.name, task, before)
        _note(store, team, before, task, changes, who)
        leases.end_grace(store, team, before, task)
    paid = deliver(store, team.name, TASK, task)
    return task.having(owed=None) if paid else task


def try_change(store: Store, who: Standing, task: Task, changes: Edit) -> None:
    """Refuse what `change_task` would refuse, and change nothing."""
    _refuse(store, who, task.id, changes)
    _changed(store, who.team, task, changes, who)


def _refuse(store: Store, who: Standing, task_id: str, changes: Edit) -> None:
    """Refuse an owner who may not have the task, and blockers that wait for it."""
    if changes.owner:
        from teams_cli.tasks import claims

        claims.refuse_unable(who.team, changes.owner, who.caller)
    if further := [*changes.block, *changes.after]:
        dependencies.refuse_cycle(store, who.team.name, task_id, further)


def moves(team: Team, caller: Caller, task: Task) -> list[str]:
    """Return the statuses to which a caller who does not own the task may move it.

    A leader or task-manager releases a task in progress by `release-task`. Only a task-manager moves other tasks, by
    `update-task`.
    """
    who = standing_of(team, caller)
    if who is None or team.state == "closed":
        return []
    if task.status == "in_progress":
        return ["pending"] if who.leads or who.manages else []
    return _AFTER[task.status] if who.manages and not who.leads else []


_AFTER = {"pending": ["cancelled"], IN_REVIEW: ["pending"], **{status: ["pending"] for status in FINISHED}}


def _changed(store: Store, team: Team, task: Task, changes: Edit, who: Standing) -> Task:
    if changes.claim is not None and changes.claim != task.claim:
        raise errors.StaleClaim(
            f"claim {changes.claim} of {task.id} has ended: it is {state_of(task)}, claim {task.claim}",
            "See: teams show-task " + task.id,
        )
    changed = task
    if changes.words:
        editing.refuse_foreign(task, who.name, who.leads or who.manages)
        checks.refuse_setter(who, *(changes.fields.get(key) for key in ("check", "review_by")))
        if "review_by" in changes.fields:
            changes.fields["review_by"] = checks.reviewer(who, changes.fields["review_by"])
        changed = editing.with_words(store, changed, changes, who.name)
    if changes.status or changes.result is not None or changes.keeping:
        changed = _with_status(store, team, changed, changes, who)
    if changes.owner:
        changed = _with_owner(store, team, changed, changes.owner, who, changes.force)
    return _unassigned(store, team, changed, changes, who) if changes.unassign else changed


def _with_status(store: Store, team: Team, task: Task, changes: Edit, who: Standing) -> Task:
    if who.leads:
        raise errors.NotAllowed(
            "leaders monitor tasks; they do not set their status or result", _who_does(task, changes)
        )
    if changes.status is None:
        refuse_stranger(task, who.name)
        return _amended(store, task, changes, who)
    if changes.status in ("completed", "failed"):
        return _finished(store, team, task, changes, who)
    if changes.status == "cancelled":
        return _cancelled(store, task, changes, who)
    return _reopened(store, task, changes, who)


def _who_does(task: Task, changes: Edit) -> str:
    """Return the advice for a leader who may not make the change: whom to ask."""
    if changes.status in ("pending", "cancelled"):
        return "Ask a task-manager or the human, or for more work: teams create-task TITLE"
    return (
        f"Only its owner does: ask {task.owner}."
        if task.owner
        else "Only its owner can do that: a member must claim it first."
    )


def _finished(store: Store, team: Team, task: Task, changes: Edit, who: Standing) -> Task:
    """Return the task completed, handed in for review, or failed; unchanged if it is so already.

    Raises:
        WrongState: The task can't change from its present status to this one.
        PlanRequired, TaskBlocked, NotChecked, CheckFailed: It can't be completed yet.
    """
    refuse_stranger(task, who.name)
    status = _status_after(task, changes)
    same_result = changes.result is None or changes.result == task.result
    is_newer = task.status == IN_REVIEW and changes.submitted not in (None, task.submitted)
    if task.status == status and same_result and not changes.keeping and not is_newer:
        return task
    if task.status != IN_PROGRESS and not task.status == status == IN_REVIEW:
        hint = f"Ask a task-manager or the human to reopen it: teams update-task {task.id} --status pending"
        if task.status == IN_REVIEW:
            hint = f"Ask {task.review_by} to reject it first: teams send-message {task.review_by} WHY"
        elif task.status == changes.status:
            hint = f"Change only its result: teams update-task {task.id} --result TEXT"
        raise errors.WrongState(f"{task.id} is {task.status} already", hint)
    is_new_work = task.status == IN_PROGRESS or is_newer
    if changes.status == "completed" and is_new_work:
        refuse_unfinishable(store, team, task)
        checks.refuse_unchecked(task, changes.checked)
    now = teams.now(store)
    done = task.having(
        status=status,
        result=checks.final_result(task, changes.result, changes.status, who.name),
        checked=changes.checked.to_json() if changes.checked else task.checked,
        submitted=changes.submitted if status == IN_REVIEW and is_new_work else task.submitted,
        evidence=[*(task.evidence or ()), *changes.evidence] or None,
        completed_at=None if status == IN_REVIEW else now,
        lease_expires_at=None,
        lease_epoch=None,
        lease_until=None,
        grace_until=None,
    )
    return done.noted(now, who.name, status, changes.reason)


def _status_after(task: Task, changes: Edit) -> str:
    """Return the new status. A task with a reviewer goes to `in_review` instead of `completed`."""
    return IN_REVIEW if changes.status == "completed" and task.review_by else str(changes.status)


def refuse_finishing(store: Store, at: Standing, task: Task, changes: Edit) -> None:
    """Refuse a change that would be refused even if its check passed, before the check is run."""
    checked = None if task.check is None else Check(command=task.check, status=0, by=at.name, at="")
    wanted = Edit(status=changes.status, result=changes.result, claim=changes.claim, checked=checked)
    wanted.keeping = changes.keeping
    _changed(store, at.team, task, wanted, at)


def _amended(store: Store, task: Task, changes: Edit, who: Standing) -> Task:
    """The task with another result. A note records the change if the task is finished, or was."""
    result = task.result if changes.result is None else changes.result
    evidence = [*(task.evidence or ()), *changes.evidence] or None
    said = {"result": result, "checked": checks.with_new_result(task, changes.result), "evidence": evidence}
    amended = task.having(**said, updated_at=teams.now(store))
    was_finished = task.status in FINISHED or any(note.what == "reopened" for note in task.notes)
    if not was_finished or (result == task.result_so_far and not changes.evidence):
        return amended
    return amended.noted(teams.now(store), who.name, "amended", changes.reason)


def refuse_unfinishable(store: Store, team: Team, task: Task) -> None:
    """Raises PlanRequired or TaskBlocked: The task cannot be completed yet."""
    if task.plan_required:
        from teams_cli.tasks import plans

        if plans.approved(store, team.name, task.id) is None:
            raise errors.PlanRequired(
                f"{task.id} needs an approved plan before it is completed",
                f"Propose one: teams propose-plan TEXT --task {task.id}",
            )
    if task.agree_with:
        from teams_cli.tasks import agreements

        if why := agreements.lacking(store, team.name, task):
            both = f"{task.id.removeprefix('task-')},{task.agree_with[0].removeprefix('task-')}"
            raise errors.Conflict(why, f"Propose who changes what: teams agree {both} --text TEXT")
    if blockers := dependencies.open_blockers(task, dependencies.stored(store, team.name)):
        named = ", ".join(map(str, blockers))
        first = tasks.get(store, team.name, blockers[0].id)
        is_for_owner = first.status == "pending" and first.assignee in (None, task.owner)
        advice = f"Claim that first: teams claim-task {first.id}" if is_for_owner else "Complete it after those tasks"
        hint = f"{advice}; or release this one: teams release-task {task.id}"
        raise errors.TaskBlocked(f"{task.id} is blocked by {named}", hint)
    if before := dependencies.open_predecessors(task, dependencies.stored(store, team.name)):
        raise errors.TaskBlocked(
            f"{task.id} is to be completed after {', '.join(map(str, before))}",
            f"To wait until it can be: teams wait --task {before[0].id}. If it need not wait: "
            f"teams update-task {task.id} --unblock {before[0].id}",
        )


def _cancelled(store: Store, task: Task, changes: Edit, who: Standing) -> Task:
    if not who.manages:
        raise errors.NotAllowed(
            "only a task-manager or the human cancels tasks",
            "Ask one of them, or release the task: teams release-task ID",
        )
    if task.status == "cancelled":
        return task
    if task.status != "pending":
        raise errors.WrongState(
            f"{task.id} is {task.status}; only pending tasks are cancelled", f"First: teams release-task {task.id}"
        )
    now = teams.now(store)
    return task.having(status="cancelled", completed_at=now).noted(now, who.name, "cancelled", changes.reason)


def _reopened(store: Store, task: Task, changes: Edit, who: Standing) -> Task:
    if not (who.manages or task.owner == who.name):
        raise errors.NotAllowed(f"{task.id} is not yours to reopen", "Ask its owner, a task-manager or the human.")
    if task.status == "pending":
        return task
    if task.status not in FINISHED and task.status != IN_REVIEW:
        raise errors.WrongState(f"{task.id} is {state_of(task)}", f"Release it: teams release-task {task.id}")
    return task.freed().noted(teams.now(store), who.name, "reopened", changes.reason)


def _with_owner(store: Store, team: Team, task: Task, owner: str, who: Standing, force: bool) -> Task:
    """Hand a task in progress to another member, under a new claim; or keep a pending task for it."""
    if task.status == "in_progress" and task.owner == owner:
        return task
    if task.status == "pending":
        _refuse_no_assigner(task, who)
        assigning.refuse_unskilled(team, task, owner, who.caller.config)
        return assigning.assigned(store, team, task, owner, who.name)
    if not (who.leads or who.manages or task.owner == who.name):
        raise errors.NotAllowed(
            f"{task.id} is not yours to assign: it is {state_of(task)}; nothing was changed",
            "Ask the leader, a task-manager or the human.",
        )
    if task.status in FINISHED:
        raise errors.WrongState(
            f"{task.id} is {task.status}", f"Reopen it: teams update-task {task.id} --status pending"
        )
    if blockers := dependencies.open_blockers(task, dependencies.stored(store, team.name)):
        raise errors.TaskBlocked(
            f"{task.id} is blocked by {', '.join(b.id for b in blockers)}", "Wait until they are completed."
        )
    assigning.refuse_unskilled(team, task, owner, who.caller.config)
    if not force:
        refuse_taking(store, team, task, who.caller, f"teams update-task {task.id} --owner {owner}")
    now = teams.now(store)
    taken = task.having(status="in_progress", owner=owner, claimed_at=now, claim=task.claim + 1)
    return leases.with_full_lease(store, team, taken.noted(now, owner, "claimed", f"handed over by {who.name}"))


def _refuse_no_assigner(task: Task, who: Standing) -> None:
    if not (who.leads or who.manages):
        raise errors.NotAllowed(f"{task.id} is not yours to assign", "Ask the leader, a task-manager or the human.")


def _unassigned(store: Store, team: Team, task: Task, changes: Edit, who: Standing) -> Task:
    if task.assignee != who.name:
        _refuse_no_assigner(task, who)
    return assigning.unassigned(store, team, task, who.name, changes.reason)


def _notices(store: Store, team: Team, before: Task, task: Task, changes: Edit, who: Standing) -> list[Owed]:
    """Return the notices of the change: to a new owner, to members who can go on, and to the leader if the task ended.
    A task of a workflow run sends none.
    """
    notices = assigning.ready_notices(store, team, task) if task.status == "completed" != before.status else []
    if task.status == "in_progress" and task.owner and task.owner != before.owner:
        body = f"{who.name} gave you {task.id} ({task.title}): teams show-task {task.id}"
        notices.append(task.notice(task.owner, body, "task-given", "given", by=who.name))
        if before.owner not in (None, who.name) and team.member(before.owner or ""):
            notices.append(
                leases.loss_notice(before, f"{who.name} gave it away", f"; {task.owner} has it now", who.name)
            )
    if before.status == IN_REVIEW != task.status and task.status not in FINISHED:
        from teams_cli.tasks import reviews

        notices += reviews.withdrawn(team, before, task, who.caller.config, who.name)
    if task.status == IN_REVIEW != before.status:
        from teams_cli.tasks import reviews

        notices += reviews.asked(team, task, who.caller.config)
    if task.status == "failed" and before.status != "failed" and team.leader != who.name:
        said = tasks.after_colon(task, task.why_ended or task.result) or f": teams show-task {task.id}"
        body = f"{task.id} ({task.title}) failed by {who.name}{said}"
        notices.append(task.notice(team.leader, body, "task-failed", "failed", by=who.name, about=task.id))
    if task.status == "completed" != before.status and team.leader != who.name and not task.of_a_run:
        checked = ", checked" if task.checked and task.checked["status"] == 0 else ""
        checked += f", who had not seen the last edit by {changes.unseen}" if changes.unseen else ""
        body = f"{task.id} ({task.title}) completed by {who.name}{checked}{tasks.after_colon(task, task.result)}"
        kind: MessageType = "notice" if changes.unseen else "info"  # who leads may want it another way
        more = {"type": kind, "by": who.name, "about": task.id}
        notices.append(task.notice(team.leader, body, "task-completed", "completed", **more))
    return notices


def _note(store: Store, team: Team, before: Task, task: Task, changes: Edit, who: Standing) -> None:
    is_handed_in = changes.status == "completed" and task.status == IN_REVIEW
    is_moved = task.status != before.status or is_handed_in
    what = f"task {task.status.replace('_', ' ')}" if is_moved else "task edited"
    if task.status == "pending" and before.status in FINISHED:
        what = "task reopened"
    to = task.owner if changes.owner and task.owner != before.owner else None
    if to:
        what = "task handed over"
    if task.assignee != before.assignee:
        what = f"task assigned to {task.assignee}" if task.assignee else "task unassigned"
    if task.result != before.result and not is_moved:
        what = "result amended"
    last = task.notes[-1] if task.notes else None
    keys = ", ".join(last.changed or ()) if last and what == "task edited" else None
    passed = True if what == "task completed" and changes.checked else None
    said = {"title": task.title, "to": to, "changed": keys, "reason": changes.reason, "checked": passed}
    history.note(store, team.name, who.name, what, task=task.id, **said)


def change_each(store: Store, team_name: str, caller: Caller | None, words: list[str], edit: Edit) -> list[Task]:
    """Change several tasks in the same way, in one commit. If one of them cannot be changed, none is.

    Raises:
        WrongUsage: The change is one that only a single task can have.
        TaskNotFound, NotAllowed, WrongState, DependencyCycle: As for one of them.
    """
    _refuse_for_several(edit)
    who = require(store, team_name, caller, "update-task", words[0])
    found = [tasks.get(store, team_name, key) for key in dict.fromkeys(id_of(word, "task") for word in words)]
    for task in found:
        try_change(store, who, task, edit)
    if edit.owner:
        presence.forget_ended_process(store, team_name, edit.owner)
    keys = [task.id for task in found]
    pairs = update_all(store, team_name, tasks.TASK, keys, lambda task: changed_by(store, who, task, edit))
    return [followed(store, who, before, task, edit) for before, task in pairs]


def _refuse_for_several(edit: Edit) -> None:
    """Refuse changes that only a single task can have: title, claim, completion, result and evidence."""
    ends = edit.status in ("completed", "failed")
    if ends or edit.result is not None or edit.claim is not None or "title" in edit.fields or edit.keeping:
        raise errors.WrongUsage(
            "a title, claim, result, attachment or final status is for one task only", "Name one task."
        )
    edit.refuse_senseless()
