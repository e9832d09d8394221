"""Completing tasks in commands: the check runs, the work lands, and messages about the task are closed.

A task is completed by the command of its owner, or later: if tasks had to be completed before it, the owner's next
command that claims or waits for work completes it.
"""

from __future__ import annotations

import os

from teams_cli import environment, errors, text
from teams_cli.commands import landing_queue
from teams_cli.commands.task_documents import to_document
from teams_cli.store.contract import update
from teams_cli.tasks import changes, checks, dependencies, tasks
from teams_cli.tasks.tasks import COMPLETION_REFUSED, IN_PROGRESS, IN_REVIEW, TASK, Task
from teams_cli.teams import presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.commands.call import Call

_REASON = 500
"""Characters of a refusal that the notes of the task keep."""


def complete(call: Call, task: str, edit: changes.Edit, file_names: Sequence[str] = ()) -> tuple[Task, changes.Remarks]:
    """Make the *edit* of one task, and attach the files as evidence. If the edit completes the task, its check runs
    first.
    """
    from teams_cli.agents import completing

    if edit.status == "completed":
        landing_queue.note_completing(call, task)
    try:
        if not landing_queue.lands_by_itself(call):  # a task that lands has its conflicts in the answer
            call.signs.notify_of_conflicts()
    except errors.TeamsError:  # if the caller is refused, the change of the task says so
        pass
    attached = []
    if file_names:
        from teams_cli.tasks import evidence

        attached = [evidence.read(os.path.join(call.directory, name)) for name in file_names]
    workplace = checks.Workplace(_directory_of_work(call), call.environ)
    return completing.change_task(call.store, call.team, call.caller, task, edit, workplace, attached)


def _directory_of_work(call: Call) -> str:
    """Return the directory in which the check runs: the current directory if it is in a checkout, or else the worktree
    in which the caller was last seen, if there is one.
    """
    if environment.checkout_around(call.workplace):
        return call.workplace
    if presence.load(call.store, call.team, call.agent).worktree:
        from teams_cli.agents import checkouts

        return checkouts.seen_in(call.store, call.team, call.agent) or call.current_directory
    return call.current_directory


def follow_up(call: Call, changed: Task, edit: changes.Edit, patience: float = 0) -> dict[str, Any]:
    """Do what follows after the *edit* was stored, and return the task as JSON. A completed task lands, for which the
    caller waits up to *patience* seconds. If the task was the caller's, messages that it carried out are closed.
    """
    if changed.status == "completed":
        document = landing_queue.landed_too(call, changed, patience)
    else:
        document = to_document(call, changed)
        if changed.status == IN_REVIEW:  # it lands when it is accepted
            call.try_to(lambda: landing_queue.note_queued(call, changed))
    if has_ended_own(call, changed, edit) and not was_sent_back(document):
        from teams_cli.views import mail

        # The task is changed already, so a failure here is only reported.
        call.try_to(lambda: mail.close_carried_out(call.store, call.load_team(), changed, call.agent))
    return document


def has_ended_own(call: Call, changed: Task, edit: changes.Edit) -> bool:
    """Return whether the *edit* completed, handed in or failed a task of the caller."""
    return changed.owner == call.agent and edit.status in ("completed", "failed")


def was_sent_back(document: dict[str, Any]) -> bool:
    """Return whether the task did not land, and is therefore its owner's again."""
    return document.get("lands", {}).get("state") in ("red", "conflict")


def complete_asked(call: Call) -> list[dict[str, Any]]:
    """Complete the tasks that the caller asked to complete before it was possible, if it is possible now, and return
    them as JSON. If one is refused, the caller is shown why, and must complete the task itself.
    """
    documents = []
    status_of = dependencies.stored(call.store, call.team)
    for task in tasks.labelled(call.store, call.team, IN_PROGRESS):
        is_asked = task.owner == call.agent and task.completion_is_asked
        if not is_asked or dependencies.before_completion(task, status_of):
            continue
        edit = changes.Edit(status="completed", claim=task.claim)
        try:
            changed, remarks = complete(call, task.id, edit)
        except errors.TeamsError as refusal:
            call.problems.append(refusal)
            _note_refusal(call, task, refusal.message)
        else:
            documents.append(follow_up(call, changed, edit) | remarks)
    return documents


def _note_refusal(call: Call, task: Task, reason: str) -> None:
    """Note in the task that it could not be completed, so that this is not tried again without its owner."""

    def with_refusal(current: Task) -> Task:
        if current.status != IN_PROGRESS or current.claim != task.claim:
            return current
        clipped = text.clipped_line(reason, _REASON)
        return current.noted(teams.now(call.store), call.agent, COMPLETION_REFUSED, clipped)

    call.try_to(lambda: update(call.store, call.team, TASK, task.id, with_refusal))
