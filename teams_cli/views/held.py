"""Held tasks: an agent that waits is reminded of its own task that nothing blocks. It may have lost the answer to its
claim, or seen elsewhere that its plan is approved.
"""

from __future__ import annotations

from teams_cli.membership import shutdowns
from teams_cli.messages import messages
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import SYSTEM
from teams_cli.questions import questions
from teams_cli.store.contract import Store
from teams_cli.tasks import plans, tasks
from teams_cli.tasks.tasks import IN_PROGRESS, Task
from teams_cli.teams.teams import Team
from teams_cli.views import steps, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Found = dict[str, Any]

_BACK = 50
"""So many messages are looked at for what the owner asked and was not answered."""
_ASKING = ("plain", "broadcast")
"""The types of the messages that may ask for something: plans and questions say themselves whether they wait."""
_TITLE = 60


class Held:
    """A task in progress of an agent: the word under which that is told, why the agent is to go on with it, how it is
    told, and the command that ends it.
    """

    def __init__(self, task: Task, row: Found, step: str) -> None:
        self.task = task
        self.about = f"{work.HELD}{task.id}:{task.claim}:{row['plan'] or ''}"
        plan = f", {row['planId']} is {row['plan']}" if row["planId"] else ""
        self.why = f"{task.id} is yours{plan}, and nothing blocks it"
        self.text = f"{self.why}: {task.title[:_TITLE]} (all of it: teams show-task {task.id})"
        self.step = step


def of(store: Store, team: Team, name: str) -> Held | None:
    """The first task that the agent has, if it is for the agent to go on with it; None also while it waits for a plan
    to be decided, for a blocker, or for an answer to what it asked since it has the task, and while it is asked to end.
    """
    held = [task for task in tasks.labelled(store, team.name, IN_PROGRESS) if task.owner == name][:1]
    if not held:
        return None
    rows = work.rows(store, team, held, plans.all_of(store, team.name, []))
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
            may_ask = message.type in _ASKING and not message.is_closed_by_reading and message.timestamp >= since
            asked = message if may_ask else asked
        elif message.from_ != SYSTEM and name in (message.recipients or [message.to]):
            asked = None
    return asked


def tell_blocked(store: Store, team: str, name: str, only_with_task: bool = True) -> None:
    """Tell whose answer the agent waits for, in the middle of its task, that it can't go on; once for each message."""
    held = [task for task in tasks.labelled(store, team, IN_PROGRESS) if task.owner == name]
    if only_with_task and not held:
        return
    asked = unanswered(store, team, name, held[0].claimed_at or "" if held else "")
    if asked is None or asked.type == "broadcast":
        return
    for to in asked.recipients or [asked.to]:
        body = f"{name} is BLOCKED waiting for your answer to {asked.id}"
        messages.notify(store, team, to, body, f"blocked-{asked.number}~{to}", by=name, about=asked.id)
