"""Taking over: an agent without a terminal rests while a person sits in its place, and then goes on by itself."""

from __future__ import annotations

from teams_cli import errors, processes
from teams_cli.agents import sessions
from teams_cli.agents.resuming import unpaused
from teams_cli.agents.seats import terminals
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.clients.seats import GONE
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.teams import history, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


def check(store: Store, team: str, session: Session | None, agent: str, client: str) -> Session:
    """The session, if a person can sit in its place with that client on this machine.

    Raises:
        AgentNotFound: `teams` started no such agent.
        WrongState: It is another client's or another machine's, has said no id yet, was stopped, or is taken over.
    """
    if session is None:
        teams.get_recipient(teams.get(store, team), agent)
        raise errors.AgentNotFound(f"teams started no agent {agent!r} in team {team}", "See: teams list-agents")
    if session.harness != client:
        there = f"teams open {session.harness} --resume {agent}"
        raise errors.WrongState(f"{agent} runs in {session.harness}, not in {client}", there)
    if session.host not in ("", store.host):
        raise errors.WrongState(f"{agent} is on another machine, {session.host}", "Take it over there.")
    if session.ended and session.outcome == "stopped":
        raise errors.WrongState(f"{agent} was stopped", "Start another: teams run-agent …")
    refuse_taken(session)
    if not session.turns or not session.session_known:
        raise errors.WrongState(f"{agent} has no known session yet", "Try again after its first turn.")
    sessions.check_started_here(store, team, session)
    return session


def refuse_taken(session: Session) -> None:
    """Raises WrongState: A person sits in the place of the agent, or is about to."""
    if session.taken_by:
        raise errors.WrongState(
            f"{session.agent} was taken over by {session.taken_by}, in a terminal",
            "It continues when that client ends. Until then send it a message: teams send-message …",
        )


def hold(store: Store, team: str, agent: str, by: str, pid: int, rested: bool) -> Session:
    """Have that process hold the session, which rests. One that *rested* before rests afterwards, too.

    Raises:
        WrongState: Somebody was first, or let it go on.
    """

    def change(session: Session) -> Session:
        refuse_taken(session)
        if not session.ended or session.outcome == "stopped":
            raise errors.WrongState(f"{agent} has continued in the meantime", "Try again.")
        held = session.kept_by(pid, store.host).having(state="paused", taken_by=by)
        return held if rested else held.having(pause_asked=_reason(by))

    after = update(store, team, SESSION, agent, change)[1]
    history.note(store, team, by, "agent taken over", agent=agent)
    return after


def is_over(store: Store, team: str, session: Session) -> bool:
    """Whether nobody sits in the place of the agent any more, nor is about to."""
    if not session.taken_by or session.host not in ("", store.host):
        return False
    terminal = terminals.find(store, team, session.agent)
    if terminal and terminal.state != GONE and terminal.has_ended is not True:
        return False
    return processes.has_ended(session.keeper_pid or 0, session.keeper_started, session.keeper_boot) is not False


def give_back(store: Store, team: str, session: Session) -> Session:
    """Have the agent go on by itself with its next mail, in the session that its person was in last."""
    terminal = terminals.find(store, team, session.agent)
    theirs = terminal and terminal.client == session.harness and terminal.joined_at >= (session.ended_at or "")
    last = (terminal.session_id if terminal and theirs else None) or session.session_id

    def change(found: Session) -> Session:
        if found.taken_by != session.taken_by or found.keeper_pid != session.keeper_pid:
            return found
        mine = found.pause_asked == _reason(found.taken_by or "") and found.state == "paused"
        freed = unpaused(found) if mine else found
        return freed.having(taken_by=None, session_id=last if sessions.is_session_id(last) else found.session_id)

    before, after = update(store, team, SESSION.also_closed, session.agent, change)
    if before is not after:
        history.note(store, team, session.taken_by or session.agent, "agent given back", agent=session.agent)
    return after


def _reason(by: str) -> str:
    """Why the session rests; what tells this rest from one that somebody else asked for."""
    return f"{by} took it over"
