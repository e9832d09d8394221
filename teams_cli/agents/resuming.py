"""Resume sessions that are done, unless agents resume each other without end, or a provider refuses requests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta

from teams_cli import errors
from teams_cli.agents import budgets, sessions
from teams_cli.agents.sessions import SESSION, Resume, Session
from teams_cli.clients import output
from teams_cli.clock import parse_rfc3339, rfc3339, seconds_since
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store, update
from teams_cli.tasks import claims, tasks
from teams_cli.teams import history, settings, teams

_REMEMBERED = 500
"""Maximum number of resumes that are recorded of a session; older ones are dropped."""
_HOUR = 3600.0
_RESUMABLE = ("completed", "failed", "lost")


def reopen(store: Store, team: str, agent: str, by: str, for_output: bool = False) -> Session | None:
    """Begin a new generation of an idle session, for a message from *by*, and return the session. The caller must then
    start its keeper. If several processes try this at once, one gets the session, and the others get None. Also returns
    None if the agent may not be resumed.

    An agent may not be resumed if it was stopped, if its budget is used up, or if its provider refuses requests.
    *for_output* says that the message is the output of an agent that *agent* started; this output does not resume a
    failed agent. If *by* has resumed *agent* too often, both are paused, and the leader is notified. An interjection or
    a restart resumes the agent even then.
    """
    resumable = ("completed",) if for_output else _RESUMABLE
    why_a_loop = ""

    def reopened(session: Session) -> Session:
        nonlocal why_a_loop
        why_a_loop = ""  # this function may run several times
        if session.state != "done" or session.outcome not in resumable:
            return session
        if session.stop_asked:  # it ended by itself before it could be stopped
            return session
        if session.is_limited(store.now()) or budgets.used_up(store, team, agent, session.run):  # its mail waits
            return session
        # An interjection or a restart ends a pause, so it must not begin one.
        if not session.interrupted and (why_a_loop := too_often(store, team, session, by)):
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
        before, after = update(store, team, SESSION.even_in_closed_team, agent, reopened)
    except errors.NotFound:
        return None
    if why_a_loop:
        pause_pair(store, team, agent, by, why_a_loop)
    return after if after.state == "starting" and before is not after else None


def too_often(store: Store, team: str, session: Session, by: str) -> str:
    """Return why messages from *by* must not resume the session again, or "" if they may. Within an hour without
    progress in any task, *by* may resume the session `max_resumes_per_hour` times (a setting), and all senders together
    ten times as often.

    Agents that answer each other without end cost money and get nowhere. The agents that the session's own agent
    started count as one sender, because it may start another agent in each turn. The human may always resume a session.
    """
    limit = int(settings.value(teams.get(store, team), "max_resumes_per_hour"))
    recent = [resume for resume in session.resumes if seconds_since(resume.at, store.now()) < _HOUR]
    if by == HUMAN or len(recent) < limit:
        return ""
    children = {child.agent for child, _ in store.scan(team, SESSION, []) if child.caller == session.agent}
    senders = children if by in children else {by}
    if not _are_too_many(recent, senders, limit):
        return ""
    members = {session.agent, *senders}
    noted_at = [note.at for task in tasks.all_of(store, team, []) for note in task.notes if note.by in members]
    if noted_at:  # a note on a task is progress: only the resumes after the last progress count
        progress_at = parse_rfc3339(max(noted_at))
        recent = [resume for resume in recent if parse_rfc3339(resume.at) > progress_at]
        if not _are_too_many(recent, senders, limit):
            return ""
    whose = "agents that it started itself" if by in children else by
    counts = f"{len(recent)} times within an hour, {_count_turns(recent, senders)} times by {whose}"
    return f"it was resumed {counts}, and no task made progress"


def _are_too_many(resumes: list[Resume], senders: set[str], limit: int) -> bool:
    return _count_turns(resumes, senders) >= limit or len(resumes) >= 10 * limit


def _count_turns(resumes: list[Resume], senders: set[str]) -> int:
    """Return how many turns began with messages from these *senders*. Several messages that began the same turn count
    once.
    """
    return len({resume.at for resume in resumes if resume.by in senders})


def noted(session: Session, senders: Iterable[str], at: str) -> Session:
    """Return the session with a record that messages from these *senders* began a turn at the time *at*."""
    return session.having(resumes=[*session.resumes, *(Resume(at=at, by=name) for name in senders)][-_REMEMBERED:])


def pause_pair(store: Store, team: str, agent: str, by: str, reason: str) -> None:
    """Pause *agent* and *by* once they are done, and notify the leader. Their mail waits until somebody interjects.

    Two processes may do this at once, but the leader must get only one notice. Therefore both processes pause the same
    agent first, and make the uid of the notice from its state: a notice with the same uid is not sent again.
    """
    pair = sorted(name for name in (agent, by) if sessions.find(store, team, name))
    resume = ", ".join(f"`teams interject {name} TEXT`" for name in pair)
    body = f"{agent} and {by} are paused, because of {agent}: {reason}. To resume: {resume}"
    leader = teams.get(store, team).leader
    uid = ""

    def paused(session: Session) -> Session:
        nonlocal uid
        # Both sessions owe the same notice. Its uid comes from the agent that is paused first, also if the other
        # process has paused this agent already.
        if session.agent == pair[0]:
            uid = f"{'~'.join(pair)}~paused-{session.generation}-{session.turns}"
        notice = Owed(to=leader, message=body, uid=uid, event="agents-paused")
        if session.state == "done":
            return owing(session.having(state="paused", failure=reason), notice)
        if session.state == "paused" or session.pause_asked:  # the other process has paused it
            return session
        return owing(session.having(pause_asked=reason), notice)

    changes = [update(store, team, SESSION.even_in_closed_team, name, paused) for name in pair]
    changed = [after for before, after in changes if before is not after]
    if changed:
        history.note(store, team, agent, "session paused", reason=reason)
    for session in changed:
        deliver(store, team, SESSION.even_in_closed_team, session)


def unpaused(session: Session) -> Session:
    """Return a paused session with the state `done`, so that it may be resumed."""
    return session.having(state="done", resumes=[], pause_asked=None, outcome=session.outcome or "completed")


def without_pause(session: Session) -> Session:
    """Return the session without its pause, which may have begun, or may be planned for the end of the turn. The record
    of its earlier resumes is emptied, so that `too_often` counts from zero again.
    """
    if session.state == "paused":
        return unpaused(session)
    return session.having(pause_asked=None, resumes=[]) if session.pause_asked else session


def at_rest(store: Store, team: str, names: Iterable[str]) -> dict[str, str]:
    """Return those of the agents *names* that mail does not resume now, each with the reason: its provider refuses
    requests, or a budget is used up. Stopped and paused agents are left out.
    """
    reasons = {}
    for name in names:
        if not sessions.is_idle(store, team, name):
            continue
        session = sessions.get(store, team, name)
        if session.is_limited(store.now()):
            reasons[name] = f"its provider refuses requests until {session.limited_until}"
        elif budget := budgets.used_up(store, team, name, session.run):
            reasons[name] = f"{budget}; raise it: {budget.raised_by}"
    return reasons


def undo_stop(store: Store, team: str, agent: str, by: str) -> Session:
    """Let messages resume the agent again if *by* stopped it, and return its session. Otherwise, a stopped agent stays
    stopped for good.
    """

    def unstopped(session: Session) -> Session:
        if session.state != "done" or session.outcome != "stopped" or session.stop_asked != by:
            return session
        return session.having(outcome="lost", stop_asked=None)

    return update(store, team, SESSION, agent, unstopped)[1]


ON_LIMIT = "onLimit"

WAIT, RELEASE = "wait", "release"

LIMIT_CHOICES = (WAIT, RELEASE, settings.OFF)
"""The possible values of the setting onLimit, besides the name of another harness."""


def limited_until(store: Store, printed: str) -> str | None:
    """Return the time at which the provider accepts requests again, as found in what a failed client *printed*. None if
    the client failed for another reason.
    """
    end = output.limited_until(printed, store.now().astimezone())
    return rfc3339(end.replace(microsecond=0) + timedelta(seconds=1)) if end else None


def on_limit(store: Store, team: str, harness: str) -> str:
    """Return the setting onLimit for an agent whose *harness* is limited: `wait`, `release`, the name of another
    harness, or "" if it is not set. An agent that continued with the other harness has no further one, so for this
    agent the setting counts as not set.
    """
    choice = str(settings.value(teams.get(store, team), ON_LIMIT))
    return "" if choice == harness else choice


def note_limit(
    store: Store, team_name: str, session: Session, until: str, given: list[int], choice: str, why_not: str
) -> str:
    """Record on the session that its provider refuses requests until the time *until*. *given* are the numbers of the
    messages of the turn that failed. *choice* is the setting onLimit, and *why_not* says why the agent can't continue
    with another client. Returns a sentence that says what happens to the agent now. The leader is notified, unless the
    leader started the agent and gets its output now.
    """
    team = teams.get(store, team_name)
    next_step = _CONSEQUENCES.get(choice, f"it continues with {choice}, in a new session.")
    if why_not:
        next_step = f"it can't continue with another client ({why_not}); {next_step}"
    consequence = f"limited by its provider until {until}: {next_step}"
    uid = f"limited-{session.agent}-{''.join(filter(str.isdigit, until))}"
    notice = Owed(
        to=team.leader, message=f"{session.agent} is {consequence}", uid=uid, by=session.agent, event="provider-limit"
    )
    leader_gets_output = choice in ("", RELEASE) and session.caller == team.leader
    owed = [] if leader_gets_output else [notice]

    def limited(session: Session) -> Session:
        return owing(session.having(limited_until=until, given=given or None), *owed)

    changed = update(store, team_name, SESSION.even_in_closed_team, session.agent, limited)[1]
    history.note(store, team_name, session.agent, "agent limited", until=until)
    deliver(store, team_name, SESSION.even_in_closed_team, changed)
    if choice == RELEASE:
        claims.release_tasks_of(store, team, session.agent, session.agent, f"limited by its provider until {until}")
    return consequence


_CONSEQUENCES = {
    WAIT: "it keeps its tasks, and continues by itself after that time.",
    RELEASE: "its tasks are released; a message after that time resumes it.",
    "": "a message after that time resumes it. `teams set onLimit wait` lets agents continue by themselves.",
}
"""The end of a sentence about a limited agent, by the value of the setting onLimit. Any other value names a harness."""
