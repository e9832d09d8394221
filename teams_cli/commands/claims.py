"""Commands of who takes a task, and keeps it."""

from __future__ import annotations

import time

from teams_cli import errors
from teams_cli.clock import length
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.commands.task_documents import taken, to_document
from teams_cli.messages.messages import EDIT
from teams_cli.names import SYSTEM
from teams_cli.tasks import choosing, claims, leases
from teams_cli.tasks.tasks import FREED, Task
from teams_cli.teams import presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.views.concerns import Wanted

    Found = dict[str, Any]


def _claim(call: Call, task: str | None, next: bool, wait: float | None) -> Any:
    if (task is None) != next:
        raise errors.WrongUsage("the task is missing", "Write: teams claim-task ID, or teams claim-task --next")
    if wait is not None and not next:
        raise errors.WrongUsage("--wait needs --next", "To wait for one task: teams wait --task ID")
    if wait is not None:
        return taken(call, _claimed_in_time(call, wait))
    if task is None:
        return taken(call, choosing.claim_next(call.store, call.team, call.caller))
    claimed = claims.claim(call.store, call.team, call.caller, task)
    if not any(note.what == "edited" and note.by != call.agent for note in claimed.notes):
        call.words = "tasks:claimed_knowing"  # who names it has read it, as it still is
    return taken(call, claimed)


def _claimed_in_time(call: Call, wait: float) -> Task:
    """The best task that is ready for the caller, once there is one, unless it has mail to read before."""
    from teams_cli.messages import inboxes
    from teams_cli.store import pace

    found: list[Task] = []
    unread: list[int] = []
    alarm = pace.Alarm()

    def ready() -> bool:
        try:
            found[:] = [choosing.claim_next(call.store, call.team, call.caller)]
        except errors.NothingReady:
            unread[:] = inboxes.unread(call.store, call.team, call.agent)
            choosing.release_lost(call.store, call.load_team(), alarm)
        return bool(found or unread)

    topics = {"team", f"message/{call.agent}", *FREED}
    came = pace.sleep_until(call.store, call.team, ready, wait, topics, alarm, call.say)
    if found:
        return found[0]
    if came:
        named = ", ".join(f"msg-{number}" for number in unread)
        raise errors.WaitRanOut(
            f"no task is ready yet, but you have messages: {named}", "Read it first: teams read-messages"
        )
    raise errors.WaitRanOut(
        f"no task became ready within {length(wait)}", "Wait for anything that concerns you: teams wait"
    )


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


def after(call: Call, document: dict[str, Any], wait: float | None) -> dict[str, Any]:
    """The answer to a change that is made, with the next task of the caller, who may have none: the best that is ready,
    under `claimed`; with *wait* also one that becomes ready so many seconds later, unless something else concerns the
    caller before. Asked again who was given one has that one.

    Nothing refuses any more: that the team is closed is the end of the answer, and what else goes wrong is told beside
    it.
    """
    return document | _tried(call, lambda: _next(call, document, wait))


def and_wait(call: Call, document: dict[str, Any], wait: float) -> dict[str, Any]:
    """The answer to a change that is made, with what concerns the caller then, if that comes within so many seconds."""
    return document | _tried(call, lambda: _in_time(call, document, wait, _concerning))


def _tried(call: Call, find: Callable[[], Found]) -> Found:
    """What is found behind a change; nothing in a closed team, where who closed it is told."""
    found: Found = {}

    def look() -> None:
        try:
            found.update(find())
        except errors.WrongState as over:
            if call.load_team().state != "closed":
                raise
            call.more = f"{over.message}. You are done."

    call.try_to(look)
    return found


def _in_time(call: Call, document: dict[str, Any], wait: float, what: Callable[[Call, float], Found]) -> Found:
    """What a wait behind the change brings; where it is in vain, it is said that the time is over, how the work stands,
    and what follows.
    """
    if call.begin_answer(document):  # whatever ends the wait, that the change is made was said
        call.words = "messages:came"
        call.problems += call.note_told()  # or the wait would end with what was just said
    try:
        return what(call, wait)
    except errors.WaitRanOut as over:
        if wait:
            call.more = f"{over.message}. {(over.hint or '').partition('Keep waiting: ')[0]}".rstrip()
        call.say_what_follows()
        return {}


def _concerning(call: Call, wait: float) -> Found:
    from teams_cli.views import concerns, steps

    return concerns.wait(call.store, call.team, call.known, wait, call.once_told, call.say, again=steps.WAIT_A_WHILE)


def _next(call: Call, document: dict[str, Any], wait: float | None) -> dict[str, Any]:
    """What comes behind the change that the document tells of: nothing for who has a task."""
    is_free = choosing.is_free(call.store, call.load_team(), call.known)
    if is_free and wait is not None:
        return _in_time(call, document, wait, _for_work)
    found = _at_once(call) if is_free else {}
    if not found:
        call.say_what_follows()
    return found


def _at_once(call: Call) -> dict[str, Any]:
    """The best task that is ready, claimed."""
    try:
        return {"claimed": taken(call, choosing.claim_next(call.store, call.team, call.caller))}
    except errors.NothingReady:
        return {}


def _for_work(call: Call, wait: float) -> Found:
    from teams_cli.views.concerns import ANYTHING

    return awaited(call, ANYTHING, wait)


def awaited(call: Call, wanted: Wanted, timeout: float | None) -> dict[str, Any]:
    """What concerns the caller; a task that it may take is claimed with that, also one that it was told of before,
    unless something else is to be done first. Where another was faster, the wait goes on.

    Raises:
        WaitRanOut: Nothing came within *timeout* seconds.
        WrongState: The team is closed.
    """
    from teams_cli.views import concerns, steps, work
    from teams_cli.views.concerns import Wanted

    began, left = time.monotonic(), timeout
    again = steps.WAIT_TO_WORK + (" --needed" if wanted.needed else "")
    of_these = Wanted(wanted.needed, True, wanted.completed, for_work=True)
    while True:
        notes: list[Callable[[], object]] = []
        found = concerns.wait(call.store, call.team, call.known, left, notes.append, call.say, of_these, again)
        others = [each for each in found["happened"] if each["what"] != "ready"]
        beside = [*found["messages"], *others]
        if any(map(_comes_first, beside)) or not choosing.is_free(call.store, call.load_team(), call.known):
            break
        try:
            task = choosing.claim_next(call.store, call.team, call.caller)
        except errors.NothingReady:
            if beside:
                step = next(filter(None, (each["next"] for each in beside)), None)
                step = step or work.next_step(call.store, call.load_team(), call.known)
                found = {**found, "happened": others, "next": step}
                break
            for note in notes:  # nothing is told: the task was taken by another
                note()
            left = None if timeout is None else max(0.0, round(timeout - time.monotonic() + began, 1))
            of_these = Wanted(wanted.needed, False, wanted.completed, for_work=True)
            continue
        shown = taken(call, task)
        mail = [each for each in found["messages"] if each["from"] != SYSTEM or not _is_shown_with(each, task)]
        found = {**found, "messages": mail, "happened": others, "claimed": shown, "next": call.follows}
        break
    for note in notes:
        call.once_told(note)
    return found


def _comes_first(each: dict[str, Any]) -> bool:
    """Whether what concerns the caller comes before a task that it takes; mail that it may answer comes with that."""
    from teams_cli.views import steps

    return bool(each["next"]) and each["next"] != steps.reply(each["id"])


def _is_shown_with(notice: dict[str, Any], task: Task) -> bool:
    """Whether the notice goes without saying for who is shown the task that it has now: of its loss, or of an edit."""
    return leases.tells_of_loss(notice["message"], task) or notice.get("about") == f"{EDIT}{task.id}"


COMMANDS = table(
    "Tasks",
    Command(
        "claim-task",
        _claim,
        argument("ID", "The task: 7, #7 or task-7.", name="task", required=False),
        switch("--next", "The best task that is ready for you."),
        option("--wait", "With --next: how long to wait for a task or a message.", metavar="SECONDS"),
        doc=claims.claim,
        words="tasks:claimed",
        answers=Task,
        long=True,
        sleeps=True,
        repeatable=True,
        daily=True,
        held="task next wait",
        example="claim-task --next",
        want="claim a task, or the best that is ready: --next",
        also={
            (
                "claim take work take-task start-task begin-task work-on pick pick-task grab grab-task "
                "next-task get-next-task claim-next get-next pick-next"
            ): "claim-task --next",
            (
                "claim/ID take/ID work/ID take-task/ID start-task/ID begin-task/ID work-on/ID pick/ID "
                "pick-task/ID grab/ID grab-task/ID start/ID begin/ID"
            ): "claim-task ID",
        },
    ),
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
        option("--for", "How long you will be silent.", metavar="SECONDS", name="silent_for"),
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
