"""End the session of an agent. Its keeper is the process that runs the agent's turns. If the keeper is gone, the
session counts as lost, and this module ends it.
"""

from __future__ import annotations

import time
from contextlib import suppress

from teams_cli import errors, processes
from teams_cli.agents.sessions import SESSION, Session, find
from teams_cli.messages import inboxes, messages
from teams_cli.store.contract import Store, update
from teams_cli.tasks import assigning
from teams_cli.teams import history, presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from teams_cli.records.types import Outcome
    from teams_cli.store.pace import Alarm

_SECONDS_TO_EXIT = 5.0
"""Seconds to wait for a keeper that is about to exit."""


def current(store: Store, team: str, agent: str) -> Session | None:
    """Return the agent's session; None if `teams` did not start the agent. If the process that runs the session is
    gone, it is first recorded that the session has ended, with the outcome `lost`.
    """
    session = find(store, team, agent)
    return _settled(store, team, session) if session else None


def get_current(store: Store, team: str, agent: str) -> Session:
    """Return the agent's session. If its process is gone, it is first recorded that the session has ended.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
    """
    if session := current(store, team, agent):
        return session
    hint, team_record = "See: teams list-agents", teams.get(store, team)
    if agent == team_record.leader:
        hint = f"It leads the team, and joined by itself. To write to it: teams send-message {agent} TEXT"
    elif team_record.member(agent) is not None:
        hint = f"It joined by itself. To ask it to end: teams request-shutdown {agent}"
    raise errors.AgentNotFound(f"teams started no agent {agent!r} in team {team}", hint)


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Session]:
    """Return all sessions of the team. Sessions whose process is gone are first ended as lost."""
    return [_settled(store, team, session) for session, _ in store.scan(team, SESSION, problems)]


def children(store: Store, team: str, agent: str) -> list[Session]:
    """Return the sessions of agents that *agent* started. Sessions whose process is gone are first ended as lost."""
    sessions = [session for session, _ in store.scan(team, SESSION, []) if session.caller == agent]
    return [_settled(store, team, session) for session in sessions]


def of_run(store: Store, team: str, run: str) -> list[Session]:
    """Return the sessions of one run, oldest first. Sessions whose process is gone are first ended as lost."""
    sessions = [session for session in all_of(store, team, []) if session.run == run]
    return sorted(sessions, key=lambda session: session.created_at)


def set_alarm(store: Store, team: str, sessions: Iterable[Session], alarm: Alarm) -> None:
    """Set *alarm* to go off when one of these sessions may have become lost. A process that waits only for changes in
    the store would not notice, because nothing changes in the store when a keeper ends or falls silent.
    """
    active = [session for session in sessions if not session.ended]
    if not active:
        return
    silence = teams.get(store, team).silence  # seconds after which a member counts as silent
    for session in active:
        if session.state == "starting":  # its keeper may end before the id of its process is recorded
            alarm.ring_in(_SECONDS_TO_EXIT)
        alarm.ring_at_end_of(session.keeper_pid, session.keeper_started, session.keeper_boot)
        if session.host != store.host or session.keeper_pid is None:  # only silence shows the end of its keeper
            alarm.ring_in(silence / 4)


def is_lost(store: Store, team: str, session: Session) -> bool:
    """Whether the session has not ended although its keeper, the process that runs it, is gone. A keeper on another
    machine counts as gone if it no longer reports that the agent is alive.
    """
    if session.ended:
        return False
    if session.unstarted:  # another agent's keeper is to start it
        requester = find(store, team, session.unstarted)
        return requester is None or requester.ended or not requester.keeper_lives
    if not session.keeper_lives:
        may_have_new_keeper = session.state == "starting" and not session.outcome and session.host == store.host
        if not may_have_new_keeper:
            return True
        # A new keeper may not be named yet: the command that started it may have ended before it recorded the id.
        variables = {"TEAMS_HOME": store.root, "TEAMS_TEAM": team, "TEAMS_AGENT_ID": session.agent}
        return not processes.is_on_its_way("teams_cli.agents.keeper", variables)
    if not store.host or session.keeper_pid is None:  # without other machines, a keeper that lives is enough
        return False
    if processes.has_ended(session.keeper_pid, session.keeper_started, session.keeper_boot) is False:
        return False  # its keeper was seen on this machine
    return presence.is_silent(store, teams.get(store, team), session.agent, session.started_at)


def frozen_keeper(session: Session) -> int | None:
    """Return the process id of the session's keeper if somebody suspended it on this machine, for example with SIGSTOP.
    The agent then neither works nor ends. Return None if the keeper is not suspended.
    """
    pid = session.keeper_pid
    if pid is None or processes.has_ended(pid, session.keeper_started, session.keeper_boot) is not False:
        return None  # it has ended, or this machine can't find out
    return pid if processes.is_stopped(pid) else None


def _settled(store: Store, team: str, session: Session) -> Session:
    """End the session if it is lost, or let the agent continue if the person who took its place is gone. Returns the
    resulting session, or the unchanged session if the store can't be written.
    """
    if not session.taken_by and not is_lost(store, team, session):
        return session
    try:
        if not session.taken_by:
            return settle_lost(store, team, session.agent)
        from teams_cli.agents.seats import sitting

        if sitting.has_person_left(store, team, session):
            return sitting.give_back(store, team, session)
        return session
    except errors.TeamsError:  # the next process that finds the session tries it again
        return session


def settle_lost(store: Store, team: str, agent: str) -> Session:
    """End the agent's session if it is lost: kill the processes of its client, and notify the member that started the
    agent, once. Returns the resulting session.
    """
    session, _ = store.get(team, SESSION, agent)
    if not is_lost(store, team, session):
        return session
    is_killed = not session.keeper_lives
    failure = "the process that ran it was killed" if is_killed else f"its machine is silent, {session.host}"
    if is_killed:
        from teams_cli.agents import logs

        # A killed keeper may not have recorded the turn that it had started.
        last_words = logs.end_of_turn(store, team, agent, session.turns + 1)
        last_words = last_words or logs.end_of_turn(store, team, agent, session.turns)
        failure += f": {last_words}" if last_words else ""

    def as_lost(latest: Session) -> Session:
        if latest.ended or latest.outcome or latest.holder != session.holder:  # another process took it meanwhile
            return latest
        return latest.having(outcome="lost", failure=failure)

    session_after = update(store, team, SESSION.even_in_closed_team, agent, as_lost)[1]
    if session_after.ended or not session_after.outcome:  # another process ended it, or took it
        return session_after
    if is_killed:
        processes.end_tagged(session.tag, (("KILL", 2.0),))
    return finish(store, team, session_after, "lost")


def linger(sessions: list[Session]) -> None:
    """Wait at most 5 seconds for the keepers of ended sessions to exit. Before a keeper exits, it may still resume
    other agents.
    """
    give_up_at = time.monotonic() + _SECONDS_TO_EXIT
    while time.monotonic() < give_up_at:
        if not any(session.ended and session.keeper_lives and not session.taken_by for session in sessions):
            return
        time.sleep(0.005)


def finish(
    store: Store,
    team: str,
    session: Session,
    outcome: Outcome,
    failure: str | None = None,
    output: str | None = None,
    exit_status: int | None = None,
    earlier: Sequence[str] = (),
) -> Session:
    """End the session, and send its caller, once, the output or the reason why there is no output. Nothing is sent if
    mail resumed the agent and the agent answered by mail. If the agent has been resumed in the meantime, its session
    continues. *output* is the output of the last turn; None leaves the stored output unchanged. *earlier* are the
    outputs of the turns before the last.

    The outcome is stored first, then the message, and last the state `done`. If this process is killed in between, the
    next process that finds the session does the missing steps. The uid of the message keeps it from being sent twice.
    """
    from teams_cli.agents import outputs

    def with_outcome(latest: Session) -> Session:
        if latest.ended or latest.generation != session.generation or latest.outcome:  # another process was faster
            return latest
        return latest.having(outcome=outcome, failure=failure, exit_status=exit_status)

    def as_ended(latest: Session) -> Session:
        if latest.ended or latest.generation != session.generation:
            return latest
        return latest.having(state="paused" if latest.pause_asked else "done", ended_at=teams.now(store))

    if output is not None:
        outputs.keep(store, team, session.agent, session.generation, output, earlier)
    stored = update(store, team, SESSION.even_in_closed_team, session.agent, with_outcome)[1]
    if stored.ended or stored.generation != session.generation:  # it was ended or resumed by another process
        return stored
    message = None if outputs.is_answered(store, team, stored) else outputs.send(store, team, stored, earlier)
    before, after = update(store, team, SESSION.even_in_closed_team, session.agent, as_ended)
    if before is not after:  # else another process has ended it
        history.note(store, team, session.agent, f"session {after.outcome}", generation=after.generation)
        if message and outputs.is_waited_for(stored):
            messages.wake_up(store, team, [after.caller], message, after.agent)
        with suppress(errors.TeamsError):  # the session has ended all the same
            agent = after.agent
            if after.outcome in ("stopped", "lost"):
                assigning.free_all(store, teams.get(store, team), agent, f"{agent} was {after.outcome}")
            if after.outcome == "completed" and after.branch:  # each other member is notified once of this branch
                body = f"{agent} finished; its work is on the branch {after.branch} ({after.worktree})"
                for name in teams.get(store, team).active_names():
                    if name not in (agent, after.caller):
                        uid = f"finished~{agent}~{name}"
                        messages.notify(store, team, name, body, uid, "info", wake=False, event="agent-finished")
    return after


def lapse(store: Store, team: str, session: Session) -> None:
    """End a session that was resumed but had nothing to do, and restore its earlier outcome."""

    def as_ended(latest: Session) -> Session:
        if latest.ended or latest.generation != session.generation:
            return latest
        return latest.having(state="paused" if latest.pause_asked else "done", outcome=latest.outcome_before)

    update(store, team, SESSION.even_in_closed_team, session.agent, as_ended)


def unfinished(store: Store, team: str, agent: str) -> tuple[list[str], list[str]]:
    """Return what keeps the agent from finishing: the agents that still work for it, and its unread messages. The agent
    may finish if both lists are empty.
    """
    active = [session.agent for session in children(store, team, agent) if not session.ended]
    return active, [f"msg-{number}" for number in inboxes.unread(store, team, agent)]
