"""The front matter of workflows: Markdown files that a person follows and `teams run` executes.

name, description, pattern     pattern: leader, swarm, pipeline or council
needs                          [git-checkout] if `repo` must be a git checkout; [review] if that extension is needed
variables                      name: default, or name: {default, description}; without a default it must be given
roles                          name: {extends, skill, description, workflow, allow, deny}, defined in the team
settings                       name: value, as `teams set` takes them
check                          a command that refuses what workers can't do, before anything is created
attempts                       a task fails after this many claims that were released or expired; 3
agents                         a number, or a list of {name, role, type, count, harness, model, permissions,
                               cwd, worktree, answer}
broadcast                      the leader's message to all workers, once they have joined
tasks                          a list of {id, title, description, blockedBy, require, priority, run, prompt, each,
                               planRequired, check, checkIn, reviewBy, attempts}
synthesize                     {run, prompt, verdict}: the leader's last work, with all results
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from teams_cli.names import is_name
from teams_cli.records.types import Name, Permissions, Priority, RoleDefinition, Text
from teams_cli.teams.teams import MEMBER
from teams_cli.workflows import ordering

MAX_AGENTS = 64
MAX_SCRIPT = 100_000
"""The maximum number of characters of a script. A script is one argument of `sh -c`, and Linux allows 128 KiB for an
argument.
"""
MAX_VALUE = 64 * 1024
GIT_CHECKOUT, REVIEW = "git-checkout", "review"
REPO = "repo"
TAKEN_VARIABLES = frozenset({"item", "result"})


def _as_text(value: object) -> object:
    """Return a scalar as text. YAML reads `yes`, `3` and `1.5` as other types, but variables and settings are text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int | float) else value


def _as_setting(value: object) -> object:
    """Return a scalar as the text of a setting. Unlike in variables, `yes` and `no` are written as true and false."""
    return str(value).lower() if isinstance(value, bool) else _as_text(value)


def checked_value(text: str) -> str:
    """Return *text* unchanged, if it can be the value of an environment variable.

    Raises:
        ValueError: The text holds a NUL, is not Unicode, or is too long.
    """
    if "\0" in text:
        raise ValueError("holds a NUL character")
    if len(text.encode()) > MAX_VALUE:
        raise ValueError(f"is longer than {MAX_VALUE} bytes")
    return text


def _checked_variable(text: str) -> str:
    # Variables are in lower case, so that none of them replaces PATH, IFS, PYTHON or one of ours.
    if not (is_name(text) and text.replace("_", "a").isalnum() and text == text.lower() and text[0].isalpha()):
        raise ValueError("is not a valid variable name: use a-z, 0-9 and _, the first a letter")
    if text in TAKEN_VARIABLES:
        raise ValueError("is reserved; choose another name")
    return text


def _checked_prose(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


def _checked_title(text: str) -> str:
    if len(text.splitlines()) > 1 or len(text) > 500:
        raise ValueError("must be one line of at most 500 characters")
    return text


def _as_variable(value: object) -> object:
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"default": value}


def _as_each(value: object) -> object:
    return {"items": value} if isinstance(value, list) else value


def _as_verdict(value: object) -> object:
    return {"pattern": value} if isinstance(value, str) else value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _as_names(value: object) -> object:
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _checked_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a valid regular expression: {error}") from None
    return text


def _as_agents(value: object) -> object:
    return [{"count": value}] if isinstance(value, int) and not isinstance(value, bool) else value


Scalar = str | int | float | bool
"""The types that YAML may read instead of a string. The schemas for editors use this alias."""
Value = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=Scalar), AfterValidator(checked_value)]
Prose = Annotated[Text, AfterValidator(_checked_prose)]
Title = Annotated[Prose, AfterValidator(_checked_title)]
Script = Annotated[Prose, Field(max_length=MAX_SCRIPT)]
Texts = Annotated[list[Prose], BeforeValidator(_as_list, json_schema_input_type=list[Prose] | Prose)]
"""A list of strings. A single string stands for a list of one."""
Names = Annotated[list[Name], BeforeValidator(_as_names, json_schema_input_type=list[Name] | str)]
"""A list of names. A single string stands for the names in it, separated by commas or blanks."""


class Form(BaseModel):
    """A part of the front matter. Keys that this part does not declare are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Variable(Form):
    """A variable of the workflow. If it has no default, a run must give its value."""

    default: Value | None = None
    description: Text | None = None


class Each(Form):
    """The items of a template. A task is created for each item. The items are a list, or the lines that a command
    prints.

    If the output has NUL characters, it is split at these characters instead, so that items may have line breaks.
    """

    items: list[Value] | None = None
    run: Script | None = None

    @model_validator(mode="after")
    def _has_items_or_run(self) -> Each:
        if (self.items is None) == (self.run is None):
            raise ValueError("give a list, or {run: COMMAND}")
        return self


class TaskTemplate(Form):
    """A task of the workflow. With `each`, it is a template for many tasks."""

    id: Name
    title: Title
    description: Text | None = None
    blocked_by: Names = Field(default=[], alias="blockedBy")
    require: Texts = []
    touches: Texts = []
    priority: Priority = "normal"
    run: Script | None = None
    prompt: Prose | None = None
    plan_required: bool = Field(default=False, alias="planRequired")
    check: Script | None = None
    check_in: Prose | None = Field(default=None, alias="checkIn")
    review_by: Name | None = Field(default=None, alias="reviewBy")
    attempts: Annotated[int, Field(ge=1, le=100)] | None = None
    each: Annotated[Each, BeforeValidator(_as_each, json_schema_input_type=Each | list[Value])] | None = None

    @property
    def waits_for(self) -> dict[str, list[str]]:
        """The ids of the tasks for which this task waits, under the key that lists them, such as `blockedBy`."""
        return {"blockedBy": self.blocked_by}


class AgentTemplate(Form):
    """A kind of worker, and the number of such workers. If the harness, the model or the permissions are not given
    here, those of the run are used.
    """

    name: Name | None = None
    role: Name = MEMBER
    type: Title | None = None
    count: Annotated[int, Field(ge=1, le=MAX_AGENTS)] = 1
    harness: Name | None = None
    model: Title | None = None
    permissions: Permissions | None = None
    cwd: Prose | None = None
    worktree: bool = False
    answer: Prose | None = None


class Verdict(Form):
    """The pattern that finds the verdict in the leader's answer. The verdict is the first group of the match, or the
    whole match if there is no group.
    """

    pattern: Annotated[Prose, AfterValidator(_checked_pattern)]


class Synthesis(Form):
    """The script or the prompt with which the leader makes one answer from the results of all tasks."""

    run: Script | None = None
    prompt: Prose | None = None
    verdict: Annotated[Verdict, BeforeValidator(_as_verdict, json_schema_input_type=Verdict | str)] | None = None


class Workflow(Form):
    """The front matter of a workflow file."""

    name: Name
    description: Prose
    pattern: Literal["leader", "swarm", "pipeline", "council"] = "leader"
    needs: list[Literal["git-checkout", "review"]] = []
    variables: dict[
        Annotated[str, AfterValidator(_checked_variable)],
        Annotated[Variable, BeforeValidator(_as_variable, json_schema_input_type=Variable | Scalar | None)],
    ] = {}
    roles: dict[Name, RoleDefinition] = {}
    check: Script | None = None
    settings: dict[str, Annotated[Prose, BeforeValidator(_as_setting, json_schema_input_type=Scalar)]] = {}
    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    agents: Annotated[
        list[AgentTemplate],
        BeforeValidator(_as_agents, json_schema_input_type=list[AgentTemplate] | int),
        Field(min_length=1),
    ] = [AgentTemplate()]
    broadcast: Prose | None = None
    tasks: Annotated[list[TaskTemplate], Field(min_length=1)]
    synthesize: Synthesis = Synthesis()

    def ordered(self) -> list[TaskTemplate]:
        """Return the tasks, each after its blockers. The blockers must not form a cycle."""
        by_id = {task.id: task for task in self.tasks}
        return [by_id[key] for key in ordering.in_order({key: task.blocked_by for key, task in by_id.items()})]

    def to_json(self) -> dict[str, Any]:
        """Return the front matter as JSON, from which the same front matter can be read again."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
RESULT = "result."


def instance(template: str, number: int) -> str:
    """Return the key of the task that `each` creates from the *template* for the item with this *number*, from 1."""
    return f"{template}-{number}"


def template_of(key: str) -> str:
    """Return the id of the template from which `each` may have created the task with this *key*; "" if the key does not
    end with a number. An id that the workflow itself gives to a task may look like such a key.
    """
    template, _, number = key.rpartition("-")
    return template if number.isdigit() else ""


def placeholders(text: str) -> list[str]:
    """Return the names in the placeholders of *text*, in their order."""
    return _PLACEHOLDER.findall(text)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return the text with placeholders replaced by *values*. A placeholder whose name has no value stays as it is."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)
