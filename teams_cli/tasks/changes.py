"""Changes of tasks: texts, blockers and status. The caller's role and the task's owner decide which changes are
allowed.
"""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import length, seconds_since
from teams_cli.messages.messages import Event
from teams_cli.messages.notices import deliver
from teams_cli.names import id_of
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store, update, update_all
from teams_cli.tasks import assigning, checks, dependencies, editing, leases, tasks
from teams_cli.tasks.assigning import REPEAT, how_to_reopen, refuse_stranger, refuse_taking, state_of
from teams_cli.tasks.checks import Check, Evidence
from teams_cli.tasks.tasks import COMPLETION_ASKED, EDITABLE, FINISHED, IN_PROGRESS, IN_REVIEW, TASK, Task
from teams_cli.teams import history, presence, teams
from teams_cli.teams.permission import Standing, require, standing_of
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import MessageType
    from teams_cli.teams.permission import Caller

    Remarks = dict[str, Any]
    """What the answer to an edit gives besides the task: the members who are `notified` of it, `handedInAgain` if it
    hands in newer work for a task in review, and `unseenEditBy`, a member whose last edit the owner has not seen.
    """

_MOST_NAMED = 5
"""The maximum number of blocked tasks that a notice names."""
_ENDINGS = frozenset({IN_REVIEW, "accepted", *FINISHED})
"""The events after which the owner of a task can't complete or fail it."""


class Edit:
    """The changes to make to a task; None leaves a field as it is. Every field in `EDITABLE` may be given. An edit is
    immutable; `having` returns a changed copy.
    """

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
        check_from: str | None = None,
        options: str = "",
        attaches_files: bool = False,
        completes_later: bool = False,
        **fields: Any,
    ) -> None:
        if strange := fields.keys() - set(EDITABLE):
            raise TypeError(f"a task has no field to edit called {', '.join(sorted(strange))}")
        self.status = status
        self.result = result
        self.fields = {key: value for key, value in fields.items() if value is not None}
        self.block = [id_of(task_ref, "task") for task_ref in block or ()]
        self.unblock = [id_of(task_ref, "task") for task_ref in unblock or ()]
        self.after = [id_of(task_ref, "task") for task_ref in after or ()]
        self.owner = owner
        self.claim = claim
        self.reason = reason
        self.append = append
        self.unassign = unassign
        self.force = force
        """Whether to take the task even from an owner that is at work."""
        self.checked = checked
        self.check_from = check_from
        """For a new check: the checkout in which it is set; None if it is set outside of a checkout."""
        self.submitted: str | None = None
        """The commit that is handed in for review; None if no commit is known."""
        self.evidence: list[Evidence] = []
        self.attaches_files = attaches_files
        """Whether files are attached to the task as evidence."""
        self.completes_later = completes_later
        """Whether the owner wants the task completed as soon as the tasks that it waits for are completed."""
        self.uid: str | None = None
        """The uid of the command, so that a repeated command does not append its text twice."""
        self.options = options
        """The other options of the command, so that a hint can repeat the whole command."""

    def having(self, **changes: Any) -> Edit:
        """Return a copy of the edit, with the *changes* to its attributes."""
        if unknown := changes.keys() - self.__dict__.keys():
            raise TypeError(f"an edit has no {', '.join(sorted(unknown))}")
        other = object.__new__(Edit)
        other.__dict__ = {**self.__dict__, **changes}
        return other

    @property
    def changes_fields(self) -> bool:
        """Whether fields or blockers change, and not only status, result or owner."""
        return bool(self.fields or self.block or self.unblock or self.after) or self.append is not None

    def refuse_invalid(self) -> None:
        """Refuse an edit that would be wrong for every task.

        Raises:
            InvalidValue: A text is blank or too long, or the status can't be set.
            WrongUsage: No change is given, or options contradict each other.
        """
        if self.force and not self.owner:
            raise errors.WrongUsage("--force needs --owner", "It assigns a task although its owner is at work.")
        if self.owner and self.unassign:
            raise errors.WrongUsage("--owner and --unassign can't be combined", "Choose one.")
        sets_status_or_owner = self.status or self.result is not None or self.owner or self.unassign
        if not (self.changes_fields or sets_status_or_owner or self.attaches_files or self.completes_later):
            raise errors.WrongUsage("nothing to change is given", "Give: --status, --result, --title, …")
        if "title" in self.fields:
            text.one_line(self.fields["title"], "title", 500)
        if self.status == IN_PROGRESS:
            raise errors.InvalidValue("in_progress can't be set", "Members claim tasks: teams claim-task ID")
        if self.status == IN_REVIEW:
            raise errors.InvalidValue("in_review can't be set", "Complete the task: --status completed")
        text.within(self.fields.get("description", ""), "description", text.MAX_MESSAGE)
        if self.append is not None:
            text.checked(self.append, "text to append")
        if "check" in self.fields:
            text.checked(self.fields["check"], "check")
        text.within(self.result or "", "result", text.MAX_RESULT)
        text.within(self.reason or "", "reason", text.MAX_MESSAGE)


def change_task(store: Store, team_name: str, caller: Caller | None, task_ref: str, edit: Edit) -> tuple[Task, Remarks]:
    """Change a task, or finish it.

    The owner completes or fails the task. The owner, a task-manager or the human reopens it; only a task-manager or the
    human can cancel it. Completing a completed task again changes nothing. If a task is in review, completing it again
    submits newer work.

    Raises:
        TaskNotFound: The task, or a new blocker, does not exist.
        NotAllowed: You may not make this change.
        WrongState: The task can't change from its present status to the new one.
        StaleClaim: The claim has expired, or does not have the number given with --claim.
        PlanRequired: The task's plan must be approved first.
        NotChecked, CheckFailed: The task's check must pass first.
        DependencyCycle: The task would block itself.
        Conflict: The owner is at work on the task; `--force` assigns it to another member anyway.
    """
    return change_as(store, require(store, team_name, caller, "update-task", task_ref), task_ref, edit)


def change_as(store: Store, standing: Standing, task_ref: str, edit: Edit) -> tuple[Task, Remarks]:
    """Change a task like `change_task`, for a caller with this *standing* who may do this operation."""
    team_name = standing.team.name
    edit.refuse_invalid()
    return _change(store, standing, [tasks.get(store, team_name, task_ref)], edit)[0]


def _change(store: Store, standing: Standing, present_tasks: list[Task], edit: Edit) -> list[tuple[Task, Remarks]]:
    """Make the *edit* to all of the tasks, in one commit."""
    team_name = standing.team.name
    remarks: dict[str, Remarks] = {}  # by the id of the task: those of the last call, whose task is stored

    def change(task: Task) -> Task:
        changed, remarks[task.id] = with_edit(store, standing, task, edit)
        return changed

    for task in present_tasks:
        _refuse_owner_and_cycle(store, standing, task.id, edit)
        if edit.owner:
            change(task)  # refuses what may not be changed, before anything is written
    if edit.owner:
        presence.forget_ended_process(store, team_name, edit.owner)
    task_ids = [task.id for task in present_tasks]
    if len(task_ids) == 1:
        pairs = [update(store, team_name, TASK, task_ids[0], change)]
    else:
        pairs = update_all(store, team_name, TASK, task_ids, change)
    return [(finish_change(store, standing, before, task, edit), remarks[task.id]) for before, task in pairs]


def with_edit(store: Store, standing: Standing, task: Task, edit: Edit) -> tuple[Task, Remarks]:
    """Return the task with the changes of *edit* (the same object if nothing changes), and remarks on the changes for
    the answer. The task owes the notices about the changes.
    """
    team, config = standing.team, standing.caller.config
    changed = _changed(store, task, edit, standing)
    unseen_editor = None
    if edit.status == "completed" and task.status != "completed":
        unseen_editor = editing.unseen_by(store, team, task, standing.name)
    if changed is task:
        return task, {"unseenEditBy": unseen_editor} if unseen_editor else {}
    notices = editing.notices(task, changed, edit, standing.name)
    stays_in_review = task.status == changed.status == IN_REVIEW
    hands_in_again = stays_in_review and edit.status == "completed"
    if stays_in_review:
        from teams_cli.tasks import reviews

        notices = reviews.of_edit(team, task, changed, config, notices, standing.name)
        if hands_in_again:
            notices = [*reviews.asked_again(team, task, changed, config), *notices]
    others = _notices_of_status_and_owner(store, task, changed, unseen_editor, standing)
    notified = [each.to for each in notices]
    remarks = {"notified": notified, "handedInAgain": hands_in_again, "unseenEditBy": unseen_editor}
    return owing(changed, *others, *notices), {key: value for key, value in remarks.items() if value}


def finish_change(store: Store, standing: Standing, before: Task, task: Task, edit: Edit) -> Task:
    """Finish the stored change from *before* to *task*: write the history and send the notices. Return the task without
    the notices that were sent.

    Raises:
        DependencyCycle: This change and a simultaneous one made a cycle together. This change is undone.
    """
    team = standing.team
    if before is not task:
        dependencies.refuse_late_cycle(store, team.name, task, before)
        what = _change_for_history(before, task, edit)
        history.note(
            store,
            team.name,
            standing.name,
            what,
            task=task.id,
            title=task.title,
            to=task.owner if edit.owner and task.owner != before.owner else None,
            changed=", ".join(task.notes[-1].changed or ()) if task.notes and what == "task edited" else None,
            reason=edit.reason,
            checked=True if what == "task completed" and edit.checked else None,
        )
        leases.end_grace(store, team, before, task)
    all_sent = deliver(store, team.name, TASK, task)
    return task.having(owed=None) if all_sent else task


def _change_for_history(before: Task, task: Task, edit: Edit) -> str:
    """Return how the history describes the change from *before* to *task*. Of several changes, it names only one."""
    is_handed_in = edit.status == "completed" and task.status == IN_REVIEW
    has_new_status = task.status != before.status or is_handed_in
    if task.result != before.result and not has_new_status:
        return "result amended"
    if task.assignee != before.assignee:
        return f"task assigned to {task.assignee}" if task.assignee else "task unassigned"
    if edit.owner and task.owner and task.owner != before.owner:
        return "task handed over"
    if task.status == "pending" and before.status in FINISHED:
        return "task reopened"
    return f"task {task.status.replace('_', ' ')}" if has_new_status else "task edited"


def _refuse_owner_and_cycle(store: Store, standing: Standing, task_id: str, edit: Edit) -> None:
    """Refuse a new owner who may not own tasks, and new blockers that themselves wait for the task."""
    if edit.owner:
        from teams_cli.tasks import claims

        claims.refuse_unable(standing.team, edit.owner, standing.caller)
    if added := [*edit.block, *edit.after]:
        dependencies.refuse_cycle(store, standing.team.name, task_id, added)


def _refuse_needless_move(store: Store, team: str, task: Task, edit: Edit) -> None:
    """Refuse to let the task start before a blocker, and be completed after it, if the blocker is completed already."""
    status_of = dependencies.stored(store, team)
    moved = [key for key in edit.unblock if key in edit.after]
    if completed := [key for key in moved if status_of(key) == "completed"]:
        why = f"{text.listed(completed)} is completed already, so {task.id} need not wait for it; nothing was changed"
        raise errors.WrongState(why, f"Leave out --unblock {completed[0]} --after {completed[0]}.")


def moves(team: Team, caller: Caller, task: Task) -> list[str]:
    """Return the statuses that a *caller* who does not own the task may give it.

    A task in progress can become pending: a leader or task-manager releases it. A task with another status is changed
    only by a task-manager or the human: a pending task can be cancelled, and any other can be reopened.
    """
    standing = standing_of(team, caller)
    if standing is None or team.state == "closed":
        return []
    if task.status == IN_PROGRESS:
        return ["pending"] if standing.leads or standing.manages else []
    if not standing.manages or standing.leads:
        return []
    return ["cancelled"] if task.status == "pending" else ["pending"]


def _changed(store: Store, task: Task, edit: Edit, standing: Standing) -> Task:
    """Return the task with all changes of the *edit*, or the same object if nothing changes."""
    if edit.claim is not None and edit.claim != task.claim:
        raise errors.StaleClaim(
            f"claim {edit.claim} of {task.id} has ended: it is {state_of(task)}, claim {task.claim}",
            f"See: teams show-task {task.id}",
        )
    changed = task
    if edit.changes_fields:
        editing.refuse_foreign(task, standing.name, standing.leads or standing.manages)
        checks.refuse_setter(standing, edit.fields.get("check"), edit.fields.get("review_by"))
        if "review_by" in edit.fields:
            reviewer = checks.reviewer(standing, edit.fields["review_by"])
            edit = edit.having(fields={**edit.fields, "review_by": reviewer})
        _refuse_needless_move(store, standing.team.name, task, edit)
        changed = editing.with_fields(store, changed, edit, standing.name)
    if edit.status or edit.result is not None or edit.attaches_files or edit.completes_later:
        changed = _with_status(store, changed, edit, standing)
    if edit.owner:
        changed = _with_owner(store, changed, edit.owner, standing, edit)
    if edit.unassign:
        if changed.assignee != standing.name:
            _refuse_no_assigner(changed, standing)
        changed = assigning.unassigned(store, standing.team, changed, standing.name, edit.reason)
    return changed


def _with_status(store: Store, task: Task, edit: Edit, standing: Standing) -> Task:
    """Return the task with the new status, result or attachments of the *edit*."""
    if standing.leads:
        hint = _hint_for_leader(task, edit, standing)
        raise errors.NotAllowed("leaders monitor tasks; they do not set their status or result", hint)
    if edit.status is None:
        return _amended(store, task, edit, standing)
    if edit.status in ("completed", "failed"):
        return _finished(store, task, edit, standing)
    if edit.status == "cancelled":
        if not standing.manages:
            is_held = task.status == IN_PROGRESS and task.owner == standing.name
            release = f", or release the task: teams release-task {task.id}" if is_held else "."
            raise errors.NotAllowed("only a task-manager or the human cancels tasks", f"Ask one of them{release}")
        if task.status == "cancelled":
            return task
        if task.status != "pending":
            reopen = f"update-task {task.id} --status pending"
            first = f"release-task {task.id}" if task.status == IN_PROGRESS else reopen
            problem = f"{task.id} is {task.status}; only pending tasks are cancelled"
            raise errors.WrongState(problem, f"First: teams {first}")
        now = teams.now(store)
        return task.having(status="cancelled", completed_at=now).noted(now, standing.name, "cancelled", edit.reason)
    if not (standing.manages or task.owner == standing.name):
        raise errors.NotAllowed(f"{task.id} is not yours to reopen", "Ask its owner, a task-manager or the human.")
    if task.status == "pending":
        return task
    if task.status not in FINISHED and task.status != IN_REVIEW:
        raise errors.WrongState(f"{task.id} is {state_of(task)}", f"Release it: teams release-task {task.id}")
    return task.freed().noted(teams.now(store), standing.name, "reopened", edit.reason)


def _hint_for_leader(task: Task, edit: Edit, standing: Standing) -> str:
    """Return what a leader can do instead of setting the status or the result of the task."""
    if edit.status == "cancelled":
        return "Ask a task-manager or the human. A team can be closed with open tasks, too: teams close-team"
    if task.status == IN_REVIEW:
        return assigning.how_to_review(task)
    if edit.status == "pending" and task.status == "pending":
        return "It is pending already."
    if edit.status == "pending" and task.status == IN_PROGRESS:
        return f"Release it: teams release-task {task.id}"
    if edit.status == "pending" or task.status == "cancelled":
        return how_to_reopen(task, standing)
    if task.owner:
        return f"Only its owner does: ask {task.owner}."
    return "A member must claim it first. If none is left: teams run-agent PROMPT --detach, or teams close-team"


def _finished(store: Store, task: Task, edit: Edit, standing: Standing) -> Task:
    """Return the task completed, handed in for review, or failed, as the *edit* asks. If the edit repeats an earlier
    command, return the same object.
    """
    refuse_stranger(store, task, standing)
    status = IN_REVIEW if edit.status == "completed" and task.review_by else str(edit.status)
    has_same_result = edit.result is None or edit.result == task.result
    has_newer_commit = task.status == IN_REVIEW and edit.submitted not in (None, task.submitted)
    if task.status == status and has_same_result and not edit.attaches_files and not has_newer_commit:
        return task
    is_handed_in_again = task.status == IN_REVIEW and status == IN_REVIEW
    if task.status != IN_PROGRESS and not is_handed_in_again:
        if task.status == IN_REVIEW:
            from teams_cli.tasks import reviews

            reviewer = reviews.reviewers(standing.team, task, standing.caller.config)[0]
            hint = f"Ask {reviewer} to reject it first: teams send-message {reviewer} WHY"
        elif task.status == edit.status:
            hint = f"Change only its result: teams update-task {task.id} --result TEXT"
        else:
            hint = how_to_reopen(task, standing)
        ending = next((note for note in reversed(task.notes) if note.what in _ENDINGS), None)
        by_whom = f"by {ending.by} {length(seconds_since(ending.at, store.now()))} ago" if ending else ""
        if ending:
            by_whom = f", {by_whom}" if ending.what == task.status else f", {ending.what} {by_whom}"
        raise errors.WrongState(f"{task.id} is {task.status} already{by_whom}", hint)
    is_new_work = task.status == IN_PROGRESS or has_newer_commit
    if edit.status == "completed" and is_new_work:
        _refuse_unfinishable(store, standing.team, task)
        checks.refuse_unchecked(task, edit.checked)
    now = teams.now(store)
    done = task.having(
        status=status,
        result=checks.final_result(task, edit.result, edit.status, standing.name),
        checked=edit.checked.to_json() if edit.checked else task.checked,
        submitted=edit.submitted if status == IN_REVIEW and is_new_work else task.submitted,
        evidence=[*(task.evidence or ()), *edit.evidence] or None,
        completed_at=None if status == IN_REVIEW else now,
        lease_expires_at=None,
        lease_epoch=None,
        lease_until=None,
        grace_until=None,
    )
    return done.noted(now, standing.name, status, edit.reason)


def refuse_finishing(store: Store, standing: Standing, task: Task, edit: Edit) -> None:
    """Refuse an edit that could not finish the task even if its check passed, so that the check need not be run."""
    passed = None if task.check is None else Check(command=task.check, status=0, by=standing.name, at="")
    edit_after_check = Edit(status=edit.status, result=edit.result, claim=edit.claim, checked=passed)
    _changed(store, task, edit_after_check.having(attaches_files=edit.attaches_files), standing)


def _amended(store: Store, task: Task, edit: Edit, standing: Standing) -> Task:
    """Return the task with a new result or more attachments. Add a note about them if the task was ever finished, and a
    note if the owner wants it completed later.
    """
    refuse_stranger(store, task, standing)
    result, checked = task.result, task.checked
    if edit.result is not None:
        result = edit.result
        checked = checked and {key: value for key, value in checked.items() if key not in checks.KEYS_OF_KEPT_RESULT}
    amended = task.having(
        result=result,
        checked=checked,
        evidence=[*(task.evidence or ()), *edit.evidence] or None,
        updated_at=teams.now(store),
    )
    if edit.completes_later and not task.completion_is_asked:
        amended = amended.noted(teams.now(store), standing.name, COMPLETION_ASKED)
    was_finished = task.status in FINISHED or any(note.what == "reopened" for note in task.notes)
    if not was_finished or (result == task.result_so_far and not edit.evidence):
        return amended
    return amended.noted(teams.now(store), standing.name, "amended", edit.reason)


def _refuse_unfinishable(store: Store, team: Team, task: Task) -> None:
    """Refuse to complete a task that needs a plan, an agreement or another task first."""
    if task.plan_required:
        from teams_cli.tasks import plans

        plans.refuse_unplanned(store, team.name, task.id)
    if task.agree_with:
        from teams_cli.tasks import agreements

        agreements.refuse_lacking(store, team, task)
    _refuse_too_early(store, team, task)


def _refuse_too_early(store: Store, team: Team, task: Task) -> None:
    """Refuse to complete a task before the tasks for which it waits. Tasks that will not be completed are named with
    the command that stops waiting for them.
    """
    status_of, command = dependencies.stored(store, team.name), f"teams update-task {task.id}"
    blockers = dependencies.open_blockers(task, status_of)
    predecessors = dependencies.open_predecessors(task, status_of)
    if not (blockers or predecessors):
        return
    awaited = [*blockers, *predecessors]
    in_vain = [each.id for each in awaited if not dependencies.is_waited_for(store, team.name, [each])]
    unblock = f"{command} --unblock {','.join(in_vain or [each.id for each in predecessors])}"
    if own := dependencies.left_to_owner(store, team.name, task):
        steps = [f"{own} is yours, so do it first: teams claim-task {own}"]
    elif in_vain:
        steps = []
    else:
        steps = [f"To wait until it can be: {command} --status completed --result RESULT --next --wait 540"]
    if in_vain:
        steps.append(f"To wait no longer for {text.listed(in_vain)}: {unblock}")
    if blockers:
        why = f"{task.id} is blocked by {', '.join(map(str, blockers))}"
        if not in_vain:
            steps.append(f"Or release it: teams release-task {task.id}")
    else:
        why = f"{task.id} is to be completed after {', '.join(map(str, predecessors))}"
        if not in_vain:
            steps.append(f"If it need not wait: {unblock}")
    raise errors.TaskBlocked(why, ". ".join(steps))


def _with_owner(store: Store, task: Task, owner: str, standing: Standing, edit: Edit) -> Task:
    """Return the task handed over to the member *owner* under a new claim or, if it is pending, assigned to *owner*.
    If the *edit* has `force`, hand it over even if its present owner is at work.
    """
    if task.status == IN_PROGRESS and task.owner == owner:
        return task
    team = standing.team
    if task.status == "pending":
        _refuse_no_assigner(task, standing)
        assigning.refuse_unskilled(team, task, owner, standing.caller.config)
        return assigning.assigned(store, team, task, owner, standing.name)
    if not (standing.leads or standing.manages or task.owner == standing.name):
        raise errors.NotAllowed(
            f"{task.id} is not yours to assign: it is {state_of(task)}; nothing was changed",
            "Ask the leader, a task-manager or the human.",
        )
    if task.status in FINISHED:
        raise errors.WrongState(f"{task.id} is {task.status}", how_to_reopen(task, standing))
    if blockers := dependencies.open_blockers(task, dependencies.stored(store, team.name)):
        blocker_ids = ", ".join(blocker.id for blocker in blockers)
        raise errors.TaskBlocked(f"{task.id} is blocked by {blocker_ids}", "Wait until they are completed.")
    assigning.refuse_unskilled(team, task, owner, standing.caller.config)
    if not edit.force:
        sets_more = edit.changes_fields or edit.status or edit.result is not None or edit.reason
        command = REPEAT if sets_more else f"teams update-task {task.id} --owner {owner}"
        refuse_taking(store, team, task, standing.caller, command)
    return leases.claimed_by(store, team, task, owner, f"handed over by {standing.name}")


def _refuse_no_assigner(task: Task, standing: Standing) -> None:
    if not (standing.leads or standing.manages):
        raise errors.NotAllowed(f"{task.id} is not yours to assign", "Ask the leader, a task-manager or the human.")


def _notices_of_status_and_owner(
    store: Store, before: Task, task: Task, unseen_editor: str | None, standing: Standing
) -> list[Owed]:
    """Return the notices about the new status or owner of the task. *before* is the task before the change, and
    *unseen_editor* the member, if any, whose last edit the owner has not seen. The notices go to the old and the new
    owner, members whose task is ready now, reviewers, and to the leader if the task ended.
    """
    team, name = standing.team, standing.name
    is_newly_completed = task.status == "completed" and before.status != "completed"
    notices: list[Owed] = []
    if is_newly_completed:
        notices += assigning.ready_notices(store, team, task)
    if task.status == IN_PROGRESS and task.owner and task.owner != before.owner:
        body = f"{name} gave you {task.named}: teams show-task {task.id}"
        notices.append(task.notice(task.owner, body, "task-given", "given", by=name))
        if before.owner not in (None, name) and team.member(before.owner or ""):
            notices.append(leases.loss_notice(before, f"{name} gave it away", f"; {task.owner} has it now", name))
    if before.status == IN_REVIEW and task.status not in (IN_REVIEW, *FINISHED):
        from teams_cli.tasks import reviews

        notices += reviews.withdrawn(team, before, task, standing.caller.config, name)
    if task.status == IN_REVIEW and before.status != IN_REVIEW:
        from teams_cli.tasks import reviews

        notices += reviews.asked(team, task, standing.caller.config)
    if task.status == "failed" and before.status != "failed" and team.leader != name:
        why = tasks.after_colon(task, task.why_ended or task.result) or f": teams show-task {task.id}"
        waiting = dependencies.waiting_for([task.id], () if task.of_a_run else tasks.all_of(store, team.name, []))
        blocked = f", which blocks {text.listed(sorted(waiting, key=TASK.number_in), _MOST_NAMED)}," if waiting else ""
        body = f"{task.named}{blocked} failed by {name}{why}"
        notices.append(task.notice(team.leader, body, "task-failed", "failed", by=name, about=task.id))
    if is_newly_completed and team.leader != name and not task.of_a_run:
        remark = ", checked" if task.checked and task.checked["status"] == 0 else ""
        kind: MessageType = "info"
        if unseen_editor:
            remark += f", who had not seen the last edit by {unseen_editor}"
            kind = "notice"  # the leader may want other work, so the notice stays until it is handled
        body = f"{task.named} completed by {name}{remark}{tasks.after_colon(task, task.result)}"
        event = Event.TASK_COMPLETED
        notices.append(task.notice(team.leader, body, event, "completed", type=kind, by=name, about=task.id))
    return notices


def change_each(
    store: Store, team_name: str, caller: Caller | None, task_refs: list[str], edit: Edit
) -> list[tuple[Task, Remarks]]:
    """Change several tasks in the same way, in one commit. If one of them cannot be changed, none is.

    Raises:
        WrongUsage: The change can be made to only one task at a time.
        TaskNotFound, NotAllowed, WrongState, DependencyCycle: One of the tasks cannot be changed, as in `change_task`.
    """
    ends_task = edit.status in ("completed", "failed")
    if ends_task or edit.result is not None or edit.claim is not None or "title" in edit.fields or edit.attaches_files:
        raise errors.WrongUsage(
            "a title, claim, result, attachment or final status is for one task only", "Name one task."
        )
    edit.refuse_invalid()
    standing = require(store, team_name, caller, "update-task", task_refs[0])
    task_ids = dict.fromkeys(id_of(task_ref, "task") for task_ref in task_refs)
    return _change(store, standing, [tasks.get(store, team_name, task_id) for task_id in task_ids], edit)
