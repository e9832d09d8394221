"""Commands on tasks."""

from __future__ import annotations

from teams_cli.commands.declaration import Command, argument, named, option, switch, table
from teams_cli.errors import NothingReady, TeamsError, WaitRanOut, WrongState, WrongUsage
from teams_cli.names import id_of
from teams_cli.records.annotations import Any, Iterator, Priority
from teams_cli.tasks import changes as task_changes
from teams_cli.tasks import claims, creating, dependencies, editing, leases, tasks, touching
from teams_cli.tasks.tasks import PRIORITIES, STATUSES, Task
from teams_cli.teams import presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.call import Call

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
) -> Any:
    if from_ is not None:
        if title is not None:
            raise WrongUsage("--from goes without a title", "The file has those of its tasks.")
        return [to_document(call, task) for task in named("commands.runners.tasks:created_from")(call, from_)]
    if title is None:
        raise WrongUsage("say what is to be done", 'teams create-task "TITLE", or many: teams create-task --from FILE')
    draft = Task(
        team_name=call.team,
        title=title,
        description=description,
        priority=priority,
        created_at="",
        blocked_by=list(dict.fromkeys(id_of(word, "task") for word in blocked_by)),
        require=list(require),
        touches=touching.checked(touches) or None,
        run=run,
        plan_required=plan_required or None,
    )
    if keep_for is None:
        return to_document(call, tasks.create(call.store, call.team, call.caller, draft))
    _refuse_stopped(call, keep_for)
    return to_document(call, creating.create_for(call.store, call.team, call.caller, draft, keep_for))


def to_document(call: Call, task: Task) -> dict[str, Any]:
    """The task as JSON, with its open blockers."""
    return dependencies.to_document(task, dependencies.stored(call.store, call.team))


def _get(call: Call, status: str | None, owner: str | None, ready: bool, blocked: bool, limit: int | None) -> Any:
    if limit is not None and limit < 1:
        raise WrongUsage(f"{limit} is not a valid limit", "Give a number from 1.")
    rows: list[dict[str, Any]] = []
    for task in _of_interest(call, status, owner, ready or blocked):
        row = to_document(call, task)
        waits = row["blocked"]
        if (ready and waits) or (blocked and not waits):
            continue
        rows.append(row)
        if len(rows) == limit:
            break
    return rows


def _of_interest(call: Call, status: str | None, owner: str | None, pending: bool) -> Iterator[Task]:
    """The tasks of that status and owner, as they are once claims that are over are released."""
    team = call.load_team()
    for task in tasks.all_of(call.store, call.team, call.problems):
        task = leases.current(call.store, team, task)
        fits = task.status == (status or task.status) and task.owner == (owner or task.owner)
        if fits and (not pending or task.status == "pending"):
            yield task


def _show(call: Call, task: str, short: bool) -> Any:
    team = call.load_team()
    found = leases.current(call.store, team, tasks.get(call.store, team.name, task))
    document = _with_blockers(call, to_document(call, found))
    if short:
        call.words = "tasks:standing"
        return {key: value for key, value in document.items() if key not in _LONG}
    return document


_LONG = frozenset({"description", "prompt", "run", "notes"})


def _with_blockers(call: Call, document: dict[str, Any]) -> dict[str, Any]:
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


def _taken(call: Call, task: Task) -> dict[str, Any]:
    """The task as JSON for who has it now: with the results of what it waited for, and whose it was before."""
    document = _with_blockers(call, to_document(call, task))
    before = claims.before(task)
    if before is None:
        return document
    agent = presence.load(call.store, call.team, before.owner or "")
    told = {"from": before.owner, "how": before.what, "at": before.at, "reason": before.reason}
    given = before.at if before.what == "released" and before.by == before.owner else ""
    told |= {"lastHeard": max(agent.last_seen or "", given) or None, "status": agent.status}
    return {**document, "takenOver": {key: value for key, value in told.items() if value is not None}}


def _claim(call: Call, task: str | None, next: bool, wait: float | None) -> Any:
    if (task is None) != next:
        raise WrongUsage("say which task", "Give an id, or --next for the best one that is ready.")
    if wait is not None and not next:
        raise WrongUsage("--wait goes with --next", "Wait for one task: teams wait --task ID")
    if wait is not None:
        return _taken(call, _claimed_in_time(call, wait))
    if task is None:
        return _taken(call, claims.claim_next(call.store, call.team, call.caller))
    call.words = "tasks:claimed_knowing"
    return _taken(call, claims.claim(call.store, call.team, call.caller, task))


def _claimed_in_time(call: Call, wait: float) -> Task:
    """The best task that is ready for the caller, once there is one, unless it has mail to read before."""
    from teams_cli.messages import inboxes
    from teams_cli.store import pace

    found: list[Task] = []
    unread: list[int] = []
    alarm = pace.Alarm()

    def ready() -> bool:
        try:
            found[:] = [claims.claim_next(call.store, call.team, call.caller)]
        except NothingReady:
            unread[:] = inboxes.unread(call.store, call.team, call.agent)
            leases.release_and_set_alarm(call.store, call.load_team(), alarm)
        return bool(found or unread)

    topics = {"team", f"message/{call.agent}", *tasks.FREED}
    came = pace.sleep_until(call.store, call.team, ready, wait, topics, alarm, call.say)
    if found:
        return found[0]
    if came:
        named = ", ".join(f"msg-{number}" for number in unread)
        raise WaitRanOut(f"no task is ready yet, but there is mail: {named}", "Read it first: teams read-messages")
    raise WaitRanOut(f"no task became ready within {wait:g} seconds", "Wait for anything that concerns you: teams wait")


def _update(call: Call, task: str, **values: Any) -> Any:
    changes = task_changes.Edit(
        **{key: value for key, value in values.items() if key not in ("blocked_by", "unblock")},
        block=list(values["blocked_by"]),
        unblock=list(values["unblock"]),
    )
    if changes.owner:
        _refuse_stopped(call, changes.owner)
    changed = task_changes.change_task(call.store, call.team, call.caller, task, changes)
    return to_document(call, changed)


def _note(call: Call, task: str, text: str) -> Any:
    return to_document(call, editing.note(call.store, call.team, call.caller, task, text))


def _refuse_stopped(call: Call, owner: str) -> None:
    """Refuse to give a task to an agent that nothing resumes."""
    from teams_cli.agents import sessions

    if sessions.was_stopped(call.store, call.team, owner):
        raise WrongState(f"{owner} was stopped", "Choose another member, or start one: teams run-agent …")


def _release(call: Call, task: str, reason: str | None) -> Any:
    return to_document(call, claims.release(call.store, call.team, call.caller, task, reason))


def _heartbeat(call: Call, task: str | None, note: str | None) -> Any:
    renewed = claims.heartbeat(call.store, call.team, call.caller, task, note)
    return {
        "agent": call.agent,
        "lastSeen": teams.now(call.store),
        "tasks": [{"id": task.id, "claim": task.claim, "leaseExpiresAt": task.lease_expires_at} for task in renewed],
    }


_ID = argument("ID", "The task: 7, #7 or task-7.", name="task")

COMMANDS = table(
    "Tasks",
    Command(
        "create-task",
        _create,
        argument("TITLE", "What is to be done, in a line.", name="title", text=True, required=False),
        option("--description", "All that its owner has to know.", text=True),
        option("--priority", "high, normal or low.", choices=PRIORITIES, default="normal"),
        option("--blocked-by", "A task that must be completed first.", metavar="ID", many=True),
        option("--require", "A skill that its owner must have.", metavar="SKILL", many=True, seldom=True),
        option("--touches", "Files that it will change, src/*.py say.", metavar="GLOB", many=True, seldom=True),
        option(
            "--run",
            "The shell command that does it, for workers without a model.",
            metavar="COMMAND",
            text=True,
            seldom=True,
        ),
        switch("--plan-required", "Complete it only after its plan was approved.", seldom=True),
        option("--for", "Keep it for this member.", metavar="AGENT", name="keep_for"),
        option(
            "--from",
            "A file with many: `tasks` as of a workflow; `-` reads it from standard input.",
            metavar="FILE",
            name="from_",
            text=True,
            at_shell=True,
        ),
        doc=tasks.create,
        words="tasks:created",
        answers=Task,
        adding=True,
        daily=True,
        for_person=True,
        example='create-task "Write the parser" --blocked-by 3',
        want="add a task",
        also="add-task new-task make-task task todo add",
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
        example="get-tasks --ready",
        want="see the tasks",
        also="list tasks list-tasks show-tasks ls queue",
    ),
    Command(
        "show-task",
        _show,
        _ID,
        switch("--short", "Only how it stands: status, owner, lease, blockers, result."),
        doc=_SHOW,
        reads=True,
        words="tasks:whole",
        answers=Task,
        daily=True,
        example="show-task 7",
        want="see one, with its result",
        also="get-task view-task",
    ),
    Command(
        "claim-task",
        _claim,
        argument("ID", "The task: 7, #7 or task-7.", name="task", required=False),
        switch("--next", "The best task that is ready for you."),
        option(
            "--wait",
            "With --next: wait for one so long, or until mail comes.",
            type=float,
            metavar="SECONDS",
        ),
        doc=claims.claim,
        words="tasks:claimed",
        answers=Task,
        long=True,
        repeatable=True,
        daily=True,
        example="claim-task --next",
        want="take the best task that is ready",
        also="claim take-task next-task start-task pick-task get-next-task",
    ),
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
        doc=task_changes.change_task,
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
        "release-task",
        _release,
        _ID,
        option("--reason", "Why, for the record.", text=True),
        doc=claims.release,
        words="tasks:line",
        answers=Task,
        example='release-task 7 --reason "it needs a decision"',
        also="unclaim-task drop-task unassign-task release",
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
    Command(
        "heartbeat",
        _heartbeat,
        option("--task", "Only this one.", metavar="ID", seldom=True),
        option("--note", "What you are doing, in a line.", text=True, seldom=True),
        doc=claims.heartbeat,
        changes=False,
        words="tasks:beat",
        repeatable=True,
        daily=True,
        example='heartbeat --note "the tests run"',
        also="ping alive renew renew-lease",
    ),
)
