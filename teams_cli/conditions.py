"""Waiting until something is so: a task finished, all settled, a plan decided, a message there, an agent done."""

from __future__ import annotations

import time

from teams_cli import inboxes, leases, plans, sessions, tasks, teams
from teams_cli.errors import InvalidValue, WaitRanOut, WrongState
from teams_cli.tasks import FINISHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.store.contract import Store

    Condition = Callable[[], dict[str, Any] | None]

_LOOK_AGAIN = 1.0


def sleep_until(store: Store, team: str, ready: Callable[[], bool], timeout: float | None) -> bool:
    """Block until *ready* says so; False when *timeout* seconds ran out (None: never).

    Woken by changes in the team. Time alone changes things too (a lease runs out), so it looks every second as well.

    Raises:
        InvalidValue: *timeout* is below zero, or no number.
    """
    if timeout is not None and not timeout >= 0:
        raise InvalidValue(f"can't wait {timeout:g} seconds", "Give a number of seconds from 0.")
    give_up = None if timeout is None else time.monotonic() + timeout
    watch = store.watch(team)
    try:
        while not ready():
            left = _LOOK_AGAIN if give_up is None else min(give_up - time.monotonic(), _LOOK_AGAIN)
            if left <= 0:
                return False
            watch.wait(left)
        return True
    finally:
        watch.close()


def wait(store: Store, team: str, condition: Condition, timeout: float | None, what: str) -> dict[str, Any]:
    """Block until the condition holds; what it then found.

    Raises:
        WaitRanOut: It did not within *timeout* seconds.
    """
    found: list[dict[str, Any]] = []

    def ready() -> bool:
        result = condition()
        if result is not None:
            found[:] = [result]
        return result is not None

    if not sleep_until(store, team, ready, timeout):
        raise WaitRanOut(f"{what} did not come about within {timeout:g} seconds", "Wait longer, or look: teams brief")
    return found[0]


def _while_open(store: Store, team: str, condition: Condition) -> Condition:
    """The condition; once the team is closed, nobody can bring about what it waits for."""

    def look() -> dict[str, Any] | None:
        found = condition()
        if found is None and teams.load(store, team).state == "closed":
            raise WrongState(f"team {team} is closed: nobody goes on", f"`teams restore-team {team}` opens it again.")
        return found

    return look


def task_finished(store: Store, team: str, word: str) -> Condition:
    """The task is completed, failed or cancelled.

    Here and below, waiting raises WrongState when the team is closed before that.
    """
    task_id = tasks.load(store, team, word).id

    def look() -> dict[str, Any] | None:
        task = leases.current(store, teams.load(store, team), tasks.load(store, team, task_id))
        return {"task": task.to_json()} if task.status in FINISHED else None

    return _while_open(store, team, look)


def all_settled(store: Store, team: str) -> Condition:
    """No task is in progress, and every pending one waits for one that failed or was cancelled."""

    def look() -> dict[str, Any] | None:
        found = list(tasks.everything(store, team, []))
        counts = {status: sum(task.status == status for task in found) for status in tasks.STATUSES}
        stuck = stuck_tasks(found)
        if counts["in_progress"] or counts["pending"] > len(stuck):
            leases.release_all(store, teams.load(store, team))
            return None
        return {"taskCounts": counts, "stuck": sorted(stuck, key=lambda key: int(key.rpartition("-")[2]))}

    return _while_open(store, team, look)


def stuck_tasks(found: list[tasks.Task]) -> set[str]:
    """The ids of pending tasks that wait, themselves or through others, for one that failed or was cancelled."""
    stuck: set[str] = set()
    dead = {task.id for task in found if task.status in ("failed", "cancelled")}
    waiting = [task for task in found if task.status == "pending" and task.blocked_by]
    grown = True
    while grown:
        more = {task.id for task in waiting if task.id not in stuck and (dead | stuck).intersection(task.blocked_by)}
        stuck |= more
        grown = bool(more)
    return stuck


def plan_decided(store: Store, team: str, word: str) -> Condition:
    """The plan is approved or rejected."""
    plan_id = plans.load(store, team, word).id

    def look() -> dict[str, Any] | None:
        plan = plans.load(store, team, plan_id)
        return {"plan": plan.to_json()} if plan.status != "proposed" else None

    return _while_open(store, team, look)


def message_there(store: Store, team: str, agent: str) -> Condition:
    """The agent has a message that it has not read."""

    def look() -> dict[str, Any] | None:
        numbers = inboxes.unread(store, team, agent)
        return {"unread": [f"msg-{number}" for number in numbers]} if numbers else None

    return look


def agent_done(store: Store, team: str, name: str) -> Condition:
    """The agent has no task in progress, or is no member any more; if `teams` started it, its session has ended."""
    if sessions.find(store, team, name) is None:
        teams.find_recipient(teams.load(store, team), name)

    def look() -> dict[str, Any] | None:
        session = sessions.current(store, team, name)
        if session and not session.ended:
            return None
        leases.release_all(store, teams.load(store, team))
        busy = [task.id for task in tasks.labelled(store, team, tasks.IN_PROGRESS) if task.owner == name]
        return None if busy else {"agent": name}

    return look
