"""Commands on tasks."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.commands.declaration import Command, argument, named, option, switch, table
from teams_cli.commands.task_documents import refuse_stopped, to_document, whole, with_blockers, with_lease, with_plan
from teams_cli.names import id_of
from teams_cli.tasks import checks, dependencies, leases, tasks
from teams_cli.tasks.tasks import PRIORITIES, STATUSES, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.records.types import Priority

_MANY = (
    '[{id: a, title: "TITLE", description: "TEXT", check: "COMMAND", planRequired: true}, '
    '{title: "TITLE", blockedBy: [a], for: NAME}]'
)
"""Tasks as a list of many has them."""
_GET = """List the tasks, by number, each with what blocks it.

A claim whose lease ran out is released first, and its leader told. A damaged task is named beside the others.
"""
_SHOW = """Show a task: its status, owner, blockers, result and what happened to it.

Raises:
    TaskNotFound: There is none of that id.
"""


def _create(
    call: Call,
    title: str | None,
    description: str | None,
    priority: Priority,
    blocked_by: list[str],
    require: list[str],
    touches: list[str],
    run: str | None,
    plan_required: bool,
    keep_for: str | None,
    from_: str | None,
    check: str | None,
    check_in: str | None,
    review_by: str | None,
) -> Any:
    if from_ is not None or title is None:
        beside = (title, description, *blocked_by, *require, *touches, run, keep_for, check, check_in, review_by)
        return _create_many(call, from_, any(beside) or plan_required or priority != PRIORITIES[1])
    from teams_cli import text

    draft = Task(
        team_name=call.team,
        title=title,
        description=description,
        priority=priority,
        created_at="",
        blocked_by=list(dict.fromkeys(id_of(word, "task") for word in blocked_by)),
        require=list(require),
        touches=text.file_patterns(touches) or None,
        run=run,
        plan_required=plan_required or None,
        check=check,
        **_where_checked(call, check, check_in),
        review_by=review_by,
    )
    return to_document(call, _created(call, draft, keep_for))


def _created(call: Call, draft: Task, keep_for: str | None) -> Task:
    """The task as it is created, for anybody or for whom it is kept."""
    if keep_for is None:
        return tasks.create(call.store, call.team, call.caller, draft)
    from teams_cli.tasks import creating

    refuse_stopped(call, keep_for)
    return creating.create_for(call.store, call.team, call.caller, draft, keep_for)


def _where_checked(call: Call, check: str | None, check_in: str | None) -> dict[str, Any]:
    """The fields of a task that say where its check is run."""
    check_from = checks.set_from(check, call.said_directory)
    return {"check_in": check_in and whole(call, check_in), "check_from": check_from}


def _create_many(call: Call, from_: str | None, says_more: bool) -> Any:
    if from_ is None:
        raise errors.WrongUsage(
            "say what is to be done", 'teams create-task "TITLE", or many: teams create-task --from FILE'
        )
    if says_more:
        raise errors.WrongUsage(
            "--from goes without a title and what else is said of one task", "The file says it of each."
        )
    created = named("commands.runners.tasks:created_from")(call, from_)
    call.try_to(call.say_what_follows)
    return [to_document(call, task) for task in created]


def _get(call: Call, status: str | None, owner: str | None, ready: bool, blocked: bool, limit: int | None) -> Any:
    if limit is not None and limit < 1:
        raise errors.WrongUsage(f"{limit} is not a valid limit", "Give a number from 1.")
    rows: list[dict[str, Any]] = []
    seen: dict[str, str] = {}  # most tasks wait for some before them
    status_of = dependencies.stored(call.store, call.team, seen)
    for document in _of_interest(call, seen, status, owner, ready or blocked):
        row = dependencies.with_open(document, status_of)
        waits = row["blocked"]
        if (ready and waits) or (blocked and not waits):
            continue
        rows.append(row)
        if len(rows) == limit:
            break
    return rows


def _of_interest(
    call: Call, seen: dict[str, str], status: str | None, owner: str | None, pending: bool
) -> Iterator[dict[str, Any]]:
    """The tasks of that status and owner as JSON, as they are once claims that are over are released. The status of
    each that was looked at is noted as *seen*.
    """
    team = call.load_team()
    for document in tasks.documents(call.store, call.team, call.problems):
        if document["status"] == "in_progress":
            document = with_lease(call, leases.current(call.store, team, Task.from_json(document)).to_document())
        now = seen[document["id"]] = document["status"]
        fits = now == (status or now) and (not owner or document.get("owner") == owner)
        if fits and (not pending or now == "pending"):
            yield document


def _show(call: Call, task: str, short: bool) -> Any:
    team = call.load_team()
    found = leases.current(call.store, team, tasks.get(call.store, team.name, task))
    document = with_plan(call, found, with_blockers(call, to_document(call, found)))
    if short:
        call.words = "tasks:standing"
        return {key: value for key, value in document.items() if key not in _LONG}
    if call.caller:
        from teams_cli.tasks import editing

        call.try_to(lambda: editing.note_shown(call.store, call.team, found, call.agent, call.once_told))
    return document


_LONG = frozenset({"description", "prompt", "run", "notes"})


_ID = argument("ID", "The task: 7, #7 or task-7.", name="task")

COMMANDS = table(
    "Tasks",
    Command(
        "create-task",
        _create,
        argument("TITLE", "What to do.", name="title", text=True, required=False),
        option("--description", "All that its owner has to know.", metavar="TEXT", text=True),
        option("--priority", "high, normal or low.", choices=PRIORITIES, default="normal"),
        option("--blocked-by", "A task to complete first.", metavar="ID", many=True),
        option("--require", "A skill its owner must have.", metavar="SKILL", many=True, seldom=True),
        option(
            "--touches", "What it changes: src/*.py, or src/x.py:Editor.edit.", metavar="GLOB", many=True, seldom=True
        ),
        option(
            "--run",
            "What does it, without a model.",
            metavar="COMMAND",
            text=True,
            seldom=True,
        ),
        switch("--plan-required", "Completing it takes an approved plan.", seldom=True),
        option("--for", "Keep it for this member.", metavar="AGENT", name="keep_for"),
        option(
            "--from",
            f"Many at once: a file, `-`, or YAML: {_MANY}",
            metavar="FILE",
            name="from_",
            text=True,
            at_shell=True,
        ),
        option(
            "--check",
            "Completing it takes that this passes.",
            metavar="COMMAND",
            text=True,
            seldom=True,
        ),
        option("--check-in", "Where that is run, without a worktree.", metavar="DIR", seldom=True),
        option("--review-by", "Who accepts it then: a role or a member.", metavar="WHO", seldom=True),
        doc=tasks.create,
        words="tasks:created",
        answers=Task,
        adding=True,
        daily=True,
        for_person=True,
        held="title description priority blocked_by require touches plan_required keep_for review_by",
        example='create-task "Write the parser" --blocked-by 3',
        want="add one (--blocked-by ID), or many (--from FILE)",
        also={
            "add-task new-task make-task task todo add new create subtask": "create-task TITLE",
        },
    ),
    Command(
        "get-tasks",
        _get,
        option("--status", "Only those of this status.", choices=STATUSES),
        option("--owner", "Only those of this member.", metavar="AGENT"),
        switch("--ready", "Only pending ones that wait for nothing."),
        switch("--blocked", "Only pending ones that wait for another.", seldom=True),
        option("--limit", "Show at most N.", type=int, metavar="N"),
        doc=_GET,
        reads=True,
        words="tasks:rows",
        answers=list[Task],
        gist=("id", "title", "status", "priority", "owner", "openBlockers"),
        daily=True,
        held="status owner ready blocked limit",
        example="get-tasks --ready",
        want="list them",
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
        switch("--short", "Only how it stands: status, owner, lease, blockers, result.", seldom=True),
        doc=_SHOW,
        reads=True,
        words="tasks:whole",
        answers=Task,
        daily=True,
        held="task short",
        example="show-task 7",
        want="one, with its result",
        also={
            "show view-task view describe describe-task details read-task task-info": "",
            "result get-result show-result task-status notes": "",
            "task/ID get/ID status/ID list/ID info/ID get-status/ID": "show-task ID",
        },
    ),
)
