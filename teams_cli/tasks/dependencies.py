"""Dependencies of tasks: open blockers, cycles, and tasks that can never become ready."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.contract import Store, update
from teams_cli.tasks.tasks import IN_PROGRESS, IN_REVIEW, TASK, Task, get

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def stuck_tasks(tasks: list[Task], ended: Iterable[str] = ()) -> set[str]:
    """Return the ids of pending tasks that can never become ready, because they wait for a failed or cancelled task,
    directly or through other tasks. *ended* lists failed and cancelled tasks that are not among the *tasks*, by id.
    """
    failed_or_cancelled = [task.id for task in tasks if task.status in ("failed", "cancelled")]
    return waiting_for([*ended, *failed_or_cancelled], tasks)


def waiting_for(ids: Iterable[str], tasks: Iterable[Task]) -> set[str]:
    """Return the ids of those *tasks* that are pending and wait for a task with one of the *ids*, directly or through
    other tasks.
    """
    blocked_tasks: dict[str, list[str]] = {}
    for task in tasks:
        if task.status == "pending":
            for blocker in task.blocked_by:
                blocked_tasks.setdefault(blocker, []).append(task.id)
    waiting: set[str] = set()
    to_visit = [*ids]
    while to_visit:
        newly_found = [task_id for task_id in blocked_tasks.get(to_visit.pop(), ()) if task_id not in waiting]
        waiting.update(newly_found)
        to_visit += newly_found
    return waiting


def is_stuck(store: Store, team: str, task_id: str) -> bool:
    """Whether the task is pending and can never become ready, because it waits for a task that ended without being
    completed, directly or through other tasks.
    """
    status_of = stored(store, team)
    to_visit, visited = [task_id], {task_id}
    while to_visit:
        visited_id = to_visit.pop()
        if status_of(visited_id) != "pending":
            continue
        for blocker in open_blockers(get(store, team, visited_id), status_of):
            if not blocker.may_be_completed:
                return True
            if blocker.id not in visited:
                visited.add(blocker.id)
                to_visit.append(blocker.id)
    return False


def is_waited_for(store: Store, team: str, awaited: list[Blocker]) -> bool:
    """Whether at least one of the *awaited* tasks may still be completed, so that waiting makes sense."""
    return any(each.may_be_completed and not is_stuck(store, team, each.id) for each in awaited)


class Blocker:
    """A task that another task waits for: its id and its status, which may also be `missing` or `unreadable`."""

    def __init__(self, id: str, status: str) -> None:
        self.id = id
        self.status = status

    @property
    def may_be_completed(self) -> bool:
        """Whether the task may still be completed: it has not ended, and is neither missing nor unreadable."""
        return self.status in ("pending", IN_PROGRESS, IN_REVIEW)

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"


def open_blockers(task: Task, status_of: Callable[[str], str]) -> list[Blocker]:
    """Return the task's blockers that are missing or not completed. *status_of* maps ids to statuses; `stored` and
    `among` return such functions.
    """
    return _uncompleted(task.blocked_by, status_of)


def open_predecessors(task: Task, status_of: Callable[[str], str]) -> list[Blocker]:
    """Return the tasks in the task's field `after` that are not completed. *task* can't be completed before them."""
    return _uncompleted(task.after, status_of)


def before_completion(task: Task, status_of: Callable[[str], str]) -> list[Blocker]:
    """Return all tasks that still have to be completed before this task: its blockers and the tasks in `after`."""
    return [*open_blockers(task, status_of), *open_predecessors(task, status_of)]


def only_awaits_others(store: Store, team: str, task: Task) -> bool:
    """Whether the owner has stored the task's result, and the task only waits for tasks that can still be completed."""
    if task.result_so_far is None:
        return False
    return any(blocker.may_be_completed for blocker in before_completion(task, stored(store, team)))


def _uncompleted(task_ids: list[str] | None, status_of: Callable[[str], str]) -> list[Blocker]:
    blockers = (Blocker(task_id, status_of(task_id)) for task_id in task_ids or ())
    return [blocker for blocker in blockers if blocker.status != "completed"]


def left_to_owner(store: Store, team: str, task: Task) -> str | None:
    """Return the id of a task that must be completed before *task*, and that only the owner of *task* can do now: it is
    ready and assigned to the owner, or the owner has it in progress. Return None if there is no such task.
    """
    for key in task.waits_for:
        try:
            blocker = get(store, team, key)
        except errors.TeamsError:  # a missing or damaged task is reported when *task* is completed
            continue
        is_assigned = blocker.status == "pending" and blocker.assignee == task.owner
        is_own = blocker.status == IN_PROGRESS and blocker.owner == task.owner and not blocker.completion_is_asked
        if (is_assigned or is_own) and not open_blockers(blocker, stored(store, team)):
            return blocker.id
    return None


def asked_and_free(store: Store, team: str, tasks: Iterable[Task]) -> list[Task]:
    """Return those of the *tasks* whose owners asked too early to complete them, and that need not wait any longer."""
    status_of = stored(store, team)
    asked = [task for task in tasks if task.completion_is_asked]
    return [task for task in asked if not any(each.may_be_completed for each in before_completion(task, status_of))]


def stored(store: Store, team: str, known_statuses: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """Return a function that maps the id of a task to its status. The function takes the status from *known_statuses*,
    or else from the store. The status is `missing` if there is no such task, and `unreadable` if its file is damaged.
    """

    def status_of(task_id: str) -> str:
        if known_statuses and (status := known_statuses.get(task_id)):
            return status
        try:
            return get(store, team, task_id).status
        except errors.NotFound:
            return "missing"
        except errors.TeamsError:
            return "unreadable"

    return status_of


def among(tasks: Iterable[Task]) -> Callable[[str], str]:
    """Return a function that maps the id of a task to its status. For an id that none of the *tasks* has, it returns
    `missing`.
    """
    statuses = {task.id: task.status for task in tasks}
    return lambda task_id: statuses.get(task_id, "missing")


def refuse_cycle(
    store: Store, team: str, task_id: str, blockers: Iterable[str], more: Mapping[str, Iterable[str]] | None = None
) -> None:
    """Refuse *blockers* for the task *task_id* if one of them waits for that task, directly or through other tasks.
    *more* maps the ids of tasks to blockers that they are about to get.

    Raises:
        DependencyCycle: A blocker waits for the task. The error names the tasks of the cycle.
        TaskNotFound: A blocker does not exist.
    """
    paths = [[blocker] for blocker in blockers]  # each leads from a blocker to a task that it waits for
    visited: set[str] = set()
    while paths:
        path = paths.pop()
        end = path[-1]
        if end == task_id:
            raise errors.DependencyCycle(
                f"{task_id} would wait for itself: {' waits for '.join([task_id, *path])}",
                "Remove one of these blockers.",
            )
        if end not in visited:
            visited.add(end)
            waits_for = [*get(store, team, end).waits_for, *(more or {}).get(end, ())]
            paths += [[*path, blocker] for blocker in waits_for]


def refuse_late_cycle(store: Store, team: str, task: Task, before: Task) -> None:
    """If the stored *task* has new dependencies that make a cycle, restore its dependencies from *before*, the task
    before the change, and raise an error. Two simultaneous changes can each add a part of a cycle.
    """
    new_dependencies = set(task.waits_for) - set(before.waits_for)
    if not new_dependencies:
        return
    try:
        refuse_cycle(store, team, task.id, sorted(new_dependencies))
    except errors.TeamsError:
        old_dependencies = {"blocked_by": before.blocked_by, "after": before.after}
        update(store, team, TASK, task.id, lambda task: task.having(**old_dependencies))
        raise


def with_open(document: dict[str, Any], status_of: Callable[[str], str]) -> dict[str, Any]:
    """Add to a task's *document* which of its dependencies are not completed, and return the document."""
    blockers = [blocker.id for blocker in _uncompleted(document.get("blockedBy"), status_of)]
    document["blocked"], document["openBlockers"] = bool(blockers), blockers
    if document.get("after"):
        document["openAfter"] = [blocker.id for blocker in _uncompleted(document["after"], status_of)]
    return document
