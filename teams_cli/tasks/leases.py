"""Leases: a claim lasts as long as its owner shows signs of life.

When a lease ends, its owner and the leader are asked. If no sign of life comes in the grace period either, the task is
released, and all whom it concerns are notified.
"""

from __future__ import annotations

from teams_cli import clock, errors
from teams_cli.clock import later, of_day, rfc3339, seconds_since
from teams_cli.messages import events
from teams_cli.messages.notices import deliver, settle_request
from teams_cli.names import SYSTEM
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update, upsert
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import IN_PROGRESS, TASK, Note, Task
from teams_cli.teams import history, presence, teams
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from teams_cli.messages.messages import Message
    from teams_cli.store.pace import Alarm


_GRACE = 120.0
"""Seconds between the end of a lease and the end of the claim, or a whole lease if that is shorter. `goes_on` in the
PostgreSQL extension's schema.sql has the same figure.
"""
_LEASE = "lease-"
"""The prefix of `about` in a notice that asks for a sign of life."""
_SET = 30.0
"""A clock that differs by more seconds was set; a smaller difference is normal."""
_AGAIN = 1.0
"""Seconds until an expired claim is looked at again that this login may not release."""


def lease_seconds(team: Team) -> float:
    """Return the length of a lease in seconds: the team's `staleAfterSeconds`."""
    return team.silence


def with_full_lease(store: Store, team: Team, task: Task) -> Task:
    """Return the task with a lease that begins now."""
    return with_lease(store, task, lease_seconds(team))


def with_lease(store: Store, task: Task, seconds: float) -> Task:
    """Return the task with a lease that ends in so many seconds."""
    epoch, now = store.steady()
    expires = rfc3339(later(store.now(), seconds))
    until = round(now + seconds, 3)
    return task.having(lease_epoch=epoch, lease_until=until, lease_expires_at=expires, grace_until=None)


def seconds_left(store: Store, task: Task) -> float:
    """Return the seconds until the lease ends; negative once it has ended."""
    return (task.lease_until or 0.0) - store.steady()[1]


def expires_at(store: Store, task: Task) -> str | None:
    """Return when the lease ends, by the wall clock of now: the stored time may be from before the clock was set."""
    epoch, seconds = store.steady()
    if task.lease_expires_at is None or task.lease_until is None or task.lease_epoch != epoch:
        return task.lease_expires_at
    remaining = task.lease_until - seconds
    is_so = abs(remaining + seconds_since(task.lease_expires_at, store.now())) < _SET
    return task.lease_expires_at if is_so else rfc3339(later(store.now(), remaining))


def why_claim_ended(store: Store, team: Team, task: Task) -> str:
    """Return why the claim on a task in progress has ended; empty while it holds."""
    if task.status != "in_progress":
        return ""
    if task.owner is None or not teams.is_member(store, team, task.owner):
        return f"{task.owner or 'its owner'} is no longer a member"
    epoch, seconds = store.steady()
    if task.lease_until is None:
        return f"the claim of {task.owner} had no lease"
    if task.lease_epoch != epoch:
        return f"the machine restarted since {task.owner} claimed it"
    if presence.is_gone(presence.load(store, team.name, task.owner)):
        return f"the process of {task.owner} is gone"
    if task.in_grace and seconds > task.lease_until:
        return f"the lease of {task.owner} ended {of_day(task.lease_expires_at or '')} UTC"
    return ""


def is_grace_due(store: Store, task: Task) -> bool:
    """Whether the lease of a task in progress has ended, and its owner was not asked yet."""
    if task.status != "in_progress" or task.lease_until is None or task.in_grace:
        return False
    return store.steady()[1] > task.lease_until


def current(store: Store, team: Team, task: Task) -> Task:
    """Return the task after its claim was released if that has expired. On a read-only disk nothing is stored."""
    is_over = why_claim_ended(store, team, task)
    if not is_over and not is_grace_due(store, task):
        return task
    try:
        return release_if_expired(store, team, task.id)
    except errors.TeamsError:
        return task.freed() if is_over else task


def release_if_expired(store: Store, team: Team, task_id: str) -> Task:
    """If the claim on the task has expired, release the task and notify the leader. If its lease ran out, but its owner
    was not asked yet, begin the grace period, unless newer traces of work prolong the lease.
    """
    reasons: list[str] = []

    def change(task: Task) -> Task:
        reasons[:] = [why_claim_ended(store, team, task)]
        if reasons[0]:
            return expired(store, team, task, reasons[0])
        return _after_its_lease(store, team, task) if is_grace_due(store, task) else task

    try:
        before, task = update(store, team.name, TASK, task_id, change)
    except errors.NotAllowed:  # a login of PostgreSQL has to ask first, whatever else it knows of the owner
        reasons[:] = [""]
        before, task = update(
            store,
            team.name,
            TASK,
            task_id,
            lambda task: _in_grace(store, team, task) if is_grace_due(store, task) else task,
        )
    if before is not task and reasons[0]:
        note_expiry(store, team, before, reasons[0])
    end_grace(store, team, before, task)
    deliver(store, team.name, TASK, task)
    return task


def _after_its_lease(store: Store, team: Team, task: Task) -> Task:
    """Return a task whose lease has ended: with the rest of a lease if there are newer traces of work, else in its
    grace period.
    """
    from teams_cli.tasks import touching  # most leases are renewed before they end

    age = touching.seconds_since_work(store, team.name, task)
    if age is not None and age < lease_seconds(team):
        return with_lease(store, task, lease_seconds(team) - age)
    return _in_grace(store, team, task)


def _in_grace(store: Store, team: Team, task: Task) -> Task:
    """Return the task, whose lease has ended, in its grace period, with notices to its owner and to the leader."""
    seconds = min(_GRACE, lease_seconds(team))
    asked = with_lease(store, task, seconds)
    asked = asked.having(grace_until=asked.lease_until)
    name, soon = task.owner or "", clock.length(seconds)
    seen = presence.load(store, team.name, name).last_seen or task.claimed_at
    since = f" since {of_day(seen)} UTC" if seen else ""
    what, about = f"{task.id} ({task.title})", f"{_LEASE}{task.id}"
    to_owner = (
        f"{what}: are you at work on it? You were silent{since}; in {soon} others may take it. To keep it: teams "
        "heartbeat"
    )
    to_leader = (
        f"{what}: {name} is silent{since}, and was asked; in {soon} others may take it "
        f"(now: teams release-task {task.id})"
    )
    uid = f"{task.id}-{task.claim}-{asked.lease_until:.0f}"
    told = [Owed(to=name, message=to_owner, uid=f"asked-{uid}", about=about, event="lease-ending", task=task.id)]
    if team.leader != name:
        uid = f"silent-{uid}"
        told.append(Owed(to=team.leader, message=to_leader, uid=uid, about=about, event="owner-silent", task=task.id))
    return owing(asked, *told)


def end_grace(store: Store, team: Team, before: Task, task: Task) -> None:
    """Close the questions of a grace period that the change from *before* has ended."""
    if before.in_grace and not task.in_grace:
        for name in {before.owner or "", team.leader}:
            settle_request(store, team.name, name, f"{_LEASE}{task.id}")


def expired(store: Store, team: Team, task: Task, reason: str, taker: str = "") -> Task:
    """Return the task without owner, with notices to the leader and to the former owner."""
    now_with = f"; {taker} has it now" if taker else ""
    silent = (task.in_grace and seconds_left(store, task) < 0) or None
    last = presence.load(store, team.name, task.owner or "").last_seen if silent else None
    why = f"{reason}, and it was last heard of {of_day(last)}" if last else reason
    takers = now_with or _who_waits(store, team, task)
    body = f"{task.id} ({task.title}) is free again: {why}{takers}."
    told = [task.notice(team.leader, body, "task-expired", "expired")]
    if task.owner and team.member(task.owner) and task.owner != taker:
        told.append(loss_notice(task, reason, now_with))
    return owing(
        task.noted(
            teams.now(store), SYSTEM, "expired", why, owner=task.owner, silent=silent, cause=reason if last else None
        ).freed(),
        *told,
    )


def _who_waits(store: Store, team: Team, task: Task) -> str:
    """Return who will probably take the released task, as a phrase."""
    if task.assignee or task.require:
        return f"; it is assigned to {task.assignee}" if task.assignee else ""
    waiting = (agent for agent, _ in store.scan(team.name, presence.AGENT, []) if agent.waiting)
    # One that was killed as it waited says so for ever.
    names = (agent.agent for agent in waiting if agent.agent != task.owner and presence.is_around(store, team, agent))
    name = next(names, "")
    return f"; {name} waits for work, and is notified" if name else ""


def loss_notice(task: Task, reason: str, now_with: str = "", by: str = SYSTEM, event: str = events.TASK_LOST) -> Owed:
    """Return the notice to the former owner of the task: why it lost the task, and who has it now."""
    body = f"{task.id} ({task.title}) is no longer yours: {reason}{now_with or _free(task.id)}."
    return task.notice(task.owner or "", body, event, "lost", by=by)


def _free(key: str) -> str:
    return f"; it is free: teams claim-task {key}"


def without_offers(notices: Sequence[Message]) -> list[str]:
    """Return the texts of the notices. The offer to claim a task again is left out if another notice says who took the
    task.
    """
    taken = {task for event, task in map(events.of, notices) if event == events.TASK_TAKEN}
    texts = []
    for notice in notices:
        task = events.of(notice)[1]
        texts.append(notice.message.replace(_free(task), "") if task in taken else notice.message)
    return texts


def note_expiry(store: Store, team: Team, task: Task, reason: str) -> None:
    """Note in the history that the claim on *task* expired."""
    history.note(store, team.name, SYSTEM, "claim expired", task=task.id, owner=task.owner, reason=reason)


def release_all(store: Store, team: Team) -> list[Task]:
    """Release every task in progress whose claim has expired, and return those left in progress.

    Where only the lease has ended, the grace period begins. Tasks that only another login may release are left, and so
    are those of a closed team.
    """
    remaining = []
    for task in list(tasks.labelled(store, team.name, tasks.IN_PROGRESS)):
        try:
            is_due = is_grace_due(store, task) or why_claim_ended(store, team, task)
            now = release_if_expired(store, team, task.id) if is_due else task
        except (errors.NotAllowed, errors.WrongState):
            now = task
        if now.status == "in_progress":
            remaining.append(now)
    return remaining


def set_alarm(store: Store, team: Team, found: Iterable[Task], alarm: Alarm) -> None:
    """Have the alarm ring when the claim on one of these tasks may expire, by time or because a process ends."""
    for task in found:
        if task.status != "in_progress" or task.owner is None:
            continue
        seconds = seconds_left(store, task)
        alarm.ring_after(seconds if seconds >= 0 else _AGAIN)
        agent = presence.load(store, team.name, task.owner)
        alarm.ring_at_end_of(agent.pid, agent.pid_started, agent.pid_boot)


def may_be_claimed_again(task: Task, name: str) -> bool:
    """Whether a former owner other than that agent lost the task by silence alone and may come back, since nothing
    happened to the task after that.
    """
    last = next((note for note in reversed(task.notes) if note.added is None), None)
    return last is not None and bool(last.silent) and last.owner not in (None, name)


def previous_loss(task: Task) -> Note | None:
    """Return how the former owner lost the task if the present owner took it over, as there may be uncommitted work; or
    how the present owner lost it before it claimed the task again.
    """
    ended = [note for note in task.notes if note.what in ("claimed", "expired", "released", "completed", "reopened")]
    if task.status != tasks.IN_PROGRESS or len(ended) < 2 or ended[-1].what != "claimed":
        return None
    lost = ended[-2]
    if lost.what not in ("expired", "released") or (lost.what == "released" and (lost.owner or lost.by) == task.owner):
        return None
    return lost.having(owner=lost.owner or lost.by)


_PART = presence.RENEWED_AFTER


def renew(
    store: Store, team: Team, agent: Agent, reading: bool = False, refused: bool = False
) -> tuple[Agent, list[Task]]:
    """Note that the agent is alive, and renew the leases of its tasks, unless both was done a short while ago.

    Return the agent's record and its tasks whose lease was about to end. A command that only reads is noted if the
    agent has a task; a refused one if a quarter of a lease is gone.
    """
    if presence.renewed_lately(store, team, agent):
        return agent, []
    own = [task for task in tasks.labelled(store, team.name, IN_PROGRESS) if task.owner == agent.agent]
    if (reading and not own) or (refused and not any(_is_due(store, team, task) for task in own)):
        return agent, []
    found = [_renewed(store, team, task) for task in own]
    return _noted(store, team.name, agent.agent), [task for task in found if task is not None]


def _renewed(store: Store, team: Team, seen: Task) -> Task | None:
    """Renew the lease of the task. Return the task if its lease was about to end, and had not ended."""
    name, length = seen.owner, lease_seconds(team)

    def change(task: Task) -> Task:
        if task.owner != name or task.status != IN_PROGRESS or why_claim_ended(store, team, task):
            return task
        return with_full_lease(store, team, task) if _is_due(store, team, task) else task

    before, task = update(store, team.name, TASK, seen.id, change)
    end_grace(store, team, before, task)
    return before if before is not task and seconds_left(store, before) < length * _PART else None


def _is_due(store: Store, team: Team, task: Task) -> bool:
    """Whether so much of the lease is gone that renewing it is worth a write."""
    return seconds_left(store, task) < lease_seconds(team) * (1 - _PART)


def _noted(store: Store, team: str, name: str) -> Agent:
    now = teams.now(store)

    def change(agent: Agent) -> Agent:
        return agent.having(last_seen=now, renewed_at=now, host=store.host or None)

    return upsert(store, team, presence.AGENT.also_closed, name, presence.Agent(agent=name), change)[1]
