"""Resuming sessions that are done, and the guard against agents that resume each other without end."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.agents import budgets, limited, sessions
from teams_cli.agents.sessions import SESSION, Resume, Session
from teams_cli.clock import parse_rfc3339, seconds_since
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import tasks
from teams_cli.teams import history, settings, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_REMEMBERED = 500
_HOUR = 3600.0
_RESUMABLE = ("completed", "failed", "lost")


def reopen(store: Store, team: str, agent: str, by: str, for_output: bool = False) -> Session | None:
    """Get an idle session out of `done`, for a message from *by*; only who gets it starts its keeper, others get None.

    A stopped agent stays so, as does one whose budget is used up; one that failed is not resumed by the output of what
    it started. When the loop guard speaks, both agents are paused instead, and the leader is told.
    """
    reason = ""

    def change(session: Session) -> Session:
        nonlocal reason
        reason = ""
        if session.state != "done" or session.outcome not in (("completed",) if for_output else _RESUMABLE):
            return session
        if session.stop_asked:  # it ended by itself at that moment
            return session
        if limited.is_limited(store, session):  # its mail waits
            return session
        if budgets.used_up(store, team, agent, session.run):  # its mail waits; raising the budget resumes it
            return session
        if not session.interrupted and (reason := too_often(store, team, session, by)):
            return session
        return session.kept_by(os.getpid(), store.host).having(
            state="starting",
            generation=session.generation + 1,
            started_at=teams.now(store),
            outcome=None,
            outcome_before=session.outcome,
            stop_asked=None,
            limited_until=None,
        )

    try:
        before, after = update(store, team, SESSION.also_closed, agent, change)
    except errors.NotFound:
        return None
    if reason:
        pause_pair(store, team, agent, by, reason)
    return after if after.state == "starting" and before is not after else None


def too_often(store: Store, team: str, session: Session, by: str) -> str:
    """Why the session shall not be resumed once more: *by* did as often as `max_resumes_per_hour` says, or all did ten
    times that, and no task made progress. Empty while it may.

    Agents that answer each other without end cost money and get nowhere. What an agent starts itself is counted
    together: it may start another one in each turn. The human may always.
    """
    limit = int(settings.value(teams.get(store, team), "max_resumes_per_hour"))
    lately = [resume for resume in session.resumes if seconds_since(resume.at, store.now()) < _HOUR]
    if by == HUMAN or len(lately) < limit:
        return ""
    own = {child.agent for child, _ in store.scan(team, SESSION, []) if child.caller == session.agent}
    names = own if by in own else {by}
    if not _many(lately, names, limit):
        return ""
    both = {session.agent, *names}
    progress = max((n.at for task in tasks.all_of(store, team, []) for n in task.notes if n.by in both), default="")
    since = [resume for resume in lately if not progress or parse_rfc3339(resume.at) > parse_rfc3339(progress)]
    if not _many(since, names, limit):
        return ""
    whose = "agents that it started itself" if by in own else by
    often = f"it was resumed {len(since)} times within an hour, {_count(since, names)} times by {whose}"
    return f"{often}, and no task made progress"


def _many(resumes: list[Resume], names: set[str], limit: int) -> bool:
    return _count(resumes, names) >= limit or len(resumes) >= 10 * limit


def _count(resumes: list[Resume], names: set[str]) -> int:
    """How many turns these had the agent take: several of them may have been in one."""
    return len({resume.at for resume in resumes if resume.by in names})


def noted(session: Session, senders: Iterable[str], at: str) -> Session:
    """The session with one more turn for the messages of these."""
    return session.having(resumes=[*session.resumes, *(Resume(at=at, by=name) for name in senders)][-_REMEMBERED:])


def pause_pair(store: Store, team: str, agent: str, by: str, reason: str) -> None:
    """Have both rest once they are done, keeping their mail, until somebody interjects; tell the leader.

    Each may pause the other at the same moment. So whoever does begins with the same one, and the notice is named after
    where that one stands: however many owe it, it is told once.
    """
    pair = sorted(name for name in (agent, by) if sessions.find(store, team, name))
    resume = ", ".join(f"`teams interject {name} TEXT`" for name in pair)
    body = f"{agent} and {by} are paused, because of {agent}: {reason}. To resume: {resume}"
    leader, uid = teams.get(store, team).leader, ""

    def change(session: Session) -> Session:
        nonlocal uid
        if session.agent == pair[0]:
            uid = f"{'~'.join(pair)}~paused-{session.generation}-{session.turns}"
        notice = Owed(to=leader, message=body, uid=uid, event="agents-paused")
        if session.state == "done":
            return owing(session.having(state="paused", failure=reason), notice)
        if session.state == "paused" or session.pause_asked:
            return session
        return owing(session.having(pause_asked=reason), notice)

    changes = [update(store, team, SESSION.also_closed, name, change) for name in pair]
    rest = [after for before, after in changes if before is not after]
    if rest:
        history.note(store, team, agent, "session paused", reason=reason)
    for session in rest:
        deliver(store, team, SESSION.also_closed, session)


def unpaused(session: Session) -> Session:
    """The session as one that is done and may be resumed."""
    return session.having(state="done", resumes=[], pause_asked=None, outcome=session.outcome or "completed")


def going_on(session: Session) -> Session:
    """The session as one that somebody lets go on: it rests no more, nor will, and the guard counts anew."""
    if session.state == "paused":
        return unpaused(session)
    return session.having(pause_asked=None, resumes=[]) if session.pause_asked else session
