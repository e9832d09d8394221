"""Make a client in a terminal a member, or let it take the place of an agent that `teams` keeps. This agent is paused
while a person sits in its place, and then continues by itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from teams_cli import errors, extensions, processes
from teams_cli.agents import sessions
from teams_cli.agents.resuming import unpaused
from teams_cli.agents.seats import bindings, terminals
from teams_cli.agents.seats.bindings import Binding
from teams_cli.agents.seats.terminals import TERMINAL, Terminal
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.clients.seats import GONE
from teams_cli.membership import joining
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store, update, upsert
from teams_cli.store.files import disk
from teams_cli.teams import history, presence, teams
from teams_cli.teams.permission import Caller, verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.records.types import TerminalState


class Arrival(NamedTuple):
    """A client that starts in a terminal. *caller* is the member that the client will become, or None if no member was
    named. *thread* is the client's Codex thread, *tty* its terminal, and *way* the first channel for waking it; each is
    "" if the client has none. *secrets* stay on this machine: how to reach the client's socket, and the environment for
    the client's own commands.
    """

    client: str
    pid: int
    session_id: str
    directory: str
    caller: Caller | None
    thread: str
    tty: str
    way: str
    source: str
    state: TerminalState
    secrets: Mapping[str, Any]


def sit_down(store: Store, team: str, arrival: Arrival) -> Binding | None:
    """Make the client a member. If the client is a member already, for example because its session is resumed, it stays
    this member. Returns None if the client belongs to an agent that a keeper runs.

    Raises:
        TeamNotFound: There is no such team.
        NotAllowed: The agent may not join: it was shut down, or its token is wrong.
    """
    caller = arrival.caller or _returning_member(store, team, arrival)
    if caller and not _take_seat(store, team, caller.name, arrival.pid):
        return None
    if caller and not caller.token:
        caller.token = str(secrets_of(store, team, caller.name).get("token") or "")
    team_record = teams.get(store, team)
    if caller and team_record.member(caller.name):  # such as a leader, who need not and may not join
        verify(team_record, caller)
        binding = Binding(team, caller.name, caller.token)
    else:
        member, new_token = joining.join(store, team, caller)
        earlier_token = caller.token if caller else ""
        binding = Binding(team, member.agent_id, new_token or earlier_token)
    path = bindings.terminal_file(store.root, team, binding.agent, "json")
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    secrets = json.dumps({**arrival.secrets, "client": arrival.client, "token": binding.token})
    disk.commit(disk.write_temp(os.path.dirname(path), secrets.encode()), path)
    _register(store, team, binding.agent, arrival)
    bindings.bind(store.root, binding, arrival.pid, arrival.thread)
    return binding


def _returning_member(store: Store, team: str, arrival: Arrival) -> Caller | None:
    """Return the member that the client was before, found by its process or its session. None if there is none, if the
    member was shut down, or if the session is open in another terminal, because the client in each terminal is a
    separate agent.
    """
    binding = bindings.of_process(store.root, arrival.pid)
    if binding and binding.team == team:
        return Caller(binding.agent, token=binding.token)
    if not arrival.session_id:  # nothing shows which member it was
        return None
    for terminal in terminals.all_of(store, team, []):
        if (terminal.client, terminal.session_id) != (arrival.client, arrival.session_id):
            continue
        may_continue = terminal.state == GONE or terminal.has_ended or terminal.pid == arrival.pid
        member = teams.get(store, team).find(terminal.agent)
        if not may_continue or member is None or member.stopped_by:
            return None
        return Caller(terminal.agent)
    return None


def _take_seat(store: Store, team: str, name: str, pid: int) -> bool:
    """Let the client, the process *pid*, take the place of the agent *name*. Return False if it can't, because a keeper
    is running the agent in another client. If the agent is an idle one that `teams` started, the client's process holds
    the agent's session, so that no keeper resumes it before the client ends.
    """
    session = sessions.find(store, team, name)
    if session is None:
        return True
    if session.ended and not session.taken_by and session.outcome != "stopped" and session.host in ("", store.host):
        try:
            session = hold(store, team, name, HUMAN, pid, session.state == "paused")
        except errors.WrongState:  # its keeper continued meanwhile
            return False
    return session.ended  # else a keeper runs the agent's client


def _register(store: Store, team: str, name: str, arrival: Arrival) -> None:
    """Record the terminal in which the agent sits now. The other fields of an earlier record stay, such as the newest
    message for which the agent was woken. A new process has not been woken yet, so `wakes` is 0 again.
    """
    now = teams.now(store)
    fields: dict[str, Any] = {
        "client": arrival.client,
        "session_id": arrival.session_id or None,
        "directory": arrival.directory,
        "pid": arrival.pid,
        "pid_started": processes.process_started(arrival.pid) or None,
        "pid_boot": processes.pid_scope(store.host),
        "tty": arrival.tty or None,
        "way": arrival.way or None,
        "state": arrival.state,
        "since": now,
        "source": arrival.source,
        "heard_at": now,
    }

    def change(terminal: Terminal) -> Terminal:
        is_same_process = (terminal.pid, terminal.pid_started) == (fields["pid"], fields["pid_started"])
        if not is_same_process:
            terminal = terminal.having(joined_at=now, version=None, wakes=0)
        return terminal.having(**fields, waits_for=None)

    draft = Terminal(agent=name, joined_at=now, **fields)
    before, terminal = upsert(store, team, TERMINAL, name, draft, change)
    note_session(store, team, terminal)
    presence.register_process(store, team, name, arrival.pid, arrival.state in terminals.IN_TURN)
    is_first_client = before is draft  # `upsert` returns the draft if there was no record
    if is_first_client or before.pid != arrival.pid:
        history.note(store, team, name, "terminal joined", client=arrival.client)


def note_session(store: Store, team: str, terminal: Terminal) -> None:
    """Record on this machine the session of the client in the *terminal*, so that the session may be copied or
    continued here.
    """
    session = sessions.find(store, team, terminal.agent)
    if session is None:
        sessions.note_started_here(store, team, as_session(terminal))
    elif terminal.session_id and session.harness == terminal.client and sessions.is_started_here(store, team, session):
        sessions.note_started_here(store, team, session.having(session_id=terminal.session_id))


def to_reopen(store: Store, team: str, agent: str, client: str) -> Terminal | None:
    """Return the terminal in which the agent sat, so that the session of its ended client can be opened again here.
    None if the agent never sat in a terminal.

    Raises:
        WrongState: The client still runs, is not *client*, is on another machine, or reported no session.
        NotAllowed: The terminal's record names a session that this machine does not know.
    """
    terminal = terminals.find(store, team, agent)
    if terminal is None:
        return None
    command = f"teams open {terminal.client} --resume {agent}"
    if terminal.host not in ("", store.host):
        raise errors.WrongState(f"{agent} sits on another machine, {terminal.host}", f"There: {command}")
    if terminal.client != client:
        raise errors.WrongState(f"{agent} uses {terminal.client}, not {client}", command)
    if terminal.state != GONE and not terminal.has_ended:
        tty = f", {terminal.tty}" if terminal.tty else ""
        raise errors.WrongState(
            f"the client of {agent} runs, in its terminal{tty}", f"End it there first; then: {command}"
        )
    if not terminal.session_id:
        raise errors.WrongState(
            f"{agent} has no known session", f"Start a new one: teams open {client} --agent-id {agent}"
        )
    sessions.check_started_here(store, team, as_session(terminal))
    return terminal


def stand_up(store: Store, team: str, agent: str, source: str) -> None:
    """Record that the agent's client is gone, and remove the files that only the client needed. The agent keeps its
    name and its session. *source* says who or what reported the end of the client.
    """
    terminal = terminals.find(store, team, agent)
    if terminal is None:
        return
    terminals.end(store, team, agent, terminal.pid, source)
    bindings.release(store.root, terminal.pid)
    bell = bindings.terminal_file(store.root, team, agent, "bell")
    # A listener with the lock belongs to the agent's next client, which is about to join.
    if not bindings.is_locked(f"{bell}.lock"):
        for path in (bell, f"{bell}.lock"):
            disk.discard(path)


def as_session(terminal: Terminal) -> Session:
    """Return a session record for the client in a terminal, so that the client's session can be copied."""
    session_id, at = terminal.session_id or "", terminal.joined_at
    return sessions.of_client(terminal.agent, terminal.client, session_id, terminal.directory, at, terminal.turns)


def secrets_of(store: Store, team: str, agent: str) -> dict[str, Any]:
    """Return the secrets of the agent's terminal, such as the token of the client's socket. They are empty if the
    terminal is on another machine.
    """
    try:
        with open(bindings.terminal_file(store.root, team, agent, "json"), encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return {}


def may_sit(store: Store, team: str) -> bool:
    """Whether the team exists and is open."""
    try:
        return teams.get(store, team).state != "closed"
    except errors.TeamsError:
        return False


def unattended_agents(store: Store, team: str, environ: Mapping[str, str]) -> list[str]:
    """Return the agents of the team whose clients on this machine have nobody in front of them."""
    list_agents = extensions.provided("agents of unattended clients")
    return list(list_agents(store, team, environ)) if list_agents else []


def end_all_unattended(store: Store, team: str, environ: Mapping[str, str]) -> list[str]:
    """End the detached clients of the team that nobody views. Returns the agents whose detached clients still run."""
    end_clients = extensions.provided("end unattended clients")
    return list(end_clients(store, team, environ)) if end_clients else []


def session_to_continue(store: Store, team: str, session: Session, client: str) -> Session:
    """Return the session, if a person can continue it in the *client* on this machine.

    Raises:
        WrongState: The session is of another client or machine, has no known id yet, was stopped, or is taken over.
    """
    agent = session.agent
    if session.harness != client:
        command = f"teams open {session.harness} --resume {agent}"
        raise errors.WrongState(f"{agent} runs in {session.harness}, not in {client}", command)
    if session.host not in ("", store.host):
        raise errors.WrongState(f"{agent} is on another machine, {session.host}", "Take it over there.")
    refuse_stopped(session)
    refuse_taken(session)
    if not session.turns or not session.session_known:
        raise errors.WrongState(f"{agent} has no known session yet", "Try again after its first turn.")
    sessions.check_started_here(store, team, session)
    return session


def refuse_taken(session: Session) -> None:
    """Refuse to act on an agent if a person sits in its place, or is about to sit there."""
    if session.taken_by:
        raise errors.WrongState(
            f"{session.agent} was taken over by {session.taken_by}, in a terminal",
            "It continues when that client ends. Until then send it a message: teams send-message …",
        )


def hold(store: Store, team: str, agent: str, by: str, pid: int, was_paused: bool) -> Session:
    """Pause the session, because the person *by* continues it in their own client, the process *pid*. *was_paused* says
    that the session was already paused, so it stays paused when that client has ended.

    Raises:
        WrongState: The session was taken over or continued meanwhile.
    """

    def change(session: Session) -> Session:
        refuse_taken(session)
        if not session.ended or session.outcome == "stopped":
            raise errors.WrongState(f"{agent} has continued in the meantime", "Try again.")
        held = session.kept_by(pid, store.host).having(state="paused", taken_by=by)
        return held if was_paused else held.having(pause_asked=_pause_reason(by))

    after = update(store, team, SESSION, agent, change)[1]
    history.note(store, team, by, "agent taken over", agent=agent)
    return after


def has_person_left(store: Store, team: str, session: Session) -> bool:
    """Whether the person who took the agent's place is gone, so that the agent may continue. False if nobody took its
    place on this machine.
    """
    if not session.taken_by or session.host not in ("", store.host):
        return False
    terminal = terminals.find(store, team, session.agent)
    if terminal and terminal.state != GONE and terminal.has_ended is not True:  # the client may run
        return False
    # Before the client has joined, only the process that holds the session shows whether the person is there.
    return processes.has_ended(session.keeper_pid or 0, session.keeper_started, session.keeper_boot) is not False


def give_back(store: Store, team: str, session: Session) -> Session:
    """Let the agent continue by itself with its next mail, in the session that the person in its place used last."""
    terminal = terminals.find(store, team, session.agent)
    persons_id = ""
    if terminal and terminal.client == session.harness and terminal.joined_at >= (session.ended_at or ""):
        persons_id = terminal.session_id or ""  # the person used this terminal after the agent's last turn
    session_id_after = persons_id if sessions.is_session_id(persons_id) else ""

    def change(current: Session) -> Session:
        if current.taken_by != session.taken_by or current.keeper_pid != session.keeper_pid:  # it was given back
            return current
        is_paused_by_hold = current.state == "paused" and current.pause_asked == _pause_reason(current.taken_by or "")
        freed = unpaused(current) if is_paused_by_hold else current
        return freed.having(taken_by=None, session_id=session_id_after or current.session_id)

    before, after = update(store, team, SESSION.even_in_closed_team, session.agent, change)
    if before is not after:
        history.note(store, team, session.taken_by or session.agent, "agent given back", agent=session.agent)
    return after


def _pause_reason(by: str) -> str:
    return f"{by} took it over"  # no other pause has this reason


def refuse_stopped(session: Session) -> None:
    """Refuse to act on an agent that was stopped, because nothing resumes such an agent."""
    if session.stop_asked or (session.ended and session.outcome == "stopped"):
        raise errors.WrongState(f"{session.agent} was stopped", "Start another: teams run-agent …")
