"""Standing: how the work of a team stands, in a line, for who waited in vain: silence may be a standstill."""

from __future__ import annotations

from teams_cli import text
from teams_cli.clock import length, seconds_since
from teams_cli.errors import TeamsError
from teams_cli.store.contract import Store
from teams_cli.tasks import overviews, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import standing_of
from teams_cli.teams.teams import Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller

_NAMED = 3
"""Tasks that are named: those whose owners are silent longest."""
_SILENT = 60.0
"""Seconds of silence that are worth a word."""


def in_words(store: Store, team_name: str, caller: Caller) -> str:
    """What others are at, since when, and who of them is silent; who leads hears what is free, and of a standstill."""
    try:
        team = teams.get(store, team_name)
        at = standing_of(team, caller)
        leads = caller.is_human or (at is not None and at.leads)
        found = [task for task in tasks.labelled(store, team_name, tasks.IN_PROGRESS) if task.owner != caller.name]
        left = _left(store, team, caller, bool(found)) if leads else ""
    except TeamsError:  # that nothing came is told all the same
        return ""
    by_silence = sorted(((_silence(store, team, task), task) for task in found), key=lambda each: -each[0])
    named = text.listed([_named(store, task, silent) for silent, task in by_silence], _NAMED)
    return "; ".join(filter(None, (f"In work: {named}" if named else "", left)))


def _silence(store: Store, team: Team, task: Task) -> float:
    """Seconds for which nothing was heard of the owner."""
    last_seen = presence.load(store, team.name, task.owner or "").last_seen
    return seconds_since(max(last_seen or "", task.claimed_at or ""), store.now())


def _named(store: Store, task: Task, silent: float) -> str:
    since = f", {length(seconds_since(task.claimed_at, store.now()))}" if task.claimed_at else ""
    return f"{task.id} ({task.owner}{since}{f', silent for {length(silent)}' if silent >= _SILENT else ''})"


def _left(store: Store, team: Team, caller: Caller, is_any_in_work: bool) -> str:
    """What there is to take; where nobody works, also of what else is left, and who was last heard of."""
    found = overviews.overview(store, team.name)
    ready = len(found.ready) + found.free
    if is_any_in_work:
        return f"{ready} ready" if ready else ""
    waiting = found.counts["pending"] - ready
    if not ready + waiting:
        return ""
    counts = [f"{number} {what}" for number, what in ((ready, "ready"), (waiting, "blocked")) if number]
    return f"Nobody has a task: {', '.join(counts)}; {_last_heard_of(store, team, caller)}"


def _last_heard_of(store: Store, team: Team, caller: Caller) -> str:
    """Who of the others was last heard of, and when."""
    others = [member for member in team.members if member.active and member.agent_id != caller.name]
    heard = [(_heard_of(store, team, member), member.agent_id) for member in others]
    if not heard:
        return "no member has joined"
    seen, name = max(heard)
    return f"last heard of: {name}, {length(seconds_since(seen, store.now()))} ago"


def _heard_of(store: Store, team: Team, member: Member) -> str:
    return max(presence.load(store, team.name, member.agent_id).last_seen or "", member.joined_at or team.created_at)
