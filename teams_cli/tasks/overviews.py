"""Overviews: the state of all tasks of a team. In a large team only the tasks that matter are read."""

from __future__ import annotations

from teams_cli.clock import seconds_since
from teams_cli.store.contract import Store
from teams_cli.tasks import dependencies, tasks
from teams_cli.tasks.tasks import FINISHED, IN_PROGRESS, IN_REVIEW, PRIORITIES, TASK, Task
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from teams_cli.store.pace import Alarm

DONE = "all tasks are settled: you are done"
"""The text that a member gets when all tasks are finished."""
_FREE_LABELS = [tasks.free_label(priority) for priority in PRIORITIES]
_LANDING = "landing"
_QUEUED_WITHIN = 3.0
"""The maximum time in seconds from the completion of a task until its landing is in the queue."""
_STATUS_OF_LABEL = {**{status: status for status in FINISHED}, **dict.fromkeys(_FREE_LABELS, "pending")}
"""Maps labels to the status of their tasks. It has only labels that make it unnecessary to read a task."""


class Overview:
    """The state of all tasks of a team. *tasks_read* are the tasks that were read; *not_read* maps labels to the ids of
    all other tasks.
    """

    def __init__(self, tasks_read: Sequence[Task], not_read: Mapping[str, Collection[str]]) -> None:
        self.tasks_read = list(tasks_read)
        self._not_read = not_read
        self._statuses = {task.id: task.status for task in tasks_read}
        self._statuses_not_read: dict[str, str] | None = None

    def status_of(self, task_id: str) -> str:
        """Return the status of the task with that id; `missing` if there is no such task."""
        if task_id in self._statuses:
            return self._statuses[task_id]
        if self._statuses_not_read is None:  # made only now: there may be thousands, and mostly nobody asks
            self._statuses_not_read = {
                key: _STATUS_OF_LABEL[label] for label, task_ids in self._not_read.items() for key in task_ids
            }
        return self._statuses_not_read.get(task_id, "missing")

    @property
    def counts(self) -> dict[str, int]:
        """The number of tasks by status. `in_review` is left out if no task is in review."""
        counts = tasks.count(self.tasks_read)
        for label, task_ids in self._not_read.items():
            counts[_STATUS_OF_LABEL[label]] += len(task_ids)
        return counts

    @property
    def free(self) -> int:
        """The number of ready tasks that were not read. Every member may claim them. `ready` has the others."""
        return sum(len(task_ids) for label, task_ids in self._not_read.items() if _STATUS_OF_LABEL[label] == "pending")

    @property
    def ready(self) -> list[Task]:
        """The pending tasks in `tasks_read` that have no open blocker."""
        pending = (task for task in self.tasks_read if task.status == "pending")
        return [task for task in pending if not dependencies.open_blockers(task, self.status_of)]

    @property
    def stuck(self) -> list[str]:
        """The ids of the pending tasks that can never become ready, sorted by number."""
        ended = [task_id for label in ("failed", "cancelled") for task_id in self._not_read.get(label, ())]
        return sorted(dependencies.stuck_tasks(self.tasks_read, ended), key=TASK.number_in)

    def changed(self, change: Callable[[Task], Task]) -> Overview:
        """Return the overview with *change* applied to each task in `tasks_read`."""
        return Overview([change(task) for task in self.tasks_read], self._not_read)


def completed_in_brackets(store: Store, team: str) -> str:
    """Return how many tasks were completed, such as ` (3 of 4 tasks completed)`; "" if there are no tasks."""
    counts = overview(store, team).counts
    total = sum(counts.values())
    return f" ({counts['completed']} of {total} tasks completed)" if total else ""


def settled(
    store: Store, team: str, overview_read: Overview | None = None, alarm: Alarm | None = None
) -> dict[str, Any] | None:
    """If no task of the team can go on, return the number of tasks by status (`taskCounts`), and the ids of tasks that
    can never become ready (`stuck`). Return None as long as any task can go on.

    *overview_read* is the overview, if it was read before. If a task was just completed and may be about to land,
    return None, and set the *alarm* for the time at which this will be known.
    """
    known = overview_read or overview(store, team)
    counts, stuck = known.counts, known.stuck
    has_claimable_task = counts["pending"] > len(stuck)
    if has_claimable_task or counts[IN_PROGRESS] or counts.get(IN_REVIEW) or has_unlanded_task(store, team):
        return None
    if _is_about_to_land(store, team, known.tasks_read):
        if alarm:
            alarm.ring_in(_QUEUED_WITHIN)
        return None
    return {"taskCounts": counts, "stuck": stuck}


def counts_if_ended(store: Store, team: str, alarm: Alarm | None = None) -> dict[str, int] | None:
    """If there are tasks and all of them have ended, return the number of tasks by status; else None. A task that can
    never become ready has not ended, because the leader may still free it. *alarm* is set if the answer may change
    merely because time passes.
    """
    has_open_task = any(keys for label, keys in store.by_label(team, TASK).items() if label not in FINISHED)
    if has_open_task:  # labels are quick to read, so this comes first
        return None
    settlement = settled(store, team, alarm=alarm)
    if settlement is None:
        return None
    counts: dict[str, int] = settlement["taskCounts"]
    has_tasks = any(counts.values())
    return counts if has_tasks and not counts["pending"] else None


def has_unlanded_task(store: Store, team: str) -> bool:
    """Whether some landing has no outcome yet, or an outcome that is not recorded in its task yet. In both cases a
    completed task may come back to its owner.
    """
    if _LANDING not in store.holds(team, _LANDING):
        return False
    from teams_cli.tasks import landings

    # A task has the id of its last landing once the outcome of that landing is in the task.
    return any(
        tasks.get(store, team, landing.task).landing != landing.id for landing in landings.open_ones(store, team)
    )


def _is_about_to_land(store: Store, team: str, tasks_read: Sequence[Task]) -> bool:
    """Whether a task was completed so recently that its landing may not be in the queue yet. The history is searched,
    too, because the completed tasks of a large team are not among *tasks_read*.
    """
    from teams_cli.teams import settings, teams

    if not settings.lands_by_itself(teams.get(store, team)):
        return False
    if any(task.completed_at and not task.landing and _is_recent(store, task.completed_at) for task in tasks_read):
        return True
    queued_ids = set()
    # Newest first, so that a landing is found before the completion that it followed.
    for _, entry in store.history(team, backwards=True):
        if not _is_recent(store, str(entry.get("at"))):
            return False
        if entry.get("what") == "landing asked for":
            queued_ids.add(entry.get("task"))
        elif entry.get("what") == "task completed" and entry.get("task") not in queued_ids:
            return True
    return False


def _is_recent(store: Store, time: str) -> bool:
    try:
        return seconds_since(time, store.now()) < _QUEUED_WITHIN
    except ValueError:  # it was edited by hand
        return False


def refuse_closed(store: Store, team: Team) -> None:
    """Raise WrongState if the team is closed, because a command would wait in vain for a change in it."""
    if team.state == "closed":
        from teams_cli.teams import history

        raise history.of_closed(store, team.name, completed_in_brackets(store, team.name))


def overview(store: Store, team: str) -> Overview:
    """Return the overview of the team's tasks. In a large team, tasks whose label says enough, such as finished tasks,
    are not read but only counted.
    """
    labels = dict(store.by_label(team, TASK))
    if tasks.are_few(labels):
        return Overview(list(tasks.all_of(store, team, [])), {})
    # A label is a hint that a killed process may have left wrong. So the labels of free tasks are trusted only if at
    # least one task with such a label is really free.
    is_one_free = next(tasks.labelled(store, team, *_FREE_LABELS), None) is not None
    trusted_labels = _STATUS_OF_LABEL if is_one_free else FINISHED
    unread = {label: labels.pop(label) for label in trusted_labels if label in labels}
    label_of_id = {task_id: label for label, task_ids in labels.items() for task_id in task_ids}
    tasks_read = [task for task, _ in store.scan(team, TASK, [], label_of_id)]
    wrongly_labelled = [task.id for task in tasks_read if tasks.label_of(task) != label_of_id[task.id]]
    if wrongly_labelled:
        store.correct_hints(team, TASK, wrongly_labelled)
    return Overview(tasks_read, unread)
