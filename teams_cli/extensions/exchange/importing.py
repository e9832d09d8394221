"""Creates tasks from items, and updates the tasks that an earlier import created.

A field that changed only in the source is changed in the team. A field that was changed in the team keeps the team's
value.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256

from teams_cli import errors, text
from teams_cli.records.records import owing
from teams_cli.store.contract import Store, update
from teams_cli.store.documents import dumps
from teams_cli.store.files import locks
from teams_cli.tasks import assigning, changes, creating, editing, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.creating import Planned
from teams_cli.tasks.tasks import EDITABLE, FINISHED, TASK, Task
from teams_cli.teams import roles, teams
from teams_cli.teams.permission import Standing, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from teams_cli.extensions.exchange.items import Item
    from teams_cli.teams.permission import Caller

_SKILL = "skill:"
_LONGEST_REMARK = 2000
_LONGEST_ID = 255


@dataclass
class Outcome:
    """The outcome of an import: the *created* tasks, and the *changed* fields of each task. *kept* has the fields of
    each task that changed in the source, but keep the team's value. *unchanged* is the number of tasks without changed
    or kept fields. *left_out* maps a description of what was not imported, such as "relation duplicates", to the keys
    of the items that have it.
    """

    created: list[Task] = field(default_factory=list)
    changed: dict[str, list[str]] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)
    unchanged: int = 0
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def leave(self, what: str, key: str) -> None:
        """Record that *what* was not imported from the item *key*."""
        self.left_out.setdefault(what, []).append(key)


def imported(store: Store, team: str, tracker: str) -> dict[str, Task]:
    """Return the tasks that were imported from *tracker*, an issue tracker or another tool, each under the key that it
    has there.
    """
    return {
        task.source["id"]: task
        for task in tasks.all_of(store, team, [])
        if task.source and task.source["from"] == tracker
    }


def bring(store: Store, team: str, caller: Caller | None, tracker: str, items: Sequence[Item]) -> Outcome:
    """Create tasks from the new items, all or none, and update the tasks of the other items. Return the outcome.

    Raises:
        Busy: Another import is running.
        NotAllowed: The caller may not import.
    """
    standing = require(store, team, caller, "import", f"{text.counted(len(items), 'task')} of {tracker}")
    lock = locks.hold(f"{store.root}/imports/{team}.lock", store.root)
    if lock is None:
        raise errors.Busy("another import is running", "Repeat the command when it is done.")
    try:
        while True:
            with suppress(creating.Overtaken):
                return _Import(store, standing, tracker, items).carry_out()
    finally:
        os.close(lock)


class _Import:
    """One import of *items* from a tracker or another tool, called *tracker*."""

    def __init__(self, store: Store, standing: Standing, tracker: str, items: Sequence[Item]) -> None:
        self.store = store
        self.standing = standing
        self.tracker = tracker
        self.outcome = Outcome()
        self.items: dict[str, Item] = {}
        self.tasks = imported(store, standing.team.name, tracker)
        self.ids = {key: task.id for key, task in self.tasks.items()}
        """The ids of the tasks, by the keys of their items."""
        self.skills = set[str]()
        """The skills that any active member of the team has."""
        for member in standing.team.roster():
            if member.active:
                with suppress(errors.NotAllowed):  # its role is no longer defined
                    self.skills |= roles.skills_of(member, standing.team, standing.caller.config)
        for item in items:
            for part in dict.fromkeys(item.left_out):
                self.outcome.leave(part, item.key)
            if item.key in self.items:
                self.outcome.leave("its id is another's", f"{item.key} ({item.task_title})")
            elif len(item.key) > _LONGEST_ID:
                self.outcome.leave(f"its id has more than {_LONGEST_ID} characters", text.clipped_line(item.key, 40))
            elif item.status:  # otherwise no task is made of it
                self.items[item.key] = item

    def carry_out(self) -> Outcome:
        """Create the tasks of new items, update the tasks of the other items, and return the outcome."""
        blockers = blockers_of(self.items, self.ids, self.outcome.leave)
        new = [item for key, item in self.items.items() if key not in self.tasks]
        if new:
            # A new task has no id yet, so the others refer to it by a text that is not an id.
            refs = {**{item.key: f"new {item.key}" for item in new}, **self.ids}
            planned = []
            for item in new:
                keys = blockers[item.key]
                draft, refs_of_blockers = self._draft(item, keys), [refs[key] for key in keys]
                planned.append(Planned(refs[item.key], draft, refs_of_blockers))
            standing = self.standing

            def check_last() -> None:
                present = imported(self.store, standing.team.name, self.tracker)
                if any(item.key in present for item in new):
                    raise creating.Overtaken

            team, caller = standing.team.name, standing.caller
            self.outcome.created = creating.create_all(self.store, team, caller, planned, check_last)
            self.ids.update({task.source["id"]: task.id for task in self.outcome.created if task.source})
        for key, task in self.tasks.items():
            if key in self.items:
                self._update(task, self.items[key], blockers[key])
        return self.outcome

    def _draft(self, item: Item, blockers: list[str]) -> Task:
        """Return the new task of an item. *blockers* has the keys of the items that block it."""
        now = teams.now(self.store)
        fields = self._fields(item)
        draft = Task(
            team_name=self.standing.team.name,
            created_at=now,
            status=item.status,
            result=item.why if item.status == "completed" else None,
            completed_at=now if item.status in FINISHED else None,
            source=self._source(item, fields, blockers),
            **fields,
        )
        if item.status in FINISHED:
            draft = draft.noted(now, self.standing.name, item.status, item.why or f"because it is so in {self.tracker}")
        return self._with_remarks(draft, item)

    def _fields(self, item: Item) -> dict[str, Any]:
        """Return the fields that the task gets from the item. A label becomes a required skill if it begins with
        `skill:`, or if a member has a skill of that name.
        """
        labels = [label for label in item.labels if label.startswith(_SKILL) or label in self.skills]
        skills = dict.fromkeys(label.removeprefix(_SKILL) for label in labels)
        return {
            "title": item.task_title,
            "description": item.task_description,
            "priority": item.priority,
            "require": [skill for skill in skills if 0 < len(skill) <= text.MAX_SKILL],
        }

    def _source(self, item: Item, fields: dict[str, Any], blockers: list[str]) -> dict[str, Any]:
        """Return the field `source` of the item's task, with digests by which a later import finds what changed."""
        digests = {key: _digest(value) for key, value in fields.items()}
        source = {
            "from": self.tracker,
            "id": item.key,
            "url": item.url,
            "author": (item.author or "")[:255],
            "foreign": bool(item.foreign),
            "seen": {**digests, "status": item.status, "waits": blockers},
        }
        return {key: value for key, value in source.items() if value}

    def _with_remarks(self, task: Task, item: Item) -> Task:
        """Return the task with a note for each remark of the item that it has no note for."""
        for remark in item.remarks:
            uid = f"{self.tracker}-{remark.key}"[:255]
            if not (task.has_note(uid) or task.is_full):
                added = text.clipped(remark.text, _LONGEST_REMARK)
                task = task.noted(teams.now(self.store), self.standing.name, "note", added=added, uid=uid)
        return task

    def _update(self, task: Task, item: Item, blockers: list[str]) -> None:
        """Change those fields of the task that changed only in the source, and add the item's new remarks."""
        fields, team = self._fields(item), self.standing.team.name
        if item.status in FINISHED:  # its blockers no longer matter, so they count as unchanged
            blockers = (task.source or {}).get("seen", {}).get("waits", blockers)
        source = self._source(item, fields, blockers)

        def merge_into(present: Task) -> _Merge:
            return _Merge(self, present, item, fields, source["seen"])

        def change(present: Task) -> Task:
            merge, changed = merge_into(present), present
            if merge.edit.changes_fields:
                changed, _ = changes.with_edit(self.store, self.standing, present, merge.edit)
            changed = self._with_remarks(merge.with_status(changed), item)
            if "require" in merge.changed:  # which is not a part of an `Edit`
                changed = changed.having(require=fields["require"])
            if changed.source != source:
                changed = changed.having(source=source)
            return changed

        status_in_source = f"{item.status} in {self.tracker}"
        try:
            # The note comes first: if the import is killed and repeated, the note is added only once.
            if merge_into(task).status_there:
                uid = f"{self.tracker}-{item.key}-{item.status}"[:255]
                editing.note(self.store, team, self.standing.caller, task.id, status_in_source, uid)
            before, after = update(self.store, team, TASK, task.id, change)
            merge = merge_into(before)  # the one that was stored: the task may have changed since it was read
            if merge.changed:
                after = changes.finish_change(self.store, self.standing, before, after, merge.edit)
        except (errors.Conflict, errors.NotAllowed) as refusal:
            self.outcome.leave(f"{task.id}: {refusal.message}", item.key)
            return
        if merge.status_there:
            self.outcome.leave(f"{status_in_source}, but {task.id} is {before.status} here", item.key)
        changed_fields = merge.changed
        if not changed_fields and len(after.notes) > len(before.notes):
            changed_fields = ["notes"]
        if merge.kept:
            self.outcome.kept[task.id] = merge.kept
        if changed_fields:
            self.outcome.changed[task.id] = changed_fields
        if not changed_fields and not merge.kept:
            self.outcome.unchanged += 1


class _Merge:
    """Finds what to change in a task, because its item in the source changed since the last import. *changed* has the
    fields that are taken over from the source. *kept* has the fields that changed both in the source and in the team,
    and therefore keep the team's value. *edit* and *status* are the changes to make. *seen_now* has digests of the
    item's present fields; the task has those of the last import.
    """

    def __init__(
        self, import_: _Import, task: Task, item: Item, fields: dict[str, Any], seen_now: dict[str, Any]
    ) -> None:
        self._import = import_
        self._item = item
        self.changed: list[str] = []
        self.kept: list[str] = []
        seen_before = (task.source or {}).get("seen", {})
        edits: dict[str, Any] = {}
        for key, value in fields.items():
            digest_here = _digest(getattr(task, key))
            if seen_now[key] in (seen_before.get(key), digest_here):  # it did not change there, or is the same here
                continue
            if digest_here != seen_before.get(key):  # it was edited here, too
                self.kept.append(key)
                continue
            self.changed.append(key)
            if key in EDITABLE:
                edits[key] = value or ""
        block, unblock = self._merge_blockers(task, seen_before.get("waits", ()), seen_now["waits"])
        self.edit = Edit(block=block, unblock=unblock, reason=f"changed in {import_.tracker}", **edits)
        self.status = ""
        """The status that the task takes over from the source; "" if the task keeps its own."""
        self.status_there = ""
        """The item's status in the source, if the task does not take it over because somebody is working on the task;
        otherwise "".
        """
        self._merge_status(task, seen_before.get("status", "pending"))

    def _merge_blockers(self, task: Task, before: Sequence[str], now: Sequence[str]) -> tuple[list[str], list[str]]:
        """Decide whether the task takes over changes of the item's blockers. Return the ids of the blockers to add to
        the task, and the ids of those to remove. *before* has the keys of the item's blockers at the last import, and
        *now* the present keys.
        """
        ids = self._import.ids
        ids_before = {ids[key] for key in before if key in ids}
        ids_now = {ids[key] for key in now if key in ids}
        ids_here = set(task.blocked_by)
        if set(before) == set(now) or ids_now == ids_here:  # nothing changed there, or the task has it already
            return [], []
        if ids_before != ids_here:  # they were edited here, too
            self.kept.append("blockedBy")
            return [], []
        self.changed.append("blockedBy")
        return sorted(ids_now - ids_before), sorted(ids_before - ids_now)

    def _merge_status(self, task: Task, before: str) -> None:
        """Decide whether the task takes over the item's status. *before* is the item's status at the last import."""
        now = self._item.status
        if now in (before, task.status):  # it did not change there, or is the same here
            return
        has_ended_here = task.status in FINISHED - {before}
        if has_ended_here and now in FINISHED:  # it ended in both, perhaps in different ways
            return
        if task.status in ("pending", before):  # it was not begun here, or not changed here
            self.status = now
            self.changed.append("status")
        elif task.status in FINISHED:
            self.kept.append("status")
        else:
            self.status_there = now

    def with_status(self, task: Task) -> Task:
        """Return the task with the status that it takes over from the source, or unchanged if it takes over none."""
        if not self.status:
            return task
        store, standing, tracker = self._import.store, self._import.standing, self._import.tracker
        now, why = teams.now(store), self._item.why
        if self.status == "pending":
            return task.freed().noted(now, standing.name, "reopened", f"opened again in {tracker}")
        ended = task.having(status=self.status, completed_at=now)
        if self.status == "completed":
            ended = owing(ended.having(result=why), *assigning.ready_notices(store, standing.team, ended))
        return ended.noted(now, standing.name, self.status, why or f"because it is so in {tracker}")


def _digest(value: Any) -> str:
    return sha256(dumps(value or None).encode()).hexdigest()[:8]


def blockers_of(
    items: Mapping[str, Item], imported: Collection[str], leave: Callable[[str, str], object]
) -> dict[str, list[str]]:
    """Return the keys of the blockers of each item. A blocker is one of *items*, or its key is in *imported*.

    A parent is blocked by its children, and each child by the parent's blockers. A blocker is left out if it is
    missing, or if an item would wait for itself because of it. If the item itself names the blocker or the parent,
    *leave* is called with two strings: what was left out, and the keys of both items.
    """
    blockers: dict[str, list[str]] = {key: [] for key in items}
    for key, item in items.items():  # first the blockers that the items name, since later ones may close a cycle
        for blocker in item.waits_for:
            if blocker not in items and blocker not in imported:
                leave("waits for an item that was not imported", f"{key} ({blocker})")
            elif not _add_blocker(blockers, key, blocker):
                leave("would wait for itself", f"{key} ({blocker})")
    for key, item in items.items():
        # A parent that is only in *imported* is not updated, so it gets no blockers.
        if item.parent and not (item.parent in items and _add_blocker(blockers, item.parent, key)):
            leave("parent", f"{key} ({item.parent})")
    for key, item in items.items():
        # The item itself does not name these blockers, so *leave* is not called if one can't be added.
        visited = {key}  # each ancestor once, even if they form a cycle
        while item.parent and item.parent in items and item.parent not in visited:
            item = items[item.parent]
            visited.add(item.key)
            for blocker in item.waits_for:
                if blocker in items or blocker in imported:
                    _add_blocker(blockers, key, blocker)
    return blockers


def _add_blocker(blockers: dict[str, list[str]], key: str, blocker: str) -> bool:
    """Add the blocker to the item *key*. If the item would then wait for itself, add nothing, and return False."""
    to_visit, visited = [blocker], {blocker}
    while to_visit:
        visiting = to_visit.pop()
        if visiting == key:
            return False
        unvisited = [each for each in blockers.get(visiting, ()) if each not in visited]
        visited.update(unvisited)
        to_visit += unvisited
    if blocker not in blockers[key]:
        blockers[key].append(blocker)
    return True
