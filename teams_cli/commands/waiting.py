"""The command that waits."""

from __future__ import annotations

from teams_cli import conditions, sessions
from teams_cli.commands.declaration import Command, option, switch, table
from teams_cli.errors import WrongUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.sessions import Session

_WAIT = """Wait for one thing, and print what came of it: a task is finished, all tasks are settled, an agent
has nothing in progress, a plan is decided, or a message for you is there.

For an agent that `teams` started, wait until its session ends, then print its output.

Tasks are settled when none is in progress and every pending one waits for one that failed or was cancelled.

Raises:
    WaitRanOut: It did not come about within the time.
"""


def _wait(
    call: Call,
    task: str | None,
    all_tasks: bool,
    of: str | None,
    plan: str | None,
    message: bool,
    timeout: float | None,
) -> Any:
    wanted = [task is not None, all_tasks, of is not None, plan is not None, message]
    if sum(wanted) != 1:
        raise WrongUsage("say one thing to wait for", "Use --task ID, --all-tasks, --agent A, --plan ID or --message.")
    store, team = call.store, call.load_team().name
    if task is not None:
        condition, what = conditions.task_finished(store, team, task), f"the end of {task}"
    elif of is not None:
        condition, what = conditions.agent_done(store, team, of), f"the end of {of}'s work"
    elif plan is not None:
        condition, what = conditions.plan_decided(store, team, plan), f"a decision on {plan}"
    elif message:
        condition, what = conditions.message_there(store, team, call.agent), "a message"
    else:
        condition, what = conditions.all_settled(store, team), "the end of all tasks"
    found = conditions.wait(store, team, condition, timeout, what)
    session = sessions.find(store, team, of) if of is not None else None
    return found if session is None else _collected(call, session)


def _collected(call: Call, session: Session) -> Any:
    """How an agent that was started ended; for whom its output is, has it now."""
    from teams_cli.commands import agents

    if call.caller and call.caller.name == session.caller:
        agents.settle_output(call, session)
    return agents.shown(call, session)


COMMANDS = table(
    Command(
        "wait",
        _wait,
        option("--task", "Until this task is completed, failed or cancelled.", metavar="ID"),
        switch("--all-tasks", "Until all tasks are settled."),
        option("--agent", "Until this member has nothing in progress.", name="of"),
        option("--plan", "Until this plan is decided.", metavar="ID"),
        switch("--message", "Until you have an unread message."),
        option("--timeout", "Give up after so many seconds; by default never.", type=float, metavar="SECONDS"),
        doc=_WAIT,
        changes=False,
    ),
)
