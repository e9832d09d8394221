"""Commands that claim, keep and release tasks; and the next task after a finished one."""

from __future__ import annotations

import time

from teams_cli import environment, errors
from teams_cli.clock import Ended, ago, clock_time, is_old, length, time_left
from teams_cli.commands.declaration import TASK, Command, argument, in_group, option, present, switch
from teams_cli.commands.task_documents import (
    line,
    taken,
    to_document,
    words_of_claimed,
    words_of_claimed_knowing,
)
from teams_cli.messages.messages import Event, Message, quote_bounded
from teams_cli.tasks import claims
from teams_cli.tasks.tasks import FREED, Task
from teams_cli.teams import presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts
    from teams_cli.teams.presence import OnceShown
    from teams_cli.views.concerns import Wanted

    News = dict[str, Any]


def _claim(call: Call, task: str | None, next: bool, wait: float | None) -> Any:
    """Claim the *task* or, with *next*, the next one, and wait up to *wait* seconds for it."""
    if (task is None) != next:
        problem = "a task and --next exclude each other" if next else "the task is missing"
        raise errors.WrongUsage(problem, "Write: teams claim-task ID, or teams claim-task --next")
    if wait is not None and not next:
        raise errors.WrongUsage("--wait needs --next", "To wait for one task: teams wait --task ID")
    if next:
        _land_interrupted(call)
    if wait is not None:
        return taken(call, _claim_in_time(call, wait))
    if task is None:
        return taken(call, _claim_next_now(call))
    claimed = claims.claim(call.store, call.team, call.caller, task)
    writers = {claimed.created_by, *(note.by for note in claimed.notes if note.what == "edited")}
    if writers == {call.agent}:  # the caller knows the text of the task
        call.words = words_of_claimed_knowing
    return taken(call, claimed)


def _claim_next_now(call: Call) -> Task:
    """Claim the next ready task. If none is ready, the refusal names the command that somebody waits for, if any."""
    try:
        return claims.claim_next(call.store, call.team, call.caller)
    except errors.NothingReady as refusal:
        from teams_cli.views import work

        step = call.try_to(lambda: work.step_others_wait_for(call.store, call.load_team(), call.known_caller))
        if step:
            raise errors.NothingReady(refusal.message, f"Somebody waits for you: {step}") from None
        raise


def _land_interrupted(call: Call) -> None:
    """Queue the landing of the task that the caller last completed, if that command was killed before doing so."""

    def land() -> None:
        if key := presence.load(call.store, call.team, call.agent).completing:
            from teams_cli.commands import completions  # commands are rarely killed then

            completions.land_interrupted(call, key)

    call.try_to(land)


def _claim_in_time(call: Call, wait: float) -> Task:
    """Wait up to *wait* seconds for a task that is ready for the caller, and claim it; refuse if mail comes first."""
    from teams_cli.messages import inboxes
    from teams_cli.store import pace

    claimed: Task | None = None
    unread: list[int] = []
    alarm = pace.Alarm()

    def has_task_or_mail() -> bool:
        nonlocal claimed, unread
        try:
            claimed = claims.claim_next(call.store, call.team, call.caller)
        except errors.NothingReady:
            unread = inboxes.unread(call.store, call.team, call.agent)
            claims.release_lost(call.store, call.load_team(), alarm)
        return bool(claimed or unread)

    topics = {"team", f"message/{call.agent}", *FREED}
    pace.sleep_until(call.store, call.team, has_task_or_mail, wait, topics, alarm, call.say)
    if claimed:
        return claimed
    if unread:
        names = ", ".join(f"msg-{number}" for number in unread)
        raise errors.WaitRanOut(
            f"no task is ready yet, but you have messages: {names}", "Read it first: teams read-messages"
        )
    raise errors.WaitRanOut(
        f"no task became ready within {length(wait)}", "Wait for anything that concerns you: teams wait"
    )


def _release(call: Call, task: str, reason: str | None, force: bool) -> Any:
    released = claims.release(call.store, call.team, call.caller, task, reason, force)
    if claims.tells_why(released):
        call.words = words_of_given_back
    if released.owner is None:
        call.try_to(call.set_next_step)
    return to_document(call, released)


def _heartbeat(call: Call, task: str | None, note: str | None, silent_for: float | None) -> Any:
    renewed = claims.heartbeat(call.store, call.team, call.caller, task, note, silent_for)
    checkout = environment.checkout_around(call.workplace)
    # The leases are renewed, so a failure to note where the caller works is only reported.
    call.try_to(lambda: call.signs.note_work(presence.load(call.store, call.team, call.agent), checkout))
    return {
        "agent": call.agent,
        "lastSeen": teams.now(call.store),
        "tasks": [{"id": task.id, "claim": task.claim, "leaseExpiresAt": task.lease_expires_at} for task in renewed],
    }


def add_next_task(call: Call, document: dict[str, Any], wait: float | None) -> dict[str, Any]:
    """Add to the answer, under `claimed`, the task that the caller has in progress. If it has none, claim the best
    ready task and add that. With *wait*, wait up to that many seconds for a ready task, unless other news comes first.

    The command that calls this has made its own change already, so this function must not fail: in a closed team no
    task is added, and other failures are only mentioned in the answer.
    """

    def find_task() -> News:
        completed = _complete_asked(call)
        may_claim = claims.may_claim_now(call.store, call.load_team(), call.known_caller)
        if may_claim and wait is not None:
            from teams_cli.views.concerns import ANYTHING

            def find_news(seconds: float) -> News:
                return wait_and_claim(call, ANYTHING, seconds, completed)

            return _announce_and_wait(call, document, wait, find_news)
        if completed:
            document["completedToo"] = completed
        if may_claim:
            try:
                return {"claimed": taken(call, claims.claim_next(call.store, call.team, call.caller))}
            except errors.NothingReady:
                pass
        else:
            from teams_cli.views import work

            if own_task := work.held_task(call.store, call.load_team(), call.agent):
                document_of_task = taken(call, own_task.task)  # in full, for an agent that has forgotten it
                call.next_step = own_task.step
                return {"claimed": document_of_task}
        call.set_next_step()
        return {}

    return document | _unless_team_closed(call, find_task)


def _complete_asked(call: Call) -> list[dict[str, Any]]:
    """Complete the tasks that the caller asked to complete before this was possible, and return them as JSON."""
    if claims.may_claim_now(call.store, call.load_team(), call.known_caller):
        return []  # the caller has no task that it can go on with
    from teams_cli.commands import completions

    return completions.complete_asked(call)


def add_news(call: Call, document: dict[str, Any], wait: float) -> dict[str, Any]:
    """Wait up to *wait* seconds for news that the caller should act on, and add the news to the answer."""
    from teams_cli.views import steps
    from teams_cli.views.concerns import Wanted

    def wait_until_needed(seconds: float) -> News:
        again = steps.WAIT_TO_LEAD if call.load_team().leader == call.agent else steps.WAIT_A_WHILE
        return wait_for_news(call, Wanted(needed=True), seconds, again)

    return document | _unless_team_closed(call, lambda: _announce_and_wait(call, document, wait, wait_until_needed))


def _unless_team_closed(call: Call, find_news: Callable[[], News]) -> News:
    """Return the result of *find_news*. If the team was closed, the answer says by whom."""

    def find() -> News:
        try:
            return find_news()
        except errors.WrongState as closed:
            if call.load_team().state != "closed":
                raise
            call.remark = f"{closed.message}. You are done."
            return {}

    return call.try_to(find) or {}


def _announce_and_wait(call: Call, document: dict[str, Any], wait: float, find_news: Callable[[float], News]) -> News:
    """Show the *document* about a change at once, if possible. Then return the result of *find_news*, which takes the
    seconds to wait: none if somebody waits for the caller.
    """
    from teams_cli.views import work

    is_shown_at_once = call.begin_answer(document)  # whatever ends the wait, the caller has seen the change
    if is_shown_at_once:
        call.words = words_of_news
        call.problems += call.record_shown()  # else the wait would end with news that was just shown
    try:
        if call.try_to(lambda: work.step_others_wait_for(call.store, call.load_team(), call.known_caller)):
            wait = 0.0
        return find_news(wait)
    except errors.WaitRanOut as ran_out:
        if wait:
            call.remark = f"{ran_out.message}. {ran_out.state}".rstrip()
        call.set_next_step()
        return {}


def wait_for_news(
    call: Call, wanted: Wanted, timeout: float | None, again: str, once_shown: OnceShown | None = None
) -> News:
    """Wait until something in *wanted* concerns the caller, and return it. Meanwhile, landings are kept going.

    *once_shown* takes the functions that mark the news as read; without it, they are called after the answer. *again*
    is the command that the answer names for a longer wait.
    """
    from teams_cli.views import concerns

    who = (call.store, call.team, call.known_caller)
    note = once_shown or call.once_shown
    return concerns.wait(*who, timeout, note, call.say, wanted, again, call.tending(), call.left_out)


def wait_and_claim(call: Call, wanted: Wanted, timeout: float | None, completed: Sequence[dict[str, Any]] = ()) -> News:
    """Wait for news for the caller. If a task is ready, claim it at once, unless other news asks for something more
    urgent. If another agent claims the task first, the wait goes on.

    Tasks that the caller asked to complete are completed as soon as this is possible, and returned under
    `completedToo`, after those in *completed*. If one of them is refused, the wait ends at once.

    Raises:
        WaitRanOut: Nothing came within *timeout* seconds, and no such task was completed or refused.
        WrongState: The team is closed.
    """
    _land_interrupted(call)
    problems_before = len(call.problems)
    completed = [*completed, *_complete_asked(call)]
    was_refused = len(call.problems) > problems_before
    if was_refused:  # the refusal is shown at the end of the command
        timeout = 0.0
    try:
        news = _claim_after_waits(call, wanted, timeout, completed)
    except errors.WaitRanOut as ran_out:
        if not (completed or was_refused):
            raise
        if timeout:
            call.remark = f"nothing else happened within {length(timeout)}. {ran_out.state}".rstrip()
        news = _nothing_more(call)
    except (errors.TeamsError, Ended):  # what was done so far is in no answer, so it is said before the refusal
        for line_of_task in _words_of_completed_too({"completedToo": completed}):
            call.say(line_of_task)
        for problem in call.problems[problems_before:]:
            call.say(f"teams: {problem.message}")
        raise
    return {**news, **({"completedToo": completed} if completed else {})}


def _claim_after_waits(call: Call, wanted: Wanted, timeout: float | None, completed: list[dict[str, Any]]) -> News:
    """Wait for news and claim a ready task like `wait_and_claim`. Tasks that are completed meanwhile are added to
    *completed*.
    """
    from teams_cli.views import steps
    from teams_cli.views.concerns import Wanted

    began = time.monotonic()
    again = steps.WAIT_TO_WORK + (" --needed" if wanted.needed else "")
    remaining, reports_ready = timeout, True
    while True:
        awaited = Wanted(wanted.needed, claims_ready=reports_ready, completed=wanted.completed, for_work=True)
        notes: list[Callable[[], object]] = []  # they record that the caller was shown the news
        news = wait_for_news(call, awaited, remaining, again, notes.append)
        if _says_completable(news):
            completed += _complete_asked(call)
        if completed:
            news = _without_repetitions(news, completed)
        news_to_show = _claim_after(call, news)
        if news_to_show is not None:
            for note in notes:
                call.once_shown(note)
            return news_to_show
        for note in notes:
            note()
        remaining = None if timeout is None else max(0.0, round(timeout - time.monotonic() + began, 1))
        reports_ready = False  # the task that was just missed need not be reported again


def _nothing_more(call: Call) -> News:
    """Return news with nothing but the next command of the caller."""
    from teams_cli.views import work

    step = call.try_to(lambda: work.next_step(call.store, call.load_team(), call.known_caller))
    return {"happened": [], "messages": [], "next": step or ""}


def _says_completable(news: News) -> bool:
    """Return whether the *news* says that the caller can go on with a task of its own, or complete it."""
    notices = [Message.from_json(message).event_and_task[0] for message in news["messages"]]
    return Event.TASK_COMPLETABLE in notices or any(event["what"] == "held" for event in news["happened"])


def _without_repetitions(news: News, completed: Sequence[dict[str, Any]]) -> News:
    """Return the *news* without what the answer says about the *completed* tasks anyway: that they can be completed,
    and that one of them could not land.
    """
    from teams_cli.commands.completions import was_sent_back

    ids = {task["id"] for task in completed}
    landings = {task["lands"]["id"] for task in completed if was_sent_back(task)}

    def is_needed(message: dict[str, Any]) -> bool:
        event, task_id = Message.from_json(message).event_and_task
        return message.get("about") not in landings and (event != Event.TASK_COMPLETABLE or task_id not in ids)

    happened = [event for event in news["happened"] if event["what"] != "held" or event["id"] not in ids]
    return {**news, "messages": list(filter(is_needed, news["messages"])), "happened": happened}


def _claim_after(call: Call, news: News) -> News | None:
    """After a wait ended with this *news*, claim the best ready task, and return the news with the task under
    `claimed`.

    If other news asks for more than a reply, or if the caller may not claim a task now, claim none and return the news
    as it is. If another agent claimed the task, return the other news; None if there is none.
    """
    from teams_cli.views import steps

    events = [event for event in news["happened"] if event["what"] != "ready"]
    other_news = [*news["messages"], *events]
    if any(entry["next"] and not steps.is_reply(entry["next"]) for entry in other_news):
        return news
    if not claims.may_claim_now(call.store, call.load_team(), call.known_caller):
        return news
    try:
        task = claims.claim_next(call.store, call.team, call.caller)
    except errors.NothingReady:
        if not other_news:
            return None
        from teams_cli.views import work

        step = next((entry["next"] for entry in other_news if entry["next"]), None)
        step = step or work.next_step(call.store, call.load_team(), call.known_caller)
        return {**news, "happened": events, "next": step}
    claimed = taken(call, task)  # also sets the next step
    mail = [notice for notice in news["messages"] if not _is_shown_with(notice, task)]
    return {**news, "messages": mail, "happened": events, "claimed": claimed, "next": call.next_step}


def _is_shown_with(message: dict[str, Any], task: Task) -> bool:
    """Return whether the message offers a task, or says that the *task*, just claimed and shown, was lost or edited."""
    event, about = Message.from_json(message).event_and_task
    if event in (Event.TASK_ASSIGNED, Event.TASK_READY):
        return True
    return about == task.id and event in (Event.TASK_LOST, Event.TASK_RELEASED, Event.TASK_EDITED)


def words_of_released(task: dict[str, Any]) -> list[str]:
    last = task["notes"][-1]
    return line(task, f", taken from {last['owner']}" if "owner" in last else "")


def words_of_given_back(task: dict[str, Any]) -> list[str]:
    return [*line(task), "the leader is notified why; others are offered it first"]


def words_of_heartbeat(done: dict[str, Any]) -> Parts:
    ids_by_end: dict[str, list[str]] = {}
    for task in done["tasks"]:
        end = f"{time_left(task['leaseExpiresAt'])}, until {clock_time(task['leaseExpiresAt'])}"
        ids_by_end.setdefault(end, []).append(task["id"])
    kept = [f"{', '.join(ids)}: {end}" for end, ids in ids_by_end.items()]
    return [f"{done['agent']}: seen {ago(done['lastSeen'])}{'' if kept else ', has no task'}", *kept]


def words_of_news(news: dict[str, Any]) -> Parts:
    lines: Parts = _words_of_completed_too(news)
    if timed_out := news.get("timedOut"):
        missing = timed_out.get("tasksMissing")
        too_few = f", {missing} short of the number of completed tasks that you waited for" if missing else ""
        lines.append(f"the wait timed out after {length(timed_out['seconds'])}{too_few}. Meanwhile:")
    lines += mail_lines(news)
    for each in news.get("happened", ()):
        lines += [each["text"], *present(_step(each["next"]))]
    if "claimed" in news:
        return lines + words_of_claimed(news["claimed"])
    lines += present(news.get("standing"))
    if not any(each["next"] for each in [*news.get("messages", ()), *news.get("happened", ())]):
        lines += present(_step(news.get("next")))
    return lines


def _words_of_completed_too(news: News) -> list[Any]:
    if not news.get("completedToo"):
        return []
    from teams_cli.commands import completions  # few answers have such tasks

    return completions.words_of_completed_too(news)


def mail_lines(news: dict[str, Any]) -> Parts:
    """Return the messages in the *news* as lines, each with its next step, and how many more there are."""
    lines: Parts = []
    steps: set[str | None] = set()
    for message in news.get("messages", ()):
        about = f" answers {message['replyTo']}" if "replyTo" in message else ""
        old = f", {ago(message['timestamp'])}" if is_old(message["timestamp"]) else ""
        lines += [f"{message['id']}{about}{old}", *quote_bounded(Message.from_json(message))]
        if message["next"] not in steps:  # a question and the notice that its sender waits have the same step
            lines += present(_step(message["next"]))
            steps.add(message["next"])
    if "moreMessages" in news:
        lines.append(f"{news['moreMessages']} more messages: teams read-messages")
    return lines


def _step(command: str | None) -> str | None:
    return f"next: {command}" if command else None


COMMANDS = in_group(
    "Tasks",
    Command(
        "claim-task",
        _claim,
        argument("ID", "The task's id, such as 7, #7 or task-7.", name="task", required=False),
        switch("--next", "Claim the best task that is ready for you."),
        option("--wait", "With --next: how long to wait for a task or a message.", metavar="SECONDS"),
        doc=claims.claim,
        words=words_of_claimed,
        answers=Task,
        traits="long sleeps repeatable daily",
        held="task next wait",
        example="claim-task --next",
        want="claim a task, or the best one that is ready (--next)",
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
        TASK,
        option("--reason", "The reason, for the record.", text=True),
        switch("--force", "Release the task even if its owner is at work.", seldom=True),
        doc=claims.release,
        words=words_of_released,
        answers=Task,
        held="task reason force",
        example='release-task 7 --reason "it needs a decision"',
        also="unclaim-task drop-task unassign-task release",
    ),
    Command(
        "heartbeat",
        _heartbeat,
        option("--task", "Renew only the lease of this task.", metavar="ID", seldom=True),
        option("--note", "What you are doing, in one line.", text=True, seldom=True),
        option("--for", "How long you will be silent.", metavar="SECONDS", name="silent_for"),
        doc=claims.heartbeat,
        changes=False,
        words=words_of_heartbeat,
        traits="repeatable daily",
        held="task note silent_for",
        example="heartbeat --for 30m",
        also="ping alive lease expire renew renew-lease keepalive keep-alive",
    ),
)
