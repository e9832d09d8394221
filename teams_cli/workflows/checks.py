"""Checks of a workflow whose form is right: unknown names, cycles, missing skills."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from teams_cli import errors
from teams_cli.names import HUMAN, RESERVED
from teams_cli.records.types import RoleDefinition
from teams_cli.teams import settings
from teams_cli.teams.roles import ALIASES, BUILT_IN, operations
from teams_cli.teams.teams import LEADER, MANAGER, MEMBER
from teams_cli.text import file_patterns
from teams_cli.workflows import model, ordering
from teams_cli.workflows.model import REPO, RESULT, AgentTemplate, TaskTemplate, Workflow

Place = tuple[str | int, ...]
Problem = tuple[Place, str]
Roles = dict[str, RoleDefinition]


def problems(workflow: Workflow, known_ids: set[str], user_roles: Roles) -> list[Problem]:
    """Return all problems of the workflow, each with its place.

    *known_ids* are the ids of all tasks, including those whose form is wrong. *user_roles* are the roles of the user's
    configuration.
    """
    roles = {**user_roles, **workflow.roles}
    wrong = [*_ids(workflow), *_blockers(workflow, known_ids), *_roles(workflow, roles), *_agents(workflow, roles)]
    if not wrong:  # else roles or blockers are missing, along which skills and results are looked up
        wrong = [*_skills(workflow, roles), *_results(workflow)]
    wrong += [*_settings(workflow), *_touches(workflow), *_commands(workflow)]
    return [*wrong, *_directories(workflow), *_places(workflow)]


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


def _ids(workflow: Workflow) -> Iterator[Problem]:
    seen: set[str] = set()
    many = {task.id for task in workflow.tasks if task.each}
    for index, task in enumerate(workflow.tasks):
        template = model.made_of(task.id)
        if task.id in seen:
            yield ("tasks", index, "id"), f"{task.id!r} is the id of an earlier task"
        elif template in many:
            yield ("tasks", index, "id"), f"{task.id!r} is what `each` makes of {template!r}"
        seen.add(task.id)


def _blockers(workflow: Workflow, known_ids: set[str]) -> Iterator[Problem]:
    for index, task in enumerate(workflow.tasks):
        for number, blocker in enumerate(task.blocked_by):
            if blocker not in known_ids:
                yield ("tasks", index, "blockedBy", number), f"there is no task {blocker!r}"
    circle = ordering.circle({task.id: task.blocked_by for task in workflow.tasks})
    for index, task in enumerate(workflow.tasks):
        if circle and task.id == circle[0]:
            yield ("tasks", index, "blockedBy"), f"it would wait for itself: {' waits for '.join(circle)}"
            return


def _roles(workflow: Workflow, roles: Roles) -> Iterator[Problem]:
    for name, definition in workflow.roles.items():
        if name in (*BUILT_IN, *ALIASES, *RESERVED):
            yield ("roles", name), "is reserved; choose another name"
        if _lineage(name, roles)[-1] not in (MEMBER, MANAGER):
            yield ("roles", name, "extends"), f"must come down to {MEMBER} or {MANAGER}"
        for key, named in (("allow", definition.get("allow", [])), ("deny", definition.get("deny", []))):
            for index, operation in enumerate(named):
                if operation not in operations():
                    yield ("roles", name, key, index), f"there is no operation {operation!r}"


def _lineage(role: str, roles: Roles) -> list[str]:
    """Return the role and those that it extends, one after the other. The last is "" if they form a cycle."""
    line = [ALIASES.get(role, role)]
    while line[-1] in roles:
        parent = roles[line[-1]]["extends"]
        if (parent := ALIASES.get(parent, parent)) in line:
            return [*line, ""]
        line.append(parent)
    return line


def _agents(workflow: Workflow, roles: Roles) -> Iterator[Problem]:
    names: set[str] = set()
    for index, agent in enumerate(workflow.agents):
        if agent.role not in (*BUILT_IN, *ALIASES, *roles):
            yield ("agents", index, "role"), f"there is no role {agent.role!r}"
        elif _lineage(agent.role, roles)[-1] == LEADER:
            yield ("agents", index, "role"), "a worker can't lead"
        if agent.name and agent.name.lower() in {*names, *RESERVED, "leader", HUMAN}:
            yield ("agents", index, "name"), f"{agent.name!r} is taken"
        names.add((agent.name or "").lower())


def _directories(workflow: Workflow) -> Iterator[Problem]:
    """Yield a problem for each directory of an agent that is not below the repository."""
    for index, agent in enumerate(workflow.agents):
        place = os.path.normpath(agent.cwd or "")
        if os.path.isabs(place) or place.split(os.sep)[0] == os.pardir:
            yield ("agents", index, "cwd"), "must be a directory below the repository"


def skills_of(role: str, specialty: str | None, roles: Roles) -> set[str]:
    """Return the skills of a worker with that role and specialty."""
    skills = {specialty} if specialty else set()
    for name in _lineage(role, roles):
        skills.update(roles[name].get("skill", ()) if name in roles else ())
    return skills


def able(require: Iterable[str], agents: Iterable[AgentTemplate], roles: Roles) -> bool:
    """Whether one of the agents has all these skills."""
    return any(skills_of(agent.role, agent.type, roles).issuperset(require) for agent in agents)


def _skills(workflow: Workflow, roles: Roles) -> Iterator[Problem]:
    for index, task in enumerate(workflow.tasks):
        for wanted in required(task):
            if not able(wanted, workflow.agents, roles):
                yield ("tasks", index, "require"), f"no agent has {', '.join(wanted)}"


def required(task: TaskTemplate) -> list[list[str]]:
    """Return the required skills of each task that the template creates, as far as the items of the template are
    known.
    """
    items = (task.each.items or []) if task.each else [""]
    return [[model.fill(skill, {"item": item}) for skill in task.require] for item in items]


def _commands(workflow: Workflow) -> Iterator[Problem]:
    for index, task in enumerate(workflow.tasks):
        if not task.run and not task.prompt:
            yield ("tasks", index), "has neither `run` nor `prompt`, so no agent can do it"
    for place, script in _scripts(workflow):
        if "{{" in script:
            yield place, 'holds `{{`: in a script, variables are environment variables, write "$name" instead'


def _scripts(workflow: Workflow) -> Iterator[tuple[Place, str]]:
    for index, task in enumerate(workflow.tasks):
        if task.run:
            yield ("tasks", index, "run"), task.run
        if task.each and task.each.run:
            yield ("tasks", index, "each", "run"), task.each.run
    if workflow.check:
        yield ("check",), workflow.check
    if workflow.synthesize.run:
        yield ("synthesize", "run"), workflow.synthesize.run


def _places(workflow: Workflow) -> Iterator[Problem]:
    """Yield a problem for each placeholder that nothing fills."""
    variables = {REPO, *workflow.variables}
    for place, text, also in _texts(workflow):
        for name in model.places(text):
            if name not in variables and name not in also and not name.startswith(RESULT):
                names = ", ".join(sorted(variables | also))
                yield place, f"nothing fills `{{{{{name}}}}}`; there are: {names}"


def _texts(workflow: Workflow) -> Iterator[tuple[Place, str, set[str]]]:
    """Yield all texts with placeholders, each with its place, and with the names that it may use besides variables and
    results.
    """
    for index, task in enumerate(workflow.tasks):
        also = {"item"} if task.each else set()
        for key in ("title", "description", "prompt"):
            yield ("tasks", index, key), getattr(task, key) or "", also
        for number, skill in enumerate(task.require):
            yield ("tasks", index, "require", number), skill, also
        for number, item in enumerate(task.each.items or [] if task.each else []):
            yield ("tasks", index, "each", number), item, set()
    yield ("synthesize", "prompt"), workflow.synthesize.prompt or "", set()
    yield ("broadcast",), workflow.broadcast or "", set()


def _results(workflow: Workflow) -> Iterator[Problem]:
    """Yield the placeholders for results that can't be filled in: a task may use those of the tasks in its `blockedBy`,
    and the prompt of `synthesize` those of all tasks.
    """
    everything = {task.id for task in workflow.tasks}
    for place, text, _ in _texts(workflow):
        there = everything if place[0] == "synthesize" else set()
        if place[0] == "tasks" and place[2] in ("description", "prompt"):
            there = set(workflow.tasks[int(place[1])].blocked_by)
        for name in model.places(text):
            if name.startswith(RESULT) and name.removeprefix(RESULT) not in there:
                yield place, f"`{{{{{name}}}}}` is not there: it must be the result of a task in its `blockedBy`"
