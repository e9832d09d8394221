"""Tasks as they are answered with, and to whom none is given."""

from __future__ import annotations

import os

from teams_cli.errors import TeamsError, WrongState
from teams_cli.records.annotations import Any
from teams_cli.tasks import dependencies, tasks
from teams_cli.tasks.tasks import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.call import Call


def to_document(call: Call, task: Task) -> dict[str, Any]:
    """The task as JSON, with its open blockers."""
    return dependencies.to_document(task, dependencies.stored(call.store, call.team))


def with_blockers(call: Call, document: dict[str, Any]) -> dict[str, Any]:
    """The task with how it stands with what it waits for, and what came of that."""
    blockers = []
    for key in document["blockedBy"]:
        try:
            found = tasks.get(call.store, call.team, key)
        except TeamsError:
            blockers.append({"id": key, "status": "unreadable"})
            continue
        said = {"id": key, "title": found.title, "status": found.status, "owner": found.owner, "result": found.result}
        blockers.append({key: value for key, value in said.items() if value is not None})
    return {**document, "blockers": blockers} if blockers else document


def whole(call: Call, directory: str) -> str:
    """The whole path of a directory that the caller named."""
    return os.path.abspath(os.path.join(call.directory, directory))


def refuse_stopped(call: Call, owner: str) -> None:
    """Refuse to give a task to an agent that nothing resumes."""
    from teams_cli.agents import sessions

    if sessions.was_stopped(call.store, call.team, owner):
        raise WrongState(f"{owner} was stopped", "Choose another member, or start one: teams run-agent …")
