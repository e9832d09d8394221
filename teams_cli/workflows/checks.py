"""Checks of a workflow whose form is right: unknown names, cycles, missing skills."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from teams_cli import errors
from teams_cli.names import HUMAN, RESERVED
from teams_cli.records.types import RoleDefinition
from teams_cli.teams import settings
from teams_cli.teams.roles import ALIASES, BUILT_IN, operations
from teams_cli.teams.teams import LEADER, MANAGER, MEMBER
from teams_cli.text import file_patterns
from teams_cli.workflows import model, ordering
from teams_cli.workflows.model import REPO, RESULT, AgentTemplate, TaskTemplate, Workflow

KeyPath = tuple[str | int, ...]
"""The keys and indexes that lead to a part of a workflow."""
Problem = tuple[KeyPath, str]
"""A problem in a workflow: the keys that lead to the wrong part, and a text that says what is wrong."""
Roles = dict[str, RoleDefinition]
_IN_SCRIPTS = 'in a script, variables are environment variables, write "$name" instead'


def problems(workflow: Workflow, known_ids: set[str], user_roles: Roles) -> list[Problem]:
    """Return all problems of the workflow.

    *known_ids* are the ids of all tasks, including those whose form is wrong. *user_roles* are the roles of the user's
    configuration.
    """
    roles = {**user_roles, **workflow.roles}
    wrong = [
        *_ids(workflow),
        *dependencies([*enumerate(workflow.tasks)], known_ids.__contains__),
        *_roles(workflow, roles),
        *_agents(workflow, roles),
        *_reviewers(workflow),
    ]
    if not wrong:  # these checks follow the roles and the blockers, which must exist
        wrong = [*_skills(workflow, roles), *_results(workflow)]
    wrong += [*_settings(workflow), *_touches(workflow), *_commands(workflow)]
    return [*wrong, *_directories(workflow), *_placeholders(workflow)]


def _settings(workflow: Workflow) -> Iterator[Problem]:
    for key, value in workflow.settings.items():
        try:
            settings.known(key).parse(key, value)
        except errors.InvalidValue as wrong:
            yield ("settings", key), f"{wrong.message}. {wrong.hint}"


def _touches(workflow: Workflow) -> Iterator[Problem]:
    for index, task in enumerate(workflow.tasks):
        for number, pattern in enumerate(task.touches):
            try:
                file_patterns([pattern])
            except errors.InvalidValue as wrong:
                yield ("tasks", index, "touches", number), f"{wrong.message}. {wrong.hint}"


def _reviewers(workflow: Workflow) -> Iterator[Problem]:
    for index, task in enumerate(workflow.tasks):
        reviewer = task.review_by or ""
        if reviewer != HUMAN and reviewer.lower() in RESERVED:
            yield (
                ("tasks", index, "reviewBy"),
                f"{reviewer!r} is reserved and can't name a member; the human is {HUMAN}",
            )


def _ids(workflow: Workflow) -> Iterator[Problem]:
    earlier_ids: set[str] = set()
    templates = {task.id for task in workflow.tasks if task.each}
    for index, task in enumerate(workflow.tasks):
        template = model.template_of(task.id)
        if task.id in earlier_ids:
            yield ("tasks", index, "id"), f"{task.id!r} is the id of an earlier task"
        elif template in templates:
            yield ("tasks", index, "id"), f"{task.id!r} is what `each` makes of {template!r}"
        earlier_ids.add(task.id)


def dependencies(
    numbered: list[tuple[int, TaskTemplate]],
    is_known: Callable[[str], bool],
    path_of_tasks: KeyPath = ("tasks",),
) -> Iterator[Problem]:
    """Yield a problem for each unknown id that a task waits for, and one for a cycle of tasks that wait for each other.
    *numbered* has each task with its index in the list of tasks. *is_known* takes an id, and returns whether a task has
    it. *path_of_tasks* has the keys that lead to the list in the file.
    """
    waits: dict[str, list[str]] = {}  # tasks that have the same id, by mistake, count as one
    for index, task in numbered:
        for key, ids in task.waits_for.items():
            waits.setdefault(task.id, []).extend(ids)
            for number, task_id in enumerate(ids):
                if not is_known(task_id):
                    yield (*path_of_tasks, index, key, number), f"there is no task {task_id!r}"
    cycle = ordering.circle(waits)
    for index, task in numbered:
        if cycle and task.id == cycle[0]:
            yield (*path_of_tasks, index, "blockedBy"), f"it would wait for itself: {' waits for '.join(cycle)}"
            return  # another task with the same id is reported for its id


def _roles(workflow: Workflow, roles: Roles) -> Iterator[Problem]:
    for name, definition in workflow.roles.items():
        if name in (*BUILT_IN, *ALIASES, *RESERVED):
            yield ("roles", name), "is reserved; choose another name"
        if _lineage(name, roles)[-1] not in (MEMBER, MANAGER):
            yield ("roles", name, "extends"), f"must come down to {MEMBER} or {MANAGER}"
        rules = {"allow": definition.get("allow", []), "deny": definition.get("deny", [])}
        for key, rule in rules.items():
            for index, operation in enumerate(rule):
                if operation not in operations():
                    yield ("roles", name, key, index), f"there is no operation {operation!r}"


def _lineage(role: str, roles: Roles) -> list[str]:
    """Return the role and the roles that it extends, nearest first. If they form a cycle, the last element is ""."""
    lineage = [ALIASES.get(role, role)]
    while lineage[-1] in roles:
        parent = roles[lineage[-1]]["extends"]
        parent = ALIASES.get(parent, parent)
        if parent in lineage:
            return [*lineage, ""]
        lineage.append(parent)
    return lineage


def _agents(workflow: Workflow, roles: Roles) -> Iterator[Problem]:
    taken_names = {*RESERVED, "leader", HUMAN}
    for index, agent in enumerate(workflow.agents):
        if agent.role not in (*BUILT_IN, *ALIASES, *roles):
            yield ("agents", index, "role"), f"there is no role {agent.role!r}"
        elif _lineage(agent.role, roles)[-1] == LEADER:
            yield ("agents", index, "role"), "a worker can't lead"
        if agent.name:
            if agent.name.lower() in taken_names:
                yield ("agents", index, "name"), f"{agent.name!r} is taken"
            taken_names.add(agent.name.lower())


def _directories(workflow: Workflow) -> Iterator[Problem]:
    for index, agent in enumerate(workflow.agents):
        directory = os.path.normpath(agent.cwd or "")
        if os.path.isabs(directory) or directory.split(os.sep)[0] == os.pardir:
            yield ("agents", index, "cwd"), "must be a directory below the repository"


def skills_of(role: str, specialty: str | None, roles: Roles) -> set[str]:
    """Return the skills of a worker: its *specialty*, and the skills of its role and of the roles that its role
    extends.
    """
    skills = {specialty} if specialty else set()
    for name in _lineage(role, roles):
        skills.update(roles[name].get("skill", ()) if name in roles else ())
    return skills


def able(require: Iterable[str], agents: Iterable[AgentTemplate], roles: Roles) -> bool:
    """Return whether one of the agents has all the skills in *require*."""
    return any(skills_of(agent.role, agent.type, roles).issuperset(require) for agent in agents)


def _skills(workflow: Workflow, roles: Roles) -> Iterator[Problem]:
    for index, task in enumerate(workflow.tasks):
        for wanted in required(task):
            if not able(wanted, workflow.agents, roles):
                yield ("tasks", index, "require"), f"no agent has {', '.join(wanted)}"


def required(task: TaskTemplate) -> list[list[str]]:
    """Return the required skills, in a list for each task that the template creates. If a command prints the items of
    the template, its tasks are not known yet, and no list is returned.
    """
    items = [""]  # without `each`, a single task
    if task.each:
        items = task.each.items or []
    return [[model.fill(skill, {"item": item}) for skill in task.require] for item in items]


def _commands(workflow: Workflow) -> Iterator[Problem]:
    scripts: dict[KeyPath, str | None] = {("check",): workflow.check, ("synthesize", "run"): workflow.synthesize.run}
    for index, task in enumerate(workflow.tasks):
        if not task.run and not task.prompt:
            yield ("tasks", index), "has neither `run` nor `prompt`, so no agent can do it"
        scripts["tasks", index, "run"] = task.run
        scripts["tasks", index, "each", "run"] = task.each.run if task.each else None
    for key_path, script in scripts.items():
        if script and "{{" in script:
            yield key_path, f"holds `{{{{`: {_IN_SCRIPTS}"
    # Other tools write `{{` too, and checks with it were always allowed: only the names of this workflow are refused.
    names = {REPO, "item", *workflow.variables}
    for index, task in enumerate(workflow.tasks):
        for name in model.placeholders(task.check or ""):
            if name in names or name.startswith(RESULT):
                yield ("tasks", index, "check"), f"holds `{{{{{name}}}}}`: {_IN_SCRIPTS}"


def _placeholders(workflow: Workflow) -> Iterator[Problem]:
    variables = {REPO, *workflow.variables}
    for key_path, text, names_of_item in _texts(workflow):
        fillable = variables | names_of_item
        for name in model.placeholders(text):
            if name not in fillable and not name.startswith(RESULT):
                yield key_path, f"nothing fills `{{{{{name}}}}}`; there are: {', '.join(sorted(fillable))}"


def _texts(workflow: Workflow) -> Iterator[tuple[KeyPath, str, set[str]]]:
    """Yield the keys of each text that may have placeholders, the text, and the names that its placeholders may have
    besides variables.
    """
    for index, task in enumerate(workflow.tasks):
        names_of_item = {"item"} if task.each else set()
        for key in ("title", "description", "prompt"):
            yield ("tasks", index, key), getattr(task, key) or "", names_of_item
        yield ("tasks", index, "checkIn"), task.check_in or "", names_of_item
        for number, skill in enumerate(task.require):
            yield ("tasks", index, "require", number), skill, names_of_item
        items = task.each.items if task.each else None
        for number, item in enumerate(items or []):
            yield ("tasks", index, "each", number), item, set()
    yield ("synthesize", "prompt"), workflow.synthesize.prompt or "", set()
    yield ("broadcast",), workflow.broadcast or "", set()


def _results(workflow: Workflow) -> Iterator[Problem]:
    """Yield a problem for each placeholder that names a result that is not available. A task may use the results of the
    tasks in its `blockedBy`. The prompt of `synthesize` may use the results of all tasks.
    """
    for key_path, text, _ in _texts(workflow):
        task_ids: set[str] = set()
        if key_path[0] == "synthesize":
            task_ids = {task.id for task in workflow.tasks}
        elif key_path[0] == "tasks" and key_path[2] in ("description", "prompt"):
            task_ids = set(workflow.tasks[int(key_path[1])].blocked_by)
        for name in model.placeholders(text):
            if name.startswith(RESULT) and name.removeprefix(RESULT) not in task_ids:
                yield key_path, f"`{{{{{name}}}}}` is not there: it must be the result of a task in its `blockedBy`"
