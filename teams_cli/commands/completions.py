"""Completing tasks in commands: the check runs, the work lands, and messages about the task are closed.

A task is completed by the command of its owner, or later: if tasks had to be completed before it, it is completed when
the owner waits for work, or ends another task with `--next`. Waits keep landings going, and answers show landings in
words.
"""

from __future__ import annotations

import os
import time

from teams_cli import environment, errors, extensions, text
from teams_cli.clock import clock_time
from teams_cli.commands.declaration import present
from teams_cli.commands.task_documents import line, to_document
from teams_cli.store.contract import update
from teams_cli.tasks import checks, dependencies, tasks
from teams_cli.tasks.tasks import COMPLETION_REFUSED, IN_PROGRESS, IN_REVIEW, TASK, Task
from teams_cli.teams import presence, settings, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts
    from teams_cli.store.pace import Alarm
    from teams_cli.tasks import changes

_REASON = 500
"""How many characters of a refusal the notes of the task keep."""
_EVERY = 30.0
"""Seconds between two starts of the process that merges branches and looks at pull requests."""


def complete(call: Call, task: str, edit: changes.Edit, file_names: Sequence[str] = ()) -> tuple[Task, changes.Remarks]:
    """Apply the *edit* to one task, and attach the files as evidence. If the edit completes the task, its check runs
    first.
    """
    from teams_cli.agents import completing

    if edit.status == "completed":
        note_completing(call, task)
    try:
        if not _lands_by_itself(call):  # a task that lands has its conflicts in the answer
            call.signs.notify_of_conflicts()
    except errors.TeamsError:  # if the caller is refused, the change of the task says so
        pass
    attached = []
    if file_names:
        from teams_cli.tasks import evidence

        attached = [evidence.read(os.path.join(call.directory, name)) for name in file_names]
    workplace = checks.Workplace(_directory_of_work(call), call.environ)
    return completing.change_task(call.store, call.team, call.caller, task, edit, workplace, attached)


def _directory_of_work(call: Call) -> str:
    """Return the directory in which the check runs: the current directory if it is in a checkout, or else the worktree
    in which the caller was last seen, if there is one.
    """
    if environment.checkout_around(call.workplace):
        return call.workplace
    if presence.load(call.store, call.team, call.agent).worktree:
        from teams_cli.agents import checkouts

        return checkouts.seen_in(call.store, call.team, call.agent) or call.current_directory
    return call.current_directory


def follow_up(call: Call, changed: Task, edit: changes.Edit, patience: float = 0) -> dict[str, Any]:
    """Do what follows a stored *edit*, and return the task as JSON. If the task is completed, land it, and wait up to
    *patience* seconds for the outcome. If the task was the caller's, close the messages that asked for it.
    """
    document = landed_too(call, changed, patience)
    if has_ended_own(call, changed, edit) and not was_sent_back(document):
        from teams_cli.views import mail

        # The task is changed already, so a failure here is only reported.
        call.try_to(lambda: mail.close_carried_out(call.store, call.load_team(), changed, call.agent))
    return document


def has_ended_own(call: Call, changed: Task, edit: changes.Edit) -> bool:
    """Return whether the *edit* completed, handed in or failed a task of the caller."""
    return changed.owner == call.agent and edit.status in ("completed", "failed")


def was_sent_back(document: dict[str, Any]) -> bool:
    """Return whether the task did not land, and was therefore returned to its owner."""
    return document.get("lands", {}).get("state") in ("red", "conflict")


def complete_asked(call: Call, besides: str = "") -> list[dict[str, Any]]:
    """Complete the tasks that the caller asked to complete too early, and that need not wait any longer, and return
    them as JSON. If one is refused, for example because a task before it failed, the caller is shown why and what to
    do, and must complete the task itself. The task *besides* is left alone.
    """
    from teams_cli.tasks import changes  # long, and not needed by waits that only keep landings going

    documents = []
    own_tasks = [task for task in tasks.held_by(call.store, call.team, call.agent) if task.id != besides]
    for task in dependencies.asked_and_free(call.store, call.team, own_tasks):
        edit = changes.Edit(status="completed", claim=task.claim)
        try:
            changed, remarks = complete(call, task.id, edit)
        except errors.TeamsError as refusal:
            call.problems.append(errors.Conflict(f"{refusal.message}\n{refusal.hint}".rstrip()))
            _note_refusal(call, task, refusal.message)
        else:
            documents.append(follow_up(call, changed, edit) | remarks)
    return documents


def _note_refusal(call: Call, task: Task, reason: str) -> None:
    """Note in the task that it could not be completed, so that nobody but the owner tries again."""

    def with_refusal(current: Task) -> Task:
        if current.status != IN_PROGRESS or current.claim != task.claim:
            return current
        clipped = text.clipped_line(reason, _REASON)
        return current.noted(teams.now(call.store), call.agent, COMPLETION_REFUSED, clipped)

    call.try_to(lambda: update(call.store, call.team, TASK, task.id, with_refusal))


def landed_too(call: Call, task: Task, patience: float = 0) -> dict[str, Any]:
    """Return the task, which was just changed, as JSON.

    If it was completed and completed tasks land by themselves, queue the task, wait a little for the outcome, and add
    the landing, as it is then, under `lands`. The wait takes up to two seconds; with *patience*, up to 30 seconds.
    """
    if task.status != "completed":
        if task.status == IN_REVIEW:  # it lands when it is accepted
            call.try_to(lambda: _note_queued(call, task))
        return to_document(call, task)

    def land() -> Any:
        if not _lands_by_itself(call):
            return None
        return extensions.needed("land a completed task", "landing", "landing")(call, task, patience)

    outcome = call.try_to(land)
    call.try_to(lambda: _note_queued(call, task))
    if not outcome:
        return to_document(call, task)
    current = call.try_to(lambda: tasks.get(call.store, call.team, task.id)) or task
    return {**to_document(call, current), "lands": outcome}


def note_completing(call: Call, task_id: str) -> None:
    """Record that the caller is about to complete the task. If the command is killed after that, the task lands anyway.

    The note is in the caller's record, and the caller's next claim queues the landing. If the human accepts the task,
    the note is in the record of the task's owner.
    """
    try:
        if _lands_by_itself(call):
            task = tasks.get(call.store, call.team, task_id)
            if agent := _who_lands(call, task):
                presence.note_completing(call.store, call.team, agent, task.id)
    except errors.TeamsError:  # if the caller is refused, the change of the task says so
        return


def _note_queued(call: Call, task: Task) -> None:
    """Remove the note that `note_completing` made about the task, if there is one. The task is queued to land, or does
    not have to land yet.
    """
    agent = _who_lands(call, task)
    if agent and presence.load(call.store, call.team, agent).completing == task.id:
        presence.note_completing(call.store, call.team, agent, None)


def _who_lands(call: Call, task: Task) -> str | None:
    """Return the member, if any, whose next claim queues the landing of the task if this command is killed."""
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
        _note_queued(call, task)


def _lands_by_itself(call: Call) -> bool:
    """Return whether the team's completed tasks are queued for landing as soon as they are completed."""
    return settings.lands_by_itself(call.load_team()) and extensions.provided("land a completed task") is not None


def start_lander(call: Call) -> bool:
    """If landings are open, start the process that merges branches (the lander), because it may have been killed.
    Return whether the process should be started again later: if landings are open, or if starting it failed.
    """
    from teams_cli.tasks import landings

    try:
        lander = extensions.provided("land the queue") if landings.open_ones(call.store, call.team) else None
        if lander:
            lander(call.store, call.team, call.environ)
    except errors.TeamsError:  # a later look tries again
        return True
    return lander is not None


def tending(call: Call) -> Callable[[Alarm], None]:
    """Return a function that waits call each time before they look for news. While landings are open, it starts the
    process that merges branches every 30 seconds, because the process may have been killed.
    """
    next_start = 0.0  # 0 if no landing was open at the last look: the next look sees whether one is open now

    def tend(alarm: Alarm) -> None:
        nonlocal next_start
        if time.monotonic() >= next_start:
            should_start_again = start_lander(call)
            next_start = time.monotonic() + _EVERY if should_start_again else 0.0
        if next_start:
            alarm.ring_in(next_start - time.monotonic())

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


def words_of_completed_too(document: dict[str, Any]) -> list[Any]:
    """Return lines about the tasks that were completed now because their owner had asked for it before, with their
    landings.
    """
    lines: list[Any] = []
    for task in document.get("completedToo", ()):
        check = "; its check passed" if "check" in task else ""
        lines += landed_line(task, f", as you asked{check}")
    return lines


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
