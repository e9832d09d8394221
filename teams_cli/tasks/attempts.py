"""Counting the attempts at a task and their failures, and giving it up after too many."""

from __future__ import annotations

from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import history, teams

_BACK = ("released", "expired")


def made(task: Task) -> int:
    """The number of times it was claimed and released since it was last reopened."""
    return sum(note.what == "claimed" for note in task.since_reopened) - (task.status == "in_progress")


def used_up(task: Task, most: int | None) -> str:
    """Why it may not be claimed once more; empty where it may, as it came back less often than *most* times."""
    if most is None or (tries := made(task)) < most:
        return ""
    return f"claimed and released {tries} times: {last_reason(task)}"


def last_reason(task: Task) -> str:
    """Why it came back the last time, as far as that was said."""
    back = [note for note in task.since_reopened if note.what in _BACK]
    return (back[-1].reason or back[-1].what) if back else ""


def why_failed(task: Task, lines: int = 3) -> str:
    """Why it failed: the last *lines* it said, and behind it the reason that was noted, if it is not in it."""
    said = "\n".join([line for line in (task.result or "").splitlines() if line.strip()][-lines:])
    noted = next((note.reason for note in reversed(task.notes) if note.what == "failed"), None)
    more = noted if noted and noted not in said else ""
    return "\n".join(filter(None, (said, more))) or "no reason was given"


def give_up(store: Store, team: str, by: str, task_id: str, reason: str) -> bool:
    """Note that a task that nobody has now has failed, for *reason*; False when somebody claimed it meanwhile."""

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
