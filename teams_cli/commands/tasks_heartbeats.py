"""Commands of who keeps a task that it has, or gives it back."""

from __future__ import annotations

from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.commands.task_documents import to_document
from teams_cli.tasks import claims
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


def _release(call: Call, task: str, reason: str | None, force: bool) -> Any:
    released = claims.release(call.store, call.team, call.caller, task, reason, force)
    if claims.tells_why(released):
        call.words = "tasks:given_back"
    return to_document(call, released)


def _heartbeat(call: Call, task: str | None, note: str | None, silent_for: float | None) -> Any:
    renewed = claims.heartbeat(call.store, call.team, call.caller, task, note, silent_for)
    call.try_to(lambda: call.note_work(presence.load(call.store, call.team, call.agent)))
    return {
        "agent": call.agent,
        "lastSeen": teams.now(call.store),
        "tasks": [{"id": task.id, "claim": task.claim, "leaseExpiresAt": task.lease_expires_at} for task in renewed],
    }


_ID = argument("ID", "The task: 7, #7 or task-7.", name="task")


COMMANDS = table(
    "Tasks",
    Command(
        "release-task",
        _release,
        _ID,
        option("--reason", "Why, for the record.", text=True),
        switch("--force", "Even if its owner is at work.", seldom=True),
        doc=claims.release,
        words="tasks:released",
        answers=Task,
        held="task reason force",
        example='release-task 7 --reason "it needs a decision"',
        also="unclaim-task drop-task unassign-task release",
    ),
    Command(
        "heartbeat",
        _heartbeat,
        option("--task", "Only this task.", metavar="ID", seldom=True),
        option("--note", "What you are doing, in a line.", text=True, seldom=True),
        option("--for", "How long you will be silent.", type=float, metavar="SECONDS", name="silent_for"),
        doc=claims.heartbeat,
        changes=False,
        words="tasks:beat",
        repeatable=True,
        daily=True,
        held="task note silent_for",
        example="heartbeat --for 30m",
        also="ping alive lease expire renew renew-lease keepalive keep-alive",
    ),
)
