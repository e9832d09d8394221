"""Claiming tasks, giving them back, and saying that one is still at work."""

from __future__ import annotations

from teams_cli import text
from teams_cli.errors import Conflict, InvalidValue, NotAllowed, NotFound, StaleClaim, TeamsError, WrongState
from teams_cli.messages.notices import deliver
from teams_cli.names import id_of
from teams_cli.records.annotations import Callable, Iterator
from teams_cli.records.owed import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import jitter, update
from teams_cli.tasks import assigning, dependencies, leases, tasks, touching
from teams_cli.tasks.dependencies import TaskBlocked
from teams_cli.tasks.tasks import IN_PROGRESS, PRIORITIES, TASK, Note, Task
from teams_cli.teams import history, presence, roles, teams
from teams_cli.teams.operations import EVERYBODY, WORKERS, operation
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller


_SPREAD = 8
_MANY, _AT_ONCE = 20, 200


class TaskClaimed(Conflict):
    """Another agent owns the task."""


class NothingReady(NotFound):
    """No task is ready for the caller."""


@operation(
    "claim-task", may=WORKERS, instead="Leaders coordinate: leave the task to a member, or hand over the team first."
)
def claim(store: Store, team_name: str, caller: Caller | None, word: str) -> Task:
    """Make the caller the owner of a task that is free, whose blockers are all completed and whose skills it has.

    Claiming one's own task again changes nothing, so that an agent that lost the answer can ask again.

    Raises:
        TaskNotFound: There is no such task.
        TaskClaimed: Another agent owns the task; names it.
        TaskKept: It is kept for another agent; names it.
        TaskBlocked: A task that it waits for is not completed; names it.
        WrongState: The task is finished.
        NotAllowed: The caller's role may not claim, or it lacks a skill.
    """
    at = require(store, team_name, caller, "claim-task", word)
    team, caller = at.team, at.caller
    return _claim(store, team, caller, tasks.get(store, team_name, word))


def claim_next(
    store: Store,
    team_name: str,
    caller: Caller | None,
    sweep: bool = True,
    wanted: Callable[[Task], bool] | None = None,
) -> Task:
    """Claim the best task that is ready for the caller: the highest priority, then one that touches nothing which
    another has in progress, then the oldest; one that is *wanted*.

    Claims that are over are released first, unless *sweep* is off: a process that claims many may look less often.

    Raises:
        NothingReady: There is none.
    """
    at = require(store, team_name, caller, "claim-task", "--next")
    team, caller = at.team, at.caller
    if sweep:
        leases.release_all(store, team)
        assigning.free_lost(store, team)
    wrong: list[str] = []
    try:
        while True:
            task, passed_over = _first_free(store, team, caller, wanted or _any, wrong)
            if task is not None:
                return task
            if not passed_over:
                raise NothingReady(
                    f"no task is ready for {caller.name}",
                    "Wait for one: teams wait --claim; what holds up the others: teams get-tasks --blocked",
                )
    finally:
        _unmark(store, team, wrong)


def _unmark(store: Store, team: Team, wrong: list[str]) -> None:
    """Have keys forgotten under which there was no task to have: a few are of those just claimed, many take time."""
    if len(wrong) > _MANY:
        store.mark_anew(team.name, TASK, wrong[:_AT_ONCE])


def _any(_: Task) -> bool:
    return True


def _first_free(
    store: Store, team: Team, caller: Caller, wanted: Callable[[Task], bool], wrong: list[str]
) -> tuple[Task | None, int]:
    """Claim the first task that can be had; and how many were passed over unseen.

    Whoever loses a task to another goes on a few places further, or all that collided would collide again.
    """
    skills = _skills(team, caller)
    status_of = dependencies.stored(store, team.name)
    ahead = passed_over = 0
    for task in _candidates(store, team.name, caller.name, wrong):
        if ahead:
            ahead -= 1
            passed_over += 1
        elif skills.issuperset(task.require) and wanted(task) and not dependencies.open_blockers(task, status_of):
            try:
                return _claim(store, team, caller, task, anew=True), 0
            except (TaskClaimed, WrongState):
                ahead = int(jitter(_SPREAD))
            except Conflict:
                continue
    return None, passed_over


def may_claim(team: Team, caller: Caller) -> bool:
    """Whether the caller is a member whose role claims tasks."""
    member = team.member(caller.name)
    return member is not None and roles.verdict(member.role, "claim-task", team, caller.config) != "deny"


def is_free(store: Store, team: Team, caller: Caller) -> bool:
    """Whether the caller may claim tasks, and has none in progress."""
    if not may_claim(team, caller):
        return False
    return all(task.owner != caller.name for task in tasks.labelled(store, team.name, IN_PROGRESS))


def ready_for(store: Store, team: Team, caller: Caller) -> Iterator[Task]:
    """The tasks that the caller could claim now, best first; none if its role may not, or it has one in progress."""
    if not is_free(store, team, caller):
        return
    skills, status_of = _skills(team, caller), dependencies.stored(store, team.name)
    for task in _candidates(store, team.name, caller.name):
        if skills.issuperset(task.require) and not dependencies.open_blockers(task, status_of):
            yield task


def _candidates(store: Store, team: str, agent: str, wrong: list[str] | None = None) -> Iterator[Task]:
    """Pending tasks that are not kept for others, best first: before all those that are kept for the agent, at the end
    those that were edited by hand and so are found only by reading all.
    """
    kept = assigning.of_agent(store, team, agent)
    yield from kept
    seen = {task.id for task in kept}
    for priority in PRIORITIES:
        waits = tasks.labelled(store, team, *tasks.pending(priority), wrong=wrong)
        for task in touching.apart_first(store, team, agent, waits):
            seen.add(task.id)
            yield task
    found = (task for task in tasks.all_of(store, team, []) if task.id not in seen)
    rest = [task for task in found if task.status == "pending" and task.assignee in (None, agent)]
    yield from sorted(rest, key=lambda task: PRIORITIES.index(task.priority))


def _claim(store: Store, team: Team, caller: Caller, seen: Task, anew: bool = False) -> Task:
    """The task, *seen* so, as the caller's; one that it owns already is refused if it wants one *anew*."""
    lost: list[str] = []

    def change(task: Task) -> Task:
        lost[:] = [leases.over(store, team, task)]
        if task.status == "in_progress" and task.owner == caller.name and not lost[0] and not anew:
            return task
        free = leases.expired(store, team, task, lost[0], caller.name) if lost[0] else task
        _refuse_unready(store, team, free, caller)
        taken = _taken(store, team, free, caller.name)
        return taken if lost[0] else _telling_the_one_before(team, taken)

    if change(seen) is not seen:
        presence.forget_ended_process(store, team.name, caller.name)
    before, task = update(store, team.name, TASK, seen.id, change)
    if lost[0]:
        leases.note_expiry(store, team, before, lost[0])
    if before is not task:
        history.note(store, team.name, caller.name, "task claimed", task=task.id, claim=task.claim)
    deliver(store, team.name, TASK, task)
    return task


def _telling_the_one_before(team: Team, task: Task) -> Task:
    """The task, with a notice to who lost it against its will, and was told that it is free."""
    lost = lost_before(task)
    if lost is None or lost.owner in (lost.by, task.owner) or not team.member(lost.owner or ""):
        return task
    body = f"{task.id} ({task.title}), which was yours: {task.owner} has it now."
    return owing(
        task, Owed(to=lost.owner or "", message=body, uid=f"taken-{task.id}-{task.claim}", by=task.owner or "")
    )


def _refuse_unready(store: Store, team: Team, task: Task, caller: Caller) -> None:
    if task.status == "in_progress":
        raise TaskClaimed(f"{task.id} is claimed by {task.owner}", "Take another: teams claim-task --next")
    if task.status != "pending":
        raise WrongState(f"{task.id} is {task.status}", f"Open it again: teams update-task {task.id} --status pending")
    assigning.refuse_other(store, team, task, caller.name)
    if blockers := dependencies.open_blockers(task, dependencies.stored(store, team.name)):
        named = ", ".join(map(str, blockers))
        raise TaskBlocked(f"{task.id} waits for {named}", "Take another: teams claim-task --next")
    assigning.refuse_unskilled(team, task, caller.name, caller.config)


def lost_before(task: Task) -> Note | None:
    """How another lost the task, if its owner took it over: there may be uncommitted work of that one's; or how its
    owner did, which claimed it again when its lease was over.
    """
    ended = [note for note in task.notes if note.what in ("claimed", "expired", "released", "completed", "reopened")]
    if task.status != IN_PROGRESS or len(ended) < 2 or ended[-1].what != "claimed":
        return None
    lost = ended[-2]
    if lost.what not in ("expired", "released") or (lost.what == "released" and (lost.owner or lost.by) == task.owner):
        return None
    return lost.having(owner=lost.owner or lost.by)


def refuse_unable(team: Team, name: str, caller: Caller) -> None:
    """Refuse an owner that could not claim the task itself.

    Raises:
        AgentNotFound: It is no active member.
        InvalidValue, NotAllowed: It can't, or may not.
    """
    member = team.member(name)
    if member is None:
        teams.get_recipient(team, name)
        raise InvalidValue(f"{name} can't own a task", f"Members: {', '.join(team.active_names())}.")
    if roles.verdict(member.role, "claim-task", team, caller.config) == "deny":
        raise NotAllowed(f"{name} is a {member.role}, which may not claim-task", "Choose another member.")


def _taken(store: Store, team: Team, task: Task, agent: str) -> Task:
    now = teams.now(store)
    taken = task.having(status="in_progress", owner=agent, assignee=None, claimed_at=now, claim=task.claim + 1)
    return leases.leased(store, team, taken.noted(now, agent, "claimed"))


def _skills(team: Team, caller: Caller) -> set[str]:
    member = team.member(caller.name)
    return roles.skills_of(member, team, caller.config) if member else set()


@operation("release-task", may=EVERYBODY)
def release(store: Store, team_name: str, caller: Caller | None, word: str, reason: str | None = None) -> Task:
    """Give a task in progress back to the queue: one's own, or any as leader, task-manager or human.

    Raises:
        NotAllowed: It is another member's.
        WrongState: It is not in progress.
    """
    at = require(store, team_name, caller, "release-task", word)
    team, name = at.team, at.name
    text.within(reason or "", "reason", text.MAX_MESSAGE)
    may_any = at.leads or at.manages

    def change(task: Task) -> Task:
        if task.status != "in_progress":
            raise WrongState(f"{task.id} is {task.status}, not in progress", "Only claimed tasks can be released.")
        if task.owner != name and not may_any:
            raise NotAllowed(f"{task.id} is {task.owner}'s", f"Ask {task.owner} or the leader to release it.")
        owner = None if task.owner == name else task.owner
        freed = task.noted(teams.now(store), name, "released", reason, owner=owner).freed()
        why = f"{name} released it{f' ({reason})' if reason else ''}"
        return owing(freed, leases.loss(task, why, by=name)) if owner and team.member(owner) else freed

    task_id = tasks.get(store, team_name, word).id
    before, task = update(store, team_name, TASK, task_id, change)
    history.note(store, team_name, name, "task released", task=task.id, owner=before.owner, reason=reason)
    deliver(store, team_name, TASK, task)
    return task


def release_tasks_of(store: Store, team: Team, agent: str, by: str, reason: str) -> list[str]:
    """Give all tasks that the agent has in progress back to the queue; their ids."""

    def change(task: Task) -> Task:
        if task.status != "in_progress" or task.owner != agent:
            return task
        return task.noted(teams.now(store), by, "released", reason, owner=None if by == agent else agent).freed()

    released = []
    for task in list(tasks.labelled(store, team.name, IN_PROGRESS)):
        if task.owner == agent:
            before, after = update(store, team.name, TASK, task.id, change)
            if before is not after:
                history.note(store, team.name, by, "task released", task=task.id, owner=agent, reason=reason)
                released.append(task.id)
    return released


@operation("heartbeat", may=EVERYBODY)
def heartbeat(
    store: Store, team_name: str, caller: Caller | None, word: str | None = None, note: str | None = None
) -> list[Task]:
    """Say that you are at work, which renews the lease of a task, or of all that you have.

    Raises:
        StaleClaim: The task is no longer the caller's.
    """
    at = require(store, team_name, caller, "heartbeat")
    team, caller = at.team, at.caller
    name = caller.name
    if note is not None:
        text.one_line(note, "note")

    def renew(task: Task) -> Task:
        if task.status != "in_progress" or task.owner != name:
            raise StaleClaim(
                f"{task.id} is not in progress by {name}: it is {task.status}"
                + (f" by {task.owner}" if task.owner else ""),
                f"Claim it again: teams claim-task {task.id}",
            )
        return leases.leased(store, team, task)

    if word is not None:
        keys = [tasks.get(store, team_name, id_of(word, "task")).id]
    else:
        keys = [task.id for task in tasks.labelled(store, team_name, IN_PROGRESS) if task.owner == name]
    presence.forget_ended_process(store, team_name, name)
    renewed = [update(store, team_name, TASK, key, renew)[1] for key in keys]
    try:
        presence.saw(store, team_name, name, note, every=0)
    except TeamsError:
        if note is not None or not renewed:  # else what was asked for is done
            raise
    return renewed
