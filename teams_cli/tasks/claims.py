"""Claims: taking a task, or the best one that is ready; showing that its owner is at work; giving it back."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import later, length, rfc3339, seconds_since
from teams_cli.messages import events
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN, check_name, id_of
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import jitter, update
from teams_cli.tasks import assigning, dependencies, leases, tasks
from teams_cli.tasks.assigning import refuse_taking
from teams_cli.tasks.tasks import IN_PROGRESS, PRIORITIES, TASK, Task
from teams_cli.teams import history, presence, roles, teams
from teams_cli.teams.permission import Caller, require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from teams_cli.store.pace import Alarm


def claim(store: Store, team_name: str, caller: Caller | None, word: str) -> Task:
    """Claim a free task. Its blockers must be completed, and you need its skills.

    Claiming your own task again changes nothing.

    Raises:
        TaskClaimed: Another agent owns the task; the error names it.
        TaskKept: The task is assigned to another agent; the error names it.
        TaskBlocked: A blocker is not completed; the error names it.
        WrongState: The task is finished.
        NotAllowed: Your role may not claim, or you lack a skill.
        TaskNotFound: There is no such task.
    """
    at = require(store, team_name, caller, "claim-task", word)
    return take(store, at.team, at.caller, tasks.get(store, team_name, word))


def may_claim(team: Team, caller: Caller) -> bool:
    """Whether the caller is a member whose role claims tasks."""
    member = team.member(caller.name)
    return member is not None and roles.verdict(member.role, "claim-task", team, caller.config) != "deny"


def take(store: Store, team: Team, caller: Caller, seen: Task, anew: bool = False) -> Task:
    """Make the caller the owner of the task, which was *seen* a moment ago. With *anew*, a task that the caller already
    owns is refused.
    """
    lost: list[str] = []
    if seen.owner != caller.name and leases.is_grace_due(store, seen):
        leases.release_if_expired(store, team, seen.id)

    def change(task: Task) -> Task:
        is_own = task.status == "in_progress" and task.owner == caller.name
        if is_own:  # by whom it is claimed again: it goes on
            presence.forget_ended_process(store, team.name, caller.name)
        lost[:] = [leases.why_claim_ended(store, team, task)]
        if is_own and not lost[0] and not anew:
            return task
        free = leases.expired(store, team, task, lost[0], caller.name) if lost[0] else task
        _refuse_unready(store, team, free, caller)
        presence.forget_ended_process(store, team.name, caller.name)  # before it owns what would be lost with that
        taken = _taken(store, team, free, caller.name)
        return taken if lost[0] else _telling_the_one_before(team, taken)

    before, task = update(store, team.name, TASK, seen.id, change)
    if lost[0]:
        leases.note_expiry(store, team, before, lost[0])
        leases.end_grace(store, team, before, task)
    if before is not task:
        history.note(store, team.name, caller.name, "task claimed", task=task.id, claim=task.claim)
    deliver(store, team.name, TASK, task)
    return task


def _telling_the_one_before(team: Team, task: Task) -> Task:
    """Return the task with a notice to its former owner, who lost it unwillingly and was told that it is free."""
    lost = leases.previous_loss(task)
    if lost is None or lost.owner in (lost.by, task.owner) or not team.member(lost.owner or ""):
        return task
    body = f"{task.id} ({task.title}), which was yours: {task.owner} has it now, and its files."
    return owing(task, task.notice(lost.owner or "", body, events.TASK_TAKEN, "taken", by=task.owner or ""))


def _refuse_unready(store: Store, team: Team, task: Task, caller: Caller) -> None:
    if task.status == "in_progress":
        asked = ""
        if task.in_grace:
            left = length(max(1.0, leases.seconds_left(store, task)))
            asked = f", who is silent; the task is released in {left} unless {task.owner} answers"
        taken = f"{task.id} is claimed by {task.owner}{asked}"
        raise errors.TaskClaimed(taken, "Claim another: teams claim-task --next")
    if task.status != "pending":
        again = "Claim another: teams claim-task --next"
        if task.status in ("failed", "cancelled"):
            again = f"Reopen it: teams update-task {task.id} --status pending"
        raise errors.WrongState(f"{task.id} is {assigning.state_of(task)}", again)
    if task.attempts is not None:
        from teams_cli.tasks import attempts  # only tasks of runs count them

        if why := attempts.used_up(task, task.attempts):
            raise errors.WrongState(f"{task.id} was {why}", "Claim another: teams claim-task --next")
    assigning.refuse_other(store, team, task, caller.name)
    if blockers := dependencies.open_blockers(task, dependencies.stored(store, team.name)):
        named = ", ".join(map(str, blockers))
        raise errors.TaskBlocked(f"{task.id} is blocked by {named}", "Claim another: teams claim-task --next")
    assigning.refuse_unskilled(team, task, caller.name, caller.config)


def refuse_unable(team: Team, name: str, caller: Caller, or_absent: bool = False) -> None:
    """Refuse an owner that could not claim the task itself. With *or_absent*, a member that has yet to join is
    accepted.

    Raises:
        AgentNotFound: It is no active member.
        InvalidValue, NotAllowed: It can't, or may not.
    """
    member = team.member(name)
    if member is None and or_absent and team.find(name) is None and name not in (HUMAN, "leader"):
        check_name(name, "agent")
        return
    if member is None:
        teams.get_recipient(team, name)
        raise errors.InvalidValue(f"{name} can't own a task", f"Members: {team.names_in_words()}.")
    if roles.verdict(member.role, "claim-task", team, caller.config) == "deny":
        raise errors.NotAllowed(f"{name} is a {member.role}, which may not claim-task", "Choose another member.")


def _taken(store: Store, team: Team, task: Task, agent: str) -> Task:
    now = teams.now(store)
    taken = task.having(status="in_progress", owner=agent, assignee=None, claimed_at=now, claim=task.claim + 1)
    return leases.with_full_lease(store, team, taken.noted(now, agent, "claimed"))


_MOST = 86400.0
"""The longest silence in seconds that an agent may announce."""
_GIVEN_BACK = "task-given-back"
"""The prefix of the uid of a notice to the leader that an owner gave a task back."""


def release(
    store: Store, team_name: str, caller: Caller | None, word: str, reason: str | None = None, force: bool = False
) -> Task:
    """Release a task in progress: your own, or any as leader, task-manager or human.

    With --reason, the leader is notified, and the task is offered to others before you.

    Raises:
        Conflict: Its owner is at work on it. `--force` releases it anyway.
        NotAllowed: It belongs to another member.
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
        event = events.TASK_RELEASED if reason else events.TASK_LOST
        return owing(freed, leases.loss_notice(task, why, by=name, event=event)) if team.member(owner) else freed

    before, task = update(store, team_name, TASK, tasks.get(store, team_name, word).id, change)
    leases.end_grace(store, team, before, task)
    history.note(store, team_name, name, "task released", task=task.id, owner=before.owner, reason=reason)
    deliver(store, team_name, TASK, task)
    return task


def _given_back(task: Task, team: Team, reason: str) -> Owed:
    """Return the notice to the leader that the owner released the task: the reason, and how to change the task."""
    body = (
        f"{task.id} ({task.title}) was released by {task.owner}: {reason} (to change it: teams update-task {task.id})"
    )
    return task.notice(team.leader, body, _GIVEN_BACK, "given-back", by=task.owner or "")


def tells_why(task: Task) -> bool:
    """Whether the leader is notified why the task was released. *task* is the result of `release`."""
    return any(told.event == _GIVEN_BACK for told in task.owed or ())


def release_tasks_of(store: Store, team: Team, agent: str, by: str, reason: str) -> list[str]:
    """Release all tasks that the agent has in progress, as lost by the agent, and return their ids."""

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
    """Show that you are at work. It renews the lease of a task, or of all your tasks.

    Before you are silent for longer than a lease, say for how long: `--for 30m`. You keep your tasks until then.

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
    lasts = max(leases.lease_seconds(team), seconds or 0.0)

    def renew(task: Task) -> Task:
        if task.status != "in_progress" or task.owner != name:
            raise errors.StaleClaim(
                f"{task.id} is not in progress by {name}: it is {task.status}"
                + (f" by {task.owner}" if task.owner else ""),
                f"Claim it again: teams claim-task {task.id}",
            )
        is_longer = seconds is None and not task.in_grace and leases.seconds_left(store, task) > lasts
        return task if is_longer else leases.with_lease(store, task, lasts)

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
        presence.note_sign_of_life(store, team_name, name, note, every=0)
    except errors.TeamsError:
        if note is not None or not renewed:  # else what was asked for is done
            raise
    return renewed


_SPREAD = 8
"""How many tasks are passed over at most after another agent was faster, so that agents that collided do not collide
again.
"""


def claim_next(
    store: Store,
    team_name: str,
    caller: Caller | None,
    wanted: Callable[[Task], bool] | None = None,
) -> Task:
    """Claim the best ready task for the caller, among those that are *wanted*: by priority, then tasks that touch
    nothing another has in progress, then the oldest.

    Claims that are over are released first.

    Raises:
        NothingReady: There is none.
    """
    at = require(store, team_name, caller, "claim-task", "--next")
    team, caller = at.team, at.caller
    release_lost(store, team)
    while True:
        task, passed_over = _first_free(store, team, caller, wanted)
        if task is not None:
            return task
        if not passed_over:
            raise errors.NothingReady(f"no task is ready for {caller.name}", _in_vain(store, team))


def _in_vain(store: Store, team: Team) -> str:
    """Return the advice when no task is ready."""
    from teams_cli.tasks import overviews

    if overviews.counts_if_ended(store, team.name):
        return f"{overviews.DONE[0].upper()}{overviews.DONE[1:]}."
    return "Wait for one: teams wait --claim; or see the blocked ones: teams get-tasks --blocked"


def release_lost(store: Store, team: Team, alarm: Alarm | None = None) -> list[Task]:
    """Release every expired claim, and free the tasks that are assigned to lost members. Return the tasks that are
    still in progress. The alarm rings when another claim may expire.
    """
    held, kept = leases.release_all(store, team), assigning.free_lost(store, team)
    if alarm:
        leases.set_alarm(store, team, held, alarm)
        assigning.set_alarm(store, team, kept, alarm)
    return held


def _first_free(
    store: Store, team: Team, caller: Caller, wanted: Callable[[Task], bool] | None
) -> tuple[Task | None, int]:
    """Claim the first free task. Also return how many were passed over."""
    skills = _skills(team, caller)
    status_of = dependencies.stored(store, team.name)
    ahead = passed_over = 0
    found = _candidates(store, team.name, caller.name, lambda: tasks.all_pending(store, team.name))
    for task in _last(
        found, lambda task: leases.may_be_claimed_again(task, caller.name) or _left_to_others(store, team, task, caller)
    ):
        if ahead:
            ahead -= 1
            passed_over += 1
        elif _may_be_taken(task, skills, status_of) and (wanted is None or wanted(task)):
            try:
                return take(store, team, caller, task, anew=True), 0
            except (errors.TaskClaimed, errors.WrongState):
                ahead = int(jitter(_SPREAD))
            except errors.Conflict:
                continue
    return None, passed_over


def _may_be_taken(task: Task, skills: set[str], status_of: Callable[[str], str]) -> bool:
    """Whether the task has no open blocker, has attempts left, and requires only these skills."""
    is_ready = skills.issuperset(task.require) and not dependencies.open_blockers(task, status_of)
    if not is_ready or task.attempts is None:
        return is_ready
    from teams_cli.tasks import attempts  # only tasks of runs count them

    return not attempts.used_up(task, task.attempts)


def is_free(store: Store, team: Team, caller: Caller) -> bool:
    """Whether the caller may claim tasks and has none in progress."""
    if not may_claim(team, caller):
        return False
    return all(task.owner != caller.name for task in tasks.labelled(store, team.name, IN_PROGRESS))


def ready_for(store: Store, team: Team, caller: Caller, alarm: Alarm | None = None) -> Iterator[Task]:
    """Yield the tasks that the caller could claim now, best first; none if its role may not claim or it has a task in
    progress.

    Tasks are read only as they are asked for. A task that the caller gave back is left to others for a while; the alarm
    rings at its end.
    """
    if not is_free(store, team, caller):
        return
    skills, status_of = _skills(team, caller), dependencies.stored(store, team.name)
    found = _candidates(store, team.name, caller.name, lambda: tasks.beyond_labels(store, team.name))
    for task in _last(found, lambda task: leases.may_be_claimed_again(task, caller.name)):
        if _may_be_taken(task, skills, status_of):
            if not (seconds := _left_to_others(store, team, task, caller)):
                yield task
            elif alarm:
                alarm.ring_after(seconds)


def _left_to_others(store: Store, team: Team, task: Task, caller: Caller) -> float:
    """Return the seconds for which the caller leaves a task to others that it gave back with a reason: the length of a
    lease, or 0 if the task was changed since or nobody else may claim it.
    """
    last = task.notes[-1] if task.notes else None
    if last is None or (last.what, last.by, last.owner) != ("released", caller.name, None) or not last.reason:
        return 0.0
    since = seconds_since(last.at, store.now())
    is_left = 0 <= since < leases.lease_seconds(team) and not task.of_a_run and _has_others(team, caller)
    return leases.lease_seconds(team) - since if is_left else 0.0


def _has_others(team: Team, caller: Caller) -> bool:
    """Whether another member may claim tasks."""
    others = (Caller(name, config=caller.config) for name in team.active_names() if name != caller.name)
    return any(may_claim(team, other) for other in others)


def _last(found: Iterable[Task], is_last: Callable[[Task], object]) -> Iterator[Task]:
    """Return the tasks in their order, but some of them last."""
    last = []
    for task in found:
        if is_last(task):
            last.append(task)
        else:
            yield task
    yield from last


def _candidates(store: Store, team: str, agent: str, others: Callable[[], Iterator[Task]]) -> Iterator[Task]:
    """Yield pending tasks that are not assigned to others, best first. Tasks that are assigned to the agent come first;
    *others* that were edited by hand, and so have no right label, come last.
    """
    kept = assigning.of_agent(store, team, agent)
    yield from kept
    seen = {task.id for task in kept}
    for priority in PRIORITIES:
        waits = tasks.labelled(store, team, *tasks.pending_labels(priority))
        for task in _apart_first(store, team, agent, waits):
            seen.add(task.id)
            yield task
    found = (task for task in others() if task.id not in seen)
    rest = [task for task in found if task.status == "pending" and task.assignee in (None, agent)]
    yield from sorted(rest, key=lambda task: PRIORITIES.index(task.priority))


def _apart_first(store: Store, team: str, agent: str, found: Iterable[Task]) -> Iterator[Task]:
    """Return the tasks in their order, but tasks first that touch nothing another member has in progress."""
    taken: list[tuple[str, str, str]] | None = None
    held: list[Task] = []
    for task in found:
        if task.touches:
            from teams_cli.tasks import touching  # most teams don't say what their tasks touch

            taken = touching.patterns_of_others(store, team, agent) if taken is None else taken
            if touching.meets_any(task, taken):
                held.append(task)
                continue
        yield task
    yield from held


def _skills(team: Team, caller: Caller) -> set[str]:
    member = team.member(caller.name)
    return roles.skills_of(member, team, caller.config) if member else set()
