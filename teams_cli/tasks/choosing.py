"""Choosing: which task is the best of those that one may take."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import seconds_since
from teams_cli.store.contract import Store
from teams_cli.store.retrying import jitter
from teams_cli.tasks import assigning, dependencies, leases, tasks
from teams_cli.tasks.claims import may_claim, take
from teams_cli.tasks.tasks import IN_PROGRESS, PRIORITIES, TASK, Task
from teams_cli.teams import roles
from teams_cli.teams.permission import Caller, require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from teams_cli.store.pace import Alarm


_SPREAD = 8
_MANY, _AT_ONCE = 20, 200


def claim_next(
    store: Store,
    team_name: str,
    caller: Caller | None,
    wanted: Callable[[Task], bool] | None = None,
) -> Task:
    """Claim the best task that is ready for the caller: the highest priority, then one that touches nothing which
    another has in progress, then the oldest; one that is *wanted*.

    Claims that are over are released first.

    Raises:
        NothingReady: There is none.
    """
    at = require(store, team_name, caller, "claim-task", "--next")
    team, caller = at.team, at.caller
    release_lost(store, team)
    wrong: list[str] = []
    try:
        while True:
            task, passed_over = _first_free(store, team, caller, wanted or _any, wrong)
            if task is not None:
                return task
            if not passed_over:
                raise errors.NothingReady(f"no task is ready for {caller.name}", _in_vain(store, team))
    finally:
        _unmark(store, team, wrong)


def _in_vain(store: Store, team: Team) -> str:
    """The advice when no task is ready."""
    from teams_cli.tasks import overviews

    if overviews.over(store, team.name):
        return f"{overviews.DONE[0].upper()}{overviews.DONE[1:]}."
    return "Wait for one: teams wait --claim; or see the blocked ones: teams get-tasks --blocked"


def release_lost(store: Store, team: Team, alarm: Alarm | None = None) -> list[Task]:
    """Release every claim that is over, and give to anybody what is kept for members that are lost; the alarm rings
    when more of that may be so. The tasks that are left in progress.
    """
    held, kept = leases.release_all(store, team), assigning.free_lost(store, team)
    if alarm:
        leases.set_alarm(store, team, held, alarm)
        assigning.set_alarm(store, team, kept, alarm)
    return held


def _unmark(store: Store, team: Team, wrong: list[str]) -> None:
    """Have keys forgotten under which there was no task to have: a few are of those just claimed, many take time."""
    if len(wrong) > _MANY:
        store.mark_anew(team.name, TASK, wrong[:_AT_ONCE])


def _any(_: Task) -> bool:
    return True


def _first_free(
    store: Store,
    team: Team,
    caller: Caller,
    wanted: Callable[[Task], bool],
    wrong: list[str],
) -> tuple[Task | None, int]:
    """Claim the first task that can be had; and how many were passed over.

    After losing a task to another agent the search goes on a few places further, or those that collided would collide
    again.
    """
    skills = _skills(team, caller)
    status_of = dependencies.stored(store, team.name)
    ahead = passed_over = 0
    found = _candidates(store, team.name, caller.name, lambda: tasks.all_pending(store, team.name), wrong)
    for task in _last(
        found, lambda task: leases.may_be_claimed_again(task, caller.name) or _left_to_others(store, team, task, caller)
    ):
        if ahead:
            ahead -= 1
            passed_over += 1
        elif _may_be_taken(task, skills, status_of) and wanted(task):
            try:
                return take(store, team, caller, task, anew=True), 0
            except (errors.TaskClaimed, errors.WrongState):
                ahead = int(jitter(_SPREAD))
            except errors.Conflict:
                continue
    return None, passed_over


def _may_be_taken(task: Task, skills: set[str], status_of: Callable[[str], str]) -> bool:
    """Whether the task waits for nothing, may be tried once more, and requires none but these skills."""
    is_ready = skills.issuperset(task.require) and not dependencies.open_blockers(task, status_of)
    if not is_ready or task.attempts is None:
        return is_ready
    from teams_cli.tasks import attempts  # only tasks of runs count them

    return not attempts.used_up(task, task.attempts)


def is_free(store: Store, team: Team, caller: Caller) -> bool:
    """Whether the caller may claim tasks, and has none in progress."""
    if not may_claim(team, caller):
        return False
    return all(task.owner != caller.name for task in tasks.labelled(store, team.name, IN_PROGRESS))


def ready_for(store: Store, team: Team, caller: Caller, alarm: Alarm | None = None) -> Iterator[Task]:
    """The tasks that the caller could claim now, best first; none if its role may not, or it has one in progress. No
    more are read than are asked for, nor, where there are many, to find one that was edited by hand.

    What it gave back itself is left to others for a while, at the end of which the alarm rings.
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
    """Seconds for which a task is left to others, or to who mends it, as the caller gave it back and said why: as long
    as a lease lasts, unless something was done with the task since, or no other may claim it.
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
    """The tasks in their order, but some of them last."""
    last = []
    for task in found:
        if is_last(task):
            last.append(task)
        else:
            yield task
    yield from last


def _candidates(
    store: Store, team: str, agent: str, others: Callable[[], Iterator[Task]], wrong: list[str] | None = None
) -> Iterator[Task]:
    """Pending tasks that are not kept for others, best first: before all those that are kept for the agent, at the end
    those among the *others* that are not found by their label, as they were edited by hand.
    """
    kept = assigning.of_agent(store, team, agent)
    yield from kept
    seen = {task.id for task in kept}
    for priority in PRIORITIES:
        waits = tasks.labelled(store, team, *tasks.pending(priority), wrong=wrong)
        for task in _apart_first(store, team, agent, waits):
            seen.add(task.id)
            yield task
    found = (task for task in others() if task.id not in seen)
    rest = [task for task in found if task.status == "pending" and task.assignee in (None, agent)]
    yield from sorted(rest, key=lambda task: PRIORITIES.index(task.priority))


def _apart_first(store: Store, team: str, agent: str, found: Iterable[Task]) -> Iterator[Task]:
    """The tasks in their order, but first those that touch nothing which another has in progress."""
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
