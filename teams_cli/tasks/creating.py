"""Creating tasks: one, for a member or for anybody, or a list of tasks with dependencies."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.messages.notices import deliver
from teams_cli.store.contract import Store
from teams_cli.tasks import assigning, checks, claims, dependencies, tasks
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import teams
from teams_cli.teams.permission import Standing, require
from teams_cli.workflows import ordering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.workflows.model import TaskTemplate


def create_for(store: Store, team_name: str, caller: Caller | None, draft: Task, name: str) -> Task:
    """Add a task that is assigned to one member, who is notified. The member may have yet to join.

    Raises:
        AgentNotFound: That one left the team, or was shut down.
        NotAllowed: The member may not claim it.
        TaskNotFound, InvalidValue: As for `tasks.create`.
    """
    at = require(store, team_name, caller, "create-task", draft.title)
    _refuse_unfit(at, draft, name)
    for blocker in draft.waits_for:
        tasks.get(store, team_name, blocker)
    kept = assigning.draft_assigned(draft, dependencies.stored(store, team_name), name, at.name)
    task = tasks.create(store, team_name, at.caller, kept)
    deliver(store, team_name, TASK, task)
    return task


def _refuse_unfit(at: Standing, draft: Task, name: str) -> None:
    claims.refuse_unable(at.team, name, at.caller, or_absent=True)
    assigning.refuse_unskilled(at.team, draft, name, at.caller.config)


def of_template(team: str, template: TaskTemplate, directory: str) -> Task:
    """Return the draft of a task in a file of that directory, without its dependencies."""
    same = {name: getattr(template, name) for name in type(template).model_fields if name in Task.fields}
    for name in ("id", "blocked_by", "after", "attempts"):  # they mean something else in a file
        same.pop(name, None)
    otherwise: dict[str, Any] = {
        "require": list(template.require),
        "touches": text.file_patterns(template.touches) or None,
        "plan_required": template.plan_required or None,
        "check_in": template.check_in and os.path.abspath(os.path.join(directory, template.check_in)),
        "check_from": checks.set_from(template.check, directory),
    }
    return Task(team_name=team, created_at="", **{**same, **otherwise})


class Planned:
    """A task of a list: *waits_for* and *after* name tasks of the list or existing tasks, *keep_for* the member for
    whom it is kept.
    """

    def __init__(
        self,
        key: str,
        draft: Task,
        waits_for: list[str],
        keep_for: str | None = None,
        after: list[str] | None = None,
    ) -> None:
        self.key = key
        self.draft = draft
        self.waits_for = waits_for
        self.keep_for = keep_for
        self.after = after or []


def create_all(store: Store, team_name: str, caller: Caller | None, planned: list[Planned]) -> list[Task]:
    """Add tasks with their dependencies in one commit, each after the tasks that it waits for.

    Raises:
        InvalidValue: A key is given twice, or a text is blank or too long.
        TaskNotFound: One waits for what is neither among them nor there.
        DependencyCycle: Some wait for each other.
        AgentNotFound, NotAllowed: As for `create_for` and `tasks.create`.
    """
    at = require(store, team_name, caller, "create-task", f"{len(planned)} tasks")
    known = _known(store, team_name, planned)
    statuses = {task.id: task.status for task in known.values()}
    ordered = _ordered(planned)
    now = teams.now(store)
    drafts = [tasks.drafted(at, one.draft, now) for one in ordered]
    for one in ordered:
        if one.keep_for:
            _refuse_unfit(at, one.draft, one.keep_for)

    def status_of(key: str) -> str:
        return statuses.get(key, "pending")

    def make(ids: list[str]) -> list[Task]:
        of_key = dict(zip((one.key for one in ordered), ids, strict=True))
        of_key.update((word, task.id) for word, task in known.items())
        return [_linked(one, draft, of_key, status_of, at.name) for one, draft in zip(ordered, drafts, strict=True)]

    made = store.create_all(team_name, TASK, len(ordered), make)
    for task in made:
        tasks.note_created(store, task)
        deliver(store, team_name, TASK, task)
    return made


def _linked(one: Planned, draft: Task, ids: dict[str, str], status_of: Callable[[str], str], by: str) -> Task:
    """Return the draft with the ids of its dependencies and its assignee."""
    after = list(dict.fromkeys(ids[key] for key in one.after))
    linked = draft.having(blocked_by=list(dict.fromkeys(ids[key] for key in one.waits_for)), after=after or None)
    return assigning.draft_assigned(linked, status_of, one.keep_for, by) if one.keep_for else linked


def _known(store: Store, team: str, planned: list[Planned]) -> dict[str, Task]:
    """Return the existing tasks that the list waits for, by the word that names each."""
    keys = [one.key for one in planned]
    if len({*keys}) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise errors.InvalidValue(f"{twice} is given twice", "Give each task an id of its own.")
    words = {word for one in planned for word in (*one.waits_for, *one.after)} - set(keys)
    return {word: tasks.get(store, team, word) for word in sorted(words)}


def _ordered(planned: list[Planned]) -> list[Planned]:
    """Return the tasks in their order, but each after the tasks that it waits for."""
    waits = {one.key: [*one.waits_for, *one.after] for one in planned}
    if way := ordering.circle(waits):
        raise errors.DependencyCycle(
            f"{way[0]} would wait for itself: {' waits for '.join(way)}", "Remove one of these blockers."
        )
    known = {one.key: one for one in planned}
    return [known[key] for key in ordering.in_order(waits)]
