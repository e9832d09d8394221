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


_NAMED = 3
"""Tasks that are named: those whose owners are silent longest."""
_SILENT = 60.0
"""Seconds of silence that are worth a word."""
_NOBODY = "no member has joined yet (teams join-team, or teams run-agent)"


def in_words(store: Store, team_name: str, caller: Caller) -> str:
    """Describe what the others work on and who of them is silent; to a leader also what is ready, and who is idle. The
    text is empty if that can't be read.
    """
    try:
        team = teams.get(store, team_name)
        standing = standing_of(team, caller)
        return _work(store, team, caller.name, leads=caller.is_human or (standing is not None and standing.leads))
    except errors.TeamsError:  # the end of the wait is reported all the same
        return ""


def of_nobody(store: Store, team_name: str, caller: Caller) -> str:
    """Return a hint for a leader that there is no other member to wait for. It is empty if there is one, and for other
    callers.
    """
    try:
        team = teams.get(store, team_name)
    except errors.TeamsError:  # the wait itself says what is wrong
        return ""
    standing = standing_of(team, caller)
    return _NOBODY if standing and standing.leads and not _others(team, caller.name) else ""


def of_all(store: Store, team_name: str) -> str:
    """Describe what all work on, who is silent, what is ready, and whether nobody works."""
    return _work(store, teams.get(store, team_name), "", leads=True)


def _work(store: Store, team: Team, but: str, leads: bool) -> str:
    """Describe who works on what, without the agent *but*. If *leads* is set, the text also says what is ready and who
    is idle.
    """
    in_progress = [task for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS) if task.owner != but]
    overview = overviews.overview(store, team.name)
    if leads:
        in_review = [f"{task.id} ({task.review_by})" for task in tasks.labelled(store, team.name, tasks.IN_REVIEW)]
        reviewed = f"in review: {text.listed(in_review, _NAMED)}" if in_review else ""
        rest = "; ".join(filter(None, (reviewed, _left(store, team, but, in_progress, overview))))
    else:
        counts = overview.counts
        is_going_on = counts[tasks.IN_PROGRESS] or counts.get(tasks.IN_REVIEW)
        rest = "no other task is left" if is_going_on and not counts["pending"] else ""
    return "; ".join(filter(None, (_in_progress(store, team, in_progress, overview.tasks_read), rest)))


def _in_progress(store: Store, team: Team, in_progress: list[Task], others: Sequence[Task] = ()) -> str:
    by_silence = sorted(((silence(store, team, task), task) for task in in_progress), key=lambda each: -each[0])
    named = text.listed([_named(store, task, silent, others) for silent, task in by_silence], _NAMED)
    return f"In progress: {named}" if named else ""


def of_task(store: Store, team_name: str, task_id: str) -> str:
    """Describe who has the task, and since when; if it has no owner, what it waits for."""
    team = teams.get(store, team_name)
    task = leases.current(store, team, tasks.get(store, team_name, task_id))
    if task.status == tasks.IN_PROGRESS:
        return _in_progress(store, team, [task])
    if task.status == tasks.IN_REVIEW:
        return f"{task.id} waits for {task.review_by}'s review"
    if blockers := dependencies.open_blockers(task, dependencies.stored(store, team_name)):
        return f"{task.id} is blocked by {text.listed([_blocker(store, team, each) for each in blockers], _NAMED)}"
    return f"{task.id} is ready, {f'assigned to {task.assignee}' if task.assignee else 'and nobody has claimed it'}"


def _blocker(store: Store, team: Team, blocker: dependencies.Blocker) -> str:
    if blocker.status != tasks.IN_PROGRESS:
        return str(blocker)
    task = tasks.get(store, team.name, blocker.id)
    return _named(store, task, silence(store, team, task))


def of_plan(store: Store, team_name: str, plan_id: str) -> str:
    """Describe how long the plan has waited, and when the leader was last heard of."""
    team, plan = teams.get(store, team_name), plans.get(store, team_name, plan_id)
    waits = f"{plan.id} has waited {length(seconds_since(plan.created_at, store.now()))} for {team.leader}"
    seen = presence.load(store, team.name, team.leader or "").last_seen
    return f"{waits}, last heard of {length(seconds_since(seen, store.now()))} ago" if seen else waits


def of_agent(store: Store, team_name: str, name: str) -> str:
    """Describe what the agent works on, and the state of its session if `teams` started it."""
    from teams_cli.agents import sessions

    session = sessions.find(store, team_name, name)
    in_progress = [task for task in tasks.labelled(store, team_name, tasks.IN_PROGRESS) if task.owner == name]
    state = f"{name} is {session.state}" if session and not session.ended else ""
    return "; ".join(filter(None, (state, _in_progress(store, teams.get(store, team_name), in_progress))))


def silence(store: Store, team: Team, task: Task) -> float:
    """Return for how many seconds nothing was heard of the owner of the task."""
    last_seen = presence.load(store, team.name, task.owner or "").last_seen
    return seconds_since(max(last_seen or "", task.claimed_at or ""), store.now())


def _named(store: Store, task: Task, silent: float, others: Sequence[Task] = ()) -> str:
    """Return the id of the task with its owner, the time since the claim, how long the owner is *silent*, and how many
    of the *others* are blocked by the task.
    """
    since = length(seconds_since(task.claimed_at, store.now())) if task.claimed_at else ""
    behind = len(dependencies.waiting_for([task.id], others))
    blocked = f"{behind} blocked by it" if behind else ""
    return f"{task.id} ({', '.join(filter(None, (task.owner, since, _silent_for(silent), blocked)))})"


def _silent_for(silent: float) -> str:
    return f"silent for {length(silent)}" if silent >= _SILENT else ""


def _left(store: Store, team: Team, but: str, in_progress: list[Task], overview: Overview) -> str:
    """Describe the number of ready tasks, and the idle members. If nobody works, also the number of blocked tasks, and
    the member that was last heard of.
    """
    ready = len(overview.ready) + overview.free
    if in_progress:
        return "; ".join(filter(None, (f"{ready} ready" if ready else "", _idle(store, team, but, in_progress))))
    blocked = overview.counts["pending"] - ready
    if not ready + blocked:
        return ""
    counts = [f"{number} {state}" for number, state in ((ready, "ready"), (blocked, "blocked")) if number]
    heard = [(_heard_of(store, team, member), member.agent_id) for member in _others(team, but)]
    last = _NOBODY
    if heard:
        seen, name = max(heard)
        last = f"last seen: {name}, {length(seconds_since(seen, store.now()))} ago"
    return f"Nobody has a task: {', '.join(counts)}; {last}"


def _idle(store: Store, team: Team, but: str, in_progress: list[Task]) -> str:
    """Return the members other than *but* that have no task, each with its silence if that is long; "" if there are
    none.
    """
    busy = {team.leader, *(task.owner for task in in_progress)}
    named = []
    for member in _others(team, but):
        if member.agent_id not in busy:
            silent = _silent_for(seconds_since(_heard_of(store, team, member), store.now()))
            named.append(f"{member.agent_id} ({silent})" if silent else member.agent_id)
    return f"idle: {text.listed(named, _NAMED)}" if named else ""


def _others(team: Team, but: str) -> list[Member]:
    return [member for member in team.members if member.active and member.agent_id != but]


def _heard_of(store: Store, team: Team, member: Member) -> str:
    return max(presence.load(store, team.name, member.agent_id).last_seen or "", member.joined_at or team.created_at)
