"""The command that waits."""

from __future__ import annotations

from teams_cli.agents import sessions
from teams_cli.agents.landings import landings
from teams_cli.agents.sessions import Session
from teams_cli.commands.declaration import Command, option, switch, table
from teams_cli.errors import TeamsError, WrongUsage
from teams_cli.names import each_name
from teams_cli.records.annotations import Any, Iterator
from teams_cli.teams.permission import standing_of
from teams_cli.views import conditions, steps
from teams_cli.views.conditions import Condition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.call import Call

_WAIT = """Wait for anything that concerns you, and print it in full with the command that follows; nothing comes twice.

Mail (read with that), a task that you can claim, an edit or the loss of yours, a decision, a question, a shutdown; for
a leader also tasks that end, plans, members lost, all settled. Or for one of the things named.

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
        raise WrongUsage(f"{completed} is no number of tasks to wait for", "Give a number from 1.")
    needed = needed or completed is not None
    wanted = list(_conditions(call, task, all_tasks, of, plan, message, ready))
    if landing is not None:
        wanted.append(conditions.landing_over(call.store, call.load_team().name, landing, lambda: _go_on(call)))
    else:
        _go_on(call)
    if not wanted:
        return _wait_for_anything(call, claim, needed, completed, timeout)
    if claim or needed:
        hint = "Wait for anything: teams wait --claim; or for one thing: teams wait --ready"
        raise WrongUsage("--claim, --needed and --completed go with waiting for anything that concerns you", hint)
    found = conditions.wait(call.store, call.team, wanted, timeout, call.say)
    if "taskCounts" in found and call.caller and (at := standing_of(call.load_team(), call.caller)) and at.leads:
        call.follows = steps.after_all(found["stuck"])
    if call.caller is not None and (call.caller.is_human or call.load_team().member(call.agent)):
        conditions.count_as_read(call.store, call.team, call.agent, found)
    call.follows = _after(call, found) or call.follows
    session = sessions.find(call.store, call.team, of) if of is not None and "agent" in found else None
    return found if session is None else {**_collected(call, session), **_besides(found)}


def _wait_for_anything(
    call: Call, claim: bool, needed: bool, completed: int | None, timeout: float | None
) -> dict[str, Any]:
    from teams_cli.views import concerns  # loads all that may concern anybody

    wanted = concerns.Wanted(needed, completed=completed)
    if claim:
        from teams_cli.commands import next_tasks

        return next_tasks.awaited(call, wanted, timeout)
    again = steps.WAIT_TO_LEAD if needed else steps.WAIT
    return concerns.wait(call.store, call.team, call.known, timeout, call.say, wanted, again)


def _after(call: Call, found: dict[str, Any]) -> str:
    """What follows on mail, a task that is ready, or a landing."""
    if "landing" in found and call.caller:
        return steps.after_landing(found["landing"], call.caller.name)
    return steps.READ if "unread" in found else steps.CLAIM if "ready" in found else ""


def _go_on(call: Call) -> None:
    """See to it that what is queued lands: who was at it may have been killed, or may not."""
    try:
        if landings.open_ones(call.store, call.team):
            from teams_cli.agents.landings import lander  # loads all that tries and merges

            lander.start(call.store, call.team, call.environ)
    except TeamsError:  # whoever comes next tries again
        return


def _conditions(
    call: Call, task: str | None, all_tasks: bool, of: str | None, plan: str | None, message: bool, ready: bool
) -> Iterator[Condition]:
    store, team = call.store, call.load_team().name if any((task, all_tasks, of, plan, message, ready)) else ""
    for one in each_name([task]) if task is not None else ():
        yield conditions.task_finished(store, team, one)
    if of is not None:
        yield conditions.agent_done(store, team, of)
    if plan is not None:
        yield conditions.plan_decided(store, team, plan)
    if message:
        yield conditions.message_there(store, team, call.agent)
    if ready:
        yield conditions.task_ready(store, team, call.known)
    if all_tasks:
        yield conditions.all_settled(store, team)


def _besides(found: dict[str, Any]) -> dict[str, Any]:
    """What else ended the wait."""
    return {key: value for key, value in found.items() if key != "agent"}


def _collected(call: Call, session: Session) -> dict[str, Any]:
    """How an agent that was started ended; for whom its output is, has it now."""
    from teams_cli.commands import agents

    if call.caller and call.caller.name == session.caller:
        agents.settle_output(call, session)
    shown: dict[str, Any] = agents.result_of(call, session)
    return shown


COMMANDS = table(
    "Agents",
    Command(
        "wait",
        _wait,
        option("--task", "Until 7 ended; one of 7,8.", metavar="ID"),
        switch("--all-tasks", "Until none is in progress or can be claimed.", seldom=True),
        option("--agent", "Until it has nothing in progress, or ended.", name="of", seldom=True),
        option("--plan", "Until this plan is decided.", metavar="ID", seldom=True),
        option("--landing", "Until it, or the last of task-N, landed or came back.", metavar="ID", seldom=True),
        switch("--message", "Until you have unread mail."),
        switch("--ready", "Until you can claim a task.", seldom=True),
        switch("--claim", "Claim the task that you can, at once."),
        switch("--needed", "Not for what others merely complete.", seldom=True),
        option("--completed", "As leader --needed, and once N tasks are.", type=int, metavar="N", seldom=True),
        option("--timeout", "Give up then; by default never.", type=float, metavar="SECONDS"),
        doc=_WAIT,
        changes=False,
        words="waiting:waited",
        long=True,
        sleeps=True,
        daily=True,
        quiet=True,
        example="wait --timeout 600",
        want="for what concerns you (--claim: and take a task)",
        also={
            "wait-for poll sleep await listen idle subscribe": "",
            "wait-for-work wait-for-task wait-for-tasks": "wait --claim",
            "wait-for-message wait-for-messages wait-message": "wait --message",
            "wait-all wait-for-all": "wait --all-tasks",
            "wait-task wait-for/ID wait-for-task/ID await/ID": "wait --task ID",
        },
    ),
)
