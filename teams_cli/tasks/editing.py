"""Editing the texts of a task: title, description, priority, blockers and notes."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.messages.messages import MESSAGE, Event
from teams_cli.messages.notices import deliver
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store, update
from teams_cli.tasks import tasks
from teams_cli.tasks.assigning import state_of
from teams_cli.tasks.tasks import EDITABLE, TASK, Note, Task
from teams_cli.teams import history, presence, teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from teams_cli.messages.inboxes import Mailbox
    from teams_cli.tasks.changes import Edit
    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceShown
    from teams_cli.teams.teams import Team

_TEXTS = frozenset({"title", "description"})
"""The fields that describe the work to do."""
_MAX_NOTE = 8 * 1024
_MOST_SHOWN = 400
"""The maximum number of characters of a changed description in a notice, and of a note in the history."""


def refuse_foreign(task: Task, name: str, may_any: bool) -> None:
    """Refuse an edit of a task that the member *name* does not own. With *may_any*, the member may edit any task."""
    if not (may_any or task.owner == name):
        claim = ", claim it first," if task.status == "pending" else ""
        raise errors.NotAllowed(
            f"{task.id} is not yours to change: it is {state_of(task)}",
            f"Ask the leader{claim} or add to it: teams note {task.id} TEXT",
        )


def with_fields(store: Store, task: Task, edit: Edit, name: str) -> Task:
    """Return the task with the fields and blockers that the *edit* by the member *name* sets. A note says what was
    changed. If nothing changes, return the same object.
    """
    if missing := set(edit.unblock) - set(task.waits_for):
        raise errors.WrongState(
            f"{task.id} is not blocked by {', '.join(sorted(missing))}", f"See: teams show-task {task.id}"
        )
    blockers = [key for key in task.blocked_by if key not in edit.unblock]
    blockers += [key for key in dict.fromkeys(edit.block) if key not in blockers]
    after = [key for key in task.after or () if key not in edit.unblock]
    after += [key for key in dict.fromkeys(edit.after) if key not in after]
    after = [key for key in after if key not in blockers]  # what waits to be claimed is completed later anyway
    description = edit.fields.get("description", task.description)
    if edit.append is not None and not task.has_note(edit.uid):  # else a repeat of an interrupted command
        appended = edit.append.strip("\n")
        longer = f"{description.rstrip()}\n\n{appended}" if description else appended
        description = text.within(longer, "description", text.MAX_MESSAGE)
    fields = {**edit.fields, "description": description}
    changed = task.having(**fields, blocked_by=blockers, after=after or None)
    if changed == task:
        return task
    before = task.to_json()
    changed_keys = [key for key, value in changed.to_json().items() if before.get(key) != value]
    if task.check is None and changed.check:
        changed = changed.having(check_from=edit.check_from)
    added = {"added": edit.append, "uid": edit.uid} if edit.append is not None else {}
    return changed.noted(teams.now(store), name, "edited", edit.reason, changed=changed_keys, **added)


def notices(before: Task, task: Task, edit: Edit, name: str) -> list[Owed]:
    """Return the notice to the task's owner or assignee that *name* edited the task. The list is empty if *name* is
    that member, or if nothing changed.
    """
    changes = []
    for key in EDITABLE:
        value = getattr(task, key)
        if key != "description" and value != getattr(before, key):
            changes.append(f'title: "{value}"' if key == "title" else f"{key}: {value}")
    if task.blocked_by != before.blocked_by:
        changes.append(f"waits for: {', '.join(task.blocked_by) or 'nothing'}")
    if task.after != before.after:
        changes.append(f"completes after: {', '.join(task.after or ()) or 'nothing'}")
    if task.description != before.description:
        difference = _difference(before.description or "", task.description or "(none)")
        if edit.append is not None and "description" not in edit.fields:
            changes.append(f"added: {edit.append}")
        elif len(difference) > _MOST_SHOWN:
            changes.append(f"description: teams show-task {task.id}")
        else:
            changes.append(f"description: {difference}")
    if not changes or task.concerned in (None, name):
        return []
    because = f" (because: {edit.reason})" if edit.reason else ""
    return [_notice_to_concerned(task, name, "edited", "; ".join(changes) + because)]


def _difference(before: str, after: str) -> str:
    """Return the changed lines, from the first to the last: the old ones, from *before*, marked with `-`, and the new
    ones, from *after*, with `+`. If the whole text *after* is shorter, return that instead.
    """
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    removed, added = [f"- {line}" for line in old], [f"+ {line}" for line in new]
    difference = "\n".join([*removed, *added])
    return difference if before and len(difference) < len(after) else after


def _notice_to_concerned(task: Task, name: str, action: str, change: str) -> Owed:
    """Return the notice about the *change* by *name* to the owner or assignee. *action* is `edited` or `noted on`."""
    body = f"{name} {action} {task.named}: {change}"
    event = Event.TASK_EDITED if action == "edited" and task.status == "pending" else f"owned-task-{action}"
    uid = f"{_uid_prefix(action, task)}{os.urandom(6).hex()}"
    return Owed(to=task.concerned or "", message=body, uid=uid, by=name, event=event, task=task.id)


def unseen_by(store: Store, team: Team, task: Task, owner: str) -> str | None:
    """Return who last changed the title or description of the task; None if the *owner* has seen all such changes."""
    edits = [note for note in _notes_of_others(task, owner, ("edited",)) if _TEXTS.intersection(note.changed or ())]
    if edits and _unread_notices(store, team.name, owner, _uid_prefix("edited", task))[1]:
        return edits[-1].by
    return None


def _notes_of_others(task: Task, owner: str, kinds: Collection[str]) -> list[Note]:
    """Return the notes of these *kinds* that members other than *owner* added since the task was claimed."""
    notes = (note for note in task.notes if note.what in kinds and note.at >= (task.claimed_at or ""))
    return [note for note in notes if note.by not in (None, owner)]


def _unread_notices(store: Store, team: str, name: str, *parts: str) -> tuple[Mailbox, set[int]]:
    """Return the mailbox of the member *name*, and the numbers of the notices in it whose uids contain one of the
    *parts*, and which the member has neither read nor been shown.
    """
    from teams_cli.messages import inboxes

    last_shown = presence.load(store, team, name).told_to or 0
    numbers = {
        number for number, uid, _ in store.envelopes(team, MESSAGE, last_shown) if any(part in uid for part in parts)
    }
    mailbox = inboxes.Mailbox(store, team, name)
    return mailbox, numbers.intersection(mailbox.unread(quiet=True))


def refuse_unseen(store: Store, team: Team, task: Task, owner: str, again: str) -> None:
    """Refuse to complete a task if another member changed its description and the *owner* has not seen the change. The
    error shows the change and *again*, the command to repeat, which then succeeds.
    """
    edits = _notes_of_others(task, owner, ("edited",))
    if not any("description" in (note.changed or ()) for note in edits):
        return
    unseen = read_unseen(store, team.name, owner, _uid_prefix("edited", task))
    if not unseen:
        return
    by_label = store.by_label(task.team_name, TASK).items()
    open_ids = {task_id for status, ids in by_label if status not in tasks.FINISHED for task_id in ids} - {task.id}
    hint = f"If your work lacks it, add it first; then: {again}"
    if unfinished := [task_id for task_id in tasks.mentioned(unseen) if task_id in open_ids]:
        hint = f"Not finished: {text.listed(unfinished)}. To wait: teams wait --task {','.join(unfinished)}. {hint}"
    raise errors.Conflict(f"you have not seen this change: {unseen}", hint)


def read_unseen(store: Store, team: str, name: str, uid_prefix: str) -> str:
    """Mark the unread notices to *name* whose uids contain *uid_prefix* as read, and return their texts."""
    mailbox, numbers = _unread_notices(store, team, name, uid_prefix)
    if not numbers:
        return ""
    texts = [message.message for message in mailbox.messages(sorted(numbers))]
    mailbox.mark_read(numbers)
    return "; ".join(texts)


def note_shown(store: Store, team: str, task: Task, name: str, once_shown: OnceShown) -> None:
    """Mark the notices about edits of the task as read, once the agent *name* has been shown the whole task."""
    if task.concerned != name or not _notes_of_others(task, name, ("edited", "note")):
        return
    mailbox, numbers = _unread_notices(store, team, name, _uid_prefix("edited", task), _uid_prefix("noted on", task))
    if numbers:
        once_shown(lambda: mailbox.mark_read(numbers))


def _uid_prefix(action: str, task: Task) -> str:
    return f"{action.replace(' ', '-')}-{task.id}-"


def note(store: Store, team_name: str, caller: Caller | None, task_ref: str, body: str, uid: str | None = None) -> Task:
    """Add a note to a task. The owner is notified; nothing else in the task changes.

    If the command is interrupted, repeat it: no note is added twice.

    Raises:
        TaskNotFound: There is no such task.
        InvalidValue: The note is blank, or longer than 8 KiB.
        WrongState: The task already has 100 notes.
    """
    name = require(store, team_name, caller, "note", task_ref).name
    text.checked(body, "note", _MAX_NOTE)

    def add(task: Task) -> Task:
        if task.has_note(uid):
            return task
        if task.is_full:
            raise errors.WrongState(
                f"{task.id} has the most notes allowed", "Send a message instead: teams send-message NAME TEXT"
            )
        noted = task.noted(teams.now(store), name, "note", added=body, uid=uid)
        if task.concerned in (None, name):
            return noted
        return owing(noted, _notice_to_concerned(task, name, "noted on", body))

    before, task = update(store, team_name, TASK, tasks.get(store, team_name, task_ref).id, add)
    if before is not task:
        history.note(store, team_name, name, "task noted", task=task.id, added=body[:_MOST_SHOWN])
    deliver(store, team_name, TASK, task)
    return task
