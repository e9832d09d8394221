"""Attempts at a task: counting its claims and failures, and giving it up after too many."""

from __future__ import annotations

from teams_cli.store.contract import Store, update
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import history, teams


def used_up(task: Task, most: int | None) -> str:
    """Return why the task may not be claimed again: at least *most* of its claims have ended without a result since the
    task was last reopened. Return "" if it may be claimed. If *most* is None, there is no limit.
    """
    if most is None:
        return ""
    claims = sum(note.what == "claimed" for note in task.since_reopened)
    if task.status == "in_progress":  # the present claim has not ended
        claims -= 1
    if claims < most:
        return ""
    losses = [note for note in task.since_reopened if note.what in ("released", "expired")]
    last_reason = (losses[-1].reason or losses[-1].what) if losses else ""
    return f"claimed and released {claims} times: {last_reason}"


def why_failed(task: Task, lines: int = 3) -> str:
    """Return why the task failed: the last *lines* lines of its result and, if these lack it, the noted reason."""
    result_lines = [line for line in (task.result or "").splitlines() if line.strip()]
    shown = "\n".join(result_lines[-lines:])
    reason = next((note.reason for note in reversed(task.notes) if note.what == "failed"), None)
    if reason and reason not in shown:
        shown = f"{shown}\n{reason}" if shown else reason
    return shown or "no reason was given"


def give_up(store: Store, team: str, by: str, task_id: str, reason: str) -> bool:
    """Fail a pending task for *reason*, and return True. Return False if the task is no longer pending."""

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
