"""Steps: what a workflow's tasks become in one run, with the variables filled in and `each` made many."""

from __future__ import annotations

from teams_cli import text
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.tasks import changes, creating, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams.caller import Caller
from teams_cli.workflows import templates
from teams_cli.workflows.templates import RESULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.workflows.model import TaskTemplate, Workflow

ITEM = "item"
_MAX_TITLE = 500


class Step:
    """One task to be: *key* is its id in the workflow, with a number behind it when `each` made many."""

    def __init__(self, key: str, template: TaskTemplate, item: str | None, values: dict[str, str]) -> None:
        self.key = key
        self.template = template
        self.item = item
        self.values = values if item is None else {**values, ITEM: item}

    def draft(self, team: str, blockers: list[str]) -> Task:
        """The task; its key and item are kept in it."""
        said = self.template
        return creating.of_template(team, said, "").having(
            title=one_line(templates.fill(said.title, self.values)),
            description=said.description and templates.fill(said.description, self.values),
            prompt=said.prompt and templates.fill(said.prompt, self.values),
            require=[templates.fill(skill, self.values) for skill in said.require],
            check_in=said.check_in and templates.fill(said.check_in, self.values),
            blocked_by=blockers,
            step=self.key,
            item=self.item,
        )


def one_line(said: str) -> str:
    """What is said as a title: one line, printable, not too long."""
    line = "".join(c if c.isprintable() else " " for c in said).strip() or "-"
    return text.clipped(line, _MAX_TITLE)


def expand(workflow: Workflow, variables: dict[str, str], items: Mapping[str, list[str]]) -> list[Step]:
    """All steps, each behind those that it waits for. *items* has those of each task that has `each`."""
    steps = []
    for template in workflow.ordered():
        if template.each is None:
            steps.append(Step(template.id, template, None, variables))
        else:
            found = enumerate(items.get(template.id, []), 1)
            steps += [Step(templates.instance(template.id, n), template, item, variables) for n, item in found]
    return steps


def create_missing(store: Store, team: str, leader: Caller, steps: list[Step], thinking: bool = False) -> None:
    """Create the tasks that are not there yet: all, or after a crash the rest.

    Agents that are *thinking* look up the results of earlier tasks: their texts say where these are.
    """
    ids = {key: task.id for key, task in by_key(store, team).items()}
    of_template: dict[str, list[str]] = {}
    for step in steps:
        blockers = [task_id for key in step.template.blocked_by for task_id in of_template.get(key, [])]
        if step.key not in ids:
            draft = step.draft(team, blockers)
            if thinking:
                draft = _with_places(draft, {f"{RESULT}{key}": found for key, found in of_template.items()})
            ids[step.key] = tasks.create(store, team, leader, draft).id
        of_template.setdefault(step.template.id, []).append(ids[step.key])


def _with_places(draft: Task, results: dict[str, list[str]]) -> Task:
    """The task with the commands that show the results of earlier tasks in the places of these."""
    places = {key: "\n".join(f"teams show-task {task_id}" for task_id in found) for key, found in results.items()}
    return draft.having(
        prompt=draft.prompt and templates.fill(draft.prompt, places),
        description=draft.description and templates.fill(draft.description, places),
    )


def by_key(store: Store, team: str) -> dict[str, Task]:
    """The tasks of the run, by their key in the workflow; tasks that were added by hand go by their id."""
    return {key_of(task): task for task in tasks.all_of(store, team, [])}


def key_of(task: Task) -> str:
    """The key of the step that the task is of; its id when it is of none."""
    return task.step or task.id


def reopen_failed(store: Store, team: str) -> list[str]:
    """Open all failed tasks again, for another try; their ids. Only the human and task-managers may."""
    failed = [task for task in tasks.all_of(store, team, []) if task.status == "failed"]
    again = changes.Edit(status="pending", reason="the run is resumed")
    for task in failed:
        changes.change_task(store, team, Caller(HUMAN), task.id, again)
    return [task.id for task in failed]


def fill_results(said: str, results: Mapping[str, str]) -> str:
    """The text with the results of earlier steps in their places; those of a task made many one after the other."""
    merged: dict[str, list[str]] = {}
    for key, result in results.items():
        merged.setdefault(key, []).append(result)
        if template := templates.made_of(key):
            merged.setdefault(template, []).append(result)
    return templates.fill(said, {f"{RESULT}{key}": "\n".join(found) for key, found in merged.items()})
