"""The roster of a repository, `teams.yaml`: its form, and reading it.

name                           the name of the team
members                        a list of {name, role, harness, model, worktree, permissions, prompt}; those with a
                               harness are started, the others are expected to come by themselves
rules                          the rules of the team, a text or a list
pages                          key: text; the shared pages from the start
tasks                          a list, as of a workflow; a task can be `for` a member; known by `id` or title
workflow                       instead of tasks: the file of a workflow with the tasks
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from teams_cli import environment, errors
from teams_cli.records.types import Name, Permissions, Text
from teams_cli.teams.teams import LEADER, MEMBER
from teams_cli.workflows import files
from teams_cli.workflows.checks import Problem
from teams_cli.workflows.files import WorkflowNotFound
from teams_cli.workflows.model import MAX_AGENTS, Form, Names, TaskTemplate

_MOST_PROBLEMS_SHOWN = 3
T = TypeVar("T", bound=TaskTemplate)
_ONLY_IN_RUNS = {"prompt", "attempts", "each"}
"""Keys of a task that have a meaning only when a workflow runs."""


class ListedTask(TaskTemplate):
    """A task in a list. Unlike a task of a workflow, it can be assigned to a member, it can be completed only after
    certain other tasks, and existing tasks can be made to wait for it.

    A workflow needs none of this: it has no members and no other tasks yet, and its tasks end with their commands.
    """

    keep_for: Name | None = Field(default=None, alias="for")
    after: Names = Field(default=[])
    blocks: Names = Field(default=[])

    @property
    def waits_for(self) -> dict[str, list[str]]:
        return {**super().waits_for, "after": self.after}


_KEYS = [field.alias or name for name, field in ListedTask.model_fields.items() if name not in _ONLY_IN_RUNS]
_LIST_HINT = f"Nothing was created. Give a list of {{{', '.join(_KEYS)}}}, as the `tasks` of a workflow."


def read_task_list(content: str, form: type[T]) -> list[T]:
    """Return the tasks that a text in YAML or JSON lists, as records of the type *form*. A task that has no id gets its
    number in the list as its id, counted from 1.

    Raises:
        InvalidValue: The text is not a list of tasks; the error names the problems.
    """
    document = files.parsed(files.front_matter(content) or content, "the list of tasks", _LIST_HINT)
    rows = document.get("tasks") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not rows:
        raise errors.InvalidValue("the list of tasks is missing", _LIST_HINT)
    drafts = []
    for number, row in enumerate(rows, 1):
        draft = {"title": row} if isinstance(row, str) else row
        if isinstance(draft, dict):  # anything else is refused by the check of its form
            draft = {key: value for key, value in draft.items() if value is not None}
            ids = {key: _numbers_as_text(draft[key]) for key in ("id", "blockedBy", "after", "blocks") if key in draft}
            draft = {"id": str(number), **draft, **ids}
        drafts.append(draft)
    try:
        tasks: list[T] = TypeAdapter(list[form]).validate_python(drafts)  # type: ignore[valid-type]  # a form is a value
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)
        problems = []
        for problem in wrong[:_MOST_PROBLEMS_SHOWN]:
            index, *keys = problem["loc"]
            problems.append(" ".join([f"task {int(index) + 1}:", *map(str, keys), files.in_words(problem)]))
        if len(wrong) > _MOST_PROBLEMS_SHOWN:
            problems.append(f"and {len(wrong) - _MOST_PROBLEMS_SHOWN} more")
        raise errors.InvalidValue("; ".join(problems), _LIST_HINT) from None
    for task in tasks:
        if task.each:
            raise errors.InvalidValue(
                f"{task.id}: `each` works only in a run", "Write the tasks out, or use: teams run"
            )
    return tasks


def _numbers_as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers_as_text(element) for element in value]
    return str(value) if type(value) is int else value  # not a bool


FILE = "teams.yaml"
LEADERS = (LEADER, "leader")
"""The words for the role of the leader."""
_DESCRIPTIONS = ".claude/agents"
_LONGEST_ID = 50
_HINT = "Its fields: name, members, rules, pages, tasks or workflow; see `teams help up`."


def _as_lines(value: object) -> object:
    return "\n".join(f"- {line}" for line in value) if isinstance(value, list) else value


def _with_ids_of_titles(rows: object) -> object:
    """Return the tasks in *rows*, each with an id. A missing id is made from the task's title, so that the task has the
    same id whenever the file is read.
    """
    if not isinstance(rows, list):
        return rows
    taken_ids = {task.get("id") for task in rows if isinstance(task, dict)}
    tasks: list[object] = []
    for task in rows:
        if isinstance(task, dict) and "id" not in task and isinstance(task.get("title"), str):
            from_title = re.sub("[^a-z0-9]+", "-", task["title"].lower()).strip("-")[:_LONGEST_ID] or "task"
            task_id, number = from_title, 1
            while task_id in taken_ids:
                number += 1
                task_id = f"{from_title}-{number}"
            taken_ids.add(task_id)
            task = {**task, "id": task_id}
        tasks.append(task)
    return tasks


class MemberTemplate(Form):
    """A member of the team. A member with a harness is started."""

    name: Name
    role: Name = MEMBER
    harness: Name | None = None
    model: Text | None = None
    worktree: bool = False
    permissions: Permissions | None = None
    prompt: Text | None = None


class Roster(Form):
    """The team of a repository: its members, and the rules, pages and tasks with which it begins."""

    name: Name
    members: list[MemberTemplate] = Field(default=[], max_length=MAX_AGENTS)
    rules: Annotated[Text | None, BeforeValidator(_as_lines, json_schema_input_type=Text | list[str] | None)] = None
    pages: dict[str, Text] = Field(default={})
    tasks: Annotated[
        list[ListedTask],
        BeforeValidator(_with_ids_of_titles, json_schema_input_type=list[ListedTask]),
    ] = Field(default=[])
    workflow: Text | None = None

    @property
    def leader(self) -> str:
        """The name of the leader; "" if the roster names none."""
        return next((member.name for member in self.members if member.role in LEADERS), "")


def nearest(directory: str) -> str:
    """Return the path of the nearest `teams.yaml`: in *directory*, or in a directory above it. The search ends at the
    top of the repository.

    Raises:
        WorkflowNotFound: There is no such file.
    """
    folder = os.path.abspath(directory)
    top = environment.checkout_around(folder)
    while not os.path.isfile(f"{folder}/{FILE}"):
        parent = os.path.dirname(folder)
        if folder in (top, parent):
            raise WorkflowNotFound(f"there is no {FILE} in {directory}", f"Write one, or say where: --file. {_HINT}")
        folder = parent
    return f"{folder}/{FILE}"


def read(path: str) -> Roster:
    """Return the roster in the file at *path*. Only its form is checked.

    Raises:
        InvalidValue: The file is not a roster; the error names all problems.
    """
    roster, problems = examine(path)
    refuse(path, problems)
    assert roster is not None
    return roster


def examine(path: str) -> tuple[Roster | None, list[Problem]]:
    """Return the roster in the file at *path*, and what is wrong with its form. Parts whose form is wrong are left out.
    The roster is None if too little remains.

    Raises:
        InvalidValue: The file can't be read, or is not YAML.
    """
    content = files.content_of(path)
    roster, problems = files.validated(files.parsed(content, path, _HINT), Roster)
    if problems:
        files.refuse_massgen(path, content)
    return roster, problems


def refuse(path: str, problems: list[Problem]) -> None:
    """Refuse the roster in the file at *path* if it has *problems*.

    Raises:
        InvalidValue: There are problems; the message names all, each with its line and keys.
    """
    if problems:
        _, lines, _ = files.loaded(files.content_of(path))
        files.refuse(problems, path, lines, _HINT)


def problems_of(roster: Roster) -> Iterator[Problem]:
    """Yield a problem for each contradiction between parts of the roster, such as two members with one name."""
    names_by_lowercase: dict[str, str] = {}
    for index, member in enumerate(roster.members):
        if earlier := names_by_lowercase.get(member.name.lower()):
            what = "is there twice" if earlier == member.name else f"differs only in case from {earlier}"
            yield ("members", index, "name"), f"{member.name} {what}"
        names_by_lowercase[member.name.lower()] = member.name
        if member.role in LEADERS and member.name != roster.leader:
            yield ("members", index, "role"), f"{member.name} can't lead it too: {roster.leader} does"
        elif member.role in LEADERS and member.harness:
            what = f"{member.name} leads the team and can't be started: leave out its harness"
            yield ("members", index, "harness"), what
    keys_by_lowercase: dict[str, str] = {}
    for key in roster.pages:
        earlier_key = keys_by_lowercase.setdefault(key.lower(), key)
        if earlier_key != key:
            yield ("pages", key), f"{key} differs only in case from {earlier_key}"
    if roster.tasks and roster.workflow:
        yield ("workflow",), "tasks and workflow go against each other"
    for index, task in enumerate(roster.tasks):
        if task.each:
            yield ("tasks", index, "each"), "`each` has a sense only in a run"


def tasks_of(roster: Roster, path: str) -> list[TaskTemplate]:
    """Return the tasks of the roster. If the roster names a workflow instead, return the tasks of that workflow. The
    roster names the workflow by the path of its file, relative to the roster, or by its name.

    Raises:
        InvalidValue: The file is not a workflow, or its tasks have `each`, which works only in a run.
        WorkflowNotFound: There is no such workflow.
    """
    if roster.workflow is None or roster.tasks:
        return [*roster.tasks]
    return read_task_list(files.content_of(files.path_of(roster.workflow, os.path.dirname(path))), TaskTemplate)


def descriptions(path: str) -> dict[str, str]:
    """Return the descriptions of agents by name, from the files `.claude/agents/*.md` beside the roster."""
    by_name: dict[str, str] = {}
    directory = f"{os.path.dirname(path)}/{_DESCRIPTIONS}"
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        if name.endswith(".md"):
            path_of_agent = f"{directory}/{name}"
            try:
                text = files.front_matter(files.content_of(path_of_agent))
                fields = files.parsed(text, path_of_agent, "") if text else None
            except errors.InvalidValue:  # the file belongs to another program
                continue
            if not isinstance(fields, dict):
                continue
            description = fields.get("description")
            if isinstance(description, str) and description.strip():
                by_name[str(fields.get("name") or name.removesuffix(".md"))] = " ".join(description.split())
    return by_name
