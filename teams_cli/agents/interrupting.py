"""Interrupt, pause, stop and restart agents that `teams` started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from teams_cli import errors, extensions, processes
from teams_cli.agents import ending, resuming, sessions, waking
from teams_cli.agents.seats import sitting, terminals
from teams_cli.agents.sessions import BEGIN_AGAIN, SESSION, Session
from teams_cli.clients import permissions
from teams_cli.clients.seats import GONE
from teams_cli.messages import messages
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN, SYSTEM
from teams_cli.records.records import Owed, owing
from teams_cli.store import pace
from teams_cli.store.contract import Store, update
from teams_cli.tasks import tasks
from teams_cli.teams import history, pages, settings, teams
from teams_cli.teams.permission import Caller, require
from teams_cli.teams.teams import Team

_PATIENCE = 20.0
"""Seconds to wait for an agent to end."""


def interject(
    store: Store, team_name: str, caller: Caller | None, to: str, body: str, environ: Mapping[str, str]
) -> Message:
    """Interrupt an agent, and give it the text as its next turn. Further texts wait until that turn ends.

    An idle or paused agent is resumed. A client in a terminal is interrupted too, if that is possible.

    Raises:
        AgentNotFound: There is no such active member.
        WrongState: `teams` did not start the agent, or the agent was stopped; the text was not sent.
    """
    standing = require(store, team_name, caller, "interject", to)
    team, caller = standing.team, standing.caller
    agent = teams.get_recipient(team, to)
    session = ending.current(store, team_name, agent)
    is_run_by_keeper = session is not None and not session.ended
    # A keeper runs its client without a terminal. Any other client may be in one.
    terminal = None if is_run_by_keeper else terminals.find(store, team_name, agent)
    state = terminals.state_of(store, team, terminal) if terminal else GONE
    if terminal and state != GONE:
        way = waking.way_to_interrupt(store, team_name, terminal, state)
        message = messages.send(store, team_name, caller, agent, body, wake=False)
        waking.stop_for_mail(store, team_name, terminal, way)
        return message
    if session is None:
        raise errors.WrongState(
            f"{agent} was not started by teams, so it can't be interrupted",
            f"Send it a message: teams send-message {agent} …",
        )
    sitting.refuse_stopped(session)
    sitting.refuse_taken(session)
    message = messages.send(store, team_name, caller, agent, body, wake=False)
    try:
        _interrupt(store, team, caller, message, environ)
    except (errors.StorageFailed, errors.Busy) as failure:
        why = f"{message.id} was sent, but may not end the turn: {failure.message}"
        raise errors.OutcomeUnknown(why, f"To interrupt: teams interject {agent} 'see {message.id}'") from None
    return message


def _interrupt(store: Store, team: Team, caller: Caller, message: Message, environ: Mapping[str, str]) -> bool:
    """Make the message the next turn of its recipient. Returns whether the agent was in a turn."""

    def interrupted(session: Session) -> Session:
        if session.taken_by:  # the message waits until the person in the agent's place has left
            return session
        session = resuming.without_pause(session)
        return session.having(interjected=max(session.interjected, message.number))

    is_idle = update(store, team.name, SESSION.even_in_closed_team, message.to, interrupted)[1].ended
    if is_idle:
        waking.wake(store, team, caller.config, [message.to], caller.name, environ)
    return not is_idle


def send_and_interrupt(
    store: Store,
    team_name: str,
    caller: Caller,
    to: str,
    body: str,
    environ: Mapping[str, str],
    now: bool | None = None,
    uid: str | None = None,
    fyi: bool = False,
    ack_by: str | None = None,
) -> tuple[Message, bool]:
    """Send a message. If *now* is true, also interrupt what its recipient is doing. If *now* is None, the team's
    setting `delivery` decides whether to interrupt. Returns the message, and whether it interrupts a running turn.

    The message is stored even if its recipient can't be interrupted, because `teams` did not start the recipient or the
    recipient was stopped.

    Raises:
        NotAllowed: The caller may not send the message, or *now* is true and the caller may not interject. Nothing is
            stored.
        AgentNotFound, InvalidValue, UidTaken: The message can't be sent.
    """
    team = teams.get(store, team_name)
    interrupts = settings.value(team, "delivery") == "interject" if now is None else now
    if interrupts:
        try:
            require(store, team_name, caller, "interject", to)
        except errors.NotAllowed:
            if now:
                raise
            interrupts = False  # only the setting asks for it: the message is sent all the same
    message = messages.send(store, team_name, caller, to, body, uid, fyi, wake=False, ack_by=ack_by)
    try:
        session = ending.current(store, team_name, message.to)
        if session is None or (session.ended and session.outcome == "stopped"):  # it can't be interrupted
            return message, False
        is_new = message.number > session.delivered  # a command repeated with its uid returns an old message
        if interrupts and is_new and not session.taken_by:
            return message, _interrupt(store, team, caller, message, environ)
        waking.wake(store, team, caller.config, [message.to], caller.name, environ)
    except (errors.StorageFailed, errors.Busy):  # it is delivered with the next message
        pass
    return message, False


def stop_unattended(store: Store, team: str, caller: Caller | None, agent: str, environ: Mapping[str, str]) -> bool:
    """End the agent's client that was opened with `open --detach`. Returns False if there is no such client on this
    machine, or if `teams` started the agent.

    Raises:
        Conflict: The agent did not end in time.
    """
    name = require(store, team, caller, "stop-agent", agent).caller.name
    end_client = extensions.provided("end an unattended client")  # even if somebody looks at it
    if sessions.find(store, team, agent) is not None or end_client is None:
        return False
    if not end_client(store, team, agent, environ):
        return False
    history.note(store, team, name, "agent stopped", agent=agent)
    return True


def stop(store: Store, team_name: str, caller: Caller | None, agent: str) -> Session:
    """End an agent and all its processes. The agent that started it is notified. Messages no longer resume the ended
    agent.

    A client opened with `open --detach` is ended too.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
        Conflict: The agent did not end in time.
    """
    name = require(store, team_name, caller, "stop-agent", agent).caller.name
    ending.get_current(store, team_name, agent)
    before, after = _ask_to_stop(store, team_name, agent, name)
    if before is not after:
        history.note(store, team_name, name, "agent stopped", agent=agent)
    if after.ended:  # there is nothing to wait for
        return after

    def finish_stop() -> bool:
        """Take the next step to stop the agent. Return whether it is stopped now."""
        session = sessions.find(store, team_name, agent)
        if session is not None and not session.ended and (pid := ending.frozen_keeper(session)):
            processes.kill(pid)  # a suspended process never learns that its agent is to end
        session = ending.current(store, team_name, agent)  # read again, because a killed keeper leaves it lost
        if session is None:
            return True
        if not session.ended:
            return False
        _, session = _ask_to_stop(store, team_name, agent, name)  # marks it as stopped if it just ended by itself
        return session.outcome == "stopped"

    if not pace.sleep_until(store, team_name, finish_stop, _PATIENCE):
        raise errors.Conflict(
            f"{agent} did not end within {_PATIENCE:g} seconds", "Try again, or look: teams list-agents"
        )
    return sessions.find(store, team_name, agent) or after


def _ask_to_stop(store: Store, team: str, agent: str, by: str) -> tuple[Session, Session]:
    """Ask a running session to end, or mark an ended session as stopped, so that nothing resumes it. Returns the
    session before and after this change.
    """

    def stopped(session: Session) -> Session:
        if not session.ended:
            return session if session.stop_asked else session.having(stop_asked=by)
        if session.outcome == "stopped":
            return session
        who = session.stop_asked or by
        return session.having(state="done", outcome="stopped", stop_asked=who, failure=f"{who} stopped it")

    return update(store, team, SESSION.even_in_closed_team, agent, stopped)


def pause(store: Store, team_name: str, caller: Caller | None, agent: str) -> Session:
    """Pause an agent: at once if it is idle, otherwise after its turn. Its messages wait until it is resumed.

    Pausing a paused agent changes nothing. Both `resume-agent` and `interject` resume it.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
        WrongState: The agent was stopped.
    """
    name = require(store, team_name, caller, "pause-agent", agent).caller.name
    ending.get_current(store, team_name, agent)  # refuses other agents

    def paused(session: Session) -> Session:
        sitting.refuse_stopped(session)
        if session.pause_asked or session.state == "paused":  # it is paused, or is to be after its turn
            return session
        asked = session.having(pause_asked=f"{name} paused it")
        # The keeper of an agent in a turn pauses it after the turn.
        return asked.having(state="paused") if session.ended else asked

    before, after = update(store, team_name, SESSION.even_in_closed_team, agent, paused)
    if before is not after:
        history.note(store, team_name, name, "agent paused", agent=agent)
    return after


def take_over(
    store: Store, team: str, caller: Caller | None, agent: str, client: str, environ: Mapping[str, str]
) -> Session:
    """Pause an agent after its turn, and let this process hold its session, so that a person can take the agent's
    place.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
        WrongState: Nobody can take the agent's place; the message says why.
    """
    session = sitting.session_to_continue(store, team, ending.get_current(store, team, agent), client)
    was_paused = session.state == "paused"
    try:
        pause(store, team, caller, agent)
        waking.wait_for(store, team, agent)
        return sitting.hold(store, team, agent, caller.name if caller else HUMAN, os.getpid(), was_paused)
    except BaseException:
        if not was_paused:
            with suppress(errors.TeamsError):  # the first error is the one to report
                resumed = resume(store, team, caller, agent)
                if caller:
                    wake(store, team, caller, resumed, environ)
        raise


def give_back(store: Store, team: str, session: Session, caller: Caller | None, environ: Mapping[str, str]) -> None:
    """Let the agent continue by itself after a person took its place. It gets the mail that waits for it."""
    sitting.give_back(store, team, session)
    waking.wake(store, teams.get(store, team), caller.config if caller else None, [session.agent], HUMAN, environ)


def resume(store: Store, team_name: str, caller: Caller | None, agent: str) -> Session:
    """Resume a paused agent, with the messages that waited for it. An agent that is not paused is left unchanged.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
        WrongState: The agent was stopped, or taken over into a terminal.
    """
    standing = require(store, team_name, caller, "resume-agent", agent)
    ending.get_current(store, team_name, agent)  # refuses other agents

    def resumed(session: Session) -> Session:
        sitting.refuse_stopped(session)
        sitting.refuse_taken(session)
        unpaused = resuming.without_pause(session)
        # `failure` has the reason of a pause or, if the last turn failed, the reason of that. Only the latter stays.
        last_turn_failed = unpaused.outcome != "completed"
        return unpaused.having(failure=None) if session.state == "paused" and not last_turn_failed else unpaused

    before, after = update(store, team_name, SESSION.even_in_closed_team, agent, resumed)
    if before is not after:
        history.note(store, team_name, standing.caller.name, "agent resumed", agent=agent)
    return after


def wake(store: Store, team_name: str, caller: Caller, session: Session, environ: Mapping[str, str]) -> Session:
    """Begin a turn of a resumed agent if mail is waiting for it. Returns the agent's session after this."""
    if session.ended:
        waking.wake(store, teams.get(store, team_name), caller.config, [session.agent], caller.name, environ)
    return sessions.find(store, team_name, session.agent) or session


def restart(
    store: Store, team: str, caller: Caller | None, agent: str, fresh: bool, environ: Mapping[str, str], uid: str | None
) -> Message:
    """Stop what an agent is doing, and let it begin again.

    With --fresh it begins in a new session of its client, with its first prompt, its tasks and the team's pages.
    Repeating the command before the agent restarts, or with the same --uid, has no effect.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
        WrongState: The agent was stopped, or taken over into a terminal.
        InvalidValue: The uid is not valid.
    """
    standing = require(store, team, caller, "restart-agent", agent)
    # An agent without a level may do everything, as at the last level.
    level = ending.get_current(store, team, agent).permissions or permissions.LEVELS[-1]
    permissions.refuse_more(environ, level, f"restart an agent that may do more ({level})")
    by = standing.caller.name
    body = _text_of_restart(store, team, by, agent, fresh)
    request = f"{by}~{messages.checked_uid(uid)}" if uid is not None else None
    earlier: Message | None = None  # the message that asked for the restart, if an earlier command has sent it

    def last_message(session: Session) -> Message | None:
        """Return the message by which the agent was last interrupted, if it asked for a restart; else None. The session
        has the number of this message.
        """
        fetched = store.fetch(team, MESSAGE, [session.interjected], [])
        return fetched[0] if fetched and fetched[0].about == BEGIN_AGAIN else None

    def with_restart(session: Session) -> Session:
        nonlocal earlier
        if request and session.restarted == request:  # the command is repeated
            earlier = last_message(session)
            return session
        sitting.refuse_stopped(session)
        sitting.refuse_taken(session)
        restarted = resuming.without_pause(session)
        if fresh and not restarted.fresh:
            restarted = restarted.having(fresh=True)
        if request:
            restarted = restarted.having(restarted=request)
        is_undelivered = session.interjected > session.delivered
        earlier = last_message(session) if is_undelivered else None
        if earlier or restarted.restart_notice:
            # An earlier restart has not taken effect yet: its message is undelivered, or its notice is not even sent.
            return restarted
        uid_of_turn = f"{agent}~{BEGIN_AGAIN}-{session.generation}-{session.turns}"
        notice = Owed(to=agent, message=body, uid=uid_of_turn, by=by, about=BEGIN_AGAIN, event="restart-asked")
        return owing(restarted, notice)

    before, after = update(store, team, SESSION, agent, with_restart)
    if before is not after:
        history.note(store, team, by, "agent restarted", agent=agent, fresh=fresh or None)
    message = earlier or _send_restart_message(store, team, after, body)  # sends the notice that the session owes
    if after.ended and after.interrupted:
        with suppress(errors.TeamsError):  # the waker of its machine resumes it later
            waking.wake(store, standing.team, standing.caller.config, [agent], by, environ)
    return message


def _send_restart_message(store: Store, team: str, session: Session, body: str) -> Message:
    """Send the message that restarts the agent, and return it. If sending fails, the returned message has no number,
    and a later command sends the notice that stays in the session.
    """
    sent: dict[str, Message] = {}
    deliver(store, team, SESSION, session, sent)
    for message in sent.values():
        if message.about == BEGIN_AGAIN:
            return message
    return Message(from_=SYSTEM, to=session.agent, message=body, timestamp=teams.now(store), about=BEGIN_AGAIN)


def _text_of_restart(store: Store, team: str, by: str, agent: str, fresh: bool) -> str:
    if fresh:
        lines = [f"{by} restarted you in a new session; your earlier work is in your directory."]
    else:
        lines = [f"{by} restarted you."]
    lines += [f"Your task: {task.id}: {task.title}" for task in tasks.held_by(store, team, agent)]
    if keys := [page.key for page in pages.all_of(store, team, [])]:
        lines.append(f"Pages: {', '.join(keys)} (teams shared KEY)")
    return "\n".join([*lines, "First run: teams brief"])
