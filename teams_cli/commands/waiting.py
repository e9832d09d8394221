"""The command that waits."""

from __future__ import annotations

from teams_cli import errors, extensions
from teams_cli.commands.declaration import Command, option, switch, table
from teams_cli.names import each_name
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

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
    from teams_cli.commands import waiting_for_one

    found = waiting_for_one.conditions_of(call, task, all_tasks, of, plan, message, ready)
    if landing is not None:
        found += [waiting_for_one.landing_over(call, one, lambda: _go_on(call)) for one in each_name([landing])]
    return waiting_for_one.wait(call, found, of, timeout)


def _wait_for_anything(
    call: Call, claim: bool, needed: bool, completed: int | None, timeout: float | None
) -> dict[str, Any]:
    from teams_cli.views import concerns  # loads all that may concern anybody

    wanted = concerns.Wanted(needed, completed=None if completed is None else completed + _completed(call))
    if claim:
        from teams_cli.commands import next_tasks

        return next_tasks.awaited(call, wanted, timeout)
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
        option("--timeout", "How long to wait; by default for ever.", type=float, metavar="SECONDS"),
        doc=_WAIT,
        changes=False,
        words="waiting:waited",
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
