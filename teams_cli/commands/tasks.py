"""Commands on tasks."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.commands.task_documents import refuse_stopped, to_document, with_blockers, with_lease, with_plan
from teams_cli.names import each_name, id_of
from teams_cli.tasks import checks, dependencies, leases, tasks
from teams_cli.tasks.tasks import PRIORITIES, STATUSES, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


_MANY = (
    '[{id: a, title: "TITLE", description: "TEXT", check: "COMMAND", planRequired: true}, '
    '{title: "TITLE", blockedBy: [a], for: NAME}]'
)
_GET = """List the tasks, by number, with their blockers.

Expired claims are released first, and the leader is notified. Damaged tasks are listed too.
"""
_SHOW = """Show a task: its status, owner, blockers, result and what happened to it.

Raises:
    TaskNotFound: There is no such task.
"""


def _create(
    call: Call,
    title: str | None,
    blocked_by: list[str],
    after: list[str],
    require: list[str],
    touches: list[str],
    agree_with: list[str],
    plan_required: bool,
    keep_for: str | None,
    from_: str | None,
    check: str | None,
    check_in: str | None,
    **fields: Any,
) -> Any:
    if from_ is not None or title is None:
        of_one = (title, blocked_by, after, require, touches, agree_with, plan_required, keep_for, check, check_in)
        is_one = any(of_one) or any(value and value != "normal" for value in fields.values())
        return _create_many(call, from_, is_one)
    from teams_cli import text

    draft = Task(
        team_name=call.team,
        title=title,
        created_at="",
        blocked_by=list(dict.fromkeys(id_of(word, "task") for word in blocked_by)),
        after=list(dict.fromkeys(id_of(word, "task") for word in after)) or None,
        require=list(require),
        touches=text.file_patterns(touches) or None,
        agree_with=[id_of(word, "task") for word in each_name(agree_with)] or None,
        plan_required=plan_required or None,
        check=check,
        check_in=check_in and os.path.abspath(os.path.join(call.directory, check_in)),
        check_from=checks.set_from(check, call.said_directory),
        **fields,
    )
    if keep_for is None:
        return to_document(call, tasks.create(call.store, call.team, call.caller, draft))
    from teams_cli.tasks import creating

    refuse_stopped(call, keep_for)
    return to_document(call, creating.create_for(call.store, call.team, call.caller, draft, keep_for))


def _create_many(call: Call, listed: str | None, is_one: bool) -> Any:
    """Create the tasks of a list: *listed* is its file, or its text."""
    if listed is None:
        raise errors.WrongUsage(
            "the title is missing", 'Write: teams create-task "TITLE", or for several: teams create-task --from FILE'
        )
    if is_one:
        raise errors.WrongUsage(
            "--from takes no title and no options of one task", "Write them in the file, for each task."
        )
    if not listed.strip():
        raise errors.WrongUsage(
            "the list of tasks is empty", "Name a file, or give the list on standard input: - {title: TITLE}"
        )
    from teams_cli.tasks import creating
    from teams_cli.workflows import files, roster

    is_text = "\n" in listed or listed.startswith(("[", "{", "- "))
    content = listed if is_text else files.content_of(os.path.join(call.directory, listed))
    planned = []
    for entry in roster.read_task_list(content, roster.ListedTask):
        draft = creating.of_template(call.team, entry, call.directory)
        if entry.keep_for:
            refuse_stopped(call, entry.keep_for)
        planned.append(creating.Planned(entry.id, draft, list(entry.blocked_by), entry.keep_for, list(entry.after)))
    created = creating.create_all(call.store, call.team, call.caller, planned)
    call.try_to(call.say_what_follows)
    return [to_document(call, task) for task in created]


def _get(call: Call, status: str | None, owner: str | None, ready: bool, blocked: bool, limit: int | None) -> Any:
    team = call.load_team()
    rows: list[dict[str, Any]] = []
    statuses: dict[str, str] = {}  # most tasks wait for some before them
    status_of = dependencies.stored(call.store, team.name, statuses)
    for document in tasks.documents(call.store, team.name, call.problems):
        if document["status"] == "in_progress":
            document = with_lease(call, leases.current(call.store, team, Task.from_json(document)).to_document())
        current = statuses[document["id"]] = document["status"]
        if (status and current != status) or (owner and document.get("owner") != owner):
            continue
        if (ready or blocked) and current != "pending":
            continue
        row = dependencies.with_open(document, status_of)
        if (ready and row["blocked"]) or (blocked and not row["blocked"]):
            continue
        rows.append(row)
        if len(rows) == limit:
            break
    return rows


_LONG = ("description", "prompt", "run", "notes")
"""The fields that the short form of a task leaves out."""


def _show(call: Call, task: str, short: bool) -> Any:
    team = call.load_team()
    current = leases.current(call.store, team, tasks.get(call.store, team.name, task))
    document = with_plan(call, current, with_blockers(call, to_document(call, current)))
    if short:
        call.words = "tasks:standing"
        return {key: value for key, value in document.items() if key not in _LONG}
    if call.caller:
        from teams_cli.tasks import editing

        call.try_to(lambda: editing.note_shown(call.store, call.team, current, call.agent, call.once_told))
    return document


_ID = argument("ID", "The task: 7, #7 or task-7.", name="task")
_GET_EVIDENCE = """List the files attached to a task, or show one of them as it was attached.

Its digest is checked first. A file that is not text is written with `--out`.

Raises:
    TaskNotFound: There is no such task.
    NotFound: The task has no such file.
    DamagedRecord: The copy differs from the attached file.
"""


def _get_evidence(call: Call, task: str, file: str | None, out: str | None) -> Any:
    from teams_cli.tasks import evidence

    owner = tasks.get(call.store, call.load_team().name, task)
    if file is None:
        if out is not None:
            raise errors.WrongUsage(
                "the name of the file is missing", f"Write: teams get-evidence {task} NAME --out FILE"
            )
        return [{**attached.to_json(), "task": owner.id} for attached in owner.evidence or ()]
    attached = evidence.find(owner, file)
    content = evidence.content(call.store, call.team, attached)
    document = {**attached.to_json(), "task": owner.id}
    if out is None:
        call.words = "tasks:attachment"
        try:
            return {**document, "text": content.decode()}
        except UnicodeDecodeError:
            from base64 import b64encode

            return {**document, "base64": b64encode(content).decode()}
    call.words = "tasks:attachment_written"
    path = os.path.join(call.directory, out)
    try:
        with open(path, "xb") as new:
            new.write(content)
    except OSError as error:
        raise errors.InvalidValue(
            f"{path} can't be written: {error.strerror}", "Give the name of a new file."
        ) from None
    return {**document, "path": path}


COMMANDS = table(
    "Tasks",
    Command(
        "create-task",
        _create,
        argument("TITLE", "What to do.", name="title", text=True, required=False),
        option("--description", "Everything that the owner needs to know.", metavar="TEXT", text=True),
        option("--priority", "high, normal or low.", choices=PRIORITIES, default="normal"),
        option("--blocked-by", "A task to complete first.", metavar="ID", many=True),
        option("--after", "Complete after this task; it may start at any time.", metavar="ID", many=True, seldom=True),
        option("--require", "A skill that its owner needs.", metavar="SKILL", many=True, seldom=True),
        option(
            "--touches",
            "What the task changes: src/*.py, or src/x.py:Editor.edit.",
            metavar="GLOB",
            many=True,
            seldom=True,
        ),
        option("--agree-with", "Agree with the owner of this task first.", metavar="ID", many=True, seldom=True),
        option(
            "--run",
            "A command that does the task, without a model.",
            metavar="COMMAND",
            text=True,
            seldom=True,
        ),
        switch("--plan-required", "The leader must approve a plan first.", seldom=True),
        option("--for", "Assign it to this member.", metavar="AGENT", name="keep_for"),
        option(
            "--from",
            f"Add many tasks: a file, `-`, or YAML: {_MANY}",
            metavar="FILE",
            name="from_",
            text=True,
            at_shell=True,
        ),
        option(
            "--check",
            "A command that must pass before the task is completed.",
            metavar="COMMAND",
            text=True,
            seldom=True,
        ),
        option(
            "--check-in", "The directory where the check runs if the owner has no worktree.", metavar="DIR", seldom=True
        ),
        option("--review-by", "The role or member that must accept the work.", metavar="WHO", seldom=True),
        doc=tasks.create,
        words="tasks:created",
        answers=Task,
        adding=True,
        daily=True,
        for_person=True,
        held="title description priority blocked_by after require touches agree_with plan_required keep_for review_by",
        example='create-task "Write the parser" --blocked-by 3',
        want="add a task (--blocked-by ID), or several (--from FILE)",
        also={
            "add-task new-task make-task task todo add new create subtask": "create-task TITLE",
        },
    ),
    Command(
        "get-tasks",
        _get,
        option("--status", "Only tasks of this status.", choices=STATUSES),
        option("--owner", "Only tasks of this member.", metavar="AGENT"),
        switch("--ready", "Only pending tasks without open blockers."),
        switch("--blocked", "Only pending tasks with open blockers.", seldom=True),
        option("--limit", "Show at most N.", type=int, least=1, metavar="N", seldom=True),
        doc=_GET,
        reads=True,
        words="tasks:rows",
        answers=list[Task],
        gist=("id", "title", "status", "priority", "owner", "openBlockers"),
        daily=True,
        held="status owner ready blocked limit",
        example="get-tasks --ready",
        want="list the tasks",
        also={
            "list tasks ls queue backlog progress all-tasks": "",
            "ready list-ready ready-tasks available available-tasks": "get-tasks --ready",
            "blocked list-blocked blocked-tasks": "get-tasks --blocked",
        },
    ),
    Command(
        "show-task",
        _show,
        _ID,
        switch("--short", "Only status, owner, lease, blockers and result.", seldom=True),
        doc=_SHOW,
        reads=True,
        words="tasks:whole",
        answers=Task,
        daily=True,
        held="task short",
        example="show-task 7",
        want="a task with its result",
        also={
            "show view-task view describe describe-task details read-task task-info": "",
            "result get-result show-result task-status notes owner": "",
            "task/ID get/ID status/ID list/ID info/ID get-status/ID": "show-task ID",
        },
    ),
    Command(
        "get-evidence",
        _get_evidence,
        argument("ID", "The task: 7, #7 or task-7.", name="task"),
        argument("NAME", "The file to show: its name, or evidence-3.", name="file", required=False),
        option("--out", "Write the file to this new path.", metavar="FILE", at_shell=True),
        doc=_GET_EVIDENCE,
        reads=True,
        words="tasks:attachments",
        gist=("id", "name", "size", "by"),
        held="task file out>",
        example="get-evidence 7 report.txt",
        also="evidence read-evidence attachment attachments",
    ),
)
