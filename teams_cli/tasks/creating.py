"""Creating tasks: one, for a member or for anybody, or a list of tasks with dependencies."""

from __future__ import annotations

import os
from typing import NamedTuple

from teams_cli import errors, text
from teams_cli.messages.notices import deliver
from teams_cli.store.contract import Store
from teams_cli.tasks import assigning, changes, checks, claims, dependencies, editing, tasks
from teams_cli.tasks.tasks import FINISHED, TASK, Task
from teams_cli.teams import teams
from teams_cli.teams.permission import Standing, require
from teams_cli.workflows import ordering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.workflows.model import TaskTemplate


def refuse_unfit(standing: Standing, draft: Task, name: str) -> None:
    """Refuse to assign the draft to the member *name* if the member could not claim the task."""
    claims.refuse_unable(standing.team, name, standing.caller, or_absent=True)
    assigning.refuse_unskilled(standing.team, draft, name, standing.caller.config)


def of_template(team: str, template: TaskTemplate, directory: str) -> Task:
    """Return the draft of the task that *template* describes, without its dependencies. Paths in the template are
    relative to *directory*, where its file is.
    """
    fields: dict[str, Any] = {
        name: getattr(template, name) for name in type(template).model_fields if name in Task.fields
    }
    for name in ("id", "blocked_by", "after", "attempts"):  # they mean something else in a file
        fields.pop(name, None)
    fields["require"] = list(template.require)
    fields["touches"] = text.file_patterns(template.touches) or None
    fields["plan_required"] = template.plan_required or None
    fields["check_in"] = template.check_in and os.path.abspath(os.path.join(directory, template.check_in))
    fields["check_from"] = checks.set_from(template.check, directory)
    return Task(team_name=team, created_at="", **fields)


class Planned(NamedTuple):
    """A task to create, in a list of tasks. *key* is its name in the list. *waits_for*, *after* and *blocks* (the tasks
    that wait for this one) contain keys from the list or ids of existing tasks. The task is assigned to the member
    *keep_for*, who may have yet to join, or to nobody if this is None.
    """

    key: str
    draft: Task
    waits_for: Sequence[str]
    keep_for: str | None = None
    after: Sequence[str] = ()
    blocks: Sequence[str] = ()


class Overtaken(Exception):
    """Another process created some of the same tasks meanwhile, perhaps on another machine. Nothing was created."""


def create_all(
    store: Store,
    team_name: str,
    caller: Caller | None,
    planned: list[Planned],
    check_last: Callable[[], object] = lambda: None,
    tried_after: int | None = None,
) -> list[Task]:
    """Add the *planned* tasks with their dependencies in one commit. Each is added after the tasks that it waits for.
    Then make existing tasks wait for the new tasks that block them.

    *tried_after* is the number of the last task before an earlier attempt whose answer was lost. Tasks that this
    attempt created are not created again.
    *check_last* is called when no other process can create tasks any more. If it raises an error, nothing is created.

    Raises:
        InvalidValue: A key is given twice, or a text is blank or too long.
        TaskNotFound: A task waits for, or blocks, a task that is neither in the list nor in the team.
        DependencyCycle: Some tasks wait for each other.
        WrongState: A new task would block a task that has ended.
        AgentNotFound: A member to whom a task is assigned left the team, or was shut down.
        NotAllowed: As for `tasks.create`; a member may not claim its task; or you may not change a blocked task.
        Conflict: The tasks were created, but one that they block changed meanwhile, and does not wait for them.
    """
    standing = require(
        store, team_name, caller, "create-task", f"{len(planned)} tasks" if len(planned) > 1 else planned[0].draft.title
    )
    keys = [item.key for item in planned]
    if len({*keys}) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise errors.InvalidValue(f"{twice} is given twice", "Give each task an id of its own.")
    refs = {ref for item in planned for ref in (*item.waits_for, *item.after, *item.blocks)} - set(keys)
    existing = {ref: tasks.get(store, team_name, ref) for ref in sorted(refs)}  # a reference is an id or a number
    to_block = {existing[ref].id for item in planned for ref in item.blocks if ref in existing}
    editor = require(store, team_name, caller, "update-task", ", ".join(sorted(to_block))) if to_block else standing
    ordered = _ordered([_with_blockers_of_list(item, planned) for item in planned])
    _refuse_unblockable(store, standing, ordered, existing)
    now = teams.now(store)
    drafts = [tasks.drafted(standing, item.draft, now) for item in ordered]
    for item in ordered:
        if item.keep_for:
            refuse_unfit(standing, item.draft, item.keep_for)

    def with_dependencies(ids: list[str]) -> list[Task]:
        """Return the tasks with their dependencies and assignees. *ids* are the ids that the store gives the tasks."""
        check_last()
        id_of = {ref: task.id for ref, task in existing.items()}
        id_of.update((item.key, task_id) for item, task_id in zip(ordered, ids, strict=True))
        statuses = dict.fromkeys(ids, "pending") | {task.id: task.status for task in existing.values()}
        complete = []
        for item, draft in zip(ordered, drafts, strict=True):
            blockers = list(dict.fromkeys(id_of[key] for key in item.waits_for))
            after = [key for key in dict.fromkeys(id_of[key] for key in item.after) if key not in blockers]
            task = draft.having(blocked_by=blockers, after=after or None)
            if item.keep_for:
                task = assigning.draft_assigned(task, statuses.__getitem__, item.keep_for, standing.name)
            complete.append(task)
        return complete

    created = tasks.created_after(store, team_name, tried_after, drafts) if tried_after is not None else []
    if not created:
        created = store.create_all(team_name, TASK, len(ordered), with_dependencies)
        for task in created:
            tasks.note_created(store, task)
    for task in created:
        deliver(store, team_name, TASK, task)
    _block_existing(store, editor, ordered, created, existing)
    return created


def _block_existing(
    store: Store, editor: Standing, ordered: list[Planned], created: list[Task], existing: dict[str, Task]
) -> None:
    """Make each of the *existing* tasks that the new tasks block wait for them. Raises Conflict like `create_all`."""
    blockers: dict[str, list[str]] = {}
    for item, task in zip(ordered, created, strict=True):
        for blocked_id in {existing[ref].id for ref in item.blocks if ref in existing}:
            blockers.setdefault(blocked_id, []).append(task.id)
    problems, steps = [], []
    for blocked_id, new_ids in blockers.items():
        try:
            changes.change_as(store, editor, blocked_id, changes.Edit(block=new_ids))
        except errors.TeamsError as error:
            problems.append(f"{blocked_id} does not wait for {text.listed(new_ids)}: {error.message}")
            steps.append(f"teams show-task {blocked_id}")
    if problems:
        created_ids = text.listed([task.id for task in created])
        raise errors.Conflict(f"{created_ids} created, but {'; '.join(problems)}", f"See: {'; '.join(steps)}")


def _with_blockers_of_list(item: Planned, planned: list[Planned]) -> Planned:
    """Return *item* with every *planned* task that lists it under `blocks` added to its blockers."""
    return item._replace(waits_for=[*item.waits_for, *(other.key for other in planned if item.key in other.blocks)])


def _refuse_unblockable(store: Store, standing: Standing, ordered: list[Planned], existing: dict[str, Task]) -> None:
    """Refuse new tasks that block an *existing* task which has ended, which the caller may not change, or which would
    then wait for itself. *ordered* lists the new tasks, each after the tasks that it waits for.
    """
    awaited: dict[str, set[str]] = {}  # for each new task: the existing tasks for which it waits, also through others
    awaited_too: dict[str, set[str]] = {}  # for each blocked task: those for which it waits through the new tasks
    for item in ordered:
        awaited[item.key] = set()
        for ref in (*item.waits_for, *item.after):
            awaited[item.key] |= {existing[ref].id} if ref in existing else awaited[ref]
        for task in (existing[ref] for ref in item.blocks if ref in existing):
            if task.status in FINISHED:
                problem = f"{task.id} is {task.status}, so nothing can block it; nothing was created"
                raise errors.WrongState(problem, f"See: teams show-task {task.id}")
            editing.refuse_foreign(task, standing.name, standing.leads or standing.manages)
            awaited_too.setdefault(task.id, set()).update(awaited[item.key])
    for task_id, blockers in awaited_too.items():
        dependencies.refuse_cycle(store, standing.team.name, task_id, sorted(blockers), awaited_too)


def _ordered(planned: list[Planned]) -> list[Planned]:
    """Return the tasks in the given order, except that each task comes after the tasks that it waits for."""
    dependencies_of = {item.key: [*item.waits_for, *item.after] for item in planned}
    if cycle := ordering.circle(dependencies_of):
        raise errors.DependencyCycle(
            f"{cycle[0]} would wait for itself: {' waits for '.join(cycle)}", "Remove one of these blockers."
        )
    by_key = {item.key: item for item in planned}
    return [by_key[key] for key in ordering.in_order(dependencies_of)]
