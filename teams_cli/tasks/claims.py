"""Claims: taking a given task or the best ready one, showing that its owner is at work, and giving it back."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import jitter, later, length, rfc3339, seconds_since
from teams_cli.messages.messages import Event
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store, update
from teams_cli.tasks import assigning, dependencies, leases, tasks
from teams_cli.tasks.assigning import refuse_taking
from teams_cli.tasks.tasks import IN_PROGRESS, PRIORITIES, TASK, Task
from teams_cli.teams import history, presence, roles, teams
from teams_cli.teams.permission import Caller, require, standing_of
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from teams_cli.store.pace import Alarm

_CLAIM_ANOTHER = "Claim another: teams claim-task --next"


def claim(store: Store, team_name: str, caller: Caller | None, task_ref: str) -> Task:
    """Claim a free task. Its blockers must be completed, and you need the skills that it requires.

    Claiming your own task again changes nothing.

    Raises:
        TaskClaimed: Another agent owns the task; the error names it.
        TaskKept: The task is assigned to another agent; the error names it.
        TaskBlocked: A blocker is not completed; the error names it.
        WrongState: The task is finished.
        NotAllowed: Your role may not claim, or you lack a skill.
        TaskNotFound: There is no such task.
    """
    standing = require(store, team_name, caller, "claim-task", task_ref)
    return take(store, standing.team, standing.caller, tasks.get(store, team_name, task_ref))


def may_claim(team: Team, caller: Caller) -> bool:
    """Whether the caller is a member whose role may claim tasks."""
    member = team.member(caller.name)
    return member is not None and roles.verdict(member.role, "claim-task", team, caller.config) != "deny"


def take(store: Store, team: Team, caller: Caller, seen: Task, refuse_own: bool = False) -> Task:
    """Make the caller the owner of a task, and return the task. *seen* is the task as it was read a moment ago. If the
    caller already owns the task, change nothing, or refuse it if *refuse_own* is set.
    """
    if seen.owner != caller.name and leases.is_grace_due(store, seen):
        leases.release_if_expired(store, team, seen.id)

    def change(task: Task) -> Task:
        is_own = task.status == IN_PROGRESS and task.owner == caller.name
        if is_own:  # the caller is at work, so the end of its former process does not end its claim
            presence.forget_ended_process(store, team.name, caller.name)
        expiry_reason = leases.why_claim_ended(store, team, task)
        if is_own and not expiry_reason and not refuse_own:
            return task
        free = leases.expired(store, team, task, expiry_reason, caller.name) if expiry_reason else task
        _refuse_unready(store, team, free, caller)
        # This must precede the claim: if the caller's former process has ended, its new claim would end at once.
        presence.forget_ended_process(store, team.name, caller.name)
        claimed = leases.claimed_by(store, team, free, caller.name)
        loss = leases.previous_loss(claimed)
        if expiry_reason or loss is None or loss.owner in (loss.by, caller.name) or not team.member(loss.owner or ""):
            return claimed  # the former owner gave the task back itself, has left, or is notified of the expiry
        body = f"{task.named}, which was yours: {caller.name} has it now, and its files."
        return owing(claimed, claimed.notice(loss.owner or "", body, Event.TASK_TAKEN, "taken", by=caller.name))

    before, task = update(store, team.name, TASK, seen.id, change)
    leases.note_expiry(store, team, before, task)
    leases.end_grace(store, team, before, task)
    if before is not task:
        history.note(store, team.name, caller.name, "task claimed", task=task.id, claim=task.claim)
    deliver(store, team.name, TASK, task)
    return task


def claim_again(store: Store, team_name: str, caller: Caller | None, task: Task, claim: int | None) -> None:
    """Claim the pending *task* for its former owner, who wants to finish it now, if its claim expired and nothing has
    happened to it since. If the former owner may not have the task, or *claim* is not the number of that claim, do
    nothing.
    """
    loss = task.last_event
    if loss is None or loss.what != "expired" or claim not in (None, task.claim):
        return
    try:
        standing = require(store, team_name, caller, "claim-task", task.id)
        if loss.owner == standing.name:
            take(store, standing.team, standing.caller, task)
    except (errors.Conflict, errors.NotAllowed):  # the change itself is refused, and says why
        return


def _refuse_unready(store: Store, team: Team, task: Task, caller: Caller) -> None:
    """Refuse a task that the caller can't claim now. The error says why, and what to do instead."""
    if task.status == IN_PROGRESS:
        refusal = f"{task.id} is claimed by {task.owner}"
        if task.in_grace:
            time_left = length(max(1.0, leases.seconds_left(store, task)))
            refusal += f", who is silent; the task is released in {time_left} unless {task.owner} answers"
        raise errors.TaskClaimed(refusal, _CLAIM_ANOTHER)
    if task.status != "pending":
        hint, standing = _CLAIM_ANOTHER, standing_of(team, caller)
        if task.status in ("failed", "cancelled") and standing:
            reopen = assigning.how_to_reopen(task, standing)
            hint = reopen if assigning.may_reopen(task, standing) else f"{reopen} {_CLAIM_ANOTHER}"
        raise errors.WrongState(f"{task.id} is {assigning.state_of(task)}", hint)
    if why := why_used_up(task, task.attempts):
        raise errors.WrongState(f"{task.id} was {why}", _CLAIM_ANOTHER)
    assigning.refuse_other(store, team, task, caller.name)
    if blockers := dependencies.open_blockers(task, dependencies.stored(store, team.name)):
        hint = "Wait for it, or claim another: teams wait --claim --timeout 540"
        raise errors.TaskBlocked(f"{task.id} is blocked by {', '.join(map(str, blockers))}", hint)
    assigning.refuse_unskilled(team, task, caller.name, caller.config)


def why_used_up(task: Task, most: int | None) -> str:
    """Return why the task may not be claimed again: at least *most* of its claims have ended without a result since the
    task was last reopened. Return "" if it may be claimed. If *most* is None, there is no limit.
    """
    if most is None:
        return ""
    claims = sum(note.what == "claimed" for note in task.since_reopened)
    if task.status == IN_PROGRESS:  # the present claim has not ended
        claims -= 1
    if claims < most:
        return ""
    losses = [note for note in task.since_reopened if note.what in ("released", "expired")]
    last_reason = (losses[-1].reason or losses[-1].what) if losses else ""
    return f"claimed and released {claims} times: {last_reason}"


def refuse_unable(team: Team, name: str, caller: Caller, or_absent: bool = False) -> None:
    """Refuse to give a task to a member who could not claim tasks. With *or_absent*, the name of a member that has yet
    to join is accepted.

    Raises:
        AgentNotFound: No active member has that *name*, or nobody can join with it.
        InvalidValue: The human can't own a task.
        NotAllowed: The member's role may not claim tasks.
    """
    member = team.member(name)
    if member is None and or_absent and team.find(name) is None and name not in (HUMAN, "leader"):
        teams.refuse_unjoinable(team, name)
        return
    if member is None:
        teams.get_recipient(team, name)
        raise errors.InvalidValue(f"{name} can't own a task", f"Members: {team.names_in_words()}.")
    if not may_claim(team, Caller(name, config=caller.config)):
        able = [other for other in team.active_names() if may_claim(team, Caller(other, config=caller.config))]
        hint = f"Choose one of {text.listed(able)}." if able else "Start a member: teams run-agent PROMPT --detach"
        raise errors.NotAllowed(f"{name} is a {member.role}, which may not claim-task", hint)


def free_unfit(store: Store, team: Team, caller: Caller) -> None:
    """Free the tasks that were assigned to the caller before it joined, and that it may not claim: its role does not
    allow it, or it lacks a skill. The leader is notified.
    """

    def why(task: Task) -> str:
        if task.assignee != caller.name:
            return ""
        try:
            refuse_unable(team, caller.name, caller)
            assigning.refuse_unskilled(team, task, caller.name, caller.config)
        except errors.NotAllowed as unfit:
            return unfit.message
        return ""

    for task in assigning.of_agent(store, team.name, caller.name):
        if why(task):
            assigning.free(store, team, task.id, why)


_MAX_SILENCE = 86400.0
"""The longest silence in seconds that an agent may announce."""
_GIVEN_BACK = "task-given-back"
"""The event of the notice that tells the leader that an owner gave a task back."""


def release(
    store: Store, team_name: str, caller: Caller | None, task_ref: str, reason: str | None = None, force: bool = False
) -> Task:
    """Release a task in progress: your own, or anybody's if you are the leader, a task-manager or the human.

    With --reason, the leader is notified, and the task is offered to others before you.

    Raises:
        Conflict: The owner is at work on the task; `--force` releases it anyway.
        NotAllowed: The task belongs to another member.
        WrongState: The task is not in progress.
    """
    standing = require(store, team_name, caller, "release-task", task_ref)
    team, name = standing.team, standing.name
    text.within(reason or "", "reason", text.MAX_MESSAGE)

    def change(task: Task) -> Task:
        if task.status != IN_PROGRESS:
            raise errors.WrongState(
                f"{task.id} is {task.status}, not in progress", "Only claimed tasks can be released."
            )
        if task.owner != name and not (standing.leads or standing.manages):
            raise errors.NotAllowed(f"{task.id} belongs to {task.owner}", f"Ask {task.owner} or the leader.")
        if not force:
            command = assigning.REPEAT if reason else f"teams release-task {task.id}"
            refuse_taking(store, team, task, standing.caller, command)
        owner = None if task.owner == name else task.owner
        freed = task.noted(teams.now(store), name, "released", reason, owner=owner).freed()
        notice = _release_notice(team, task, name, reason)
        return owing(freed, notice) if notice else freed

    before, task = update(store, team_name, TASK, tasks.get(store, team_name, task_ref).id, change)
    leases.end_grace(store, team, before, task)
    history.note(store, team_name, name, "task released", task=task.id, owner=before.owner, reason=reason)
    deliver(store, team_name, TASK, task)
    return task


def _release_notice(team: Team, task: Task, by: str, reason: str | None) -> Owed | None:
    """Return the notice that *by* released the task. It goes to the leader if *by* is the owner and gave a *reason*,
    and to the owner if *by* is another member. Return None if nobody has to be notified.
    """
    if task.owner == by:
        if not reason or by == team.leader or task.of_a_run:
            return None
        body = f"{task.named} was released by {by}: {reason} (to change it: teams update-task {task.id} --append TEXT)"
        return task.notice(team.leader, body, _GIVEN_BACK, "given-back", by=by)
    if not team.member(task.owner or ""):
        return None
    why = f"{by} released it ({reason})" if reason else f"{by} released it"
    event = Event.TASK_RELEASED if reason else Event.TASK_LOST
    return leases.loss_notice(task, why, by=by, event=event)


def tells_why(task: Task) -> bool:
    """Whether the leader was sent the reason for the release. *task* is the task that `release` returned."""
    return any(notice.event == _GIVEN_BACK for notice in task.owed or ())


def release_tasks_of(store: Store, team: Team, agent: str, by: str, reason: str) -> list[str]:
    """Release all tasks that the agent has in progress, and return their ids. The agent gets no notice of this."""

    def change(task: Task) -> Task:
        if task.status != IN_PROGRESS or task.owner != agent:
            return task
        return task.noted(teams.now(store), by, "released", reason, owner=agent).freed()

    released = []
    for task in tasks.held_by(store, team.name, agent):
        before, after = update(store, team.name, TASK, task.id, change)
        if before is not after:
            history.note(store, team.name, by, "task released", task=task.id, owner=agent, reason=reason)
            released.append(task.id)
    return released


def heartbeat(
    store: Store,
    team_name: str,
    caller: Caller | None,
    task_ref: str | None = None,
    note: str | None = None,
    seconds: float | None = None,
) -> list[Task]:
    """Show that you are at work. This renews the lease of a task, or of all your tasks.

    Before a silence that is longer than a lease, say how long it will last: `--for 30m`. You keep your tasks for that
    time.

    Raises:
        StaleClaim: The task is no longer yours.
        InvalidValue: `--for` is less than a second or more than a day.
    """
    standing = require(store, team_name, caller, "heartbeat")
    team, name = standing.team, standing.name
    if note is not None:
        text.one_line(note, "note")
    if seconds is not None and not 1 <= seconds <= _MAX_SILENCE:
        raise errors.InvalidValue(
            f"{seconds:g} seconds is not a valid silence", "Give 1s to 1d: teams heartbeat --for 30m"
        )
    lease_length = max(team.silence, seconds or 0.0)

    def renew(task: Task) -> Task:
        if task.status != IN_PROGRESS or task.owner != name:
            state = f"{task.status} by {task.owner}" if task.owner else task.status
            hint = f"See: teams show-task {task.id}"
            if task.status == "pending":
                _, hint = assigning.how_to_claim(store, task, standing)
            raise errors.StaleClaim(f"{task.id} is not in progress by {name}: it is {state}", hint)
        if seconds is None and not task.in_grace and leases.seconds_left(store, task) > lease_length:
            return task  # an earlier `--for` gave it a longer lease
        return leases.with_lease(store, task, lease_length)

    if task_ref is not None:
        task_ids = [tasks.get(store, team_name, task_ref).id]
    else:
        task_ids = [task.id for task in tasks.held_by(store, team_name, name)]
    presence.forget_ended_process(store, team_name, name)
    changes = [update(store, team_name, TASK, task_id, renew) for task_id in task_ids]
    for before, after in changes:
        leases.end_grace(store, team, before, after)
    if seconds is not None:
        presence.note_silence(store, team_name, name, rfc3339(later(store.now(), seconds)))
    try:
        presence.note_sign_of_life(store, team_name, name, note, every=0)
    except errors.TeamsError:
        if note is not None or not changes:  # else the leases that were to be renewed are renewed
            raise
    return [after for _, after in changes]


_MAX_SKIPPED = 8
"""The maximum number of tasks to skip after another agent was faster. Agents that collided skip different numbers of
tasks, so that they do not collide again.
"""


def claim_next(
    store: Store, team_name: str, caller: Caller | None, wanted: Callable[[Task], bool] | None = None
) -> Task:
    """Claim the best ready task for the caller: by priority, then the oldest. At equal priority, tasks that touch the
    same code as another agent's task in progress come last.

    Expired claims are released first. If *wanted* is given, only tasks for which it returns True are claimed.

    Raises:
        NothingReady: No such task is ready.
    """
    standing = require(store, team_name, caller, "claim-task", "--next")
    team, caller = standing.team, standing.caller
    release_lost(store, team)
    skills, status_of = _skills(team, caller), dependencies.stored(store, team.name)
    has_skipped = True
    while has_skipped:  # one of the skipped tasks may be ready
        to_skip, has_skipped, priority = 0, False, ""
        for task in _candidates(store, team, caller, tasks.all_pending):
            if has_skipped and task.priority != priority:
                break  # the skipped tasks come before those of another priority
            if to_skip:
                to_skip -= 1
                has_skipped = True
            elif _is_ready(task, skills, status_of) and (wanted is None or wanted(task)):
                try:
                    return take(store, team, caller, task, refuse_own=True)
                except (errors.TaskClaimed, errors.WrongState):  # another agent was faster
                    to_skip = int(jitter(min(_MAX_SKIPPED, len(team.active_names()))))
                    priority = task.priority
                except errors.Conflict:  # the task can't be claimed for now, for another reason
                    continue
    from teams_cli.tasks import overviews

    if overviews.counts_if_ended(store, team.name):
        advice = f"{overviews.DONE[0].upper()}{overviews.DONE[1:]}."
    else:
        advice = "Wait for one: teams wait --claim; or see the blocked ones: teams get-tasks --blocked"
    raise errors.NothingReady(f"no task is ready for {caller.name}", advice)


def release_lost(store: Store, team: Team, alarm: Alarm | None = None) -> list[Task]:
    """Release every expired claim, and free the tasks whose assignees are lost. Return the tasks that are still in
    progress. If an *alarm* is given, set it for the next time when a claim may expire or an assignee may be lost.
    """
    in_progress, assigned = leases.release_all(store, team), assigning.free_lost(store, team)
    if alarm:
        leases.set_alarm(store, team, in_progress, alarm)
        at_work = {task.owner for task in in_progress if task.status == IN_PROGRESS}  # their leases decide
        assigning.set_alarm(store, team, [task for task in assigned if task.assignee not in at_work], alarm)
    return in_progress


def _is_ready(task: Task, skills: set[str], status_of: Callable[[str], str]) -> bool:
    if not skills.issuperset(task.require) or dependencies.open_blockers(task, status_of):
        return False
    return not why_used_up(task, task.attempts)


def may_claim_now(store: Store, team: Team, caller: Caller) -> bool:
    """Whether the caller may claim tasks and has none in progress. A task does not count if the caller has stored its
    result and it only waits for other tasks.
    """
    if not may_claim(team, caller):
        return False
    own_tasks = tasks.held_by(store, team.name, caller.name)
    return all(dependencies.only_awaits_others(store, team.name, task) for task in own_tasks)


def ready_for(store: Store, team: Team, caller: Caller, alarm: Alarm) -> Iterator[Task]:
    """Yield the tasks that the caller could claim now, best first. Yield none unless `may_claim_now` allows it.

    A task that the caller gave back with a reason is left to others for a while; the *alarm* is set for the end of this
    time. Each task is read only when the iterator reaches it.
    """
    if not may_claim_now(store, team, caller):
        return
    skills, status_of = _skills(team, caller), dependencies.stored(store, team.name)
    for task in _candidates(store, team, caller, tasks.beyond_labels):
        if _is_ready(task, skills, status_of):
            seconds = _seconds_reserved_for_others(store, team, task, caller)
            if not seconds:
                yield task
            else:
                alarm.ring_after(seconds)


def _seconds_reserved_for_others(store: Store, team: Team, task: Task, caller: Caller) -> float:
    """Return how many more seconds the caller leaves the task to other members; 0 if it may claim the task now. If the
    caller gave the task back with a reason and another member may claim it, this time is as long as a lease.
    """
    last = task.notes[-1] if task.notes else None
    if last is None or last.what != "released" or not last.reason:
        return 0.0
    gave_back_itself = last.by == caller.name and last.owner is None  # the note names an owner who is another member
    if not gave_back_itself:
        return 0.0
    elapsed = seconds_since(last.at, store.now())
    if task.of_a_run or not 0 <= elapsed < team.silence:
        return 0.0
    others = (Caller(name, config=caller.config) for name in team.active_names() if name != caller.name)
    return team.silence - elapsed if any(may_claim(team, other) for other in others) else 0.0


def _candidates(
    store: Store, team: Team, caller: Caller, read_unlabelled: Callable[[Store, str], Iterator[Task]]
) -> Iterator[Task]:
    """Yield the pending tasks that are not assigned to other members, best first. Last come tasks that another agent
    lost only by its silence and may claim again, and tasks that the caller leaves to others for a while.
    *read_unlabelled* yields tasks that may have a wrong label.
    """
    deferred = []
    for task in _by_priority(store, team.name, caller.name, read_unlabelled):
        if leases.is_left_to_former_owner(task, caller.name) or _seconds_reserved_for_others(store, team, task, caller):
            deferred.append(task)
        else:
            yield task
    yield from deferred


def _by_priority(
    store: Store, team: str, agent: str, read_unlabelled: Callable[[Store, str], Iterator[Task]]
) -> Iterator[Task]:
    """Yield the pending tasks that are not assigned to other members: first those assigned to the agent, then the rest
    by priority. Tasks that were edited by hand may have a wrong label. They come last, from *read_unlabelled*.
    """
    assigned = assigning.of_agent(store, team, agent)
    yield from assigned
    yielded = {task.id for task in assigned}
    for priority in PRIORITIES:
        patterns: list[tuple[str, str, str]] | None = None
        overlapping: list[Task] = []  # tasks that touch the same code as another agent's task in progress come last
        for task in tasks.labelled(store, team, *tasks.pending_labels(priority)):
            yielded.add(task.id)
            if task.touches:
                from teams_cli.tasks import touching  # most teams don't say what their tasks touch

                if patterns is None:
                    patterns = touching.patterns_of_others(store, team, agent)
                if any(touching.touches(task, pattern) for pattern, _, _ in patterns):
                    overlapping.append(task)
                    continue
            yield task
        yield from overlapping
    edited = [
        task
        for task in read_unlabelled(store, team)
        if task.id not in yielded and task.status == "pending" and task.assignee in (None, agent)
    ]
    yield from sorted(edited, key=lambda task: PRIORITIES.index(task.priority))


def _skills(team: Team, caller: Caller) -> set[str]:
    member = team.member(caller.name)
    return roles.skills_of(member, team, caller.config) if member else set()
