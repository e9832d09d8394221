"""The progress of a team's work: the share done, the tasks that block others, the pace, and an estimate of the end."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from teams_cli.clock import length, parse_rfc3339
from teams_cli.tasks.dependencies import among, open_blockers
from teams_cli.tasks.tasks import FINISHED, STATUSES, Task

_RECENT = 20
"""How many of the latest completions are used to compute the pace."""
_LEAST = 3
"""The minimum number of completions for which a pace is computed."""
_ONE_DAY = 86_400.0
_SILENCE = 10.0
"""No estimate is made after this many usual intervals without a completion."""
_PATIENCE = 60.0
"""A pause of at most this many seconds since the last completion never prevents an estimate."""


class Graph:
    """The tasks of a team and their dependencies, in memory."""

    def __init__(self, all_tasks: list[Task]) -> None:
        self.tasks = {task.id: task for task in all_tasks}
        status_of = among(all_tasks)
        self.open_blockers = {
            task.id: [blocker.id for blocker in open_blockers(task, status_of)]
            for task in all_tasks
            if task.status not in FINISHED
        }
        """For each unfinished task, its blockers that are not completed; an empty list if there are none."""
        self.waiting: dict[str, list[str]] = {}
        """For each blocker, the unfinished tasks that are directly blocked by it."""
        for key, blockers in self.open_blockers.items():
            for blocker in blockers:
                self.waiting.setdefault(blocker, []).append(key)
        self.dead_ends = [
            key for key in self.waiting if key not in self.tasks or self.tasks[key].status in ("failed", "cancelled")
        ]
        """The tasks that block others forever, because they failed, were cancelled, or do not exist."""
        self.held_up = self.behind(*self.dead_ends)
        """The tasks that nobody can ever begin, because they wait for one of the `dead_ends`."""

    def behind(self, *keys: str) -> set[str]:
        """Return the ids of the tasks that wait for one of the tasks *keys*, directly or through other tasks."""
        reached: set[str] = set()
        to_visit = list(keys)
        while to_visit:
            newly_reached = [waiting for waiting in self.waiting.get(to_visit.pop(), ()) if waiting not in reached]
            reached.update(newly_reached)
            to_visit += newly_reached
        return reached

    def waiting_counts(self) -> dict[str, int]:
        """Map the id of each blocker to the number of tasks that wait for it, directly or through other tasks.

        Each set of tasks is held as an integer with one bit for each task. For thousands of tasks, this takes a
        hundredth of the time that Python's sets would take.
        """
        order = self._in_order({*self.open_blockers, *self.dead_ends})
        bit_of = {key: 1 << index for index, key in enumerate(reversed(order))}
        in_cycles = [key for key in self.open_blockers if key not in bit_of]  # also tasks that wait for a cycle
        bit_of.update({key: 1 << index for index, key in enumerate(in_cycles, len(bit_of))})
        behind = {key: sum(bit_of[waiting] for waiting in self.behind(key)) for key in in_cycles}
        for key in reversed(order):  # the tasks that wait for a task come before it
            behind[key] = 0
            for waiting in self.waiting.get(key, ()):
                behind[key] |= behind[waiting] | bit_of[waiting]
        return {key: behind[key].bit_count() for key in self.waiting}

    @property
    def achievable(self) -> list[str]:
        """The ids of the unfinished tasks that can still be completed."""
        return [key for key in self.open_blockers if key not in self.held_up]

    def critical_path(self) -> list[str]:
        """Return the ids of the longest chain of unfinished tasks in which each task waits for the one before. However
        many agents there are, the work takes at least as long as this chain. The result is empty if no task waits for
        another.
        """
        chain_length: dict[str, int] = {}  # by the first task of a chain
        following: dict[str, str] = {}  # by task: the next task of its longest chain
        for key in reversed(self._in_order(self.achievable)):
            candidates = [waiting for waiting in self.waiting.get(key, ()) if waiting in chain_length]
            if candidates:
                following[key] = max(candidates, key=lambda waiting: chain_length[waiting])
            chain_length[key] = 1 + chain_length.get(following.get(key, ""), 0)
        key = max(chain_length, key=lambda each: chain_length[each], default="")
        path = []
        while key:
            path.append(key)
            key = following.get(key, "")
        return path if len(path) > 1 else []

    def _in_order(self, keys: Collection[str]) -> list[str]:
        """Return the *keys* sorted so that each task comes after its blockers. Tasks that wait for a cycle, or are in
        it, are left out.
        """
        open_counts = {key: 0 for key in keys}
        for key in keys:
            open_counts[key] = sum(blocker in open_counts for blocker in self.open_blockers.get(key, ()))
        order = [key for key, open_count in open_counts.items() if not open_count]
        for key in order:  # the list grows meanwhile
            for waiting in self.waiting.get(key, ()):
                if waiting in open_counts:
                    open_counts[waiting] -= 1
                    if not open_counts[waiting]:
                        order.append(waiting)
        return order


def course(all_tasks: list[Task], now: datetime) -> dict[str, Any]:
    """Return the progress of the work as a document: the share done, the tasks by status, the pace, and an estimate of
    the end.

    `heldUp` is the number of tasks that wait, directly or through others, for a task that failed, was cancelled or is
    missing. `pace` is None if too few tasks were completed. If `estimate` is None, `noEstimate` says why.
    """
    graph = Graph(all_tasks)
    count = dict.fromkeys(STATUSES, 0)
    for task in all_tasks:
        count[task.status] += 1
    ready = sum(task.status == "pending" and not graph.open_blockers[task.id] for task in all_tasks)
    path = graph.critical_path()
    total = len(all_tasks) - count["cancelled"]
    document: dict[str, Any] = {
        "total": total,
        "done": count["completed"],
        "percent": 100 * count["completed"] // total if total else 0,
        "inProgress": count["in_progress"],
        "inReview": count["in_review"],
        "ready": ready,
        "blocked": count["pending"] - ready,
        "failed": count["failed"],
        "cancelled": count["cancelled"],
        "heldUp": len(graph.held_up),
        "criticalPath": path,
    }
    return document | _outlook(graph, path, now)


def _outlook(graph: Graph, path: list[str], now: datetime) -> dict[str, Any]:
    """Return how fast tasks were completed recently, and an estimate of the end, or the reason why there is none."""
    completion_times = [t.completed_at for t in graph.tasks.values() if t.status == "completed" and t.completed_at]
    ages = [max(0.0, (now - parse_rfc3339(completed_at)).total_seconds()) for completed_at in completion_times]
    latest_ages = sorted(age for age in ages if age <= _ONE_DAY)[:_RECENT]  # seconds since the completions
    pace = None
    if len(latest_ages) >= _LEAST:
        within = max(latest_ages[-1], 1.0)
        per_hour = round(3600 * len(latest_ages) / within, 1)
        pace = {"perHour": per_hour, "completed": len(latest_ages), "withinSeconds": round(within)}
    document: dict[str, Any] = {"pace": pace, "estimate": None, "noEstimate": None}
    achievable = graph.achievable
    if not graph.open_blockers:  # it has an entry for each unfinished task
        document["noEstimate"] = "all tasks are settled"
    elif not achievable:
        document["noEstimate"] = "all other tasks are blocked by failed or cancelled ones"
    elif not any(graph.tasks[key].status == "in_progress" for key in achievable):
        document["noEstimate"] = "nobody is working"
    elif pace is None:
        document["noEstimate"] = f"fewer than {_LEAST} tasks were completed lately"
    else:
        usual_interval = (latest_ages[-1] - latest_ages[0]) / (len(latest_ages) - 1)
        longest_pause = max(_PATIENCE, _SILENCE * usual_interval, 3 * _usual_length(graph))
        if latest_ages[0] > longest_pause:
            document["noEstimate"] = "nothing was completed for a long time"
        else:
            document["estimate"] = _estimate(graph, pace, len(achievable), path)
    return document


def _estimate(graph: Graph, pace: dict[str, Any], task_count: int, path: list[str]) -> dict[str, Any]:
    """Estimate the seconds until *task_count* more tasks are done, and the range given by the statistical error. The
    tasks of *path*, the critical path, have to be done one after the other, so they set the minimum time.
    """
    seconds = task_count * pace["withinSeconds"] / pace["completed"]
    seconds = max(seconds, len(path) * _usual_length(graph))
    error = pace["completed"] ** -0.5  # relative, of a number of independent events
    return {
        "seconds": round(seconds),
        "fromSeconds": round(seconds * (1 - error)),
        "toSeconds": round(seconds * (1 + error)),
        "basis": f"{pace['completed']} tasks were completed in the last {length(pace['withinSeconds'])}",
    }


def _usual_length(graph: Graph) -> float:
    """Return the median time in seconds from the claim of a task to its completion, or 0 if no task was completed."""
    lengths = sorted(
        (parse_rfc3339(task.completed_at) - parse_rfc3339(task.claimed_at)).total_seconds()
        for task in graph.tasks.values()
        if task.status == "completed" and task.claimed_at and task.completed_at
    )
    return max(0.0, lengths[len(lengths) // 2]) if lengths else 0.0
