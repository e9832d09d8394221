"""The command that waits."""

from __future__ import annotations

from teams_cli import errors, extensions
from teams_cli.commands.declaration import Command, option, switch, table
from teams_cli.messages import inboxes
from teams_cli.messages.messages import fitting
from teams_cli.names import each_name
from teams_cli.teams.permission import standing_of
from teams_cli.views import steps, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.agents.sessions import Session
    from teams_cli.commands.call import Call
    from teams_cli.views.conditions import Condition


_LANDING = "landing"
_WAIT = """Wait until something concerns you; print it in full with the next command. Nothing is reported twice.

That is a message (then read), a task that you can claim, an edit or the loss of yours, a decision, a question,
or a shutdown. For a leader it is also a finished task, a plan, a lost member, or the end of all tasks. With a
condition, wait only for that.

Raises:
    WaitRanOut: It did not happen in time.
"""


def _wait(
    call: Call,
    task: str | None,
    all_tasks: bool,
    of: str | None,
    plan: str | None,
    landing: str | None,
    message: bool,
    ready: bool,
    claim: bool,
    needed: bool,
    completed: int | None,
    timeout: float | None,
) -> Any:
    if completed is not None and completed < 1:
        raise errors.WrongUsage(f"{completed} is not a number of tasks", "Give a number from 1.")
    needed = needed or completed is not None
    if landing is None:
        _go_on(call)
    named = all_tasks or message or ready or any(one is not None for one in (task, of, plan, landing))
    if not named:
        return _wait_for_anything(call, claim, needed, completed, timeout)
    if claim or needed:
        hint = "Wait for anything: teams wait --claim; or for one thing: teams wait --ready"
        raise errors.WrongUsage("--claim, --needed and --completed can't be combined with a condition", hint)
    found = conditions_of(call, task, all_tasks, of, plan, message, ready)
    if landing is not None:
        found += [landing_over(call, one, lambda: _go_on(call)) for one in each_name([landing])]
    return wait(call, found, of, timeout)


def _wait_for_anything(
    call: Call, claim: bool, needed: bool, completed: int | None, timeout: float | None
) -> dict[str, Any]:
    from teams_cli.views import concerns  # loads all that may concern anybody

    wanted = concerns.Wanted(needed, completed=None if completed is None else completed + _completed(call))
    if claim:
        from teams_cli.commands import claims

        return claims.awaited(call, wanted, timeout)
    again = steps.WAIT_TO_LEAD if needed else steps.WAIT
    return concerns.wait(call.store, call.team, call.known, timeout, call.once_told, call.say, wanted, again)


def _completed(call: Call) -> int:
    """How many tasks are completed when the wait begins; none where there is no team yet."""
    from teams_cli.tasks import overviews

    try:
        return overviews.overview(call.store, call.load_team().name).counts["completed"]
    except errors.TeamNotFound:
        return 0


def _go_on(call: Call) -> None:
    """See to it that what is queued lands: who was at it may have been killed, or may not."""
    try:
        if _LANDING not in call.store.holds(call.team, _LANDING):
            return
        from teams_cli.tasks import landings

        start = extensions.provided("land the queue") if landings.open_ones(call.store, call.team) else None
        if start:
            start(call.store, call.team, call.environ)
    except errors.TeamsError:  # whoever comes next tries again
        return


_MOST = 20
"""Messages that are shown at a time."""


def conditions_of(
    call: Call, task: str | None, all_tasks: bool, of: str | None, plan: str | None, message: bool, ready: bool
) -> list[Condition]:
    """What is waited for, of tasks, agents, plans and mail."""
    from teams_cli.views import conditions

    store, team = call.store, call.load_team().name
    named = each_name([task]) if task is not None else []
    if task is not None and not named:
        raise errors.WrongUsage("--task names no task", "Give its number, or several: teams wait --task 7,8")
    found = [conditions.task_finished(store, team, one) for one in named]
    if of is not None:
        found.append(conditions.agent_done(store, team, of))
    if plan is not None:
        found += [conditions.plan_decided(store, team, one) for one in each_name([plan])]
    if message:
        found.append(conditions.message_there(store, team, call.agent))
    if ready:
        found.append(conditions.task_ready(store, team, call.known))
    if (message or ready) and call.caller:
        found.append(conditions.nothing_left(store, team, call.caller, call.once_told))
    if all_tasks:
        found.append(conditions.all_settled(store, team))
    return found


def landing_over(call: Call, landing: str, go_on: Callable[[], object]) -> Condition:
    """That the landing is over; *go_on* sees to it that somebody is at it."""
    from teams_cli.views import conditions

    return conditions.landing_over(call.store, call.load_team().name, landing, go_on)


def wait(call: Call, wanted: list[Condition], of: str | None, timeout: float | None) -> Any:
    """Wait for one of the conditions; what was found, and what came of the session of the agent *of*, if it ended."""
    from teams_cli.views import conditions

    is_mail = any(condition.name == "message" for condition in wanted)
    if is_mail and timeout != 0 and call.caller and not inboxes.unread(call.store, call.team, call.agent):
        call.try_to(lambda: work.tell_blocked(call.store, call.team, call.agent, only_with_task=False))
    found = conditions.wait(call.store, call.team, wanted, timeout, call.say)
    if "taskCounts" in found and call.caller and (at := standing_of(call.load_team(), call.caller)) and at.leads:
        call.follows = steps.after_all(found["stuck"])
    call.follows = _after(call, found) or call.follows
    if call.caller is not None and (call.caller.is_human or call.load_team().member(call.agent)):
        call.once_told(lambda: conditions.count_as_read(call.store, call.team, call.agent, found))
        if "unread" in found:
            found |= _mail(call)
    return _with_its_end(call, of, found) if of is not None and "agent" in found else found


def _with_its_end(call: Call, agent: str, found: dict[str, Any]) -> dict[str, Any]:
    """What was found, with how the agent ended, if `teams` started it."""
    from teams_cli.agents import sessions

    session = sessions.find(call.store, call.team, agent)
    return found if session is None else {**_collected(call, session), **_besides(found)}


def _after(call: Call, found: dict[str, Any]) -> str:
    """What follows on a task that is ready, or a landing."""
    if "landing" in found and call.caller:
        from teams_cli.teams import settings

        by_itself = settings.lands_by_itself(call.load_team())
        return steps.after_landing(found["landing"], call.caller.name, by_itself)
    return steps.CLAIM if "ready" in found else ""


def _mail(call: Call) -> dict[str, Any]:
    """The unread messages in full, which are read with that, each with what it asks for; and how many are left."""
    mailbox = inboxes.Mailbox(call.store, call.team, call.agent)
    unread = mailbox.unread()
    shown = fitting(mailbox.messages(unread[:_MOST]))
    call.once_told(lambda: mailbox.mark_read({message.number for message in shown}))
    documents = [each.to_document() for each in shown]
    for document in documents:
        document["next"] = steps.after_message(
            document, work.matter_of(call.store, call.team, document.get("about") or "")
        )
    if not (call.follows or any(document["next"] for document in documents)):
        call.try_to(call.say_what_follows)
    left = len(unread) - len(shown)
    return {"messages": documents, **({"moreMessages": left} if left else {})}


def _besides(found: dict[str, Any]) -> dict[str, Any]:
    """What else ended the wait."""
    return {key: value for key, value in found.items() if key != "agent"}


def _collected(call: Call, session: Session) -> dict[str, Any]:
    """How an agent that was started ended; for whom its output is, has it now."""
    from teams_cli.commands import agents

    if call.caller and call.caller.name == session.caller:
        call.once_told(lambda: agents.settle_output(call, session))
    shown: dict[str, Any] = agents.result_of(call, session)
    return shown


COMMANDS = table(
    "Agents",
    Command(
        "wait",
        _wait,
        option("--task", "Until 7 is finished; or one of 7,8.", metavar="ID", listed=True),
        switch("--all-tasks", "Until no task is in progress or claimable.", seldom=True),
        option("--agent", "Until it has no task in progress, or ended.", name="of", seldom=True),
        option("--plan", "Until this plan is decided.", metavar="ID", seldom=True, listed=True),
        option(
            "--landing",
            "Until it (or the last of task-N) is merged or rejected.",
            metavar="ID",
            seldom=True,
            listed=True,
        ),
        switch("--message", "Until you have unread mail."),
        switch("--ready", "Until you can claim a task.", seldom=True),
        switch("--claim", "Claim the task that you can, at once."),
        switch("--needed", "Ignore tasks that others complete.", seldom=True),
        option("--completed", "Like --needed, and once N more are done.", type=int, metavar="N", seldom=True),
        option("--timeout", "How long to wait; by default for ever.", metavar="SECONDS"),
        doc=_WAIT,
        changes=False,
        words="messages:waited",
        long=True,
        sleeps=True,
        daily=True,
        quiet=True,
        held="task all_tasks of plan landing message ready claim needed completed timeout",
        example="wait --timeout 600",
        want="wait until something concerns you (--claim: and claim a task)",
        also={
            "wait-for poll sleep await listen idle subscribe": "",
            "wait-for-work wait-for-task wait-for-tasks": "wait --claim",
            "wait-for-message wait-for-messages wait-message": "wait --message",
            "wait-all wait-for-all": "wait --all-tasks",
            "wait-task wait-for/ID wait-for-task/ID await/ID": "wait --task ID",
        },
    ),
)
