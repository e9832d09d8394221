"""Holding a task: saying that one is still at work on it, and giving it back."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import later, rfc3339
from teams_cli.messages.notices import deliver
from teams_cli.names import id_of
from teams_cli.records.owed import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import leases, tasks
from teams_cli.tasks.owners import refuse_taking
from teams_cli.tasks.tasks import IN_PROGRESS, TASK, Task
from teams_cli.teams import history, presence, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller

_MOST = 86400.0
"""Seconds of silence that one may announce."""
_GIVEN_BACK = "given-back-"
"""What the uid of the notice begins with that tells the leader why its owner gave a task back."""


def release(
    store: Store, team_name: str, caller: Caller | None, word: str, reason: str | None = None, force: bool = False
) -> Task:
    """Release a task in progress: your own, or any as leader, task-manager or human.

    With --reason the leader is notified, and others are offered the task first.

    Raises:
        Conflict: Its owner is at work on it. `--force` releases it anyway.
        NotAllowed: It is another member's.
        WrongState: It is not in progress.
    """
    at = require(store, team_name, caller, "release-task", word)
    team, name = at.team, at.name
    text.within(reason or "", "reason", text.MAX_MESSAGE)
    may_any = at.leads or at.manages

    def change(task: Task) -> Task:
        if task.status != "in_progress":
            raise errors.WrongState(
                f"{task.id} is {task.status}, not in progress", "Only claimed tasks can be released."
            )
        if task.owner != name and not may_any:
            raise errors.NotAllowed(f"{task.id} belongs to {task.owner}", f"Ask {task.owner} or the leader.")
        if not force:
            refuse_taking(store, team, task, at.caller, f"teams release-task {task.id}")
        owner = None if task.owner == name else task.owner
        freed = task.noted(teams.now(store), name, "released", reason, owner=owner).freed()
        if owner is None:
            if not reason or name == team.leader or task.of_a_run:
                return freed
            return owing(freed, _given_back(task, team, reason))
        why = f"{name} released it{f' ({reason})' if reason else ''}"
        return owing(freed, leases.loss(task, why, by=name)) if team.member(owner) else freed

    found = tasks.find(store, team_name, word)
    before, task = update(store, team_name, TASK, found[0].id, change, found=found)
    leases.end_grace(store, team, before, task)
    history.note(store, team_name, name, "task released", task=task.id, owner=before.owner, reason=reason)
    deliver(store, team_name, TASK, task)
    return task


def _given_back(task: Task, team: Team, reason: str) -> Owed:
    """What the leader is told of a task that its owner gave back: why, and how to change it."""
    body = (
        f"{task.id} ({task.title}) was released by {task.owner}: {reason} (to change it: teams update-task {task.id})"
    )
    return Owed(to=team.leader, message=body, uid=f"{_GIVEN_BACK}{task.id}-{task.claim}", by=task.owner or "")


def tells_why(task: Task) -> bool:
    """Whether the leader is told why the task, as `release` returned it, was given back."""
    return any(told.uid.startswith(_GIVEN_BACK) for told in task.owed or ())


def release_tasks_of(store: Store, team: Team, agent: str, by: str, reason: str) -> list[str]:
    """Give all tasks that the agent has in progress back to the queue; their ids. It does not give them up itself, so
    they are noted as lost by it.
    """

    def change(task: Task) -> Task:
        if task.status != "in_progress" or task.owner != agent:
            return task
        return task.noted(teams.now(store), by, "released", reason, owner=agent).freed()

    released = []
    for task in list(tasks.labelled(store, team.name, IN_PROGRESS)):
        if task.owner == agent:
            before, after = update(store, team.name, TASK, task.id, change)
            if before is not after:
                history.note(store, team.name, by, "task released", task=task.id, owner=agent, reason=reason)
                released.append(task.id)
    return released


def heartbeat(
    store: Store,
    team_name: str,
    caller: Caller | None,
    word: str | None = None,
    note: str | None = None,
    seconds: float | None = None,
) -> list[Task]:
    """Say that you are at work. It renews the lease of a task, or of all your tasks.

    Before a silence longer than a lease, give its length: `--for 30m`. You keep your tasks until then.

    Raises:
        StaleClaim: The task is no longer yours.
        InvalidValue: `--for` is less than a second or more than a day.
    """
    at = require(store, team_name, caller, "heartbeat")
    team, caller = at.team, at.caller
    name = caller.name
    if note is not None:
        text.one_line(note, "note")
    if seconds is not None and not 1 <= seconds <= _MOST:
        raise errors.InvalidValue(
            f"{seconds:g} seconds is not a valid silence", "Give 1s to 1d: teams heartbeat --for 30m"
        )
    lasts = max(leases.length(team), seconds or 0.0)

    def renew(task: Task) -> Task:
        if task.status != "in_progress" or task.owner != name:
            raise errors.StaleClaim(
                f"{task.id} is not in progress by {name}: it is {task.status}"
                + (f" by {task.owner}" if task.owner else ""),
                f"Claim it again: teams claim-task {task.id}",
            )
        is_longer = seconds is None and not task.in_grace and leases.left(store, task) > lasts
        return task if is_longer else leases.lasting(store, task, lasts)

    if word is not None:
        keys = [tasks.get(store, team_name, id_of(word, "task")).id]
    else:
        keys = [task.id for task in tasks.labelled(store, team_name, IN_PROGRESS) if task.owner == name]
    presence.forget_ended_process(store, team_name, name)
    changed = [update(store, team_name, TASK, key, renew) for key in keys]
    for before, after in changed:
        leases.end_grace(store, team, before, after)
    renewed = [after for _, after in changed]
    if seconds is not None:
        presence.note_silence(store, team_name, name, rfc3339(later(store.now(), seconds)))
    try:
        presence.saw(store, team_name, name, note, every=0)
    except errors.TeamsError:
        if note is not None or not renewed:  # else what was asked for is done
            raise
    return renewed
