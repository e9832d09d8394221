"""The next task of who joined, ended one, or waits: claimed at once, or as soon as there is one."""

from __future__ import annotations

import time

from teams_cli import errors
from teams_cli.commands.task_documents import taken
from teams_cli.messages.messages import EDIT
from teams_cli.names import SYSTEM
from teams_cli.tasks import choosing, leases
from teams_cli.tasks.tasks import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.views.concerns import Wanted

    Found = dict[str, Any]


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
        call.words = "waiting:came"
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
