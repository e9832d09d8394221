"""Work: the tasks that an agent has, and its next step when it finished one."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import seconds_since
from teams_cli.store.contract import Store
from teams_cli.tasks import leases, tasks
from teams_cli.tasks.claims import may_claim
from teams_cli.tasks.tasks import IN_PROGRESS, Task
from teams_cli.teams import presence
from teams_cli.teams.permission import standing_of
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Team
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.tasks.plans import Plan
    from teams_cli.teams.caller import Caller

    Found = dict[str, Any]

SHOWN = 4
READY = "ready:"
"""What the word begins with under which it is told that a task is ready."""
HELD = "held:"
"""What the word begins with under which one is told of a task that it has, when it waits for another."""
_TITLE = 48
_LINE = 120
_TO_TAKE_IT = 15.0
"""Seconds in which a ready task is left to the agent that was told of it first: models take about ten for a step."""
_SOON = 0.25
"""The part of a lease at the end of which its owner is warned."""


def of(store: Store, team: Team, name: str) -> Found:
    """The agent's tasks as in a brief."""
    held = [task for task in tasks.labelled(store, team.name, IN_PROGRESS) if task.owner == name]
    if not held:
        return {"myTasks": []}
    from teams_cli.tasks import plans

    return {"myTasks": rows(store, team, held, plans.all_of(store, team.name, []))}


def rows(store: Store, team: Team, held: list[Task], proposed: list[Plan]) -> list[Found]:
    """What its owner is told of the tasks that it has, of the first few of them."""
    by_id = {task.id: task for task in held[:SHOWN]}
    for key in {key for task in held[:SHOWN] for key in task.blocked_by}:
        try:
            by_id[key] = tasks.get(store, team.name, key)
        except errors.TeamsError:
            continue
    return [row(store, team, task, by_id, proposed) for task in held[:SHOWN]]


def row(store: Store, team: Team, task: Task, by_id: dict[str, Task], proposed: list[Plan]) -> Found:
    """What its owner is told of a task: how long it has it, what it waits for, and how it stands with its plan."""
    blockers = [by_id[key] for key in task.blocked_by if key in by_id]
    results = [(blocker.id, blocker.owner, blocker.result) for blocker in blockers if blocker.status == "completed"]
    status, plan = plan_of(task, proposed)
    return {
        "id": task.id,
        "title": text.clipped_line(task.title, _TITLE),
        "leaseExpiresAt": leases.expires_at(store, task),
        "leaseSeconds": (left := _seconds_left(store, task)),
        "leaseEndsSoon": left is not None and left < leases.length(team) * _SOON,
        "waitsFor": [blocker.id for blocker in blockers if blocker.status != "completed"],
        "results": [
            {"id": key, "owner": owner, "result": text.clipped_line(said or "", _LINE)} for key, owner, said in results
        ],
        "plan": status,
        "planId": plan,
    }


def _seconds_left(store: Store, task: Task) -> int | None:
    ends = leases.expires_at(store, task)
    return None if ends is None else max(0, round(-seconds_since(ends, store.now())))


def plan_of(task: Task, proposed: list[Plan]) -> tuple[str | None, str | None]:
    """How it stands with the owner's newest plan for the task, or that one is required; and its id. A plan that was
    approved for who had the task before holds on.
    """
    own = [plan for plan in proposed if plan.task == task.id and plan.from_ == task.owner]
    if own:
        return own[-1].status, own[-1].id
    waiting = [plan.id for plan in proposed if (plan.status, plan.from_, plan.task) == ("proposed", task.owner, None)]
    if waiting:  # a plan for all of its work
        return "proposed", waiting[-1]
    if not task.plan_required:
        return None, None
    from teams_cli.tasks import plans

    approved = plans.newest_approved(proposed, task.id)
    return (approved.status, approved.id) if approved else ("required", None)


def next_step(store: Store, team: Team, caller: Caller) -> str:
    """What the caller does when it ended a task: go on with another, or wait, which takes the next."""
    return steps.work(of(store, team, caller.name)) or when_idle(store, team, caller)


def when_idle(store: Store, team: Team, caller: Caller) -> str:
    """How the caller waits when it has nothing to do. When all tasks are over nobody waits: the leader ends the team's
    work, once those that it asked to end did, and nothing is left for the others.
    """
    from teams_cli.tasks import overviews

    at = standing_of(team, caller)
    if at is None or not at.leads:
        return "" if overviews.over(store, team.name) else steps.when_idle(may_claim(team, caller))
    found = overviews.settled(store, team.name)
    if not (found and any(found["taskCounts"].values())):
        return steps.WAIT_TO_LEAD
    from teams_cli.views import needed

    expects = needed.expects_ends(store, team.name, caller.name)
    return steps.WAIT_TO_LEAD if expects else steps.after_all(found["stuck"])


def idle(store: Store, team: Team, name: str) -> list[Agent]:
    """The other members that were heard of and have no task."""
    busy = {task.owner for task in tasks.labelled(store, team.name, IN_PROGRESS)}
    found = (agent for agent, _ in store.scan(team.name, presence.AGENT, []))
    others = (agent for agent in found if agent.agent not in (name, *busy))
    return [agent for agent in others if presence.is_around(store, team, agent)]


def about(task: Task) -> str:
    """What it is told under that the task is ready, until somebody took it."""
    return f"{READY}{task.id}:{task.claim}"


def task_of(about: str) -> str:
    """The task that is told of under that word."""
    return about.removeprefix(READY).partition(":")[0]


def offer_left(store: Store, agent: Agent) -> float:
    """Seconds for which the task that the agent was told of is left to it; none if that time is to come yet."""
    left = _TO_TAKE_IT - seconds_since(agent.offered_at, store.now()) if agent.offered_at else 0.0
    return left if 0 < left <= _TO_TAKE_IT else 0.0
