"""The state of all tasks of a team. In a large team only the tasks that matter are read."""

from __future__ import annotations

from teams_cli.clock import seconds_since
from teams_cli.store.contract import Store
from teams_cli.tasks import dependencies, tasks
from teams_cli.tasks.tasks import FINISHED, PRIORITIES, TASK, Task
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from teams_cli.store.pace import Alarm

DONE = "all tasks are settled: you are done"
"""The text for a member when all tasks are finished."""
_FREE = [tasks.free_label(priority) for priority in PRIORITIES]
_LANDING = "landing"
_QUEUED_WITHIN = 3.0
"""Seconds between the completion of a task and its landing in the queue, at most."""
_COUNTED = {**{status: status for status in FINISHED}, **dict.fromkeys(_FREE, "pending")}
"""The status of the tasks of each label that says all about a task."""


class Overview:
    """The tasks that were read, in *found*, and the keys of all others by label."""

    def __init__(self, found: Sequence[Task], others: Mapping[str, Collection[str]]) -> None:
        self.found = list(found)
        self._others = others
        self.status_of: Callable[[str], str] = _statuses(found, others)

    @property
    def counts(self) -> dict[str, int]:
        """The number of tasks by status, as `tasks.count` returns it."""
        counts = tasks.count(self.found)
        for label, keys in self._others.items():
            counts[_COUNTED[label]] += len(keys)
        return counts

    @property
    def free(self) -> int:
        """How many tasks, besides those in `ready`, anybody may claim."""
        return sum(len(keys) for label, keys in self._others.items() if _COUNTED[label] == "pending")

    @property
    def ready(self) -> list[Task]:
        """The pending tasks in `found` that have no open blocker."""
        pending = (task for task in self.found if task.status == "pending")
        return [task for task in pending if not dependencies.open_blockers(task, self.status_of)]

    @property
    def stuck(self) -> list[str]:
        """The pending tasks that can never become ready, by number."""
        ended = [key for label in ("failed", "cancelled") for key in self._others.get(label, ())]
        return sorted(dependencies.stuck_tasks(self.found, ended), key=TASK.number_in)

    def changed(self, change: Callable[[Task], Task]) -> Overview:
        """Return the overview with *change* applied to each task in `found`."""
        return Overview([change(task) for task in self.found], self._others)


def completed_in_brackets(store: Store, team: str) -> str:
    """Return how many tasks were completed, in brackets: ` (3 of 4 tasks completed)`. Empty without tasks."""
    counts = overview(store, team).counts
    return f" ({counts['completed']} of {sum(counts.values())} tasks completed)" if any(counts.values()) else ""


def settled(
    store: Store, team: str, found: Overview | None = None, alarm: Alarm | None = None
) -> dict[str, Any] | None:
    """Return the number of tasks by status, and the tasks that can never become ready; None while something is left to
    do.

    *found* is an overview that was read already. The alarm rings when the tasks may become settled by time alone.
    """
    found = found or overview(store, team)
    counts, stuck = found.counts, found.stuck
    if (
        counts["in_progress"]
        or counts.get("in_review")
        or counts["pending"] > len(stuck)
        or has_unlanded_task(store, team)
    ):
        return None
    if _is_about_to_land(store, team, found.found):
        if alarm:
            alarm.ring_in(_QUEUED_WITHIN)
        return None
    return {"taskCounts": counts, "stuck": stuck}


def counts_if_ended(store: Store, team: str, alarm: Alarm | None = None) -> dict[str, int] | None:
    """Return the number of tasks by status if there are tasks and all have ended; else None. A task that can never
    become ready has not ended: the leader may free it.
    """
    if any(keys for label, keys in store.by_label(team, TASK).items() if label not in FINISHED):
        return None
    found = settled(store, team, alarm=alarm)
    counts: dict[str, int] = found["taskCounts"] if found else {}
    return counts if any(counts.values()) and not counts["pending"] else None


def has_unlanded_task(store: Store, team: str) -> bool:
    """Whether a completed task may come back to its owner because it has yet to land."""
    if _LANDING not in store.holds(team, _LANDING):
        return False
    from teams_cli.tasks import landings

    return any(tasks.get(store, team, found.task).landing != found.id for found in landings.open_ones(store, team))


def _is_about_to_land(store: Store, team: str, found: Sequence[Task]) -> bool:
    """Whether a task was completed a moment ago, and its landing may not be queued yet. In a large team such tasks are
    not in *found*, but in the history.
    """
    from teams_cli.teams import settings, teams

    if not settings.lands_by_itself(teams.get(store, team)):
        return False
    if any(task.completed_at and not task.landing and _is_recent(store, task.completed_at) for task in found):
        return True
    queued = set()
    for _, entry in store.history(team, backwards=True):
        if not _is_recent(store, str(entry.get("at"))):
            return False
        if entry.get("what") == "landing asked for":
            queued.add(entry.get("task"))
        elif entry.get("what") == "task completed" and entry.get("task") not in queued:
            return True
    return False


def _is_recent(store: Store, time: str) -> bool:
    try:
        return seconds_since(time, store.now()) < _QUEUED_WITHIN
    except ValueError:  # it was edited by hand
        return False


def refuse_closed(store: Store, team: Team) -> None:
    """Raises WrongState: The team is closed, so the awaited event can never happen."""
    if team.state == "closed":
        from teams_cli.teams import history

        raise history.of_closed(store, team.name, completed_in_brackets(store, team.name))


def overview(store: Store, team: str) -> Overview:
    """Return the overview of the team's tasks. In a large team, tasks whose label tells enough, such as finished ones,
    are only counted; the others are read.
    """
    labels = dict(store.by_label(team, TASK))
    if tasks.are_few(labels):
        return Overview(list(tasks.all_of(store, team, [])), {})
    # A label is a hint that a killed process may have left wrong. Unless one free task is really free, all are read.
    is_one_free = next(tasks.labelled(store, team, *_FREE), None) is not None
    counted = _COUNTED if is_one_free else FINISHED
    unread = {label: labels.pop(label) for label in counted if label in labels}
    label_of_key = {key: label for label, keys in labels.items() for key in keys}
    found = [task for task, _ in store.scan(team, TASK, [], label_of_key)]
    if wrong := [task.id for task in found if tasks.label_of(task) != label_of_key[task.id]]:
        store.correct_hints(team, TASK, wrong)
    return Overview(found, unread)


def _statuses(found: Sequence[Task], others: Mapping[str, Collection[str]]) -> Callable[[str], str]:
    """Return a function from the id of a task to its status."""
    known = {task.id: task.status for task in found}
    sets: dict[str, set[str]] = {}

    def status_of(key: str) -> str:
        if key in known:
            return known[key]
        if not sets:  # of many, and mostly nobody asks
            sets.update((label, set(keys)) for label, keys in others.items())
        return next((_COUNTED[label] for label, keys in sets.items() if key in keys), "missing")

    return status_of
