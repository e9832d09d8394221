"""Commands that change a task, or add to it."""

from __future__ import annotations

from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.commands.task_documents import refuse_stopped, to_document
from teams_cli.records.annotations import Any
from teams_cli.tasks import changes, editing
from teams_cli.tasks.tasks import PRIORITIES, STATUSES, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.call import Call


def _update(call: Call, task: str, **values: Any) -> Any:
    edit = changes.Edit(
        **{key: value for key, value in values.items() if key not in ("blocked_by", "unblock")},
        block=list(values["blocked_by"]),
        unblock=list(values["unblock"]),
    )
    if edit.owner:
        refuse_stopped(call, edit.owner)
    changed = changes.change_task(call.store, call.team, call.caller, task, edit)
    if edit.status in ("completed", "failed") and changed.owner == call.agent:
        from teams_cli.views import facts

        call.follows = facts.after_work(call.store, call.load_team(), call.known)
    return to_document(call, changed)


def _note(call: Call, task: str, text: str) -> Any:
    return to_document(call, editing.note(call.store, call.team, call.caller, task, text))


_ID = argument("ID", "The task: 7, #7 or task-7.", name="task")


COMMANDS = table(
    "Tasks",
    Command(
        "update-task",
        _update,
        _ID,
        option("--status", "completed, failed, pending (open again) or cancelled.", choices=STATUSES),
        option("--result", "What came out.", text=True),
        option("--title", "Another title.", text=True, seldom=True),
        option("--description", "Another description.", text=True, seldom=True),
        option("--append", "More of the description.", text=True, seldom=True),
        option("--priority", "high, normal or low.", choices=PRIORITIES, seldom=True),
        option("--blocked-by", "One more task that must be completed first.", metavar="ID", many=True, seldom=True),
        option("--unblock", "A task that need not be completed first after all.", metavar="ID", many=True, seldom=True),
        option("--owner", "Hand the task to this member; a pending one is kept for it.", metavar="AGENT"),
        switch("--unassign", "Keep it for nobody.", seldom=True),
        option("--claim", "Refuse if the claim is no longer this number.", type=int, metavar="N", seldom=True),
        option("--reason", "Why, for the record.", text=True),
        doc=changes.change_task,
        words="tasks:line",
        answers=Task,
        daily=True,
        example='update-task 7 --status completed --result "see src/parser.py"',
        want="end it (failed: say --reason)",
        also={
            "complete-task": "update-task ID --status completed --result TEXT",
            "finish-task": "update-task ID --status completed --result TEXT",
            "complete": "update-task ID --status completed --result TEXT",
            "done": "update-task ID --status completed --result TEXT",
            "fail-task": "update-task ID --status failed --reason TEXT",
            "cancel-task": "update-task ID --status cancelled",
            "reopen-task": "update-task ID --status pending --reason TEXT",
            "assign-task": "update-task ID --owner AGENT",
            "assign": "update-task ID --owner AGENT",
            "edit-task": "",
            "change-task": "",
            "modify-task": "",
        },
    ),
    Command(
        "note",
        _note,
        _ID,
        argument("TEXT", "What to add.", name="text", text=True),
        doc=editing.note,
        words="tasks:line",
        answers=Task,
        adding=True,
        example='note 7 "the parser moved to src/parse.py"',
        also="note-task comment comment-task add-note remark",
    ),
)
