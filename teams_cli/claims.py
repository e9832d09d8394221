"""Claiming tasks, giving them back, and saying that one is still at work."""

from __future__ import annotations

from teams_cli import agents, history, leases, roles, tasks, teams, text
from teams_cli.errors import Conflict, NotAllowed, NothingReady, StaleClaim, TaskBlocked, TaskClaimed, WrongState
from teams_cli.names import id_of
from teams_cli.roles import require
from teams_cli.store.contract import jitter, update
from teams_cli.tasks import IN_PROGRESS, PRIORITIES, TASK, waiting
from teams_cli.teams import LEADER, MANAGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from teams_cli.caller import Caller
    from teams_cli.store.contract import Store
    from teams_cli.tasks import Task
    from teams_cli.teams import Team


_SPREAD = 8


def claim(store: Store, team_name: str, caller: Caller | None, word: str) -> Task:
    """Make the caller the owner of a task that is free, whose blockers are all completed and whose skills it has.

    Claiming one's own task again changes nothing, so that an agent that lost the answer can ask again.

    Raises:
        TaskNotFound: There is no such task.
        TaskClaimed: Another agent owns the task; names it.
        TaskBlocked: A task that it waits for is not completed; names it.
        WrongState: The task is finished.
        NotAllowed: The caller's role may not claim, or it lacks a skill.
    """
    team = require(store, team_name, caller, "claim-task", word)
    assert caller is not None
    task_id = tasks.load(store, team_name, word).id
    return _claim(store, team, caller, task_id)


def claim_next(store: Store, team_name: str, caller: Caller | None, sweep: bool = True) -> Task:
    """Claim the best task that is ready for the caller: the highest priority, then the oldest.

    Claims that are over are released first, unless *sweep* is off: a process that claims many may look less often.

    Raises:
        NothingReady: There is none.
    """
    team = require(store, team_name, caller, "claim-task", "--next")
    assert caller is not None
    if sweep:
        leases.release_all(store, team)
    while True:
        task, passed_over = _first_free(store, team, caller)
        if task is not None:
            return task
        if not passed_over:
            raise NothingReady(
                f"no task is ready for {caller.name}",
                "See what blocks the others: teams get-tasks --blocked; wait: teams read-messages --wait 300",
            )


def _first_free(store: Store, team: Team, caller: Caller) -> tuple[Task | None, int]:
    """Claim the first task that can be had; and how many were passed over unseen.

    Whoever loses a task to another goes on a few places further, or all that collided would collide again.
    """
    skills = _skills(team, caller)
    ahead = passed_over = 0
    for task in _candidates(store, team.name):
        if ahead:
            ahead -= 1
            passed_over += 1
        elif skills.issuperset(task.require) and not tasks.open_blockers(store, team.name, task):
            try:
                return _claim(store, team, caller, task.id, anew=True), 0
            except (TaskClaimed, WrongState):
                ahead = int(jitter(_SPREAD))
            except Conflict:
                continue
    return None, passed_over


def _candidates(store: Store, team: str) -> Iterator[Task]:
    """Pending tasks, best first; at the end those that were edited by hand and so are found only by reading all."""
    seen: set[str] = set()
    for priority in PRIORITIES:
        for task in tasks.labelled(store, team, waiting(priority)):
            seen.add(task.id)
            yield task
    rest = [task for task in tasks.everything(store, team, []) if task.status == "pending" and task.id not in seen]
    yield from sorted(rest, key=lambda task: PRIORITIES.index(task.priority))


def _claim(store: Store, team: Team, caller: Caller, task_id: str, anew: bool = False) -> Task:
    """The task as the caller's; one that it owns already is refused if it wants one *anew*."""
    skills = _skills(team, caller)
    lost: list[str] = []

    def change(task: Task) -> Task:
        lost[:] = [leases.over(store, team, task)]
        if task.status == "in_progress" and task.owner == caller.name and not lost[0] and not anew:
            return task
        free = leases.expired(store, task, lost[0]) if lost[0] else task
        _refuse_unready(store, team.name, free, skills, caller.name)
        agents.forget_ended_process(store, team.name, caller.name)
        return _taken(store, team, free, caller.name)

    before, task = update(store, team.name, TASK, task_id, change)
    if lost[0]:
        leases.tell(store, team, before, lost[0])
    if before is not task:
        history.note(store, team.name, caller.name, "task claimed", task=task.id, claim=task.claim)
    return task


def _refuse_unready(store: Store, team: str, task: Task, skills: set[str], agent: str) -> None:
    if task.status == "in_progress":
        raise TaskClaimed(f"{task.id} is claimed by {task.owner}", "Take another: teams claim-task --next")
    if task.status != "pending":
        raise WrongState(f"{task.id} is {task.status}", f"Open it again: teams update-task {task.id} --status pending")
    if blockers := tasks.open_blockers(store, team, task):
        named = ", ".join(f"{blocker.id} ({blocker.status})" for blocker in blockers)
        raise TaskBlocked(f"{task.id} waits for {named}", "Take another: teams claim-task --next")
    refuse_unskilled(task, skills, agent)


def refuse_unskilled(task: Task, skills: set[str], agent: str) -> None:
    """Raises NotAllowed: The task asks for a skill that the agent has not."""
    if missing := set(task.require) - skills:
        raise NotAllowed(
            f"{task.id} asks for skills that {agent} has not: {', '.join(sorted(missing))}",
            "Skills come with the role or the --type at joining: `teams define-role`.",
        )


def _taken(store: Store, team: Team, task: Task, agent: str) -> Task:
    now = teams.now(store)
    taken = task.having(status="in_progress", owner=agent, claimed_at=now, claim=task.claim + 1)
    return leases.leased(store, team, taken.noted(now, agent, "claimed"))


def _skills(team: Team, caller: Caller) -> set[str]:
    member = team.member(caller.name)
    return roles.skills_of(member, team, caller.config) if member else set()


def release(store: Store, team_name: str, caller: Caller | None, word: str, reason: str | None = None) -> Task:
    """Give a task in progress back to the queue: one's own, or any as leader, task-manager or human.

    Raises:
        NotAllowed: It is another member's.
        WrongState: It is not in progress.
    """
    team = require(store, team_name, caller, "release-task", word)
    assert caller is not None
    name = caller.name
    text.within(reason or "", "reason", text.MAX_MESSAGE)
    may_any = roles.is_any(team, caller, LEADER, MANAGER, "human")

    def change(task: Task) -> Task:
        if task.status != "in_progress":
            raise WrongState(f"{task.id} is {task.status}, not in progress", "Only claimed tasks can be released.")
        if task.owner != name and not may_any:
            raise NotAllowed(f"{task.id} is {task.owner}'s", f"Ask {task.owner} or the leader to release it.")
        return task.noted(teams.now(store), name, "released", reason).freed()

    task_id = tasks.load(store, team_name, word).id
    before, task = update(store, team_name, TASK, task_id, change)
    history.note(store, team_name, name, "task released", task=task.id, owner=before.owner, reason=reason)
    return task


def release_tasks_of(store: Store, team: Team, agent: str, by: str, reason: str) -> list[str]:
    """Give all tasks that the agent has in progress back to the queue; their ids."""

    def change(task: Task) -> Task:
        if task.status != "in_progress" or task.owner != agent:
            return task
        return task.noted(teams.now(store), by, "released", reason).freed()

    released = []
    for task in list(tasks.labelled(store, team.name, IN_PROGRESS)):
        if task.owner == agent:
            before, after = update(store, team.name, TASK, task.id, change)
            if before is not after:
                history.note(store, team.name, by, "task released", task=task.id, owner=agent, reason=reason)
                released.append(task.id)
    return released


def heartbeat(
    store: Store, team_name: str, caller: Caller | None, word: str | None = None, note: str | None = None
) -> list[Task]:
    """Say that the caller is at work: renews the lease of one task, or of all it has in progress.

    Raises:
        StaleClaim: The task is no longer the caller's.
    """
    team = require(store, team_name, caller, "heartbeat")
    assert caller is not None
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
        keys = [tasks.load(store, team_name, id_of(word, "task")).id]
    else:
        keys = [task.id for task in tasks.labelled(store, team_name, IN_PROGRESS) if task.owner == name]
    agents.forget_ended_process(store, team_name, name)
    renewed = [update(store, team_name, TASK, key, renew)[1] for key in keys]
    agents.saw(store, team_name, name, note, every=0)
    return renewed
