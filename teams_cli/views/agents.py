"""The agents of a team as lists show them: who is there, in what state, at work on what."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import ending, resuming
from teams_cli.agents.seats import terminals
from teams_cli.agents.sessions import Session
from teams_cli.clock import seconds_since
from teams_cli.messages import inboxes
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.teams.presence import Agent, is_gone, load_all
from teams_cli.teams.teams import Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def member_rows(store: Store, team: Team, working: set[str], problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """All members that did not leave, in the order of joining; *working* are those that own a task in progress."""
    rows = []
    shown = [member for member in team.roster() if member.active or member.stopped_by]
    mail, known = _mail(store, team, shown, problems), load_all(store, team.name)
    for member in shown:
        if member.agent_id in mail:
            try:
                agent = known(member.agent_id)
                rows.append(_row(store, team, member, agent, member.agent_id in working, mail[member.agent_id]))
            except errors.TeamsError as problem:
                problems.append(problem)
    return rows


def _mail(store: Store, team: Team, members: list[Member], problems: list[errors.TeamsError]) -> dict[str, int]:
    """The number of unread messages of each member; one that can't be read is a problem."""
    names = [member.agent_id for member in members]
    try:
        return inboxes.unread_counts(store, team.name, names)
    except errors.TeamsError:
        counts = {}
        for name in names:
            try:
                counts[name] = len(inboxes.unread(store, team.name, name))
            except errors.TeamsError as problem:
                problems.append(problem)
        return counts


def _row(store: Store, team: Team, member: Member, agent: Agent, working: bool, unread: int) -> dict[str, Any]:
    row = {
        "name": member.agent_id,
        "displayName": member.agent_name,
        "role": member.role,
        "agentType": member.agent_type,
        "status": agent.status,
        "statusHistory": [entry.to_json() for entry in agent.status_history],
        "state": state_of(store, team, member, agent, working),
        "queueDepth": unread,
        "lastSeen": agent.last_seen or member.joined_at,
    }
    if agent.host:
        row["host"] = agent.host
    if agent.note:
        row["note"] = agent.note
    return row


def state_of(store: Store, team: Team, member: Member, agent: Agent, working: bool) -> str:
    """`stopped` after a shutdown, `stale` when not seen for too long or its process is gone, else `active`, `idle`."""
    if member.stopped_by:
        return "stopped"
    seen = agent.expected_at or member.joined_at
    limit = team.silence
    if is_gone(agent) or (seen and seconds_since(seen, store.now()) > limit):
        return "stale"
    return "active" if working else "idle"


def agent_rows(store: Store, team: Team, problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """All members that did not leave, in the order of joining, with what is known of those that were started."""
    return rows_with(store, team, sessions_by_agent(store, team, problems), problems)


def sessions_by_agent(store: Store, team: Team, problems: list[errors.TeamsError]) -> dict[str, Session]:
    """The sessions of the agents that were started, by name."""
    return {session.agent: session for session in ending.all_of(store, team.name, problems)}


def rows_with(
    store: Store, team: Team, started: Mapping[str, Session], problems: list[errors.TeamsError]
) -> list[dict[str, Any]]:
    """The rows of the members, with what these sessions tell of them."""
    own: dict[str, list[str]] = {}
    for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS):
        own.setdefault(task.owner or "", []).append(task.id)
    working = {*own, *(name for name, session in started.items() if not session.ended), *team.inside_clients()}
    rows = member_rows(store, team, working, problems)
    seated = {terminal.agent: terminal for terminal in terminals.all_of(store, team.name, problems)}
    for row in rows:
        if row["name"] in own:
            row["tasks"] = own[row["name"]]
        member = team.member(row["name"])
        if member and member.child_of:
            row["childOf"] = member.child_of
        session, terminal = started.get(row["name"]), seated.get(row["name"])
        if session:
            describe(store, session, row)
        if terminal and (session is None or session.taken_by):
            terminals.describe(store, team, terminal, row)
    return rows


_OF_SESSION = frozenset(
    {"takenBy", "state", "outcome", "harness", "description", "caller", "directory", "worktree", "branch", "turns"}
)


def describe(store: Store, session: Session, row: dict[str, Any]) -> None:
    """Add to the row of a listed agent what its session says."""
    if session.outcome == "stopped" and session.ended:
        row["state"] = "stopped"
    elif session.ended and session.outcome in ("failed", "lost") and row["state"] != "stopped":
        row["state"] = "failed"
    elif row["state"] != "stopped":  # its keeper says more of it than when it was last heard of
        row["state"] = "idle" if session.ended else "active"
    if resuming.is_limited(store, session) and row["state"] != "stopped":
        row["state"], row["limitedUntil"] = "limited", session.limited_until
    if session.host:
        row["host"] = session.host
    shown = session.having(worktree=session.present_worktree(store.host)).to_document()
    row["session"] = {key: value for key, value in shown.items() if key in _OF_SESSION}
