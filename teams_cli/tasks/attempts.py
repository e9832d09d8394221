"""Attempts at a task: counting its claims and failures, and giving it up after too many."""

from __future__ import annotations

from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import history, teams

_BACK = ("released", "expired")


def made(task: Task) -> int:
    """Return how often the task was claimed and given back since it was last reopened."""
    return sum(note.what == "claimed" for note in task.since_reopened) - (task.status == "in_progress")


def used_up(task: Task, most: int | None) -> str:
    """Return why the task may not be claimed again; empty if it came back less than *most* times."""
    if most is None or (tries := made(task)) < most:
        return ""
    return f"claimed and released {tries} times: {last_reason(task)}"


def last_reason(task: Task) -> str:
    """Return the reason that was given when the task last came back."""
    back = [note for note in task.since_reopened if note.what in _BACK]
    return (back[-1].reason or back[-1].what) if back else ""


def why_failed(task: Task, lines: int = 3) -> str:
    """Return why the task failed: the last *lines* of its result, and the noted reason if it is not in them."""
    said = "\n".join([line for line in (task.result or "").splitlines() if line.strip()][-lines:])
    noted = next((note.reason for note in reversed(task.notes) if note.what == "failed"), None)
    more = noted if noted and noted not in said else ""
    return "\n".join(filter(None, (said, more))) or "no reason was given"


def give_up(store: Store, team: str, by: str, task_id: str, reason: str) -> bool:
    """Fail a task that has no owner, for *reason*. Return False if somebody claimed it meanwhile."""

    def change(task: Task) -> Task:
        if task.status != "pending":
            return task
        now = teams.now(store)
        return task.having(status="failed", completed_at=now).noted(now, by, "failed", reason)

    before, task = update(store, team, TASK, task_id, change)
    if before is task:
        return False
    history.note(store, team, by, "task failed", task=task_id, reason=reason)
    return True
