"""Commands that change a task, or add to it."""

from __future__ import annotations

import time

from teams_cli import errors, text
from teams_cli.clock import length, short_length
from teams_cli.commands import completions
from teams_cli.commands.call import Attempt
from teams_cli.commands.declaration import AFTER, TASK, Command, argument, in_group, option, switch
from teams_cli.commands.task_documents import (
    refuse_stopped,
    reviewer_in_words,
    taken,
    to_document,
    words_of_claimed_too,
)
from teams_cli.names import each_name
from teams_cli.tasks import changes, checks, dependencies, editing, tasks
from teams_cli.tasks.tasks import FINISHED, IN_PROGRESS, PRIORITIES, STATUSES, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts


def _update(call: Call, task: str, next: bool, wait: float | None, **values: Any) -> Any:
    """Change one task or several. With *next*, also claim the next task, and wait up to *wait* seconds for it."""
    files = values.pop("evidence")
    if next and values["status"] not in ("completed", "failed"):
        raise errors.WrongUsage("--next needs --status completed or failed", "Leave out --next, or give the status.")
    refuse_wait_alone(next, wait)
    edit = changes.Edit(
        block=list(values.pop("blocked_by")),
        unblock=list(values.pop("unblock")),
        after=list(values.pop("after")),
        check_from=checks.set_from(values["check"], call.current_directory),
        options=(" --next" if next else "") + (f" --wait {wait:g}" if wait is not None else ""),
        attaches_files=bool(files),
        **values,
    )
    if edit.owner:
        refuse_stopped(call, edit.owner)
    if edit.append is None:
        return _change(call, task, edit, files, next, wait)
    with Attempt(call, "update-task", task, edit.append) as uid:
        return _change(call, task, edit.having(uid=uid), files, next, wait)


def refuse_wait_alone(next: bool, wait: float | None) -> None:
    """Refuse `--wait` without `--next`."""
    if wait is not None and not next:
        raise errors.WrongUsage("--wait needs --next", "To wait for a task: teams wait --claim")


def _change(call: Call, task: str, edit: changes.Edit, files: list[str], next: bool, wait: float | None) -> Any:
    """Apply the *edit*, and return the task as JSON; if *task* names several tasks, return a list.

    The answer about a single task also says how to go on. With *next*, it has the next task. Otherwise the next step is
    set, if the caller ended a task of its own or stored its result.
    """
    ids = each_name([task]) or [task]
    if len(ids) > 1:
        pairs = changes.change_each(call.store, call.team, call.caller, ids, edit)
        return [to_document(call, changed) | remarks for changed, remarks in pairs]
    changed, remarks = _change_one(call, ids[0], edit, files, wait)
    document = completions.follow_up(call, changed, edit, wait or 0) | remarks
    if completions.was_sent_back(document):
        from teams_cli.views import steps

        call.next_step = steps.complete(document["id"])
        return document
    if next:
        from teams_cli.commands import claims

        return claims.add_next_task(call, document, wait)
    has_result_of_own = changed.owner == call.agent and edit.result is not None
    if has_result_of_own or completions.has_ended_own(call, changed, edit):
        call.try_to(call.set_next_step)
    return document


def _change_one(
    call: Call, task: str, edit: changes.Edit, files: list[str], wait: float | None
) -> tuple[Task, changes.Remarks]:
    """Apply the *edit* to one task, and attach the *files* as evidence. Before a task is completed, wait up to *wait*
    seconds for the tasks that must end before it, and run its check. If the caller ends a task whose claim has expired,
    and nobody has taken it, the caller first claims it again.
    """
    if edit.status in ("completed", "failed"):
        present = tasks.get(call.store, call.team, task)
        if present.status == "pending":
            from teams_cli.tasks import claims

            claims.claim_again(call.store, call.team, call.caller, present, edit.claim)
    if not (edit.status == "completed" or files):
        return changes.change_task(call.store, call.team, call.caller, task, edit)
    waited_for = _wait_for_predecessors(call, task, edit, wait) if wait else []
    try:
        return completions.complete(call, task, edit, files)
    except errors.Conflict as refusal:
        if waited_for:  # the caller has not been told yet that these tasks have ended
            refusal.hint = f"It waited for {text.listed(waited_for)}. {refusal.hint}"
        raise


def _wait_for_predecessors(call: Call, task_ref: str, edit: changes.Edit, wait: float) -> list[str]:
    """Wait up to *wait* seconds for the tasks that must end before this task can be completed, and return them, each
    with its status. Return an empty list if no wait was necessary.

    The result in *edit* is stored before the wait, so that it need not be given again. If another task is ready, it is
    claimed, and this one is completed by a later command. Tasks of the caller that earlier commands left to later ones
    are completed meanwhile: this task may wait for them.

    Raises:
        TaskBlocked: The caller should do something else first, or the time ran out, or a message to the caller or the
            claim of another task ended the wait. The message or the task was shown, if possible.
    """
    task = tasks.get(call.store, call.team, task_ref)
    if not (task.after or task.blocked_by) or task.status != IN_PROGRESS or task.owner != call.agent:
        return []
    from teams_cli.store.pace import Alarm
    from teams_cli.views import conditions

    _complete_others(call, task)
    completable = conditions.completable(call.store, call.team, task.id)
    can_be_later = not (edit.attaches_files or edit.changes_fields)
    to_do_first = dependencies.left_to_owner(call.store, call.team, task)
    if completable.look(call.store, call.team, Alarm()) or (to_do_first and not can_be_later):
        return []
    is_new_wish = can_be_later and not task.completion_is_asked
    if is_new_wish or edit.result is not None:
        to_keep = changes.Edit(result=edit.result, claim=edit.claim, completes_later=can_be_later)
        changes.change_task(call.store, call.team, call.caller, task.id, to_keep)
    if can_be_later and (advice := _what_to_do_first(call, task, to_do_first)):
        raise errors.TaskBlocked(_not_yet(call, task, can_be_later), advice)
    others_completable = conditions.asked_completable(call.store, call.team, call.agent, task.id)
    awaited = [completable, others_completable, conditions.news_there(call.store, call.team, call.agent)]
    other_work = conditions.task_claimed(call.store, call.team, call.known_caller, before=awaited)
    began = time.monotonic()
    try:
        news: dict[str, Any] = {"because": ["asked"]}
        while news["because"] == ["asked"]:
            _complete_others(call, task)
            remaining = max(0.0, wait - (time.monotonic() - began))
            news = conditions.wait(call.store, call.team, [*awaited, other_work], remaining, call.say)
    except errors.WaitRanOut:
        if not wait:
            return []  # the change itself is refused, and says which tasks are open
        task, status_of = tasks.get(call.store, call.team, task.id), dependencies.stored(call.store, call.team)
        still_open = text.listed(list(map(str, dependencies.before_completion(task, status_of))))
        why, advice = f"it still waits for {still_open} after {length(wait)}", "To wait longer"
    else:
        if "task" in news:
            status_of = dependencies.stored(call.store, call.team)
            return [f"{key} ({status_of(key)})" for key in task.waits_for]
        if "claimed" in news:
            _refuse_after_claim(call, task, news["claimed"], can_be_later)
        advice = "Then repeat" if _show_mail(call) else "Read what came: teams read-messages. Then repeat"
        why = f"{', '.join(news['unread'])} came while it waited for other tasks"
    if can_be_later:
        kept = " (its result is kept)" if edit.result is not None or task.result else ""
        repeat = f"teams update-task {task.id} --status completed{edit.options}{kept}"
    else:
        repeat = "the same command, with all its options"
    raise errors.TaskBlocked(f"{task.id} is not completed yet: {why}", f"{advice}: {repeat}")


def _what_to_do_first(call: Call, task: Task, to_do_first: str | None) -> str:
    """Return what the caller should do instead of waiting until *task* can be completed, or "". *to_do_first* is a task
    before it that only the caller can do.
    """
    from teams_cli.views import work

    if to_do_first:
        unblock = f"teams update-task {task.id} --unblock {to_do_first}"
        return f"{to_do_first} is yours, so do it first: teams claim-task {to_do_first}. If it need not wait: {unblock}"
    step = call.try_to(lambda: work.step_others_wait_for(call.store, call.load_team(), call.known_caller))
    return f"Somebody waits for you: {step}" if step else ""


def _complete_others(call: Call, task: Task) -> None:
    """Complete the caller's other tasks that can be completed only now, and say so at once."""
    completed = completions.complete_asked(call, besides=task.id)
    for line_of_task in completions.words_of_completed_too({"completedToo": completed}):
        call.say(line_of_task)


def _refuse_after_claim(call: Call, task: Task, claimed: Task, completes_later: bool) -> NoReturn:
    """Show the task that was *claimed* while *task* waited for others, and refuse to complete *task* now. With
    *completes_later*, a later command of the caller completes it.
    """
    from teams_cli.commands import claims

    news = {"claimed": taken(call, claimed)}
    call.words = claims.words_of_news
    advice = f"Meanwhile {claimed.id} is yours: {call.next_step}"
    if call.begin_answer(news):
        call.problems += call.record_shown()
    else:
        advice += f" (its text: teams show-task {claimed.id})"
    raise errors.TaskBlocked(_not_yet(call, task, completes_later), advice)


def _not_yet(call: Call, task: Task, completes_later: bool) -> str:
    """Return a sentence that says for what the completion of the task waits, and what completes it then."""
    before = dependencies.before_completion(task, dependencies.stored(call.store, call.team))
    refusal = f"{task.id} is not completed yet: it waits for {text.listed([each.id for each in before])}"
    if completes_later:
        return f"{refusal}. Its result is kept, and your --next after that completes it"
    return f"{refusal}. Only its result is kept. You are notified when that is completed; then repeat the command"


def _show_mail(call: Call) -> bool:
    """Show the caller its unread messages if output may already be printed while the command runs. Return whether it
    may.
    """
    from teams_cli.commands import claims, waiting
    from teams_cli.messages.messages import Message
    from teams_cli.views import mail

    news = waiting.unread_mail(call)
    news["messages"] = [
        document
        for document in news["messages"]
        if not mail.is_outdated(call.store, call.team, call.agent, Message.from_json(document))
    ]
    call.words = claims.words_of_news
    is_shown = call.begin_answer(news)
    if is_shown:
        call.problems += call.record_shown()
    return is_shown


def _note(call: Call, task: str, text: str) -> Any:
    with Attempt(call, "note", task, text) as uid:
        noted = editing.note(call.store, call.team, call.caller, task, text, uid)
    return to_document(call, noted)


def words_of_updated(task: dict[str, Any] | list[dict[str, Any]]) -> Parts:
    """Show one task or several, with the fields that were just changed and are not in the line of a task."""
    if isinstance(task, list):
        return [part for each in task for part in words_of_updated(each)]
    changed = [
        key
        for note in task["notes"]
        if note["what"] == "edited" and note["at"] == task.get("updatedAt")
        for key in note.get("changed", ())
    ]
    phrases = {
        "priority": f"priority {task['priority']}",
        "description": "description changed",
        "check": f"check: {task.get('check')}",
        "reviewBy": f"review by {reviewer_in_words(task)}",
    }
    if task["status"] != "pending":  # else the line of the task has them
        phrases["after"] = f"completes after {text.listed(task.get('after', ())) or 'no other task'}"
    what_changed = ""
    if "checked" in task and task["status"] == "completed":
        seconds = task["checked"].get("seconds")
        what_changed = ", its check passed"
        if seconds:
            what_changed += f" in {short_length(seconds)}"
    what_changed += "".join(f", {phrase}" for key, phrase in phrases.items() if key in changed)
    what_changed += ", newer work handed in" if "handedInAgain" in task else ""
    if names := task.get("notified"):
        verb = "is" if len(names) == 1 else "are"
        what_changed += f" ({text.listed(names)} {verb} notified)"
    lines = completions.landed_line(task, what_changed)
    if changed and task["status"] in FINISHED:
        is_by_owner = task["notes"][-1]["by"] == task.get("owner")  # who may not create tasks
        how = "ask the leader for a new task" if is_by_owner else "teams create-task TITLE"
        lines.append(f"{task['id']} is {task['status']}: nobody works on it. For more work: {how}")
    if "unseenEditBy" in task:
        edited = f"{task['unseenEditBy']} had edited it (shown now): if your work lacks the change, fix it, then:"
        lines.append(f"{edited} teams update-task {task['id']} --result TEXT")
    return [*lines, *completions.words_of_completed_too(task), *words_of_claimed_too(task)]


def words_of_noted(task: dict[str, Any]) -> list[str]:
    by = f" by {task['owner']}" if "owner" in task else ""
    return [f"note added to {task['id']} ({task['status']}{by}): {task['title']}"]


COMMANDS = in_group(
    "Tasks",
    Command(
        "update-task",
        _update,
        argument("ID", "The task's id, such as 7, or several ids: 7,8.", name="task", listed=True),
        option(
            "--status",
            "The new status: completed, failed, cancelled, or pending to reopen; not in_progress or in_review.",
            choices=STATUSES,
        ),
        option("--result", "The outcome.", metavar="TEXT", text=True),
        option("--title", "A new title.", text=True, seldom=True),
        option("--description", "A new description.", metavar="TEXT", text=True, seldom=True),
        option("--append", "Text to add to the description.", metavar="TEXT", text=True, seldom=True),
        option("--priority", "high, normal or low.", choices=PRIORITIES, seldom=True),
        option("--blocked-by", "Add this blocker.", metavar="ID", many=True, seldom=True),
        AFTER,
        option("--unblock", "Remove this blocker.", metavar="ID", many=True, seldom=True),
        option("--owner", "Assign it to this member.", metavar="AGENT"),
        switch("--force", "With --owner: assign it even if the present owner is at work.", seldom=True),
        switch("--unassign", "Assign it to nobody.", seldom=True),
        option("--claim", "Change the task only if its claim has this number.", type=int, metavar="N", seldom=True),
        option("--reason", "The reason, for the record.", metavar="TEXT", text=True),
        switch("--next", "Then claim the next task."),
        option("--wait", "With --next: how long to wait for a task.", metavar="SECONDS"),
        option(
            "--evidence",
            "Attach this file; a task can have up to 20 files.",
            metavar="FILE",
            many=True,
            seldom=True,
            at_shell=True,
        ),
        option(
            "--check",
            "A new command that must pass, on committed work, before the task is completed.",
            metavar="COMMAND",
            text=True,
            seldom=True,
        ),
        option("--review-by", "The role or member that must accept the work.", metavar="WHO", seldom=True),
        doc=changes.change_task,
        words=words_of_updated,
        answers=Task | list[Task],
        traits="long sleeps daily",
        held=(
            "task status result title description append priority blocked_by after unblock "
            "owner force unassign claim reason next wait evidence/ review_by"
        ),
        example='update-task 7 --status completed --result "src/parser.py"',
        want="finish a task (--status completed --result TEXT)",
        also={
            (
                "complete-task finish-task end-task close-task complete finish done done-task "
                "task-done mark-done mark-complete mark-completed resolve resolve-task submit "
                "submit-result close/ID"
            ): "update-task ID --status completed --result TEXT",
            "fail-task fail task-failed mark-failed": "update-task ID --status failed --reason TEXT",
            "cancel-task cancel delete-task delete remove-task remove rm drop": "update-task ID --status cancelled",
            "reopen-task reopen": "update-task ID --status pending --reason TEXT",
            "assign-task assign reassign give give-task handoff/ID hand-off/ID": "update-task ID --owner AGENT",
            "block block-task depend depends add-dependency add-blocker": "update-task ID --blocked-by OTHER",
            "unblock unblock-task remove-dependency": "update-task ID --unblock OTHER",
            "edit-task change-task modify-task edit": "",
            "update set-status/ID set-task-status": "update-task ID --status STATUS",
        },
    ),
    Command(
        "note",
        _note,
        TASK,
        argument("TEXT", "The note.", name="text", text=True),
        doc=editing.note,
        words=words_of_noted,
        answers=Task,
        traits="adding",
        held="task text",
        example='note 7 "the parser moved to src/parse.py"',
        also={
            "note-task comment comment-task add-note add-comment remark log-progress": "",
            "progress/ID report/ID announce/ID update-progress": "note ID TEXT",
        },
    ),
)
