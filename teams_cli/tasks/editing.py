"""Editing the texts of a task: title, description, priority, blockers and notes."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.messages import events
from teams_cli.messages.messages import MESSAGE
from teams_cli.messages.notices import deliver
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
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
    from teams_cli.teams.presence import OnceTold
    from teams_cli.teams.teams import Team

_MAX_NOTE = 8 * 1024
_MOST_SHOWN = 400
_QUOTED = {"title": '"{}"'}


def refuse_foreign(task: Task, name: str, may_any: bool) -> None:
    """Raises NotAllowed: The caller may not edit the task."""
    if not (may_any or task.owner == name):
        raise errors.NotAllowed(
            f"{task.id} is not yours to change: it is {state_of(task)}",
            f"Ask the leader, claim it first, or add to it: teams note {task.id} TEXT",
        )


def with_fields(store: Store, task: Task, changes: Edit, name: str) -> Task:
    """Return the task with its new fields and blockers, and a note that names the changed ones."""
    blockers = [blocker for blocker in task.blocked_by if blocker not in changes.unblock]
    after = [key for key in task.after or () if key not in changes.unblock]
    if missing := set(changes.unblock) - set(task.waits_for):
        raise errors.WrongState(
            f"{task.id} is not blocked by {', '.join(sorted(missing))}", f"See: teams show-task {task.id}"
        )
    blockers += [blocker for blocker in dict.fromkeys(changes.block) if blocker not in blockers]
    after += [key for key in dict.fromkeys(changes.after) if key not in after]
    said = {**changes.fields, "description": _description(task, changes)}
    changed = task.having(**said, blocked_by=blockers, after=after or None)
    if changed == task:
        return task
    before = task.to_json()
    keys = [key for key, value in changed.to_json().items() if before.get(key) != value]
    if task.check is None and changed.check:
        changed = changed.having(check_from=changes.check_from)
    added = {"added": changes.append, "uid": changes.uid} if changes.append is not None else {}
    return changed.noted(teams.now(store), name, "edited", changes.reason, changed=keys, **added)


def _description(task: Task, changes: Edit) -> str | None:
    said: str | None = changes.fields.get("description", task.description)
    if changes.append is None or task.has_note(changes.uid):
        return said
    added = changes.append.strip("\n")
    longer = f"{said.rstrip()}\n\n{added}" if said else added
    return text.within(longer, "description", text.MAX_MESSAGE)


def notices(before: Task, task: Task, changes: Edit, name: str) -> list[Owed]:
    """Return the notices to the members whom the task concerns, if another member edited it."""
    plain = [key for key in EDITABLE if key != "description" and getattr(task, key) != getattr(before, key)]
    told = [
        *(f"{key}: {_QUOTED.get(key, '{}').format(getattr(task, key))}" for key in plain),
        f"waits for: {', '.join(task.blocked_by) or 'nothing'}" if task.blocked_by != before.blocked_by else "",
        f"completes after: {', '.join(task.after or ()) or 'nothing'}" if task.after != before.after else "",
        _about_text(before, task, changes),
    ]
    what = "; ".join(filter(None, told))
    if not what or task.concerned in (None, name):
        return []
    because = f" (because: {changes.reason})" if changes.reason else ""
    return [_to_whom_it_concerns(task, name, "edited", what + because)]


def _about_text(before: Task, task: Task, changes: Edit) -> str:
    if task.description == before.description:
        return ""
    if changes.append is not None and "description" not in changes.fields:
        return f"added: {changes.append}"
    said = _difference(before.description or "", task.description or "(none)")
    return f"description: {said}" if len(said) <= _MOST_SHOWN else f"description: teams show-task {task.id}"


def _difference(before: str, after: str) -> str:
    """Return the lines of the new text between its first and its last changed line, or the whole text if that is
    shorter.
    """
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    changed = "\n".join([*(f"- {line}" for line in old), *(f"+ {line}" for line in new)])
    return changed if before and len(changed) < len(after) else after


def _to_whom_it_concerns(task: Task, name: str, did: str, what: str) -> Owed:
    body, uid = f"{name} {did} {task.id} ({task.title}): {what}", f"{_uid(did, task)}{os.urandom(6).hex()}"
    event = events.TASK_EDITED if did == "edited" and task.status == "pending" else f"owned-task-{did}"
    return Owed(to=task.concerned or "", message=body, uid=uid, by=name, event=event, task=task.id)


def unseen_by(store: Store, team: Team, task: Task, owner: str) -> str | None:
    """Return the member who last edited the owner's task, if the owner was not notified of it yet."""
    others = _edits(task, owner)
    return others[-1].by if others and _unseen(store, team.name, owner, _uid("edited", task)).numbers else None


def _edits(task: Task, owner: str, what: Collection[str] = ("edited",)) -> list[Note]:
    """Return the edits by others since the owner claimed the task, in order."""
    notes = (note for note in task.notes if note.what in what and note.at >= (task.claimed_at or ""))
    return [note for note in notes if note.by not in (None, owner)]


class _Unseen:
    """The *numbers* of the notices in an owner's inbox about edits that it has not seen."""

    def __init__(self, mailbox: Mailbox, numbers: list[int]) -> None:
        self.mailbox = mailbox
        self.numbers = numbers


def _unseen(store: Store, team: str, name: str, *uids: str) -> _Unseen:
    """Return the unread notices to that member that have one of the *uids* in theirs."""
    from teams_cli.messages import inboxes

    told_to = presence.load(store, team, name).told_to or 0
    news = {number for number, uid, _ in store.envelopes(team, MESSAGE, told_to) if any(one in uid for one in uids)}
    mailbox = inboxes.Mailbox(store, team, name)
    return _Unseen(mailbox, sorted(news.intersection(mailbox.unread(quiet=True))))


def refuse_unseen(store: Store, team: Team, task: Task, owner: str) -> None:
    """Refuse once, with the difference, to complete a task whose text another member changed since the owner last saw
    it.

    Raises:
        Conflict: There is such a change; by this the owner has seen it.
    """
    if not any("description" in (note.changed or ()) for note in _edits(task, owner)):
        return
    if unseen := read_unseen(store, team.name, owner, _uid("edited", task)):
        hint = "If your work has it, complete the task again."
        raise errors.Conflict(f"you have not seen this change: {unseen}", hint)


def read_unseen(store: Store, team: str, name: str, uid: str) -> str:
    """Return the texts of the unread notices to that member whose uids have *uid* in them, and mark them as read."""
    unseen = _unseen(store, team, name, uid)
    if not unseen.numbers:
        return ""
    texts = [message.message for message in unseen.mailbox.messages(unseen.numbers)]
    unseen.mailbox.mark_read(set(unseen.numbers))
    return "; ".join(texts)


def note_shown(store: Store, team: str, task: Task, name: str, once_told: OnceTold) -> None:
    """Mark the notices about edits of the task as read, for an agent that is shown the whole task."""
    if task.concerned != name or not _edits(task, name, ("edited", "note")):
        return
    unseen = _unseen(store, team, name, _uid("edited", task), _uid("noted on", task))
    if unseen.numbers:
        once_told(lambda: unseen.mailbox.mark_read(set(unseen.numbers)))


def _uid(did: str, task: Task) -> str:
    """Return the prefix of the uids of notices about edits of the task."""
    return f"{did.replace(' ', '-')}-{task.id}-"


def note(store: Store, team_name: str, caller: Caller | None, word: str, said: str, uid: str | None = None) -> Task:
    """Add a note to a task. Its owner is notified; nothing else of the task changes.

    If it is interrupted, repeat it: no note is added twice.

    Raises:
        TaskNotFound: There is no such task.
        InvalidValue: The note is blank, or longer than 8 KiB.
        WrongState: The task already has 100 notes.
    """
    name = require(store, team_name, caller, "note", word).name
    text.checked(said, "note", _MAX_NOTE)

    def add(task: Task) -> Task:
        if task.has_note(uid):
            return task
        if task.is_full:
            raise errors.WrongState(
                f"{task.id} has the most notes allowed", "Send a message instead: teams send-message NAME TEXT"
            )
        told = [_to_whom_it_concerns(task, name, "noted on", said)] if task.concerned not in (None, name) else []
        return owing(task.noted(teams.now(store), name, "note", added=said, uid=uid), *told)

    before, task = update(store, team_name, TASK, tasks.get(store, team_name, word).id, add)
    if before is not task:
        history.note(store, team_name, name, "task noted", task=task.id, added=said[:_MOST_SHOWN])
    deliver(store, team_name, TASK, task)
    return task
