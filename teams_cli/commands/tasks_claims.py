"""Commands of who takes a task, and keeps it."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import length
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.commands.task_documents import taken
from teams_cli.tasks import choosing, claims
from teams_cli.tasks.tasks import FREED, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


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


COMMANDS = table(
    "Tasks",
    Command(
        "claim-task",
        _claim,
        argument("ID", "The task: 7, #7 or task-7.", name="task", required=False),
        switch("--next", "The best task that is ready for you."),
        option(
            "--wait",
            "With --next: how long to wait for a task or a message.",
            type=float,
            metavar="SECONDS",
        ),
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
)
