"""The command `wait`."""

from __future__ import annotations

from contextlib import suppress

from teams_cli import errors, text
from teams_cli.commands.declaration import Command, in_group, option, present, switch
from teams_cli.names import each_name
from teams_cli.teams.permission import standing_of
from teams_cli.text import counts_of
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts
    from teams_cli.views.conditions import Condition


_MOST_NAMED = 20
_WAIT = """Wait until something concerns you, and show it in full, with the command to run next. Nothing is reported
twice.

The wait ends for a message, a task that you can claim, a change to your task, the loss of your task, a decision, a
question, or a request to shut down. For a leader it also ends for a finished task, a plan, a lost member, or the end of
all tasks. Messages are marked as read. With a condition such as --task, the wait ends only for that condition.

Raises:
    WaitRanOut: The time ran out first.
    WrongState: The task that you would wait for is assigned to you.
    NotAllowed: You may not read your messages, or you have left the team.
"""


def _wait(call: Call, claim: bool, needed: bool, completed: int | None, timeout: float | None, **named: Any) -> Any:
    """Wait until one of the conditions in *named* holds. Without conditions, wait for news that concerns the caller."""
    needed = needed or completed is not None
    if all(value in (None, False) for value in named.values()):
        return _wait_for_anything(call, claim, needed, completed, timeout)
    if claim or needed:
        hint = "Wait for anything: teams wait --claim; or for one thing: teams wait --ready"
        raise errors.WrongUsage("--claim, --needed and --completed can't be combined with a condition", hint)
    if named["landing"] is None:  # a wait for a landing starts the lander itself, again and again
        call.start_landing()
    return _wait_for_conditions(call, _conditions(call, **named), named["of"], timeout)


def _wait_for_anything(
    call: Call, claim: bool, needed: bool, completed: int | None, timeout: float | None
) -> dict[str, Any]:
    """Wait for any news for the caller. With *completed*, the wait also ends when that many more tasks are done."""
    from teams_cli.commands import claims
    from teams_cli.views import concerns  # loads all that may concern anybody

    completed_in_all = None
    if completed is not None:
        completed_in_all = completed
        with suppress(errors.TeamNotFound):  # without a team, no task is completed yet
            completed_in_all += _completed_count(call)
    wanted = concerns.Wanted(needed, completed=completed_in_all)
    if claim:
        return claims.wait_and_claim(call, wanted, timeout)
    again = steps.WAIT_TO_LEAD if needed else steps.WAIT_A_WHILE
    if completed is not None:
        again += f" --completed {completed}"
    news = claims.wait_for_news(call, wanted, timeout, again)
    if completed_in_all is not None:
        call.try_to(lambda: _wait_on_for(news, completed_in_all - _completed_count(call)))
    return news


def _completed_count(call: Call) -> int:
    from teams_cli.tasks import overviews

    return overviews.overview(call.store, call.load_team().name).counts["completed"]


def _wait_on_for(news: dict[str, Any], missing: int) -> None:
    """Add how many completed tasks are *missing*, if any, to the commands in the *news* that continue the wait."""
    for each in (news, *news["messages"], *news["happened"]):
        if missing > 0 and each["next"] == steps.WAIT_TO_LEAD:
            each["next"] += f" --completed {missing}"


def _conditions(
    call: Call,
    task: str | None,
    all_tasks: bool,
    of: str | None,
    plan: str | None,
    landing: str | None,
    message: bool,
    ready: bool,
) -> list[Condition]:
    """Return the conditions that the options of the command name."""
    from teams_cli.views import conditions

    store, team = call.store, call.load_team().name
    tasks = each_name([task]) if task is not None else []
    if task is not None and not tasks:
        raise errors.WrongUsage("--task names no task", "Give its number, or several: teams wait --task 7,8")
    waiter = call.caller.name if call.caller else ""
    awaited = [conditions.task_finished(store, team, key, waiter) for key in tasks]
    if of is not None:
        awaited.append(conditions.agent_done(store, team, of))
    if plan is not None:
        awaited += [conditions.plan_decided(store, team, key) for key in each_name([plan])]
    if message:
        awaited.append(conditions.message_there(store, team, call.known_caller))
    if ready:
        awaited.append(conditions.task_ready(store, team, call.known_caller))
    if (message or ready) and call.caller:
        awaited.append(conditions.nothing_left(store, team, call.caller, call.once_shown))
    if all_tasks:
        awaited.append(conditions.all_settled(store, team))
    if landing is not None:
        awaited += [conditions.landing_over(store, team, key, call.start_landing) for key in each_name([landing])]
    return awaited


def _wait_for_conditions(call: Call, wanted: list[Condition], of: str | None, timeout: float | None) -> Any:
    """Wait for one of the conditions in *wanted*, and return the news, with the messages if mail came, and with the
    outcome and the output if the session of the agent *of* ended.
    """
    from teams_cli.messages import inboxes
    from teams_cli.views import conditions

    waits_for_mail = any(condition.name == "message" for condition in wanted)
    if waits_for_mail and timeout != 0 and call.caller and not inboxes.unread(call.store, call.team, call.agent):
        from teams_cli.views import work

        # The caller is about to sleep, so the others learn of its blocked tasks now. The wait does not depend on it.
        call.try_to(lambda: work.notify_of_blocked(call.store, call.team, call.agent, only_with_task=False))
    news = conditions.wait(call.store, call.team, wanted, timeout, call.say)
    call.next_step = _next_step(call, news) or call.next_step
    if call.caller is not None and (call.caller.is_human or call.load_team().member(call.agent)):
        call.once_shown(lambda: conditions.count_as_read(call.store, call.team, call.agent, news))
        if "unread" in news:
            news |= unread_mail(call)
        else:
            call.reminds = True
    if of is None or "agent" not in news:
        return news
    from teams_cli.agents import sessions

    session = sessions.find(call.store, call.team, of)
    if session is None:
        return news
    from teams_cli.commands import agents

    if call.caller and call.caller.name == session.caller:  # the caller need not be notified of the output again
        call.once_shown(lambda: agents.settle_output(call, session))
    return {**agents.result_of(call, session), **{key: value for key, value in news.items() if key != "agent"}}


def _next_step(call: Call, news: dict[str, Any]) -> str:
    """Return the next step after news of a landing, a ready task or, for a leader, the end of all tasks; else ""."""
    if "landing" in news and call.caller:
        from teams_cli.teams import settings

        by_itself = settings.lands_by_itself(call.load_team())
        step = steps.after_landing(news["landing"], call.caller.name, by_itself)
        if step:
            return step
    elif "ready" in news:
        return steps.CLAIM
    if "taskCounts" in news and call.caller:
        standing = standing_of(call.load_team(), call.caller)
        if standing and standing.leads:
            from teams_cli.views import work

            return work.after_all(call.store, call.team, news["stuck"])
    return ""


def unread_mail(call: Call) -> dict[str, Any]:
    """Return the first unread messages in full, and say how many more there are. The messages that are shown count as
    read.
    """
    from teams_cli.messages import inboxes
    from teams_cli.messages.messages import MOST_AT_ONCE, fitting
    from teams_cli.views import mail

    mailbox = inboxes.Mailbox(call.store, call.team, call.agent)
    unread_numbers = mailbox.unread()
    messages = fitting(mailbox.messages(unread_numbers[:MOST_AT_ONCE]))
    call.once_shown(lambda: mailbox.mark_read({message.number for message in messages} - call.left_out))
    team = call.load_team()
    documents = [
        {
            **message.to_document(),
            "message": mail.true_text(call.store, team.name, message),
            "next": mail.step_after(call.store, team, message),
        }
        for message in messages
    ]
    has_next_step = call.next_step or any(document["next"] for document in documents)
    if not has_next_step:
        call.try_to(call.set_next_step)  # the messages count, so a failure here is only reported
    news: dict[str, Any] = {"messages": documents}
    left_over = len(unread_numbers) - len(messages)
    if left_over > 0:
        news["moreMessages"] = left_over
    return news


def words_of_waited(news: dict[str, Any]) -> Parts:
    from teams_cli.commands import claims

    if "happened" in news:
        return claims.words_of_news(news)
    lines: Parts = []
    if "task" in news:
        lines += _task(news["task"])
    if "landing" in news:
        from teams_cli.commands import completions

        lines += completions.lines_of_landing(news["landing"])
    if "plan" in news:
        plan = news["plan"]
        if "replacedBy" in plan:
            decision = f"{plan['id']}: {plan['from']} replaced it with {plan['replacedBy']}"
        else:
            decision = f"{plan['id']}: {plan['status']} by {plan['decidedBy']}"
        why = plan.get("feedback") or plan.get("note")
        lines.append(f"{decision}: {why}" if why else decision)
    lines += claims.mail_lines(news)
    if "ready" in news:
        lines.append(f"ready: {text.listed(news['ready'], _MOST_NAMED)}")
    lines += present(news.get("settled"))
    if "taskCounts" in news:
        lines.append(f"settled: {counts_of(news['taskCounts'])}")
        lines += [f"stuck: {text.listed(news['stuck'], _MOST_NAMED)}"] if news["stuck"] else []
    if "outcome" in news:
        from teams_cli.commands import agents

        lines += agents.words_of_ended(news)
    elif "agent" in news:
        lines.append(f"{news['agent']}: nothing in progress")
    return lines


def _task(task: dict[str, Any]) -> Parts:
    from teams_cli.tasks.tasks import Task

    by = f" by {task['owner']}" if task.get("owner") else ""
    why_ended = Task.from_json(task).why_ended
    why = f": {why_ended}" if why_ended else ""
    if_cut = f"[cut; the whole: teams show-task {task['id']}]"
    result = text.bounded(text.quoted(task.get("result")), text.MOST_LETTER, if_cut)
    return present(f"{task['id']}: {task['status']}{by}{why}", *result)


COMMANDS = in_group(
    "Agents",
    Command(
        "wait",
        _wait,
        option(
            "--task",
            "Until this task is finished; with several (7,8), until one of them is.",
            metavar="ID",
            listed=True,
        ),
        switch("--all-tasks", "Until no task is in progress or claimable.", seldom=True),
        option("--agent", "Until this agent has no task in progress, or has ended.", name="of", seldom=True),
        option("--plan", "Until this plan is decided.", metavar="ID", seldom=True, listed=True),
        option(
            "--landing",
            "Until this landing, or the newest landing of this task, is merged or rejected.",
            metavar="ID",
            seldom=True,
            listed=True,
        ),
        switch("--message", "Until you have unread messages."),
        switch("--ready", "Until you can claim a task.", seldom=True),
        switch("--claim", "When a task is ready for you, claim it."),
        switch("--needed", "Ignore tasks that others complete.", seldom=True),
        option(
            "--completed",
            "Like --needed, but also end when N more tasks are completed.",
            type=int,
            least=1,
            metavar="N",
            seldom=True,
        ),
        option("--timeout", "How long to wait; the default is for ever.", metavar="SECONDS"),
        doc=_WAIT,
        changes=False,
        words=words_of_waited,
        traits="long sleeps daily quiet",
        held="task all_tasks of plan landing message ready claim needed completed timeout",
        example="wait --timeout 600",
        want="wait until something concerns you (--claim: also claim a task)",
        also={
            "wait-for poll sleep await listen idle subscribe": "",
            "wait-for-work wait-for-task wait-for-tasks": "wait --claim",
            "wait-for-message wait-for-messages wait-message": "wait --message",
            "wait-all wait-for-all": "wait --all-tasks",
            "wait-task wait-for/ID wait-for-task/ID await/ID": "wait --task ID",
        },
    ),
)
