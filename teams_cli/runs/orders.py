"""Prepare a run before anything is changed: find the repository, the values of the variables, and the tasks, as
steps.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from typing import NamedTuple

from teams_cli import errors, extensions, text
from teams_cli.agents import shell
from teams_cli.names import HUMAN, is_name
from teams_cli.runs import runs
from teams_cli.runs.runs import Assigned
from teams_cli.store.contract import Store
from teams_cli.tasks import changes, creating, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams.permission import Caller
from teams_cli.teams.roles import ALIASES
from teams_cli.teams.teams import MANAGER, MEMBER
from teams_cli.workflows import checks, model
from teams_cli.workflows.model import (
    GIT_CHECKOUT,
    MAX_AGENTS,
    REPO,
    RESULT,
    REVIEW,
    AgentTemplate,
    TaskTemplate,
    Workflow,
    checked_value,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from teams_cli.runs.conduct import Surroundings
    from teams_cli.workflows.checks import Roles


ITEM = "item"
"""The name of the variable that holds the item of a task that `each` made."""
_REPO_HINT = "Give the directory: --var repo=PATH"
_EACH_HINT = "Leave it out of the output of `each`."
_MAX_TITLE = 500


def variables(workflow: Workflow, chosen: Mapping[str, str], surroundings: Surroundings) -> dict[str, str]:
    """Return the values of all variables of the workflow: those that the user has *chosen*, else the defaults.

    Raises:
        InvalidValue: A variable is unknown, missing or wrong, or `repo` is not a directory, or not the needed checkout.
    """
    names = sorted({REPO, *workflow.variables})
    for name in chosen:
        if name not in names:
            raise errors.InvalidValue(f"{workflow.name} has no variable {name!r}", f"Variables: {', '.join(names)}.")
    values: dict[str, str] = {}
    for name, variable in workflow.variables.items():
        value = chosen.get(name, variable.default)
        if value is None:
            raise errors.InvalidValue(f"{workflow.name} needs the variable {name}", f"Give it: --var {name}=VALUE")
        values[name] = value
    for name, value in chosen.items():
        try:
            checked_value(value)
        except ValueError as problem:
            raise errors.InvalidValue(f"the variable {name} {problem}", "Give UTF-8 text.") from None
    values[REPO] = surroundings.path(chosen.get(REPO) or values.get(REPO) or ".")
    if not os.path.isdir(values[REPO]):
        raise errors.InvalidValue(f"repo: {values[REPO]} is not a directory", _REPO_HINT)
    if GIT_CHECKOUT in workflow.needs:
        command = ["git", "-C", values[REPO], "rev-parse", "--show-toplevel"]
        try:
            done = subprocess.run(command, env=surroundings.environ, stdin=subprocess.DEVNULL, capture_output=True)
        except OSError as error:
            raise errors.InvalidValue(f"this workflow needs git: {error.strerror}", "Install git.") from None
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip().partition("\n")[0]
            raise errors.InvalidValue(f"repo: {values[REPO]} is not a git checkout ({reason})", _REPO_HINT)
        values[REPO] = os.fsdecode(done.stdout.removesuffix(b"\n"))
    return values


def refuse_impossible(
    workflow: Workflow, values: dict[str, str], surroundings: Surroundings, say: Callable[[str], None]
) -> None:
    """Raise an error if workers without a model can't do the run, because an extension is missing or the workflow's own
    check fails. If this check passes, *say* is called with its warnings.

    Raises:
        ExtensionMissing, InvalidValue: The commands of the run can't work.
    """
    if REVIEW in workflow.needs:
        extensions.needed("review a change", f"the workflow {workflow.name}", REVIEW)
    if workflow.check:
        environment = {**surroundings.environ, "PYTHON": surroundings.python, **values}
        finished = shell.run(workflow.check, values[REPO], environment, f"the check of {workflow.name}")
        if finished.status:
            reason = (finished.errors or finished.output or finished.reason).strip()
            # A workflow checks only what its commands can do, and agents with a model do the tasks without them.
            raise errors.InvalidValue(reason, "Nothing was changed. Use agents with a model: --harness claude")
        for line in finished.errors.splitlines():
            say(line)


def items(
    workflow: Workflow, values: dict[str, str], surroundings: Surroundings, say: Callable[[str], None]
) -> dict[str, list[str]]:
    """Return the items of each task with `each`, by the id of the task. *say* is called with warnings of commands.

    Raises:
        TaskFailed: A command that lists items failed.
        InvalidValue: An item can't be the value of a variable, or a command printed too much.
    """
    items_by_task = {}
    for task in workflow.tasks:
        if task.each and task.each.items is not None:
            items_by_task[task.id] = [model.fill(item, values) for item in task.each.items]
        elif task.each and task.each.run:
            items_by_task[task.id] = _listed_by_command(task, task.each.run, values, surroundings, say)
    return items_by_task


def _listed_by_command(
    task: TaskTemplate, command: str, values: dict[str, str], surroundings: Surroundings, say: Callable[[str], None]
) -> list[str]:
    """Return the items that the *command* of the task's `each` prints, separated by NUL, or else by line feeds."""
    environment = {**surroundings.environ, "PYTHON": surroundings.python, **values}
    finished = shell.run(command, values[REPO], environment, f"the command of {task.id}'s `each`")
    if finished.status:
        raise errors.TaskFailed(
            f"the `each` command of {task.id} failed: {finished.reason}", "Run the command in a terminal to see why."
        )
    if finished.is_cut:  # no item may get lost
        raise errors.InvalidValue(
            f"the `each` command of {task.id} printed more than the {shell.KEPT} bytes allowed; nothing was changed",
            "Let it print fewer items, or shorter ones, such as the names of files.",
        )
    for line in finished.errors.splitlines():
        say(f"{task.id}: {line}")
    separator = "\0" if "\0" in finished.output else "\n"
    items = [item for item in finished.output.split(separator) if item.strip()]
    for item in items:
        if "\ufffd" in item:  # decoding has put this character in the place of bytes that are not UTF-8
            raise errors.InvalidValue(f"{task.id}: {item!r} is not UTF-8", _EACH_HINT)
        try:
            checked_value(item)
        except ValueError as problem:
            raise errors.InvalidValue(f"{task.id}: an item {problem}", _EACH_HINT) from None
    return items


def staff(workflow: Workflow, count: int | None, leader: str, roles: Roles) -> list[Assigned]:
    """Return *count* workers for the run, or as many as the workflow says if *count* is None. If *count* is higher than
    the workflow says, workers of each kind in the workflow are added in turn. *roles* are the roles in the user's
    configuration.

    Raises:
        InvalidValue: There are too many workers, or none has a skill that a task requires.
    """
    kinds = [agent for agent in workflow.agents for _ in range(agent.count)]  # the kind of each worker
    if count is not None:
        if not 1 <= count <= MAX_AGENTS:
            raise errors.InvalidValue(
                f"{count} is not a valid number of agents", f"Give a number from 1 to {MAX_AGENTS}."
            )
        kinds = list(itertools.islice(itertools.chain(kinds, itertools.cycle(workflow.agents)), count))
    if len(kinds) > MAX_AGENTS:
        raise errors.InvalidValue(
            f"{len(kinds)} agents are more than the {MAX_AGENTS} allowed", "Use fewer: --agents N"
        )
    all_roles = {**roles, **workflow.roles}
    for task in workflow.tasks:
        for skills in checks.required(task):
            if not checks.able(skills, kinds, all_roles):
                raise errors.InvalidValue(
                    f"none of {len(kinds)} agents has {', '.join(skills)}, which {task.id} requires",
                    f"Use more: --agents {sum(agent.count for agent in workflow.agents)}",
                )
    return _named(kinds, leader)


def _named(kinds: list[AgentTemplate], leader: str) -> list[Assigned]:
    """Return a worker for each element of *kinds*. The names of the workers differ from each other and from the
    *leader*. Workers that would have the same name are numbered from 1.
    """
    stems = [_stem(kind) for kind in kinds]
    taken_names = {leader.lower()}
    assigned = []
    for kind, stem in zip(kinds, stems, strict=True):
        is_shared = stems.count(stem) > 1
        name, number = stem, 0
        while name.lower() in taken_names or (is_shared and number == 0):
            number += 1
            name = f"{stem}-{number}"
        taken_names.add(name.lower())
        assigned.append(
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
    return assigned


def _stem(kind: AgentTemplate) -> str:
    """Return the name for workers of the *kind*, to which a number may be added to make it unique. It is the name that
    the workflow gives, or their type, or else their role. A name that is not valid is replaced by their role.
    """
    role = "worker" if ALIASES.get(kind.role, kind.role) in (MEMBER, MANAGER) else kind.role
    name = kind.name or (kind.type or role).replace(" ", "-")
    return name[:50] if is_name(name) else role


class Step(NamedTuple):
    """A task to create, with the *values* of its placeholders. *key* is the id of the task in the workflow, followed by
    a number if `each` makes several tasks. *attempts* is the number of claims after which the task fails. *item* is the
    item of `each` for this task, or None.
    """

    key: str
    template: TaskTemplate
    values: dict[str, str]
    attempts: int
    item: str | None = None

    def draft(self, team: str, blockers: list[str]) -> Task:
        """Return the task to create, with its placeholders filled. *blockers* are the ids of the tasks that must be
        completed before it.
        """
        template = self.template
        return creating.of_template(team, template, "").having(
            title=one_line(model.fill(template.title, self.values)),
            description=template.description and model.fill(template.description, self.values),
            prompt=template.prompt and model.fill(template.prompt, self.values),
            require=[model.fill(skill, self.values) for skill in template.require],
            check_in=template.check_in and os.path.join(self.values[REPO], model.fill(template.check_in, self.values)),
            blocked_by=blockers,
            step=self.key,
            item=self.item,
            attempts=self.attempts,
        )


def one_line(body: str) -> str:
    """Return the text as a title: on one line, printable, and cut to a limited length; "-" if it would be empty."""
    line = "".join(char if char.isprintable() else " " for char in body).strip() or "-"
    return text.clipped(line, _MAX_TITLE)


def expand(workflow: Workflow, variables: dict[str, str], items: Mapping[str, list[str]]) -> list[Step]:
    """Return all steps of the workflow, each after its blockers. *items* maps the id of each task with the key `each`
    to the items for which the task is repeated.
    """
    steps = []
    for template in workflow.ordered():
        attempts = template.attempts or workflow.attempts
        if template.each is None:
            steps.append(Step(template.id, template, variables, attempts))
        else:
            for number, item in enumerate(items.get(template.id, []), 1):
                key = model.instance(template.id, number)
                steps.append(Step(key, template, {**variables, ITEM: item}, attempts, item))
    return steps


def create_missing(store: Store, team: str, leader: Caller, steps: list[Step], has_models: bool) -> None:
    """Create the tasks of the *steps* that do not exist yet. After a crash, some may exist already.

    *has_models* says whether the run has agents with a model. If so, a placeholder for the result of an earlier task is
    replaced by the command that shows this result.
    """
    ids_by_step = {runs.key_of(task): task.id for task in tasks.all_of(store, team, [])}
    ids_by_template: dict[str, list[str]] = {}
    for step in steps:  # blockers come first, so their ids are known
        blockers = [task_id for key in step.template.blocked_by for task_id in ids_by_template.get(key, [])]
        if step.key not in ids_by_step:
            draft = step.draft(team, blockers)
            if has_models:
                commands = {
                    f"{RESULT}{key}": "\n".join(f"teams show-task {task_id}" for task_id in task_ids)
                    for key, task_ids in ids_by_template.items()
                }
                draft = draft.having(
                    prompt=draft.prompt and model.fill(draft.prompt, commands),
                    description=draft.description and model.fill(draft.description, commands),
                )
            ids_by_step[step.key] = tasks.create(store, team, leader, draft).id
        ids_by_template.setdefault(step.template.id, []).append(ids_by_step[step.key])


def reopen_failed(store: Store, team: str) -> list[str]:
    """Set all failed tasks to pending, in the name of the human, and return their ids."""
    failed = [task.id for task in tasks.all_of(store, team, []) if task.status == "failed"]
    edit = changes.Edit(status="pending", reason="the run is resumed")
    for task_id in failed:
        changes.change_task(store, team, Caller(HUMAN), task_id, edit)
    return failed


def fill_results(body: str, results: Mapping[str, str]) -> str:
    """Return the text with each placeholder for a result replaced by this result. *results* has the result of each
    step, under the key of the step. A placeholder with the id of a repeated task gets the results of all steps of this
    task.
    """
    by_placeholder: dict[str, list[str]] = {}
    for key, result in results.items():
        by_placeholder.setdefault(f"{RESULT}{key}", []).append(result)
        if template := model.template_of(key):
            by_placeholder.setdefault(f"{RESULT}{template}", []).append(result)
    return model.fill(body, {placeholder: "\n".join(texts) for placeholder, texts in by_placeholder.items()})
