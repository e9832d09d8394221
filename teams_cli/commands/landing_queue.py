"""Landings in other commands: a completed task is queued to land, waits keep landings going, and answers show landings
in words.
"""

from __future__ import annotations

import time

from teams_cli import errors, extensions, text
from teams_cli.clock import clock_time
from teams_cli.commands.declaration import present
from teams_cli.commands.task_documents import line, to_document
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts
    from teams_cli.store.pace import Alarm

_EVERY = 30.0
"""Seconds between two starts of the process that merges branches and looks at pull requests."""


def landed_too(call: Call, task: Task, patience: float = 0) -> dict[str, Any]:
    """Return the task, which was just completed, as JSON.

    If completed tasks land by themselves, queue the task, wait a little for the outcome, and add the landing, as it is
    then, under `lands`. The wait takes up to two seconds; with *patience*, up to 30 seconds.
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
    """Record that the caller is about to complete the task. If the command is killed after that, the task lands all the
    same.

    The note is in the caller's record, and the caller's next claim queues the landing. If the human accepts the task,
    the note is in the record of the task's owner.
    """
    try:
        if lands_by_itself(call):
            task = tasks.get(call.store, call.team, task_id)
            if agent := _who_lands(call, task):
                presence.note_completing(call.store, call.team, agent, task.id)
    except errors.TeamsError:  # if the caller is refused, the change of the task says so
        return


def note_queued(call: Call, task: Task) -> None:
    """Remove the note that `note_completing` made about the task, if there is one. The task is queued to land, or does
    not have to land yet.
    """
    agent = _who_lands(call, task)
    if agent and presence.load(call.store, call.team, agent).completing == task.id:
        presence.note_completing(call.store, call.team, agent, None)


def _who_lands(call: Call, task: Task) -> str | None:
    """Return the member whose next claim queues the landing of the task if this command is killed, if any."""
    agent = task.owner if call.known_caller.is_human else call.agent
    return agent if agent and call.load_team().member(agent) else None


def land_interrupted(call: Call, task_id: str) -> None:
    """Queue the landing of a task that the caller completed. The command that completed it was killed before it could
    do so.
    """
    task = tasks.get(call.store, call.team, task_id)
    if task.status == "completed":
        call.say(f"{task_id} is queued to land now: the command that completed it was interrupted")
        landed_too(call, task)
    else:  # it was reopened, or its completion was never stored: nothing has to land
        note_queued(call, task)


def lands_by_itself(call: Call) -> bool:
    """Return whether completed tasks of the team are queued to land at once."""
    return settings.lands_by_itself(call.load_team()) and extensions.provided("land a completed task") is not None


def start(call: Call) -> bool:
    """If landings are open, start the process that merges branches (the lander), because it may have been killed.
    Return whether this was done.
    """
    from teams_cli.tasks import landings

    try:
        lander = extensions.provided("land the queue") if landings.open_ones(call.store, call.team) else None
        if lander:
            lander(call.store, call.team, call.environ)
    except errors.TeamsError:  # the next look tries again
        return False
    return lander is not None


def tending(call: Call) -> Callable[[Alarm], None]:
    """Return a function that waits call each time before they look for news. While landings are open, it starts the
    process that merges branches every 30 seconds, because the process may have been killed.
    """
    due = 0.0  # when the process is next started; 0 if no landing was open at the last look

    def tend(alarm: Alarm) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + _EVERY if start(call) else 0.0
        if due:
            alarm.ring_in(due - time.monotonic())

    return tend


def landed_line(task: dict[str, Any], more: str = "") -> list[Any]:
    """Return the line of a changed task, with the text *more* and the state of its landing. If the landing was
    rejected, lines about this follow.
    """
    landing = task.get("lands")
    if landing is None:
        return line(task, more)
    if landing["state"] == "landed":
        return line(task, f"{more}, landed on {landing['onto']} as {landing.get('merge', landing['head'])[:10]}")
    if landing["state"] in ("queued", "checking"):
        ahead = f" behind {landing['ahead']} more" if landing.get("ahead") else ""
        state = "being checked" if landing["state"] == "checking" else f"queued{ahead}"
        return line(task, f"{more}, not landed yet: {landing['id']} is {state}")
    return [*line(task, ", not landed"), *lines_of_landing(landing)]


def lines_of_landing(landing: dict[str, Any]) -> Parts:
    """Return lines about a landing: its state, the reason why it was rejected, and how to fix this."""
    head = f"{landing['id']}: {landing['state']}, {landing['task']} onto {landing['onto']}"
    if landing["state"] == "landed" and "merge" in landing:
        head += f" is {landing['merge'][:10]}"
    check = landing.get("checked") or {}
    return present(
        head,
        *_conflict(landing),
        f"check: {check['command']}: exit status {check['status']}" if check.get("status") else None,
        *(text.quoted(check["output"]) if check.get("status") else ()),
        *text.quoted(landing.get("reason")),
        f"pull request: {landing['url']}" if "url" in landing else None,
        f"to fix it: git merge {landing['onto']}, edit, commit" if landing["state"] == "red" else None,
    )


def _conflict(landing: dict[str, Any]) -> list[str]:
    if not landing.get("files"):
        return []
    from teams_cli.agents import regions  # slow to import, and few landings conflict
    from teams_cli.tasks import landings

    onto, against = landing["onto"], landing.get("against")
    cause = f" with {landings.whose(against)}, landed {clock_time(against['at'])}" if against else ""
    place_in = {place["file"]: place for place in landing.get("places") or ()}
    places = [regions.in_words(place_in[file]) if file in place_in else file for file in landing["files"]]
    step = f"to fix it: git merge {onto}, resolve, commit"
    return [f"conflict{cause} in:", *(f"  {place}" for place in places), step]
