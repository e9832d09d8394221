"""Leases: a claim lasts as long as its owner shows signs of life.

When a lease ends, its owner is asked for a sign of life, and the leader is notified. If the owner gives none in the
grace period either, the task is released, and both are notified.
"""

from __future__ import annotations

from teams_cli import clock, errors
from teams_cli.clock import later, rfc3339, seconds_since, time_of_day
from teams_cli.messages.messages import Event, Message
from teams_cli.messages.notices import close_requests, deliver
from teams_cli.names import SYSTEM
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store, update, upsert
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import IN_PROGRESS, TASK, Note, Task
from teams_cli.teams import history, presence, teams
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from teams_cli.store.pace import Alarm


_GRACE = 120.0
"""Seconds between the end of a lease and the end of the claim. If the lease is shorter than this, the grace period is
as long as the lease. `goes_on` in the PostgreSQL extension's schema.sql has the same number.
"""
_LEASE = "lease-"
"""The prefix of `about` in a notice that asks for a sign of life. The id of the task follows."""
_MAX_CLOCK_DRIFT = 30.0
"""The maximum drift of a wall clock in normal use, in seconds. If a clock is off by more, it was set."""
_LOOK_AGAIN_AFTER = 1.0
"""Seconds until a wait looks again at an expired claim that this login may not release."""


def claimed_by(store: Store, team: Team, task: Task, owner: str, reason: str | None = None) -> Task:
    """Return the task in progress by the member *owner*, under a new claim. The *reason* is noted with the claim."""
    now = teams.now(store)
    claimed = task.having(status=IN_PROGRESS, owner=owner, assignee=None, claimed_at=now, claim=task.claim + 1)
    return with_lease(store, claimed.noted(now, owner, "claimed", reason), team.silence)


def with_lease(store: Store, task: Task, seconds: float) -> Task:
    """Return the task with a lease that ends after *seconds* seconds. A full lease is as long as `Team.silence`."""
    epoch, steady_now = store.steady()  # this clock decides; the time by the wall clock is for readers
    expires = rfc3339(later(store.now(), seconds))
    until = round(steady_now + seconds, 3)
    return task.having(lease_epoch=epoch, lease_until=until, lease_expires_at=expires, grace_until=None)


def seconds_left(store: Store, task: Task) -> float:
    """Return the seconds until the task's lease ends; a negative number if the lease has ended, or if there is none."""
    return (task.lease_until or 0.0) - store.steady()[1]


def expires_at(store: Store, task: Task) -> str | None:
    """Return when the task's lease ends, corrected if the wall clock was set; None if there is no lease."""
    epoch, steady_now = store.steady()
    if task.lease_expires_at is None or task.lease_until is None or task.lease_epoch != epoch:
        return task.lease_expires_at  # times of different epochs can't be compared, so it can't be corrected
    remaining = task.lease_until - steady_now
    remaining_by_wall_clock = -seconds_since(task.lease_expires_at, store.now())
    if abs(remaining - remaining_by_wall_clock) < _MAX_CLOCK_DRIFT:
        return task.lease_expires_at
    return rfc3339(later(store.now(), remaining))


def why_claim_ended(store: Store, team: Team, task: Task) -> str:
    """Return why the claim on the task has ended; "" if the claim holds, or if the task is not in progress."""
    if task.status != IN_PROGRESS:
        return ""
    if task.owner is None or not teams.is_member(store, team, task.owner):
        return f"{task.owner or 'its owner'} is no longer a member"
    epoch, steady_now = store.steady()
    if task.lease_until is None:
        return f"the claim of {task.owner} had no lease"
    if task.lease_epoch != epoch:
        return f"the machine restarted since {task.owner} claimed it"
    if presence.is_gone(presence.load_other(store, team.name, task.owner)):
        return f"the process of {task.owner} is gone"
    if task.in_grace and steady_now > task.lease_until:  # a claim ends only after a grace period
        return f"the lease of {task.owner} ended {time_of_day(task.lease_expires_at or '')} UTC"
    return ""


def is_grace_due(store: Store, task: Task) -> bool:
    """Whether the lease of a task in progress has ended, and its grace period has not begun."""
    if task.status != IN_PROGRESS or task.lease_until is None or task.in_grace:
        return False
    return store.steady()[1] > task.lease_until


def current(store: Store, team: Team, task: Task) -> Task:
    """Return the task, which is released first if its claim has expired. If only its lease has ended, do the same as
    `release_if_expired`. If this can't be stored, for example on a read-only disk, only the returned task is released.
    """
    has_ended = bool(why_claim_ended(store, team, task))
    if not has_ended and not is_grace_due(store, task):
        return task
    try:
        return release_if_expired(store, team, task.id)
    except errors.TeamsError:
        return task.freed() if has_ended else task


def release_if_expired(store: Store, team: Team, task_id: str) -> Task:
    """If the claim on the task has expired, release the task and notify the leader. Return the task.

    If only the lease has ended, look for a trace of the owner's work that is more recent than the length of a lease. If
    there is one, the task gets a new lease that begins at this trace. Otherwise the grace period begins, in which the
    owner is asked for a sign of life.
    """

    def change(task: Task) -> Task:
        if reason := why_claim_ended(store, team, task):
            return expired(store, team, task, reason)
        if not is_grace_due(store, task):
            return task
        from teams_cli.tasks import touching  # most leases are renewed before they end

        seconds = touching.seconds_since_work(store, team.name, task)
        if seconds is not None and seconds < team.silence:
            return with_lease(store, task, team.silence - seconds)
        return _in_grace(store, team, task)

    def begin_grace(task: Task) -> Task:
        return _in_grace(store, team, task) if is_grace_due(store, task) else task

    try:
        before, task = update(store, team.name, TASK, task_id, change)
    except errors.NotAllowed:  # a login of PostgreSQL must begin the grace period, whatever it knows of the owner
        before, task = update(store, team.name, TASK, task_id, begin_grace)
    note_expiry(store, team, before, task)
    end_grace(store, team, before, task)
    deliver(store, team.name, TASK, task)
    return task


def _in_grace(store: Store, team: Team, task: Task) -> Task:
    """Return the task in its grace period, with notices that ask its owner for a sign of life and inform the leader."""
    seconds = min(_GRACE, team.silence)
    in_grace = with_lease(store, task, seconds)
    in_grace = in_grace.having(grace_until=in_grace.lease_until)
    owner, time_left = task.owner or "", clock.length(seconds)
    last_seen = presence.load_other(store, team.name, owner).last_seen or task.claimed_at
    since = f" since {time_of_day(last_seen)} UTC" if last_seen else ""
    about = f"{_LEASE}{task.id}"
    to_owner = (
        f"{task.named}: are you at work on it? You were silent{since}; in {time_left} others may take it. "
        "To keep it: teams heartbeat"
    )
    uid = f"{task.id}-{task.claim}-{in_grace.lease_until:.0f}"
    fields = {"about": about, "task": task.id}
    notices = [Owed(to=owner, message=to_owner, uid=f"asked-{uid}", event=Event.LEASE_ENDING, **fields)]
    if team.leader != owner:
        to_leader = (
            f"{task.named}: {owner} is silent{since}, and was asked; in {time_left} others may take it "
            f"(now: teams release-task {task.id})"
        )
        notices.append(Owed(to=team.leader, message=to_leader, uid=f"silent-{uid}", event=Event.OWNER_SILENT, **fields))
    return owing(in_grace, *notices)


def end_grace(store: Store, team: Team, before: Task, task: Task) -> None:
    """If the change from *before* to *task* ended a grace period, close the notices that asked for a sign of life."""
    if before.in_grace and not task.in_grace:
        for name in {before.owner or "", team.leader}:
            close_requests(store, team.name, name, f"{_LEASE}{task.id}")


def expired(store: Store, team: Team, task: Task, reason: str, taker: str = "") -> Task:
    """Return the task without its owner, whose claim has expired for the *reason*. The task owes notices to the leader
    and to this former owner. *taker* is the member that claims the task at once; empty if nobody does.
    """
    now_with = f"; {taker} has it now" if taker else ""
    was_silent = task.in_grace and seconds_left(store, task) < 0
    last_seen = presence.load_other(store, team.name, task.owner or "").last_seen if was_silent else None
    if last_seen:
        full_reason, cause = f"{reason}, and it was last heard of {time_of_day(last_seen)}", reason
    else:  # the reason is noted as it is, so no `cause` is noted beside it
        full_reason, cause = reason, None
    body = f"{task.named} is free again: {full_reason}{now_with or _likely_taker(store, team, task)}."
    notices = [task.notice(team.leader, body, "task-expired", "expired")]
    if task.owner and team.member(task.owner) and task.owner != taker:
        notices.append(loss_notice(task, reason, now_with))
    silent = was_silent or None
    noted = task.noted(teams.now(store), SYSTEM, "expired", full_reason, owner=task.owner, silent=silent, cause=cause)
    return owing(noted.freed(), *notices)


def _likely_taker(store: Store, team: Team, task: Task) -> str:
    """Return who will probably claim the released task, such as "; it is assigned to bob"; "" if this is not known."""
    if task.assignee:
        return f"; it is assigned to {task.assignee}"
    if task.require:  # an agent that waits may lack the skills
        return ""
    for agent, _ in store.scan(team.name, presence.AGENT, []):
        # An agent that was killed as it waited stays marked as waiting.
        if agent.waiting and agent.agent != task.owner and presence.is_around(store, team, agent):
            return f"; {agent.agent} waits for work, and is notified"
    return ""


def loss_notice(task: Task, reason: str, now_with: str = "", by: str = SYSTEM, event: str = Event.TASK_LOST) -> Owed:
    """Return the notice to the task's owner that it lost the task for the *reason*. *now_with*, such as `; ann has it
    now`, ends the sentence. If it is empty, the sentence ends with the command that claims the task again.
    """
    body = f"{task.named} is no longer yours: {reason}{now_with or _claim_offer(task.id)}."
    return task.notice(task.owner or "", body, event, "lost", by=by)


def _claim_offer(task_id: str) -> str:
    return f"; it is free: teams claim-task {task_id}"


def without_offer(store: Store, team: str, notice: Message) -> str:
    """Return the text of the *notice* that a task was lost. If its reader can't claim the task now, because somebody
    else has it or it has ended, the text is without the offer to claim it.
    """
    _, task_id = notice.event_and_task
    try:
        task = tasks.get(store, team, task_id)
    except errors.TeamsError:
        return notice.message
    is_free = task.status == "pending" and task.assignee in (None, notice.to)
    return notice.message if is_free else notice.message.replace(_claim_offer(task_id), "")


def note_expiry(store: Store, team: Team, before: Task, task: Task) -> None:
    """If a claim expired in the change from *before* to *task*, note it in the history."""
    last_expiry = next((note for note in reversed(task.notes) if note.what == "expired"), None)
    if last_expiry and last_expiry not in before.notes:
        reason = last_expiry.cause or last_expiry.reason
        history.note(store, team.name, SYSTEM, "claim expired", task=task.id, owner=before.owner, reason=reason)


def release_all(store: Store, team: Team) -> list[Task]:
    """Release every task in progress whose claim has expired, and return the tasks that stay in progress.

    If only the lease of a task has ended, do the same as `release_if_expired`. Tasks that only another login may
    release stay in progress, and so do all tasks of a closed team.
    """
    remaining = []
    for task in list(tasks.labelled(store, team.name, IN_PROGRESS)):
        try:
            if is_grace_due(store, task) or why_claim_ended(store, team, task):
                task = release_if_expired(store, team, task.id)
        except (errors.NotAllowed, errors.WrongState):  # only another login may release it, or the team is closed
            pass
        if task.status == IN_PROGRESS:
            remaining.append(task)
    return remaining


def set_alarm(store: Store, team: Team, in_progress: Iterable[Task], alarm: Alarm) -> None:
    """Set the *alarm* for when the lease of one of these tasks, or the process of its owner, ends."""
    for task in in_progress:
        if task.status != IN_PROGRESS or task.owner is None:
            continue
        seconds = seconds_left(store, task)
        alarm.ring_after(seconds if seconds >= 0 else _LOOK_AGAIN_AFTER)
        agent = presence.load_other(store, team.name, task.owner)
        alarm.ring_at_end_of(agent.pid, agent.pid_started, agent.pid_boot)


def is_left_to_former_owner(task: Task, name: str) -> bool:
    """Whether the member *name* should leave the task to its former owner, so that this agent can claim it again. It
    should if the former owner is another agent that lost the task only by its silence, and nothing has happened to the
    task since.
    """
    loss = task.last_event
    return loss is not None and bool(loss.silent) and loss.owner not in (None, name)


def previous_loss(task: Task) -> Note | None:
    """Return the note on how the previous owner of the task, which is in progress again, lost it. The note's `owner` is
    that previous owner, who may have left uncommitted work. Return None if nobody lost the task, or if its present
    owner had released it before.
    """
    changes = [note for note in task.notes if note.what in ("claimed", "expired", "released", "completed", "reopened")]
    if task.status != IN_PROGRESS or len(changes) < 2 or changes[-1].what != "claimed":
        return None
    loss = changes[-2]
    if loss.what not in ("expired", "released"):
        return None
    loser = loss.owner or loss.by  # the note names no owner if the owner released the task itself
    if loss.what == "released" and loser == task.owner:  # the present owner had given it back
        return None
    return loss.having(owner=loser)


def renew(store: Store, team: Team, agent: Agent, reading: bool = False, only_if_due: bool = False) -> Agent:
    """Record that the agent is alive, and renew the leases of its tasks. Do nothing if this was done a short while ago.

    Return the agent's record. *reading* says that the command only reads, which is a sign of life only if the agent has
    a task. With *only_if_due*, do nothing unless a quarter of the lease of one of its tasks has passed.
    """
    if presence.renewed_lately(store, team, agent):
        return agent
    own_tasks = tasks.held_by(store, team.name, agent.agent)
    if reading and not own_tasks:
        return agent
    if only_if_due and not any(_is_renewal_due(store, team, task) for task in own_tasks):
        return agent
    for task in own_tasks:
        _renew_lease(store, team, task)
    now = teams.now(store)

    def note_renewal(agent: Agent) -> Agent:
        return agent.having(last_seen=now, renewed_at=now, host=store.host or None)

    fresh = Agent(agent=agent.agent)
    return upsert(store, team.name, presence.AGENT.even_in_closed_team, agent.agent, fresh, note_renewal)[1]


def _renew_lease(store: Store, team: Team, own_task: Task) -> None:
    """Renew the task's lease if that is due."""

    def change(task: Task) -> Task:
        if task.owner != own_task.owner or task.status != IN_PROGRESS or why_claim_ended(store, team, task):
            return task  # the claim has ended since *own_task* was read
        return with_lease(store, task, team.silence) if _is_renewal_due(store, team, task) else task

    before, task = update(store, team.name, TASK, own_task.id, change)
    end_grace(store, team, before, task)


def _is_renewal_due(store: Store, team: Team, task: Task) -> bool:
    """Whether the lease should be renewed, because the fraction `presence.RENEWED_AFTER` of a full lease has passed."""
    return seconds_left(store, task) < team.silence * (1 - presence.RENEWED_AFTER)
