"""Makes tasks of items, and updates the tasks that an earlier import made.

A field that changed only in the source changes in the team. A field that was changed in the team stays.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from hashlib import sha256

from teams_cli import errors, text
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
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from teams_cli.extensions.exchange.items import Item
    from teams_cli.teams.permission import Caller

_SKILL = "skill:"
_LONGEST_REMARK = 2000
_LONGEST_ID = 255


@dataclass
class Outcome:
    """The outcome of an import: the *created* tasks, the fields that it *changed* in each task, the fields that it
    *kept* although they changed in the source, the number of *unchanged* tasks, and the things that it *left* out, each
    with the items.
    """

    created: list[Task] = field(default_factory=list)
    changed: dict[str, list[str]] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)
    unchanged: int = 0
    left: dict[str, list[str]] = field(default_factory=dict)

    def leave(self, what: str, key: str) -> None:
        """Note that *what* was not taken over from the item *key*."""
        self.left.setdefault(what, []).append(key)


def imported(store: Store, team: str, tracker: str) -> dict[str, Task]:
    """Return the tasks that were imported from *tracker*, which may be a tool, by their ids in it."""
    sourced = (task for task in tasks.all_of(store, team, []) if task.source and task.source["from"] == tracker)
    return {task.source["id"]: task for task in sourced if task.source}


def bring(store: Store, team: str, caller: Caller | None, tracker: str, items: Sequence[Item]) -> Outcome:
    """Make a task of each new item, all in one commit, and update the tasks of the other items. Return the outcome.

    Raises:
        Busy: Another import is running.
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
    """Carries out one import."""

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
        waits = blockers_of(self.items, self.ids, self.outcome.leave)
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
                self._update(task, self.items[key], waits[key])
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
        """Return the fields that the item's task should have."""
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
        """Return the source of a task, with digests by which a later import finds changes in the source or the team."""
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
        """Return the task with the item's new remarks as notes, as far as the task has room for them."""
        for remark in item.remarks:
            uid = f"{self.tracker}-{remark.key}"[:255]
            if not (task.has_note(uid) or task.is_full):
                added = text.clipped(remark.text, _LONGEST_REMARK)
                task = task.noted(teams.now(self.store), self.at.name, "note", added=added, uid=uid)
        return task

    def _update(self, task: Task, item: Item, waits: list[str]) -> None:
        """Change the fields of the task that changed only in the source."""
        fields, team = self._fields(item), self.at.team.name
        if item.status in FINISHED:  # its blockers no longer matter
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

        ended = f"{merge.ended_there} in {self.tracker}"
        try:
            if merge.ended_there:  # first, since a repeated import adds the same note only once
                uid = f"{self.tracker}-{item.key}-{item.status}"[:255]
                editing.note(self.store, team, self.at.caller, task.id, ended, uid)
            before, after = update(self.store, team, TASK, task.id, change)
            if merge.changed:
                after = changes.followed(self.store, self.at, before, after, merge.edit)
        except (errors.Conflict, errors.NotAllowed) as refusal:
            self.outcome.leave(f"{task.id}: {refusal.message}", item.key)
            return
        if merge.ended_there:
            self.outcome.leave(f"{ended}, but {task.id} is {task.status} here", item.key)
        if merge.kept:
            self.outcome.kept[task.id] = merge.kept
        if merge.changed or len(after.notes) > len(before.notes):
            self.outcome.changed[task.id] = merge.changed or ["notes"]
        elif not merge.kept:
            self.outcome.unchanged += 1


class _Merge:
    """Finds what to change in a task: the fields that are *changed*, those that are *kept* although they changed in the
    source, and the *edit*.
    """

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
        """Return the blockers to add and the blockers to remove."""
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
        """Return the task with the status that it has in the source, if that status is to be taken over."""
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
        except errors.NotAllowed:  # its role is no longer defined
            continue
    return skills


def _digest(value: Any) -> str:
    return sha256(dumps(value or None).encode()).hexdigest()[:8]


def blockers_of(
    items: Mapping[str, Item], imported: Collection[str], leave: Callable[[str, str], object]
) -> dict[str, list[str]]:
    """Return the keys of the blockers of each item, among the items and those *imported* before.

    A parent is blocked by its children, and the children by the parent's blockers. *leave* is called for blockers that
    are missing or would close a cycle.
    """
    waits: dict[str, list[str]] = {key: [] for key in items}
    for key, item in items.items():
        for other in item.waits_for:
            if other not in items and other not in imported:
                leave("waits for an item that was not imported", f"{key} ({other})")
            elif not _add(waits, key, other):
                leave("would wait for itself", f"{key} ({other})")
    for key, item in items.items():
        if item.parent and not (item.parent in items and _add(waits, item.parent, key)):
            leave("parent", f"{key} ({item.parent})")
    for key, item in items.items():
        for above in _above(items, item):
            for other in above.waits_for:
                if other in items or other in imported:
                    _add(waits, key, other)
    return waits


def _above(items: Mapping[str, Item], item: Item) -> Iterator[Item]:
    """Yield the parent of the item, the parent of that parent, and so on."""
    seen = {item.key}
    while item.parent and item.parent in items and item.parent not in seen:
        item = items[item.parent]
        seen.add(item.key)
        yield item


def _add(waits: dict[str, list[str]], key: str, other: str) -> bool:
    """Add the blocker *other* to the item *key*, unless it would close a cycle. Return whether the item has the blocker
    now.
    """
    ahead, seen = [other], {other}
    while ahead:
        reached = ahead.pop()
        if reached == key:
            return False
        further = [each for each in waits.get(reached, ()) if each not in seen]
        seen.update(further)
        ahead += further
    if other not in waits[key]:
        waits[key].append(other)
    return True
