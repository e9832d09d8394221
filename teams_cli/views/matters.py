"""The plan or the task that a message is about, as it is now, and closing messages whose matter is settled."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages.messages import Message
from teams_cli.names import HUMAN, is_id
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import FINISHED, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.teams.teams import Team


def matter_of(store: Store, team: str, about: str) -> dict[str, Any] | None:
    """The plan or the task of that id, a plan with whether its task waits to be claimed (`isToClaim`). None where it is
    another thing, or can't be read: the doctor tells of that, and the message is shown as it is.
    """
    kind = about.partition("-")[0]
    try:
        if kind == "plan":
            from teams_cli.tasks import plans

            plan = plans.get(store, team, about)
            is_pending = plan.task is not None and tasks.get(store, team, plan.task).status == "pending"
            return {**plan.to_document(), "isToClaim": is_pending}
        return tasks.get(store, team, about).to_document() if kind == "task" else None
    except errors.TeamsError:
        return None


def is_over(store: Store, team: str, message: Message) -> bool:
    """Whether the message is about tasks that are all over since: no answer to it is wanted any more."""
    named = _named(message)
    return bool(named) and all(_ended_at(store, team, key) >= message.timestamp for key in named)


def close_over(store: Store, team: str, agent: str) -> None:
    """Close what the agent has read about tasks that are over."""
    _close(store, team, agent, lambda message: is_over(store, team, message))


def close_carried_out(store: Store, team: Team, task: Task, agent: str) -> None:
    """Close what the agent, which has ended the task, was told while it had that: what is about the task, and what who
    leads said, unless it is about another.
    """
    leaders, since = (team.leader, HUMAN), task.claimed_at or ""

    def is_carried_out(message: Message) -> bool:
        named = _named(message)
        if named or message.ack_by or message.type not in ("plain", "broadcast"):
            return named == {task.id}
        return message.from_ in leaders and message.timestamp >= since

    _close(store, team.name, agent, is_carried_out)


def _close(store: Store, team: str, agent: str, is_done: Callable[[Message], bool]) -> None:
    """Close those of the messages that the agent has read."""
    from teams_cli.messages import inboxes, reading

    inbox = inboxes.load(store, team, agent)
    read = [entry.number for entry in inbox.open if entry.read_at]
    if not read:
        return
    found = inboxes.open_messages(store, team, inbox.having(open=[e for e in inbox.open if e.read_at]), [])
    done = {message.number for message in found if is_done(message)}
    if done:
        reading.settle(store, team, agent, done)


def _named(message: Message) -> set[str]:
    """The tasks that are named in what somebody wrote that asks for no acknowledgement."""
    if message.type not in ("plain", "broadcast") or message.ack_by:
        return set()
    words = (word.strip(".,:;()?!'\"`") for word in message.message.split())
    return {word for word in words if is_id(word, "task")}


def _ended_at(store: Store, team: str, key: str) -> str:
    """When the task ended; empty for one that has not, or can't be read."""
    try:
        task = tasks.get(store, team, key)
    except errors.TeamsError:
        return ""
    return (task.completed_at or "") if task.status in FINISHED else ""
