"""Preparing a run, before anything is changed: variables, items, workers."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import shell
from teams_cli.names import is_name
from teams_cli.runs import repositories
from teams_cli.runs.runs import Assigned
from teams_cli.teams import settings as team_settings
from teams_cli.teams.roles import ALIASES
from teams_cli.teams.teams import MANAGER, MEMBER
from teams_cli.workflows import checks, templates
from teams_cli.workflows.model import (
    GIT_CHECKOUT,
    MAX_AGENTS,
    REPO,
    AgentTemplate,
    TaskTemplate,
    Workflow,
    checked_value,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from teams_cli.runs.surroundings import Surroundings
    from teams_cli.teams.caller import Caller
    from teams_cli.workflows.checks import Roles


def variables(workflow: Workflow, given: Mapping[str, str], surroundings: Surroundings) -> dict[str, str]:
    """The values of all variables: those that were given, else the defaults.

    Raises:
        InvalidValue: One is unknown, missing, or can't be had; `repo` is no directory or, if need be, no checkout.
    """
    known = sorted({REPO, *workflow.variables})
    for name in given:
        if name not in known:
            raise errors.InvalidValue(f"{workflow.name} has no variable {name!r}", f"Variables: {', '.join(known)}.")
    values: dict[str, str] = {}
    for name, variable in workflow.variables.items():
        value = given.get(name, variable.default)
        if value is None:
            raise errors.InvalidValue(f"{workflow.name} needs the variable {name}", f"Give it: --var {name}=VALUE")
        values[name] = value
    for name, value in given.items():
        try:
            checked_value(value)
        except ValueError as problem:
            raise errors.InvalidValue(f"the variable {name} {problem}", "Give UTF-8 text.") from None
    values[REPO] = repositories.directory(surroundings.path(given.get(REPO) or values.get(REPO) or "."))
    if GIT_CHECKOUT in workflow.needs:
        values[REPO] = repositories.checkout(values[REPO], surroundings.environ)
    return values


def refuse_impossible(
    workflow: Workflow, values: dict[str, str], surroundings: Surroundings, say: Callable[[str], None]
) -> None:
    """Have the workflow's own check see whether workers can do what is asked for.

    Raises:
        InvalidValue: They can't; why is what the check says.
    """
    if workflow.check:
        environment = {**surroundings.environ, "PYTHON": surroundings.python, **values}
        done = shell.run(workflow.check, values[REPO], environment, f"the check of {workflow.name}")
        if done.status:
            said = (done.errors or done.output or done.reason).strip()
            raise errors.InvalidValue(said, "Nothing was changed. Use agents with a model: --harness claude")
        for line in done.errors.splitlines():
            say(line)


def items(
    workflow: Workflow, values: dict[str, str], surroundings: Surroundings, say: Callable[[str], None]
) -> dict[str, list[str]]:
    """What each task with `each` is made many for. What a command that finds them has to remark goes to *say*.

    Raises:
        TaskFailed: A command that finds them failed.
        InvalidValue: One of them can't be a variable.
    """
    return {task.id: _items(task, values, surroundings, say) for task in workflow.tasks if task.each}


def _items(
    task: TaskTemplate, values: dict[str, str], surroundings: Surroundings, say: Callable[[str], None]
) -> list[str]:
    assert task.each
    if task.each.items is not None:
        return [templates.fill(item, values) for item in task.each.items]
    environment = {**surroundings.environ, "PYTHON": surroundings.python, **values}
    done = shell.run(task.each.run or "", values[REPO], environment, f"the command of {task.id}'s `each`")
    if done.status:
        raise errors.TaskFailed(f"the `each` command of {task.id} failed: {done.reason}", "Run it yourself.")
    for line in done.errors.splitlines():
        say(f"{task.id}: {line}")
    found = [item for item in done.output.split("\0" if "\0" in done.output else "\n") if item.strip()]
    for item in found:
        if "\ufffd" in item:
            raise errors.InvalidValue(f"{task.id}: {item!r} is not UTF-8", "Leave it out of the output of `each`.")
        try:
            checked_value(item)
        except ValueError as problem:
            raise errors.InvalidValue(
                f"{task.id}: an item {problem}", "Leave it out of the output of `each`."
            ) from None
    return found


def settings(workflow: Workflow, caller: Caller) -> dict[str, str]:
    """The settings that the workflow gives its team.

    Raises:
        InvalidValue: There is no such setting, or no such value of it.
        NotAllowed: It is the person's to set, and the caller is an agent.
    """
    for key, word in workflow.settings.items():
        team_settings.known(key).parse(key, word)
        team_settings.refuse_persons(key, caller)
    return dict(workflow.settings)


def staff(workflow: Workflow, count: int | None, leader: str, roles: Roles) -> list[Assigned]:
    """The workers: as many as the workflow says, or *count*, going through its kinds of agents in turn.

    Raises:
        InvalidValue: It is too few to have all skills, or too many.
    """
    kinds = [agent for agent in workflow.agents for _ in range(agent.count)]
    if count is not None:
        kinds = _as_many(kinds, workflow, count)
    if len(kinds) > MAX_AGENTS:
        raise errors.InvalidValue(
            f"{len(kinds)} agents are more than the {MAX_AGENTS} allowed", "Use fewer: --agents N"
        )
    everyone = {**roles, **workflow.roles}
    for task in workflow.tasks:
        for wanted in checks.required(task):
            if not checks.able(wanted, kinds, everyone):
                raise errors.InvalidValue(
                    f"none of {len(kinds)} agents has {', '.join(wanted)}, which {task.id} requires",
                    f"Use more: --agents {sum(agent.count for agent in workflow.agents)}",
                )
    return _named(kinds, leader)


def _as_many(kinds: list[AgentTemplate], workflow: Workflow, count: int) -> list[AgentTemplate]:
    if not 1 <= count <= MAX_AGENTS:
        raise errors.InvalidValue(f"{count} is not a valid number of agents", f"Give a number from 1 to {MAX_AGENTS}.")
    more = [workflow.agents[index % len(workflow.agents)] for index in range(count - len(kinds))]
    return [*kinds, *more][:count]


def _named(kinds: list[AgentTemplate], leader: str) -> list[Assigned]:
    stems = [_stem(kind) for kind in kinds]
    taken = {leader.lower()}
    found = []
    for kind, stem in zip(kinds, stems, strict=True):
        name, number = stem, 0
        while name.lower() in taken or (number == 0 and stems.count(stem) > 1):
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.lower())
        found.append(
            Assigned(
                name=name,
                role=kind.role,
                type=kind.type,
                harness=kind.harness,
                model=kind.model,
                permissions=kind.permissions,
                cwd=kind.cwd,
                worktree=kind.worktree or None,
                answer=kind.answer,
            )
        )
    return found


def _stem(kind: AgentTemplate) -> str:
    role = "worker" if ALIASES.get(kind.role, kind.role) in (MEMBER, MANAGER) else kind.role
    word = kind.name or (kind.type or role).replace(" ", "-")
    return word[:50] if is_name(word) else role
