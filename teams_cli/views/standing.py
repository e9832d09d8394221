"""Show the state of a team's work in one line, for an agent whose wait ran out."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import length, seconds_since
from teams_cli.store.contract import Store
from teams_cli.tasks import dependencies, leases, overviews, plans, tasks
from teams_cli.tasks.overviews import Overview
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import standing_of
from teams_cli.teams.teams import Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teams_cli.teams.permission import Caller


_MOST_NAMED = 3
"""The maximum number of tasks or members that a phrase names."""
_SILENT = 60.0
"""A silence of fewer seconds is not mentioned."""


def in_words(store: Store, team_name: str, caller: Caller) -> str:
    """Describe what the other members work on and which of them are silent. For a leader or the person, also describe
    the ready tasks and the idle members. Return "" if the state can't be read.
    """
    try:
        team = teams.get(store, team_name)
        standing = standing_of(team, caller)
        leads = caller.is_human or (standing is not None and standing.leads)
        return _state_of_work(store, team, caller.name, leads)
    except errors.TeamsError:  # the end of the wait is reported all the same
        return ""


def hint_if_alone(store: Store, team_name: str, caller: Caller) -> str:
    """Return a hint if the caller leads a team in which there is no other member to wait for, else ""."""
    try:
        team = teams.get(store, team_name)
    except errors.TeamsError:  # the wait itself says what is wrong
        return ""
    standing = standing_of(team, caller)
    return _nobody(team, caller.name) if standing and standing.leads and not _others(team, caller.name) else ""


def _nobody(team: Team, reader: str) -> str:
    """Return a phrase that says that the team has no member but the *reader*, and how it gets one."""
    had_members = any(member.agent_id != reader for member in team.members)
    who = "no member is left" if had_members else "no member has joined yet"
    return f"{who} (start one: teams run-agent PROMPT --detach; others join with: teams join-team {team.name})"


def of_all(store: Store, team_name: str) -> str:
    """Describe who works on what, who is silent, and which tasks are ready. If nobody works, say so."""
    return _state_of_work(store, teams.get(store, team_name), "", leads=True)


def _state_of_work(store: Store, team: Team, reader: str, leads: bool) -> str:
    """Describe who, besides the *reader*, works on what; if *leads*, also the ready tasks and the idle members."""
    in_progress = [task for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS) if task.owner != reader]
    overview = overviews.overview(store, team.name)
    phrases = [_in_progress(store, team, in_progress, overview.tasks_read)]
    if leads:
        in_review = [f"{task.id} ({task.review_by})" for task in tasks.labelled(store, team.name, tasks.IN_REVIEW)]
        phrases.append(f"in review: {text.listed(in_review, _MOST_NAMED)}" if in_review else "")
        phrases.append(_ready_and_idle(store, team, reader, in_progress, overview))
    else:
        has_others_at_work = overview.counts[tasks.IN_PROGRESS] or overview.counts.get(tasks.IN_REVIEW)
        phrases.append("no other task is left" if has_others_at_work and not overview.counts["pending"] else "")
    state = "; ".join(filter(None, phrases))
    return state[:1].upper() + state[1:]


def _in_progress(store: Store, team: Team, in_progress: list[Task], others: Sequence[Task] = ()) -> str:
    """Return a phrase with the tasks in progress, those with the longest silent owners first; "" if there are none."""
    by_silence = sorted(((silence(store, team, task), task) for task in in_progress), key=lambda each: -each[0])
    shown = text.listed([_task_in_words(store, task, silent, others) for silent, task in by_silence], _MOST_NAMED)
    return f"In progress: {shown}" if shown else ""


def of_task(store: Store, team_name: str, task_id: str) -> str:
    """Describe who works on the task, and since when. If nobody does, describe what it waits for."""
    team = teams.get(store, team_name)
    task = leases.current(store, team, tasks.get(store, team_name, task_id))
    if task.status == tasks.IN_PROGRESS:
        return _in_progress(store, team, [task])
    if task.status == tasks.IN_REVIEW:
        return f"{task.id} waits for {task.review_by}'s review"
    if blockers := dependencies.open_blockers(task, dependencies.stored(store, team_name)):
        return f"{task.id} is blocked by {text.listed([_blocker(store, team, each) for each in blockers], _MOST_NAMED)}"
    who = f"assigned to {task.assignee}" if task.assignee else "and nobody has claimed it"
    return f"{task.id} is ready, {who}"


def _blocker(store: Store, team: Team, blocker: dependencies.Blocker) -> str:
    if blocker.status != tasks.IN_PROGRESS:
        return str(blocker)
    task = tasks.get(store, team.name, blocker.id)
    return _task_in_words(store, task, silence(store, team, task))


def of_plan(store: Store, team_name: str, plan_id: str) -> str:
    """Describe how long the plan has waited, and when the leader was last heard of."""
    team, plan = teams.get(store, team_name), plans.get(store, team_name, plan_id)
    waits = f"{plan.id} has waited {length(seconds_since(plan.created_at, store.now()))} for {team.leader}"
    last_seen = presence.load_other(store, team.name, team.leader or "").last_seen
    return f"{waits}, last heard of {length(seconds_since(last_seen, store.now()))} ago" if last_seen else waits


def of_agent(store: Store, team_name: str, name: str) -> str:
    """Describe what the agent works on, and the state of its session if `teams` started it."""
    from teams_cli.agents import sessions

    session = sessions.find(store, team_name, name)
    in_progress = tasks.held_by(store, team_name, name)
    state = f"{name} is {session.state}" if session and not session.ended else ""
    return "; ".join(filter(None, (state, _in_progress(store, teams.get(store, team_name), in_progress))))


def silence(store: Store, team: Team, task: Task) -> float:
    """Return the seconds since the task's owner was last seen or, if that is later, claimed the task."""
    last_seen = presence.load_other(store, team.name, task.owner or "").last_seen
    return seconds_since(max(last_seen or "", task.claimed_at or ""), store.now())


def _task_in_words(store: Store, task: Task, silent: float, others: Sequence[Task] = ()) -> str:
    """Describe a task by its id, its owner, the time since its claim, and the seconds *silent* for which the owner has
    been silent. If the owner is at work nevertheless, say so, or when its files changed. Add how many of the tasks in
    *others* it blocks.
    """
    held_for = length(seconds_since(task.claimed_at, store.now())) if task.claimed_at else ""
    blocked_count = len(dependencies.waiting_for([task.id], others))
    blocked = f"{blocked_count} blocked by it" if blocked_count else ""
    worked = ""
    if silent >= _SILENT:
        from teams_cli.tasks import touching

        since_work = touching.seconds_since_work(store, task.team_name, task)
        if since_work is not None:
            worked = f"files changed {length(since_work)} ago" if since_work else "at work"
    return f"{task.id} ({', '.join(filter(None, (task.owner, held_for, _silent_for(silent), worked, blocked)))})"


def _silent_for(silent: float) -> str:
    return f"silent for {length(silent)}" if silent >= _SILENT else ""


def _ready_and_idle(store: Store, team: Team, reader: str, in_progress: list[Task], overview: Overview) -> str:
    """Describe the ready tasks and the idle members; if nobody works, the blocked tasks and who was seen last."""
    ready = len(overview.ready) + overview.free  # `free` counts the ready tasks that are not in `ready`
    blocked = overview.counts["pending"] - ready
    ready_in_words = f"{ready} ready" if ready else ""
    if assigned := [f"{task.id} for {task.assignee}" for task in overview.ready if task.assignee]:
        ready_in_words += f" ({text.listed(assigned, _MOST_NAMED)})"
    if in_progress:
        busy = {team.leader, *(task.owner for task in in_progress)}
        idle, others = [], _others(team, reader)
        for member in others:
            if member.agent_id not in busy:
                silent = _silent_for(seconds_since(_last_heard_of(store, team, member), store.now()))
                idle.append(f"{member.agent_id} ({silent})" if silent else member.agent_id)
        idle_in_words = f"idle: {text.listed(idle, _MOST_NAMED)}" if idle else ""
        if ready and len(others) == 1 and not idle:  # the leader may wonder why nobody takes the ready tasks
            idle_in_words = f"{others[0].agent_id} is the only member"
        return "; ".join(filter(None, (ready_in_words, idle_in_words)))
    if not overview.counts["pending"]:
        return ""
    blocked_in_words = f"{blocked} blocked" if blocked else ""
    counts = filter(None, (ready_in_words, blocked_in_words))
    if others := _others(team, reader):
        seen_at, name = max((_last_heard_of(store, team, member), member.agent_id) for member in others)
        last_heard = f"last seen: {name}, {length(seconds_since(seen_at, store.now()))} ago"
    else:
        last_heard = _nobody(team, reader)
    return f"Nobody has a task: {', '.join(counts)}; {last_heard}"


def _others(team: Team, name: str) -> list[Member]:
    return [member for member in team.members if member.active and member.agent_id != name]


def _last_heard_of(store: Store, team: Team, member: Member) -> str:
    return max(
        presence.load_other(store, team.name, member.agent_id).last_seen or "", member.joined_at or team.created_at
    )
