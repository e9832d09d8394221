"""Dependencies of tasks: open blockers, cycles, and tasks that can never become ready."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks.tasks import TASK, Task, get

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def stuck_tasks(found: list[Task], ended: Iterable[str] = ()) -> set[str]:
    """Return the ids of pending tasks that wait, directly or through others, for a failed or cancelled task. *ended*
    has ids of failed and cancelled tasks that are not among *tasks*.
    """
    return waiting_for([*ended, *(task.id for task in found if task.status in ("failed", "cancelled"))], found)


def waiting_for(keys: Iterable[str], found: Iterable[Task]) -> set[str]:
    """Return the ids of the pending tasks that wait, directly or through others, for one of these."""
    waiting: dict[str, list[str]] = {}
    for task in found:
        if task.status == "pending":
            for blocker in task.blocked_by:
                waiting.setdefault(blocker, []).append(task.id)
    reached: set[str] = set()
    ahead = [*keys]
    while ahead:
        more = [key for key in waiting.get(ahead.pop(), ()) if key not in reached]
        reached.update(more)
        ahead += more
    return reached


class Blocker:
    """A task that another waits for: its id and status. The status is `missing` or `unreadable` without a record."""

    def __init__(self, id: str, status: str) -> None:
        self.id = id
        self.status = status

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"


def open_blockers(task: Task, status_of: Callable[[str], str]) -> list[Blocker]:
    """Return the blockers of the task that are not completed, also missing and unreadable ones."""
    return _open(task.blocked_by, status_of)


def open_predecessors(task: Task, status_of: Callable[[str], str]) -> list[Blocker]:
    """Return the tasks of `after` that are not completed."""
    return _open(task.after, status_of)


def _open(keys: list[str] | None, status_of: Callable[[str], str]) -> list[Blocker]:
    if not keys:
        return []
    blockers = (Blocker(key, status_of(key)) for key in keys)
    return [blocker for blocker in blockers if blocker.status != "completed"]


def stored(store: Store, team: str, known: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """Return a function from the id of a task to its status: the *known* one, else the stored one."""

    def status_of(key: str) -> str:
        if known and (found := known.get(key)):
            return found
        try:
            return get(store, team, key).status
        except errors.NotFound:
            return "missing"
        except errors.TeamsError:
            return "unreadable"

    return status_of


def among(found: Iterable[Task]) -> Callable[[str], str]:
    """Return a function from the id of a task to its status, for tasks that were read already."""
    statuses = {task.id: task.status for task in found}
    return lambda key: statuses.get(key, "missing")


def refuse_cycle(store: Store, team: str, task_id: str, blockers: Iterable[str]) -> None:
    """Refuse blockers that wait, directly or through others, for the task.

    Raises:
        DependencyCycle: One does; names the way.
        TaskNotFound: One does not exist.
    """
    ways = [[blocker] for blocker in blockers]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        if way[-1] == task_id:
            raise errors.DependencyCycle(
                f"{task_id} would wait for itself: {' waits for '.join([task_id, *way])}",
                "Remove one of these blockers.",
            )
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [[*way, further] for further in get(store, team, way[-1]).waits_for]


def refuse_late_cycle(store: Store, team: str, task: Task, before: Task) -> None:
    """Refuse a cycle that two concurrent changes made together. The change that notices it is taken back."""
    if set(task.waits_for) <= set(before.waits_for):
        return
    try:
        refuse_cycle(store, team, task.id, task.waits_for)
    except errors.TeamsError:
        was = {"blocked_by": before.blocked_by, "after": before.after}
        update(store, team, TASK, task.id, lambda now: now.having(**was))
        raise


def to_document(task: Task, status_of: Callable[[str], str]) -> dict[str, Any]:
    """Return the task as JSON, with its dependencies that are not completed."""
    return with_open(task.to_document(), status_of)


def with_open(document: dict[str, Any], status_of: Callable[[str], str]) -> dict[str, Any]:
    """Add to the document of a task its dependencies that are not completed."""
    blockers = [blocker.id for blocker in _open(document.get("blockedBy"), status_of)]
    document["blocked"], document["openBlockers"] = bool(blockers), blockers
    if document.get("after"):
        document["openAfter"] = [blocker.id for blocker in _open(document["after"], status_of)]
    return document
