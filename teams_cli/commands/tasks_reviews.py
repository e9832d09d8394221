"""The command that ends the review of a task."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.commands.task_documents import to_document
from teams_cli.commands.tasks_updates import landed_too
from teams_cli.tasks import reviews
from teams_cli.tasks.tasks import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


def _review(call: Call, task: str, accept: bool, reject: str | None) -> Any:
    if accept == (reject is not None):
        raise errors.WrongUsage(
            "give either --accept or --reject",
            "Write: teams review-task ID --accept, or with --reject WHY",
        )
    reviewed = reviews.review(call.store, call.team, call.caller, task, accept, reject)
    return landed_too(call, reviewed) if reviewed.status == "completed" else to_document(call, reviewed)


COMMANDS = table(
    "Tasks",
    Command(
        "review-task",
        _review,
        argument("ID", "The task: 7, #7 or task-7.", name="task"),
        switch("--accept", "It is done."),
        option("--reject", "It is not done: why.", metavar="WHY", text=True),
        doc=reviews.review,
        words="tasks:reviewed",
        answers=Task,
        held="task accept reject",
        example='review-task 7 --reject "the tests cover nothing"',
        also={
            "review": "",
            "accept-task approve-task accept/ID": "review-task ID --accept",
            "reject-task": "review-task ID --reject WHY",
        },
    ),
)
