"""The tasks that an agent has, what it waits for in them, and its next step."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import seconds_since
from teams_cli.membership import shutdowns
from teams_cli.messages import messages
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import SYSTEM
from teams_cli.questions import questions
from teams_cli.store.contract import Store
from teams_cli.tasks import leases, plans, tasks
from teams_cli.tasks.claims import may_claim
from teams_cli.tasks.tasks import IN_PROGRESS, Task
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import standing_of
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Team
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.tasks.plans import Plan
    from teams_cli.teams.permission import Caller

    Found = dict[str, Any]


SHOWN = 4
READY = "ready:"
"""The beginning of the key of the fact that a task is ready."""
HELD = "held:"
"""What the word begins with under which one is told of a task that it has, when it waits for another."""
_TITLE = 48
_RESULT = 1200
"""Characters of a result that a row has."""
_TO_TAKE_IT = 15.0
"""Seconds in which a ready task is left to the agent that was told of it first: models take about ten for a step."""
_SOON = 0.25
"""The part of a lease at the end of which its owner is warned."""


def of(store: Store, team: Team, name: str) -> Found:
    """The agent's tasks as in a brief."""
    held = [task for task in tasks.labelled(store, team.name, IN_PROGRESS) if task.owner == name]
    if not held:
        return {"myTasks": []}

    return {"myTasks": rows_of(store, team, held, plans.all_of(store, team.name, []))}


def rows_of(store: Store, team: Team, held: list[Task], proposed: list[Plan]) -> list[Found]:
    """The rows about an owner's tasks, for the first few of them."""
    by_id = {task.id: task for task in held[:SHOWN]}
    for key in {key for task in held[:SHOWN] for key in task.blocked_by}:
        try:
            by_id[key] = tasks.get(store, team.name, key)
        except errors.TeamsError:
            continue
    return [row(store, team, task, by_id, proposed) for task in held[:SHOWN]]


def row(store: Store, team: Team, task: Task, by_id: dict[str, Task], proposed: list[Plan]) -> Found:
    """The row for the owner of a task: the time left, what it waits for, and the state of its plan."""
    blockers = [by_id[key] for key in task.blocked_by if key in by_id]
    results = [(blocker.id, blocker.owner, blocker.result) for blocker in blockers if blocker.status == "completed"]
    status, plan = plan_of(task, proposed)
    return {
        "id": task.id,
        "title": text.clipped_line(task.title, _TITLE),
        "leaseExpiresAt": leases.expires_at(store, task),
        "leaseSeconds": (left := _seconds_left(store, task)),
        "leaseEndsSoon": left is not None and left < leases.lease_seconds(team) * _SOON,
        "waitsFor": [blocker.id for blocker in blockers if blocker.status != "completed"],
        "results": [
            {"id": key, "owner": owner, "result": text.clipped_line(said or "", _RESULT)}
            for key, owner, said in results
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

    approved = plans.newest_approved(proposed, task.id)
    return (approved.status, approved.id) if approved else ("required", None)


def next_step(store: Store, team: Team, caller: Caller) -> str:
    """The next step of a caller that ended a task: continue with another, or wait, which claims the next."""
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
    expects = expects_ends(store, team.name, caller.name)
    return steps.WAIT_TO_LEAD if expects else steps.after_all(found["stuck"])


def idle(store: Store, team: Team, name: str) -> list[Agent]:
    """The other members that were heard of and have no task."""
    busy = {task.owner for task in tasks.labelled(store, team.name, IN_PROGRESS)}
    found = (agent for agent, _ in store.scan(team.name, presence.AGENT, []))
    others = (agent for agent in found if agent.agent not in (name, *busy))
    return [agent for agent in others if presence.is_around(store, team, agent)]


def about(task: Task) -> str:
    """The key of the fact that the task is ready, until somebody claims it."""
    return f"{READY}{task.id}:{task.claim}"


def task_of(about: str) -> str:
    """The task that is told of under that word."""
    return about.removeprefix(READY).partition(":")[0]


def offer_left(store: Store, agent: Agent) -> float:
    """Seconds for which the task that the agent was told of is left to it; none if that time is to come yet."""
    left = _TO_TAKE_IT - seconds_since(agent.offered_at, store.now()) if agent.offered_at else 0.0
    return left if 0 < left <= _TO_TAKE_IT else 0.0


_BACK = 50
"""So many messages are looked at for what the owner asked and was not answered."""
_TITLE_IN_REMINDER = 60


class Held:
    """A task in progress of an agent: the word under which that is told, why the agent is to go on with it, how it is
    told, and the command that ends it.
    """

    def __init__(self, task: Task, row: Found, step: str) -> None:
        self.task = task
        self.about = f"{HELD}{task.id}:{task.claim}:{row['plan'] or ''}"
        plan = f", {row['planId']} is {row['plan']}" if row["planId"] else ""
        self.why = f"{task.id} is yours{plan}, and nothing blocks it"
        self.text = f"{self.why}: {task.title[:_TITLE_IN_REMINDER]} (all of it: teams show-task {task.id})"
        self.step = step


def held_task(store: Store, team: Team, name: str) -> Held | None:
    """The first task that the agent has, if it is for the agent to go on with it; None also while it waits for a plan
    to be decided, for a blocker, or for an answer to what it asked since it has the task, and while it is asked to end.
    """
    held = [task for task in tasks.labelled(store, team.name, IN_PROGRESS) if task.owner == name][:1]
    if not held:
        return None
    rows = rows_of(store, team, held, plans.all_of(store, team.name, []))
    step = steps.work({"myTasks": rows})
    if not step or steps.is_wait(step) or shutdowns.is_asked_to_end(store, team, name):
        return None
    if _has_open_question(store, team.name, name) or unanswered(store, team.name, name, held[0].claimed_at or ""):
        return None
    return Held(held[0], rows[0], step)


def _has_open_question(store: Store, team: str, name: str) -> bool:
    return any(asked.from_ == name and asked.open for asked in questions.all_of(store, team, []))


def unanswered(store: Store, team: str, name: str, since: str) -> Message | None:
    """The last that the agent asked since then, if that is newer than all that others wrote to it."""
    last = store.last(team, MESSAGE)
    asked: Message | None = None
    for message in store.read(team, MESSAGE, None, max(0, last - _BACK), []):
        if message.from_ == name:
            is_open = message.type == "plain" and not message.is_closed_by_reading and message.timestamp >= since
            asked = message if is_open and (message.ack_by or steps.asks(message.message)) else asked
        elif message.from_ != SYSTEM and name in (message.recipients or [message.to]):
            asked = None
    return asked


def tell_blocked(store: Store, team: str, name: str, only_with_task: bool = True) -> None:
    """Tell whose answer the agent waits for, in the middle of its task, that it can't go on; once for each message."""
    held = [task for task in tasks.labelled(store, team, IN_PROGRESS) if task.owner == name]
    if only_with_task and not held:
        return
    asked = unanswered(store, team, name, held[0].claimed_at or "" if held else "")
    if asked is None:
        return
    for to in asked.recipients or [asked.to]:
        body = f"{name} is BLOCKED waiting for your answer to {asked.id}"
        messages.notify(
            store, team, to, body, f"blocked-{asked.number}~{to}", by=name, about=asked.id, event="peer-blocked"
        )


def can_wait(found: list[Message], ends_expected: bool) -> bool:
    """Whether the messages say only what went well: that others completed tasks, or ended as they were asked to, where
    more of those are to come.
    """
    rest = [message for message in found if not _is_completion(message)]
    return not rest or (ends_expected and all(map(_is_end, rest)))


def expects_ends(store: Store, team_name: str, name: str) -> bool:
    """Whether members were asked by the agent to end whose answer is not there yet.

    The team is read behind the requests: of one that is answered by then it still owes the answer, or the answer was
    sent, and is in the mail that is read after this.
    """
    asked = [found for found, _ in store.scan(team_name, shutdowns.SHUTDOWN, []) if found.requested_by == name]
    team = teams.get(store, team_name)
    on_its_way = any(told.to == name and shutdowns.is_approval(told.about) for told in team.owed or ())
    return on_its_way or any(shutdowns.as_decided(found, team).status == "requested" for found in asked)


def _is_completion(message: Message) -> bool:
    """Whether all that the message says is that another completed a task."""
    return message.from_ == SYSTEM and message.type == "info" and (message.about or "").startswith("task-")


def _is_end(message: Message) -> bool:
    """Whether all that the message says is that a member ended as it was asked to."""
    return message.from_ == SYSTEM and shutdowns.is_approval(message.about)
