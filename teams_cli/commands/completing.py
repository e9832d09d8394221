"""The landing of a task by the command that completes it."""

from __future__ import annotations

from contextlib import suppress

from teams_cli import errors, extensions
from teams_cli.commands.task_documents import to_document
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


def landed_too(call: Call, task: Task, patience: float = 0) -> dict[str, Any]:
    """Return the task that was just completed. If completed tasks land by themselves, queue it, and add the outcome
    under `lands`: that of the first two seconds, or with *patience* of up to 30.
    """

    def land() -> Any:
        if not lands_by_itself(call):
            return None
        return extensions.needed("land a completed task", "landing", "landing")(call, task, patience)

    outcome = call.try_to(land)
    call.try_to(lambda: note_queued(call, task))
    if not outcome:
        return to_document(call, task)
    current = call.try_to(lambda: tasks.get(call.store, call.team, task.id)) or task
    return {**to_document(call, current), "lands": outcome}


def note_completing(call: Call, task_id: str) -> None:
    """Note that the caller is about to complete the task, so that it lands even if the command is killed.

    The note stands in the record of the caller, whose next claim queues the landing. If the human accepts the task, it
    stands in the record of its owner.
    """
    with suppress(errors.TeamsError):  # if the caller is refused, the change of the task says so
        if lands_by_itself(call):
            task = tasks.get(call.store, call.team, task_id)
            if agent := _who_lands(call, task):
                presence.note_completing(call.store, call.team, agent, task.id)


def note_queued(call: Call, task: Task) -> None:
    """Note that the landing of the task is queued, if `note_completing` noted that it was about to be completed."""
    agent = _who_lands(call, task)
    if agent and presence.load(call.store, call.team, agent).completing == task.id:
        presence.note_completing(call.store, call.team, agent, None)


def _who_lands(call: Call, task: Task) -> str | None:
    """Return the member whose next claim queues the landing of the task if this command is killed; None if nobody's
    does.
    """
    agent = task.owner if call.known_caller.is_human else call.agent
    return agent if agent and call.load_team().member(agent) else None


def land_interrupted(call: Call, task_id: str) -> None:
    """Queue the landing of a task that the caller completed by a command that was killed before it did so."""
    task = tasks.get(call.store, call.team, task_id)
    if task.status == "completed":
        call.say(f"{task_id} is queued to land now: the command that completed it was interrupted")
        landed_too(call, task)
    else:
        note_queued(call, task)


def lands_by_itself(call: Call) -> bool:
    """Whether completed tasks of the team are queued to land at once."""
    return settings.lands_by_itself(call.load_team()) and extensions.provided("land a completed task") is not None
