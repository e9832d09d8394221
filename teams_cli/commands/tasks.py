"""Commands on tasks."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.clock import SystemClock, age, ago, short_length, time_left
from teams_cli.commands.call import Attempt
from teams_cli.commands.declaration import (
    AFTER,
    TASK,
    Command,
    Table,
    argument,
    in_group,
    option,
    present,
    row_limit,
    switch,
)
from teams_cli.commands.task_documents import (
    after_line,
    blocker_line,
    is_checked_on_commits,
    line,
    refuse_stopped,
    reviewer_in_words,
    text_lines,
    to_document,
    with_blocked,
    with_blockers,
    with_lease,
    with_plan,
)
from teams_cli.names import each_name, id_of
from teams_cli.tasks import checks, dependencies, leases, tasks
from teams_cli.tasks.tasks import IN_REVIEW, PRIORITIES, STATUSES, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts


_LONG_FIELDS = ("description", "prompt", "run", "notes")
"""The fields that the short form of a task leaves out."""
_BLOCKERS_IN_ROW = 2
"""How many blockers a row names at most."""
_CHARACTERS_IN_LINE = 60
_BLOCKERS_IN_FULL = 100
_FEW_TO_START, _MANY_WAITING = 2, 4
"""The answer to a list of tasks warns if at most 2 of them can be started, while 4 or more wait for a single task. It
also warns if one of them waits for 4 or more.
"""
_MOST_IN_COMMAND = 20
"""How many blockers the command of such a warning names at most."""
_MANY = (
    '[{id: a, title: "TITLE", description: "TEXT", check: "COMMAND", planRequired: true, reviewBy: NAME}, '
    '{title: "TITLE", blockedBy: [a], for: MEMBER}]'
)
_GET = """List the tasks, by number, with their blockers.

Expired claims are released first, and the leader is notified. Damaged tasks are listed too.
"""
_SHOW = """Show a task: its status, owner, blockers, result and what happened to it.

Raises:
    TaskNotFound: There is no such task.
"""


def _create(call: Call, title: str | None, keep_for: str | None, from_: str | None, **fields: Any) -> Any:
    """Create one task. With `--from`, create all tasks of a list."""
    check, check_in = fields["check"], fields["check_in"]
    if from_ is not None or title is None:
        default_priority = ("priority", "normal")
        describes_one = any(value for option, value in fields.items() if (option, value) != default_priority)
        return _create_many(call, from_, bool(title or keep_for or describes_one))
    fields |= {
        "team_name": call.team,
        "blocked_by": list(dict.fromkeys(id_of(ref, "task") for ref in fields["blocked_by"])),
        "after": list(dict.fromkeys(id_of(ref, "task") for ref in fields["after"])) or None,
        "require": list(fields["require"]),
        "touches": text.file_patterns(fields["touches"]) or None,
        "agree_with": [id_of(ref, "task") for ref in each_name(fields["agree_with"])] or None,
        "plan_required": fields["plan_required"] or None,
        "check_in": check_in and os.path.abspath(os.path.join(call.directory, check_in)),
        "check_from": checks.set_from(check, call.current_directory),
    }
    blocked = [id_of(ref, "task") for ref in fields.pop("blocks")]
    draft = Task(title=title, created_at="", **fields)
    words = [title, draft.description or "", *draft.waits_for, *blocked, keep_for or ""]
    if not (keep_for or blocked):
        return _once(call, words, lambda after: [tasks.create(call.store, call.team, call.caller, draft, after)])[0]
    from teams_cli.tasks import creating

    if keep_for:
        refuse_stopped(call, keep_for)
    planned = creating.Planned("", draft, draft.blocked_by, keep_for, draft.after or (), blocked)
    return _once(
        call, words, lambda after: creating.create_all(call.store, call.team, call.caller, [planned], tried_after=after)
    )[0]


def _once(call: Call, words: list[str], create: Callable[[int | None], list[Task]]) -> list[dict[str, Any]]:
    """Create tasks, and return them as JSON. *words* are the arguments of the command. *create* takes the number of the
    last task before an earlier attempt whose answer was lost; None if this is the first attempt.
    """
    if call.caller is None:  # it is refused, with how to give a name
        return _documents(call, create(None))
    attempt = Attempt(call, "create-task", *words, ending=f"-{call.store.last(call.team, tasks.TASK)}")
    with attempt as uid:
        created = create(int(uid.rpartition("-")[2]) if attempt.is_repeat else None)
    return _documents(call, created)


def _documents(call: Call, created: list[Task]) -> list[dict[str, Any]]:
    """Return the new tasks as JSON. If it is possible that nobody notices a task, its document has `mayNotWork`: the
    names of the members that should notice it, but were notified that all work is done and do not wait for more. These
    are the assignee, or all other members if only the new tasks are open.
    """
    documents = [to_document(call, task) for task in created]

    def add_warnings() -> None:
        by_status = call.store.by_label(call.team, tasks.TASK)
        open_ids = {task_id for status, ids in by_status.items() if status not in tasks.FINISHED for task_id in ids}
        has_others = bool(open_ids.difference(task.id for task in created))
        if has_others and not any(task.assignee for task in created):
            return
        from teams_cli.agents import sessions  # late, because mostly the function has returned before

        team = call.load_team()
        other_members = [name for name in team.active_names() if name not in (team.leader, call.agent)]
        ended = sessions.that_may_have_ended(call.store, team, other_members)
        have_all_ended = ended == other_members
        for task, document in zip(created, documents, strict=True):
            unaware: list[str] = []
            if task.assignee:
                unaware = [name for name in ended if name == task.assignee]
            elif have_all_ended and not has_others:
                unaware = ended
            if unaware:
                document["mayNotWork"] = unaware
                if team.leader != call.agent and not call.known_caller.is_human:
                    call.words = lambda created: words_of_created(created, leads=False)

    call.try_to(add_warnings)  # the tasks are created, whatever comes of this
    return documents


def _create_many(call: Call, listed: str | None, describes_one: bool) -> Any:
    """Create the tasks of a list. *listed* is the name of a file with the list, or the list itself. *describes_one*
    says that options for a single task were given as well.
    """
    if listed is None:
        raise errors.WrongUsage(
            "the title is missing", 'Write: teams create-task "TITLE", or for several: teams create-task --from FILE'
        )
    if describes_one:
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
        planned.append(creating.Planned(entry.id, draft, entry.blocked_by, entry.keep_for, entry.after, entry.blocks))
    created = _once(
        call,
        [content],
        lambda after: creating.create_all(call.store, call.team, call.caller, planned, tried_after=after),
    )
    call.try_to(call.set_next_step)  # the tasks are created already
    return created


def _get(call: Call, status: str | None, owner: str | None, ready: bool, blocked: bool, limit: int | None) -> Any:
    """Return the tasks with this *status* and *owner* as JSON, with their open blockers, at most *limit*. With *ready*,
    return only pending tasks without open blockers, and with *blocked* only those with open blockers.
    """
    team = call.load_team()
    rows: list[dict[str, Any]] = []
    # The statuses of the tasks so far. `status_of` need not read them again, and most blockers are earlier tasks.
    statuses: dict[str, str] = {}
    status_of = dependencies.stored(call.store, team.name, statuses)
    for document in tasks.documents(call.store, team.name, call.problems):
        if document["status"] == "in_progress":
            task = leases.current(call.store, team, Task.from_json(document))  # pending if its claim has expired
            document = with_lease(call, task.to_document())
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


def _show(call: Call, task: str, short: bool) -> Any:
    """Return a task. Unless *short* is set, notices about its edits are marked as read once it is shown, and the next
    step of a reviewer is the review.
    """
    team = call.load_team()
    current = leases.current(call.store, team, tasks.get(call.store, team.name, task))
    document = with_plan(call, current, with_blocked(call, with_blockers(call, to_document(call, current))))
    if short:
        call.words = words_of_standing
        return {key: value for key, value in document.items() if key not in _LONG_FIELDS}
    if call.caller:
        from teams_cli.tasks import editing

        call.try_to(lambda: editing.note_shown(call.store, call.team, current, call.agent, call.once_shown))
        if current.status == IN_REVIEW and team.state != "closed":
            from teams_cli.tasks import claims, reviews
            from teams_cli.views import steps

            if call.agent in reviews.reviewers(team, current, call.known_caller.config):
                may_claim = claims.may_claim(team, call.known_caller)
                call.next_step = steps.review(current.id, may_claim, call.agent == team.leader)
    return document


_GET_EVIDENCE = """List the files attached to a task, or show one of them as it was attached.

The digest of a file is checked before the file is shown. A file that is not text can't be shown; write it to a path
with `--out`.

Raises:
    TaskNotFound: There is no such task.
    NotFound: The task has no such file.
    DamagedRecord: The stored copy differs from the file that was attached.
"""


def _get_evidence(call: Call, task: str, file: str | None, out: str | None) -> Any:
    """Return the list of attached files, or the content of the *file*; if *out* is given, write it to this new file."""
    from teams_cli.store.files import disk
    from teams_cli.tasks import evidence

    holder = tasks.get(call.store, call.load_team().name, task)
    if file is None:
        if out is not None:
            raise errors.WrongUsage(
                "the name of the file is missing", f"Write: teams get-evidence {task} NAME --out FILE"
            )
        return [{**attached.to_json(), "task": holder.id} for attached in holder.evidence or ()]
    attached = evidence.find(holder, file)
    content = evidence.content(call.store, call.team, attached)
    document = {**attached.to_json(), "task": holder.id}
    if out is None:
        call.words = words_of_attachment
        try:
            return {**document, "text": content.decode()}
        except UnicodeDecodeError:
            from base64 import b64encode

            return {**document, "base64": b64encode(content).decode()}
    call.words = lambda file: [f"{file['path']}: {file['size']} bytes, sha256 {file['sha256']}"]
    path = os.path.join(call.directory, out)
    disk.write_new(path, content)
    return {**document, "path": path}


def words_of_rows(tasks: list[dict[str, Any]]) -> Parts:
    """Show the tasks as a table. It has a column for checks and reviews if any task requires them."""
    columns = ["task", "status", "priority", "owner", "blocked by", "lease", "age", "title"]
    now = SystemClock().now()
    table_rows = []
    for task in tasks:
        lease = time_left(task["leaseExpiresAt"]) if "leaseExpiresAt" in task else "-"
        row = [
            task["id"],
            _status(task),
            task["priority"],
            _owner_or_assignee(task) or "-",
            text.listed(task["openBlockers"], _BLOCKERS_IN_ROW) or "-",
            lease,
            age(task["createdAt"], now),
            task["title"],
        ]
        table_rows.append(row)
    if any("check" in task or "reviewBy" in task for task in tasks):
        columns.insert(-1, "verified by")
        for row, task in zip(table_rows, tasks, strict=True):
            row.insert(-1, _proof_in_words(task))
    return [Table(columns, table_rows, "no tasks")]


def _proof_in_words(task: dict[str, Any]) -> str:
    """Describe in a few words the check, the review and the landing of the task."""
    check_outcome, review = task.get("checked"), task.get("reviewed")
    parts = []
    if check_outcome and check_outcome.get("stale"):
        parts.append("stale check")
    elif check_outcome:
        parts.append("check failed" if check_outcome["status"] else "checked")
    elif "check" in task:
        parts.append("check not run yet")
    if task["status"] == "in_review":
        parts.append(f"review by {task['reviewBy']}")
    elif review:
        parts.append(f"{review['verdict']} by {review['by']}")
    if "landing" in task:
        parts.append(task["landing"])
    if not parts:
        return "unverified" if task["status"] == "completed" else "-"
    return ", ".join(parts)


def _owner_or_assignee(task: dict[str, Any]) -> str | None:
    return f"for {task['assignee']}" if "assignee" in task else task.get("owner")


def _status(task: dict[str, Any]) -> str:
    return "blocked" if task["status"] == "pending" and task["blocked"] else str(task["status"])


def words_of_created(task: dict[str, Any] | list[dict[str, Any]], leads: bool = True) -> Parts:
    """Show a new task with its requirements, such as its check and reviewer, and the member that is notified of it. The
    requirements of several tasks are only named. A reader that *leads* may start agents and close the team.
    """
    created = task if isinstance(task, list) else [task]
    in_full = not isinstance(task, list)
    lines: Parts = [f"{part}{_requirements(each, in_full)}" for each in created for part in line(each)]
    members = list(dict.fromkeys(name for each in created for name in each.get("mayNotWork", ())))
    notified = [
        each["assignee"]
        for each in created
        if each.get("assignee") not in (None, each.get("createdBy"), *members) and not each.get("assigneeExpected")
    ]
    if notified:
        lines.append(f"notified: {text.listed(list(dict.fromkeys(notified)))}")
    if members:
        from teams_cli.views import steps

        remark = f"notified that all work is done, and may have ended: {text.listed(members)}"
        otherwise = steps.IF_NOBODY_IS_LEFT if leads else "teams send-message leader TEXT"
        lines.append(f"{remark}. To ask: teams send-message NAME TEXT; without an answer: {otherwise}")
    return [*lines, *_bottleneck_line(created), *_joining_line(created)]


def _joining_line(created: list[dict[str, Any]]) -> list[str]:
    """Return a line about the new task that waits for the most tasks, with the command that lets it start. Return no
    line if it waits for few, or for so many that the command would be very long.
    """
    task = max(created, key=lambda task: len(task["openBlockers"]))
    count = len(task["openBlockers"])
    if not _MANY_WAITING <= count <= _MOST_IN_COMMAND:
        return []
    from teams_cli.views import steps

    step = steps.start_now([task["id"]], task["openBlockers"])
    return [
        f"{task['id']} waits for the last of {count} tasks. If it can start now, and be completed after them: {step}"
    ]


def _bottleneck_line(created: list[dict[str, Any]]) -> list[str]:
    """Return a line that says how many of the new tasks wait for a single one, with the command that lets them start.
    Return no line if few tasks wait for it, or if others can be started.
    """
    if sum(not task["openBlockers"] for task in created) > _FEW_TO_START:
        return []
    ids_by_blocker: dict[str, list[str]] = {}
    for task in created:
        if len(task["openBlockers"]) == 1:
            ids_by_blocker.setdefault(task["openBlockers"][0], []).append(task["id"])
    blocker, ids = max(ids_by_blocker.items(), key=lambda item: len(item[1]), default=("", []))
    if len(ids) < _MANY_WAITING:
        return []
    from teams_cli.views import steps

    step = steps.start_now(ids, [blocker])
    return [f"{len(ids)} tasks wait for {blocker} alone. If they can start now, and be completed after it: {step}"]


def _requirements(task: dict[str, Any], in_full: bool) -> str:
    """Return, in brackets, the check, files, reviewer and plan that the task needs. Unless *in_full* is set, return
    only which of these it needs, and the reviewer's name.
    """
    requirements = {
        "check on committed work:" if in_full and is_checked_on_commits(task) else "check": task.get("check"),
        "touches": " ".join(task.get("touches", ())),
        "review by": reviewer_in_words(task),
        "plan": "required" if task.get("planRequired") else None,
    }
    phrases = []
    for name, value in requirements.items():
        if not value:
            continue
        if in_full or name == "review by":  # the reviewer is always named
            phrases.append(f"{name} {text.clipped_line(value, _CHARACTERS_IN_LINE)}")
        else:
            phrases.append(name)
    return f" ({', '.join(phrases)})" if phrases else ""


def words_of_standing(task: dict[str, Any]) -> Parts:
    """Show the fields of a task that change over time: status, owner, lease, blockers, plan, proof and result."""
    lease = f", {time_left(task['leaseExpiresAt'])}" if "leaseExpiresAt" in task else ""
    if task.get("plan") == "required":  # an earlier plan may exist, but a new one is due
        plan_command = f" (teams propose-plan TEXT --task {task['id']})"
    elif "planId" in task:
        plan_command = f" (teams show-plan {task['planId']})"
    else:
        plan_command = ""
    blockers = [f"{blocker['id']} ({blocker['status']})" for blocker in task.get("blockers", ())]
    return [
        f"{task['id']}: {task['title']}",
        *present(
            f"status: {_status(task)}{lease}",
            f"owner: {_owner_or_assignee(task)}" if _owner_or_assignee(task) else None,
            f"blocked by: {text.listed(blockers, _BLOCKERS_IN_FULL)}" if blockers else None,
            f"blocks: {text.listed(task['blocks'], _BLOCKERS_IN_FULL)}" if task.get("blocks") else None,
            *after_line(task),
            f"plan: {task['plan']}{plan_command}" if "plan" in task else None,
        ),
        *_proof(task),
        *(["result:", *text.quoted(task["result"])] if task.get("result") else []),
    ]


def _proof(task: dict[str, Any]) -> Parts:
    """Return lines about the check, the review, the attachments and the landing of a task."""
    review_line = f"review by: {task.get('reviewBy')}"
    if "submitted" in task:
        review_line += f", commit {task['submitted'][:10]}"
    if review := task.get("reviewed"):
        review_line += f": {review['verdict']} by {review['by']}"
        if "reason" in review:
            review_line += f": {review['reason']}"
    attachment_lines = [
        f"attached: {file['name']}, {file['size']} bytes, {file['sha256'][:12]}: "
        f"teams get-evidence {task['id']} {file['id']}"
        for file in task.get("evidence", ())
    ]
    check_lines: list[str] = []  # with the output of a check that failed
    if outcome := task.get("checked"):
        result = "passed" if outcome["status"] == 0 else f"failed (exit status {outcome['status']})"
        duration = f" in {short_length(outcome['seconds'])}" if outcome.get("seconds") else ""
        commit = f" on {outcome['commit'][:10]}" if "commit" in outcome else ""
        stale = ", stale" if outcome.get("stale") else ""
        line = f"check: {outcome['command']}: {result}{duration}{commit} {ago(outcome['at'])}{stale}"
        check_lines = [line, *(text.quoted(outcome["output"]) if outcome["status"] else ())]
    elif "check" in task:
        directory = f" (in {task['checkIn']})" if "checkIn" in task else ""
        check_lines = [f"check: {task['check']}{directory}"]
    return present(
        *check_lines,
        review_line if "reviewBy" in task else None,
        *attachment_lines,
        f"landing: {task['landing']}" if "landing" in task else None,
    )


def words_of_whole(task: dict[str, Any]) -> Parts:
    """Show everything about a task, and what happened to it."""
    description = task.get("description", "")
    notes = [
        f"{ago(note['at'])}  {note['what']} by {note['by']}{_because(note, description)}" for note in task["notes"]
    ]
    imported_from = ""
    if source := task.get("source"):
        url = f", {source['url']}" if "url" in source else ""
        imported_from = f"{source['from']}, {source['id']}{url}{', foreign text' if source.get('foreign') else ''}"
    fields = {
        "priority": task["priority"],
        "requires": ", ".join(task["require"]),
        "touches": ", ".join(task.get("touches", ())),
        "imported from": imported_from,
    }
    field_lines = [f"{name}: {value}" for name, value in fields.items() if value]
    results = []
    if task["status"] == "in_progress":  # the owner builds on the results of the blockers
        results = [blocker_line(blocker) for blocker in task.get("blockers", ()) if blocker.get("result")]
    return [*words_of_standing(task), *field_lines, *text_lines(task), *results, *notes]


def _because(note: dict[str, Any], description: str) -> str:
    """Return the changed fields, the added text (shortened if it is in the *description*) and the reason of a note."""
    added = note.get("added")
    if added and note["what"] == "edited" and added.strip("\n") in description:
        added = text.clipped_line(added, _CHARACTERS_IN_LINE)
    parts = [", ".join(note.get("changed", ())), added, note.get("reason")]
    reason = "; ".join(" ".join(part.split()) for part in parts if part)
    return f": {reason}" if reason else ""


def words_of_attachments(files: list[dict[str, Any]]) -> Parts:
    rows = [
        [file["id"], file["name"], str(file["size"]), file["by"], age(file["at"]), file["sha256"]] for file in files
    ]
    return [Table(["attachment", "file", "bytes", "by", "age", "sha256"], rows, "no attachments")]


def words_of_attachment(file: dict[str, Any]) -> Parts:
    origin = f"attached to {file['task']} by {file['by']} {ago(file['at'])}"
    head = f"{file['id']} {file['name']}: {file['size']} bytes, {origin}"
    command = f"teams get-evidence {file['task']} {file['id']} --out FILE"
    if "text" not in file:
        return [head, f"not text: {command}"]
    return [head, *text.bounded(text.quoted(file["text"]), text.MOST_LETTER, f"[cut; the whole: {command}]")]


COMMANDS = in_group(
    "Tasks",
    Command(
        "create-task",
        _create,
        argument("TITLE", "What to do.", name="title", text=True, required=False),
        option("--description", "Everything that the owner needs to know.", metavar="TEXT", text=True),
        option("--priority", "high, normal or low.", choices=PRIORITIES, default="normal"),
        option("--blocked-by", "A task that must be completed first.", metavar="ID", many=True),
        AFTER,
        option("--blocks", "A task that must wait for this one.", metavar="ID", many=True, seldom=True),
        option("--require", "A skill that its owner needs.", metavar="SKILL", many=True, seldom=True),
        option(
            "--touches",
            "Files or a symbol that the task changes, such as src/*.py or src/x.py:Editor.edit.",
            metavar="GLOB",
            many=True,
            seldom=True,
        ),
        option(
            "--agree-with",
            "A related task: the owners of both must agree who changes what, before this one is completed.",
            metavar="ID",
            many=True,
            seldom=True,
        ),
        option("--run", "A command that does the task, without a model.", metavar="COMMAND", text=True, seldom=True),
        switch("--plan-required", "The leader must approve a plan first.", seldom=True),
        option("--for", "Assign it to this member.", metavar="AGENT", name="keep_for"),
        option(
            "--from",
            f"Add many tasks from a file, from standard input (`-`), or from YAML text: {_MANY}",
            metavar="FILE",
            name="from_",
            text=True,
            at_shell=True,
        ),
        option(
            "--check",
            "A command that must pass, on committed work, before the task is completed.",
            metavar="COMMAND",
            text=True,
            seldom=True,
        ),
        option(
            "--check-in",
            "The directory whose files the check sees as they are, if the owner has no worktree.",
            metavar="DIR",
            seldom=True,
        ),
        option("--review-by", "The role or member that must accept the work.", metavar="WHO", seldom=True),
        doc=tasks.create,
        words=words_of_created,
        answers=Task,
        traits="adding daily for_person",
        held="title description priority blocked_by after require touches agree_with plan_required keep_for review_by",
        example='create-task "Write the parser" --blocked-by 3',
        want="add a task (--blocked-by ID), or several (--from FILE)",
        also={"add-task new-task make-task create-tasks task todo add new create subtask": "create-task TITLE"},
    ),
    Command(
        "get-tasks",
        _get,
        option("--status", "Only tasks of this status.", choices=STATUSES),
        option("--owner", "Only tasks of this member.", metavar="AGENT"),
        switch("--ready", "Only pending tasks without open blockers."),
        switch("--blocked", "Only pending tasks with open blockers.", seldom=True),
        row_limit("Show at most N tasks.", seldom=True),
        doc=_GET,
        words=words_of_rows,
        answers=list[Task],
        gist=("id", "title", "status", "priority", "owner", "openBlockers"),
        traits="reads daily",
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
        TASK,
        switch("--short", "Show only the status, owner, lease, blockers and result.", seldom=True),
        doc=_SHOW,
        words=words_of_whole,
        answers=Task,
        traits="reads daily",
        held="task short",
        example="show-task 7",
        want="show a task with its result",
        also={
            "show view-task view describe describe-task details read-task task-info": "",
            "result get-result show-result task-status notes owner": "",
            "task/ID get/ID status/ID list/ID info/ID get-status/ID": "show-task ID",
        },
    ),
    Command(
        "get-evidence",
        _get_evidence,
        TASK,
        argument("NAME", "The file to show: its name, or its id such as evidence-3.", name="file", required=False),
        option("--out", "Write the file to this new path.", metavar="FILE", at_shell=True),
        doc=_GET_EVIDENCE,
        words=words_of_attachments,
        gist=("id", "name", "size", "by"),
        traits="reads",
        held="task file out>",
        example="get-evidence 7 report.txt",
        also="evidence read-evidence attachment attachments",
    ),
)
