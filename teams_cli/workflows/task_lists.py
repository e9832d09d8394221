"""Lists of tasks in files: the `tasks` of a workflow's front matter, or such a list alone."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from teams_cli import errors
from teams_cli.records.types import Name
from teams_cli.workflows import documents
from teams_cli.workflows.model import TaskTemplate

_SHOWN = 3
T = TypeVar("T", bound=TaskTemplate)
_KEYS = (
    "id, title, description, blockedBy, after, for, require, priority, planRequired, run, touches, check, checkIn, "
    "reviewBy"
)
_HINT = f"Give a list of {{{_KEYS}}}, as the `tasks` of a workflow."


class ListedTask(TaskTemplate):
    """A task of a list, which can be kept *for* a member, and completed *after* others; in a workflow nobody is there
    yet, and what does a task ends it at once.
    """

    keep_for: Name | None = Field(default=None, alias="for")
    after: list[Name] = Field(default=[])


def read(content: str, form: type[T]) -> list[T]:
    """The tasks of that form that the text lists, in YAML or JSON; one without an id has its place, from 1, as its id.

    Raises:
        InvalidValue: It is no such list; names everything that is wrong.
    """
    document = documents.parsed(documents.front_matter(content) or content, "the list of tasks", _HINT)
    found = _validated(document.get("tasks") if isinstance(document, dict) else document, form)
    if made_many := [one.id for one in found if one.each]:
        raise errors.InvalidValue(
            f"{made_many[0]}: `each` works only in a run", "Write the tasks out, or use: teams run"
        )
    return found


def _validated(rows: Any, form: type[T]) -> list[T]:
    if not isinstance(rows, list) or not rows:
        raise errors.InvalidValue("the list of tasks is missing", _HINT)
    try:
        return TypeAdapter(list[form]).validate_python(_with_ids(rows))  # type: ignore[valid-type]  # a form is a value here
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        wrong = [_in_words(*problem["loc"], what=documents.told(problem)) for problem in problems]
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        first = problems[0]
        hint = f"Write: {first['loc'][-1]}: [VALUE]" if first["type"] == "list_type" else _HINT
        raise errors.InvalidValue("; ".join(wrong[:_SHOWN]) + more, hint) from None


def _in_words(place: int | str, *keys: int | str, what: str) -> str:
    """The fault of a task, which is counted from 1, or of one of its keys."""
    return " ".join([f"task {int(place) + 1}:", *map(str, keys), what])


def _with_ids(rows: list[Any]) -> list[Any]:
    """The tasks, each with an id: its own, else its place in the list. A title alone is a task, and a number a word."""
    found = []
    for place, row in enumerate(rows, 1):
        given = {"title": row} if isinstance(row, str) else row
        if isinstance(given, dict):
            named = {key: _words(given[key]) for key in ("id", "blockedBy", "after") if key in given}
            given = {"id": str(place), **given, **named}
        found.append(given)
    return found


def _words(said: Any) -> Any:
    if isinstance(said, list):
        return [_words(each) for each in said]
    return str(said) if type(said) is int else said
