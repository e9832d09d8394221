"""Show the state of a team's work in one line, for an agent whose wait ran out."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import length, seconds_since
from teams_cli.store.contract import Store
from teams_cli.store.pace import Alarm
from teams_cli.tasks import dependencies, leases, overviews, plans, tasks
from teams_cli.tasks.overviews import Overview
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import standing_of
from teams_cli.teams.teams import Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from teams_cli.teams.permission import Caller

    Look = Callable[[Alarm], dict[str, Any] | None]


_NAMED = 3
"""Tasks that are named: those whose owners are silent longest."""

_SILENT = 60.0
"""Seconds of silence that are worth a word."""

_NOBODY = "no member has joined yet (teams join-team, or teams run-agent)"


def in_words(store: Store, team_name: str, caller: Caller) -> str:
    """What others are at, since when, and who of them is silent; who leads hears what is free, and of a standstill."""
    try:
        team = teams.get(store, team_name)
        at = standing_of(team, caller)
        return _work(store, team, caller.name, leads=caller.is_human or (at is not None and at.leads))
    except errors.TeamsError:  # that nothing came is told all the same
        return ""


def of_nobody(store: Store, team_name: str, caller: Caller) -> str:
    """A text for the leader: there is no other member to wait for."""
    try:
        team = teams.get(store, team_name)
    except errors.TeamsError:  # the wait itself says what is wrong
        return ""
    at = standing_of(team, caller)
    return _NOBODY if at and at.leads and not _others(team, caller.name) else ""


def of_all(store: Store, team_name: str) -> str:
    """What all are at, since when, and who of them is silent; what is free, and whether nothing goes on."""
    return _work(store, teams.get(store, team_name), "", leads=True)


def _work(store: Store, team: Team, but: str, leads: bool) -> str:
    found = [task for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS) if task.owner != but]
    whole = overviews.overview(store, team.name)
    left = _left(store, team, but, found, whole) if leads else _end(whole)
    return "; ".join(filter(None, (_in_work(store, team, found, whole.found), left)))


def _end(whole: Overview) -> str:
    """A text for a member that waits for work: no task is left."""
    counts = whole.counts
    at_work = counts[tasks.IN_PROGRESS] or counts.get(tasks.IN_REVIEW)
    return "no other task is left" if at_work and not counts["pending"] else ""


def _in_work(store: Store, team: Team, found: list[Task], others: Sequence[Task] = ()) -> str:
    by_silence = sorted(((silence(store, team, task), task) for task in found), key=lambda each: -each[0])
    named = text.listed([_named(store, task, silent, others) for silent, task in by_silence], _NAMED)
    return f"In progress: {named}" if named else ""


def of_task(store: Store, team_name: str, task_id: str) -> str:
    """The owner of the task and since when; for a task without an owner, the reason."""
    team = teams.get(store, team_name)
    task = leases.current(store, team, tasks.get(store, team_name, task_id))
    if task.status == tasks.IN_PROGRESS:
        return _in_work(store, team, [task])
    if task.status == tasks.IN_REVIEW:
        return f"{task.id} waits for {task.review_by}'s review"
    if waits := dependencies.open_blockers(task, dependencies.stored(store, team_name)):
        return f"{task.id} is blocked by {text.listed([_blocker(store, team, each) for each in waits], _NAMED)}"
    return f"{task.id} is ready, {f'assigned to {task.assignee}' if task.assignee else 'and nobody has claimed it'}"


def _blocker(store: Store, team: Team, blocker: dependencies.Blocker) -> str:
    if blocker.status != tasks.IN_PROGRESS:
        return str(blocker)
    task = tasks.get(store, team.name, blocker.id)
    return _named(store, task, silence(store, team, task))


def of_plan(store: Store, team_name: str, plan_id: str) -> str:
    """Since when the plan waits, and when who decides it was last heard of."""
    team, plan = teams.get(store, team_name), plans.get(store, team_name, plan_id)
    waits = f"{plan.id} has waited {length(seconds_since(plan.created_at, store.now()))} for {team.leader}"
    seen = presence.load(store, team.name, team.leader or "").last_seen
    return f"{waits}, last heard of {length(seconds_since(seen, store.now()))} ago" if seen else waits


def of_agent(store: Store, team_name: str, name: str) -> str:
    """What the agent has in work; of one that `teams` started, how its session stands."""
    from teams_cli.agents import sessions

    session = sessions.find(store, team_name, name)
    found = [task for task in tasks.labelled(store, team_name, tasks.IN_PROGRESS) if task.owner == name]
    started = f"{name} is {session.state}" if session and not session.ended else ""
    return "; ".join(filter(None, (started, _in_work(store, teams.get(store, team_name), found))))


def silence(store: Store, team: Team, task: Task) -> float:
    """Seconds for which nothing was heard of the owner."""
    last_seen = presence.load(store, team.name, task.owner or "").last_seen
    return seconds_since(max(last_seen or "", task.claimed_at or ""), store.now())


def _named(store: Store, task: Task, silent: float, others: Sequence[Task] = ()) -> str:
    """The task with its owner, since when, and how many of the *others* wait for it."""
    since = length(seconds_since(task.claimed_at, store.now())) if task.claimed_at else ""
    behind = len(dependencies.waiting_for([task.id], others))
    waited_for = f"{behind} blocked by it" if behind else ""
    return f"{task.id} ({', '.join(filter(None, (task.owner, since, _silent_for(silent), waited_for)))})"


def _silent_for(silent: float) -> str:
    """A phrase about a silence of so many seconds, if it is long."""
    return f"silent for {length(silent)}" if silent >= _SILENT else ""


def _left(store: Store, team: Team, but: str, in_work: list[Task], whole: Overview) -> str:
    """What there is to take, and who has nothing to do; where nobody works, also what else is left, and who was last
    heard of.
    """
    ready = len(whole.ready) + whole.free
    if in_work:
        return "; ".join(filter(None, (f"{ready} ready" if ready else "", _idle(store, team, but, in_work))))
    waiting = whole.counts["pending"] - ready
    if not ready + waiting:
        return ""
    counts = [f"{number} {what}" for number, what in ((ready, "ready"), (waiting, "blocked")) if number]
    return f"Nobody has a task: {', '.join(counts)}; {_last_heard_of(store, team, but)}"


def _idle(store: Store, team: Team, but: str, in_work: list[Task]) -> str:
    """Who of the others has nothing to do, and since when nothing was heard of it, if that is long."""
    busy = {team.leader, *(task.owner for task in in_work)}
    named = []
    for member in _others(team, but):
        if member.agent_id not in busy:
            silent = _silent_for(seconds_since(_heard_of(store, team, member), store.now()))
            named.append(f"{member.agent_id} ({silent})" if silent else member.agent_id)
    return f"idle: {text.listed(named, _NAMED)}" if named else ""


def _last_heard_of(store: Store, team: Team, but: str) -> str:
    """The other member that was last heard of, and when."""
    heard = [(_heard_of(store, team, member), member.agent_id) for member in _others(team, but)]
    if not heard:
        return _NOBODY
    seen, name = max(heard)
    return f"last seen: {name}, {length(seconds_since(seen, store.now()))} ago"


def _others(team: Team, but: str) -> list[Member]:
    return [member for member in team.members if member.active and member.agent_id != but]


def _heard_of(store: Store, team: Team, member: Member) -> str:
    return max(presence.load(store, team.name, member.agent_id).last_seen or "", member.joined_at or team.created_at)
