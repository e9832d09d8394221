"""Making tasks of items, and bringing those up to date that were made before: what changed there alone changes here,
and what was changed here stays.
"""

from __future__ import annotations

import os
from hashlib import sha256

from teams_cli import errors, text
from teams_cli.extensions.exchange import trackers
from teams_cli.records.json_text import dumps
from teams_cli.records.records import owing
from teams_cli.store.contract import Store
from teams_cli.store.files import locks
from teams_cli.store.retrying import update
from teams_cli.tasks import assigning, changes, creating, editing, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.creating import Planned
from teams_cli.tasks.tasks import EDITABLE, FINISHED, TASK, Task
from teams_cli.teams import roles, teams
from teams_cli.teams.permission import Standing, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.extensions.exchange.items import Item
    from teams_cli.teams.permission import Caller

_SKILL = "skill:"
_LONGEST_REMARK = 2000
_LONGEST_ID = 255


class Outcome:
    """What an import did: the tasks that it *created*, those that it *changed* and in what, what was *kept* as it is
    here though it changed there, how many were *unchanged*, and what was *left*, each with the items that have it.
    """

    def __init__(self) -> None:
        self.created: list[Task] = []
        self.changed: dict[str, list[str]] = {}
        self.kept: dict[str, list[str]] = {}
        self.unchanged = 0
        self.left: dict[str, list[str]] = {}

    def leave(self, what: str, key: str) -> None:
        """Note something that was not taken over."""
        self.left.setdefault(what, []).append(key)


def imported(store: Store, team: str, tracker: str) -> dict[str, Task]:
    """The tasks that were imported from that tracker or tool, by their ids there."""
    sourced = (task for task in tasks.all_of(store, team, []) if task.source and task.source["from"] == tracker)
    return {task.source["id"]: task for task in sourced if task.source}


def bring(store: Store, team: str, caller: Caller | None, tracker: str, items: Sequence[Item]) -> Outcome:
    """Make a task of each item that has none, all in one commit, and bring the others up to date.

    Raises:
        Busy: Another import is under way.
        NotAllowed: The caller may not import.
    """
    at = require(store, team, caller, "import", f"{text.counted(len(items), 'task')} of {tracker}")
    held = locks.hold(f"{store.root}/imports/{team}.lock", store.root)
    if held is None:
        raise errors.Busy("another import is running", "Repeat the command when it is done.")
    try:
        return _Import(store, at, tracker, items).carried_out()
    finally:
        os.close(held)


class _Import:
    """One import, under way."""

    def __init__(self, store: Store, at: Standing, tracker: str, items: Sequence[Item]) -> None:
        self.store = store
        self.at = at
        self.tracker = tracker
        self.outcome = Outcome()
        self.items: dict[str, Item] = {}
        self.tasks = imported(store, at.team.name, tracker)
        self.ids = {key: task.id for key, task in self.tasks.items()}
        self.skills = _skills(at)
        for item in items:
            for what in dict.fromkeys(item.left):
                self.outcome.leave(what, item.key)
            if item.key in self.items:
                self.outcome.leave("its id is another's", f"{item.key} ({item.task_title})")
            elif len(item.key) > _LONGEST_ID:
                self.outcome.leave(f"its id has more than {_LONGEST_ID} characters", text.clipped_line(item.key, 40))
            elif item.status:
                self.items[item.key] = item

    def carried_out(self) -> Outcome:
        waits = trackers.of(self.items, self.ids, self.outcome.leave)
        new = [item for key, item in self.items.items() if key not in self.tasks]
        if new:
            words = {**{item.key: f"new {item.key}" for item in new}, **self.ids}
            planned = [
                Planned(words[item.key], self._draft(item, waits[item.key]), [words[key] for key in waits[item.key]])
                for item in new
            ]
            self.outcome.created = creating.create_all(self.store, self.at.team.name, self.at.caller, planned)
            self.ids.update({task.source["id"]: task.id for task in self.outcome.created if task.source})
        for key, task in self.tasks.items():
            if key in self.items:
                self._bring_up(task, self.items[key], waits[key])
        return self.outcome

    def _draft(self, item: Item, waits: list[str]) -> Task:
        now = teams.now(self.store)
        fields = self._fields(item)
        draft = Task(
            team_name=self.at.team.name,
            created_at=now,
            status=item.status,
            result=item.why if item.status == "completed" else None,
            completed_at=now if item.status in FINISHED else None,
            source=self._source(item, fields, waits),
            **fields,
        )
        if item.status in FINISHED:
            draft = draft.noted(now, self.at.name, item.status, item.why or f"because it is so in {self.tracker}")
        return self._with_remarks(draft, item)

    def _fields(self, item: Item) -> dict[str, Any]:
        """The fields of its task as they are to be."""
        skills = [
            label.removeprefix(_SKILL) for label in item.labels if label.startswith(_SKILL) or label in self.skills
        ]
        return {
            "title": item.task_title,
            "description": item.task_description,
            "priority": item.priority,
            "require": [skill for skill in dict.fromkeys(skills) if 0 < len(skill) <= text.MAX_SKILL],
        }

    def _source(self, item: Item, fields: dict[str, Any], waits: list[str]) -> dict[str, Any]:
        """The source of a task, with digests by which a later change there or here is noticed."""
        digests = {key: _digest(value) for key, value in fields.items()}
        source = {
            "from": self.tracker,
            "id": item.key,
            "url": item.url,
            "author": (item.author or "")[:255],
            "foreign": bool(item.foreign),
            "seen": {**digests, "status": item.status, "waits": waits},
        }
        return {key: value for key, value in source.items() if value}

    def _with_remarks(self, task: Task, item: Item) -> Task:
        """The task with the remarks that it does not have yet, as far as there is room."""
        for remark in item.remarks:
            uid = f"{self.tracker}-{remark.key}"[:255]
            if not (task.has_note(uid) or task.is_full):
                said = text.clipped(remark.said, _LONGEST_REMARK)
                task = task.noted(teams.now(self.store), self.at.name, "note", added=said, uid=uid)
        return task

    def _bring_up(self, task: Task, item: Item, waits: list[str]) -> None:
        """Change the task in what changed there, unless it was changed here too."""
        fields, team = self._fields(item), self.at.team.name
        if item.status in FINISHED:  # what it waited for is as it was
            waits = (task.source or {}).get("seen", {}).get("waits", waits)
        source = self._source(item, fields, waits)
        merge = _Merge(self, task, item, fields, source["seen"])

        def change(now: Task) -> Task:
            nonlocal merge
            merge = _Merge(self, now, item, fields, source["seen"])
            changed = changes.changed_by(self.store, self.at, now, merge.edit) if merge.edit.words else now
            changed = self._with_remarks(merge.with_status(changed), item)
            if "require" in merge.changed:
                changed = changed.having(require=fields["require"])
            return changed if changed.source == source else changed.having(source=source)

        said = f"{merge.ended_there} in {self.tracker}"
        try:
            if merge.ended_there:  # first: who is killed behind it says so again, and adds nothing
                uid = f"{self.tracker}-{item.key}-{item.status}"[:255]
                editing.note(self.store, team, self.at.caller, task.id, said, uid)
            before, after = update(self.store, team, TASK, task.id, change)
            if merge.changed:
                after = changes.followed(self.store, self.at, before, after, merge.edit)
        except (errors.Conflict, errors.NotAllowed) as refusal:
            self.outcome.leave(f"{task.id}: {refusal.message}", item.key)
            return
        if merge.ended_there:
            self.outcome.leave(f"{said}, but {task.id} is {task.status} here", item.key)
        if merge.kept:
            self.outcome.kept[task.id] = merge.kept
        if merge.changed or len(after.notes) > len(before.notes):
            self.outcome.changed[task.id] = merge.changed or ["notes"]
        elif not merge.kept:
            self.outcome.unchanged += 1


class _Merge:
    """What is to change in a task: what *changed*, what is *kept* though it changed there, and the *edit* for it."""

    def __init__(self, of: _Import, task: Task, item: Item, fields: dict[str, Any], now_there: dict[str, Any]) -> None:
        self._of = of
        self._item = item
        self.changed: list[str] = []
        self.kept: list[str] = []
        self.ended_there = ""
        seen = (task.source or {}).get("seen", {})
        edits: dict[str, Any] = {}
        for key, value in fields.items():
            here = _digest(getattr(task, key))
            if now_there[key] not in (seen.get(key), here):
                self._judge(key, here == seen.get(key))
                if key in self.changed and key in EDITABLE:
                    edits[key] = value or ""
        block, unblock = self._waiting(task, seen.get("waits", ()), now_there["waits"])
        self.edit = Edit(block=block, unblock=unblock, reason=f"changed in {of.tracker}", **edits)
        self._status(task, seen.get("status", "pending"))

    def _judge(self, key: str, untouched: bool) -> None:
        (self.changed if untouched else self.kept).append(key)

    def _waiting(self, task: Task, before: Sequence[str], now: Sequence[str]) -> tuple[list[str], list[str]]:
        """The blockers that are new and those that are none any more."""
        ids = self._of.ids
        were, are = ({ids[key] for key in keys if key in ids} for keys in (before, now))
        if set(before) == set(now) or are == set(task.blocked_by):
            return [], []
        self._judge("blockedBy", were == set(task.blocked_by))
        if "blockedBy" in self.kept:
            return [], []
        return sorted(are - were), sorted(were - are)

    def _status(self, task: Task, before: str) -> None:
        wanted = self._item.status
        self.status = ""
        if wanted in (before, task.status) or (wanted in FINISHED and task.status in FINISHED - {before}):
            return
        if task.status not in ("pending", before):
            if task.status in FINISHED:
                self.kept.append("status")
            else:
                self.ended_there = wanted
            return
        self.status = wanted
        self.changed.append("status")

    def with_status(self, task: Task) -> Task:
        """The task with the status that it has there now."""
        if not self.status:
            return task
        of, store = self._of, self._of.store
        now = teams.now(store)
        if self.status == "pending":
            return task.freed().noted(now, of.at.name, "reopened", f"opened again in {of.tracker}")
        ended = task.having(status=self.status, completed_at=now)
        if self.status == "completed":
            ended = owing(ended.having(result=self._item.why), *assigning.ready_notices(store, of.at.team, ended))
        return ended.noted(now, of.at.name, self.status, self._item.why or f"because it is so in {of.tracker}")


def _skills(at: Standing) -> set[str]:
    members = (member for member in at.team.roster() if member.active)
    skills = set[str]()
    for member in members:
        try:
            skills |= roles.skills_of(member, at.team, at.caller.config)
        except errors.NotAllowed:  # a role that nobody defines any more
            continue
    return skills


def _digest(value: Any) -> str:
    return sha256(dumps(value or None).encode()).hexdigest()[:8]
