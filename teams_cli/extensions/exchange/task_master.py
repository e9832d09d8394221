"""task-master: one JSON file with a list of tasks for each tag; tasks have subtasks."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.extensions.exchange.items import Item, content_of, file_in, listed, objects, parsed, sections, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PLACES = (".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json")
_PRIORITIES = {"critical": "high", "high": "high", "low": "low"}
_STATUSES = {
    "pending": "pending",
    "blocked": "pending",
    "done": "completed",
    "completed": "completed",
    "cancelled": "cancelled",
}


def read(path: str) -> list[Item]:
    """The tasks in a file, or in the repository of that directory; subtasks are tasks that theirs waits for.

    Raises:
        InvalidValue: It can't be read, or has no list of tasks.
    """
    file = file_in(path, *_PLACES)
    document = parsed(content_of(file), file)
    if isinstance(document, dict) and isinstance(document.get("tasks"), list):
        document = {"master": document}  # as versions before tags wrote it
    tags = document.items() if isinstance(document, dict) else ()
    lists = [(tag, each["tasks"]) for tag, each in tags if isinstance(each, dict) and "tasks" in each]
    if not lists:
        raise errors.InvalidValue(f"{file} has no list of tasks", "Name the tasks.json of task-master.")
    return [item for tag, tasks in lists for row in objects(tasks) for item in _items(tag, row)]


def _items(tag: str, row: dict[str, Any]) -> list[Item]:
    """A task and its subtasks."""
    task = _item(tag, row, f"{tag}:{words_of(row.get('id'))}", None)
    return [
        task,
        *(_item(tag, each, f"{task.key}.{words_of(each.get('id'))}", task) for each in objects(row.get("subtasks"))),
    ]


def _item(tag: str, row: dict[str, Any], key: str, parent: Item | None) -> Item:
    status = words_of(row.get("status")) or "pending"
    left = [] if status in _STATUSES else [f"status {status}: pending here"]
    return Item(
        key,
        words_of(row.get("title")),
        description=sections(
            description=words_of(row.get("description")),
            Details=words_of(row.get("details")),
            Test_strategy=words_of(row.get("testStrategy")),
        ),
        priority=parent.priority if parent else _PRIORITIES.get(words_of(row.get("priority")), "normal"),
        status=_STATUSES.get(status, "pending"),
        waits_for=[_other(tag, word, parent) for word in listed(row.get("dependencies"))],
        parent=parent.key if parent else None,
        left=left,
    )


def _other(tag: str, word: str, parent: Item | None) -> str:
    """The key of another task; of a sibling, where a subtask says a number alone."""
    return f"{parent.key}.{word}" if parent and "." not in word else f"{tag}:{word}"
