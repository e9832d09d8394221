"""Lists of tasks in files: the `tasks` of a workflow's front matter, or such a list alone."""

from __future__ import annotations

from typing import Any, TypeVar

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from teams_cli.errors import InvalidValue
from teams_cli.records.types import Name
from teams_cli.workflows.model import TaskTemplate

T = TypeVar("T", bound=TaskTemplate)
_FENCE = "---"
_KEYS = (
    "id, title, description, blockedBy, for, require, priority, planRequired, run, touches, check, checkIn, reviewBy"
)
_HINT = f"Give a list of {{{_KEYS}}}, as the `tasks` of a workflow."


class ListedTask(TaskTemplate):
    """A task of a list, which can be kept *for* a member; in a workflow nobody is there yet."""

    keep_for: Name | None = Field(default=None, alias="for")


def read(content: str, form: type[T]) -> list[T]:
    """The tasks of that form that the text lists, in YAML or JSON.

    Raises:
        InvalidValue: It is no such list; names everything that is wrong.
    """
    try:
        document = yaml.safe_load(_front_matter(content))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidValue(f"this is no YAML: {' '.join(str(error).split())}", _HINT) from None
    found = _validated(document.get("tasks") if isinstance(document, dict) else document, form)
    if made_many := [one.id for one in found if one.each]:
        raise InvalidValue(f"{made_many[0]}: `each` has a sense only in a run", "Write the tasks out, or: teams run")
    return found


def _front_matter(content: str) -> str:
    """What is between the first two fences, if it begins with one."""
    lines = content.removeprefix("\ufeff").splitlines()
    if lines and lines[0].rstrip() == _FENCE and _FENCE in (line.rstrip() for line in lines[1:]):
        end = next(place for place, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE)
        return "\n".join(lines[1:end])
    return content


def _validated(rows: Any, form: type[T]) -> list[T]:
    if not isinstance(rows, list) or not rows:
        raise InvalidValue("there is no list of tasks", _HINT)
    try:
        return TypeAdapter(list[form]).validate_python(rows)  # type: ignore[valid-type]  # a form is a value here
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_context=False)
        ]
        raise InvalidValue("; ".join(wrong), _HINT) from None
