"""Sessions: the life of an agent that `teams` started; what it is doing, whose it is, and how it ended.

    starting → running ⇄ waiting → done → starting → …
                                  ↘ paused

One process has the session all the time: first the one that starts it, then its keeper. The keeper alone leaves
`running` and `waiting`; whoever finds it gone settles the session as lost. Only one process gets a session out of
`done`, so a session is never resumed twice.
"""

from __future__ import annotations

import os
import time

from teams_cli import agents, history, inboxes, logs, messages, outputs, processes, teams
from teams_cli.errors import Conflict, NotFound, TeamsError
from teams_cli.records import Record, field
from teams_cli.store.contract import Kind, update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.shapes import Count, Name, Object, Outcome, SessionState, Text, Time, Word
    from teams_cli.store.contract import Store

_LINGER = 5.0
_LOG_END = 2000
_MESSAGE = 60_000


class Resume(Record):
    """A time when a message resumed the session."""

    at: Time
    by: Name


class Session(Record):
    """One agent that was started. `caller` gets its output; `run` is shared by all that one `run-agent` led to."""

    nested = {"resumes": Resume}  # noqa: RUF012

    agent: Name
    caller: Name
    run: Word
    depth: Count = 1
    harness: Name
    prompt: Text
    description: Text
    directory: Text
    variables: Object | None = None
    worktree: Text | None = None
    branch: Text | None = None
    state: SessionState = "starting"
    outcome: Outcome | None = None
    outcome_before: Outcome | None = None
    generation: Count = 1
    turns: Count = 0
    session_id: Word
    session_known: bool | None = None
    keeper_pid: Count | None = None
    keeper_started: Word | None = None
    keeper_boot: Word | None = None
    created_at: Time
    started_at: Time
    ended_at: Time | None = None
    exit_status: int | None = None
    failure: Text | None = None
    interjected: Count = 0
    delivered: Count = 0
    stop_asked: Name | None = None
    pause_asked: Text | None = None
    resumes: list[Resume] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether nothing is going on in it."""
        return self.state in ("done", "paused")

    @property
    def interrupted(self) -> bool:
        """Whether somebody interjected, and the text was not delivered yet."""
        return self.interjected > self.delivered

    @property
    def mark(self) -> str:
        """What the processes of its clients carry in their environment; those of the next generation another."""
        return f"{self.run}.{self.agent}.{self.generation}"

    def kept_by(self, pid: int, host: str = "") -> Session:
        """The session in the hands of that process, on the machine called so."""
        started = agents.process_started(pid) or None
        return self.having(keeper_pid=pid, keeper_started=started, keeper_boot=agents.process_place(host))

    @property
    def host(self) -> str:
        """The machine where its keeper runs, and its client's own session is; empty where there is only one."""
        return agents.host_of(self.keeper_boot)

    @property
    def keeper_lives(self) -> bool:
        """Whether the process that has the session, or had it last, is there; True where that can't be known."""
        if self.keeper_pid is None:
            return False
        ended = agents.has_ended(self.keeper_pid, self.keeper_started, self.keeper_boot)
        return not self.ended if ended is None else not ended


SESSION: Kind[Session] = Kind("session", Session, key="agent")


def find(store: Store, team: str, agent: str) -> Session | None:
    """The agent's session; None if it was not started by `teams`."""
    try:
        return store.get(team, SESSION, agent)[0]
    except NotFound:
        return None


def current(store: Store, team: str, agent: str) -> Session | None:
    """As `find`, but a session whose keeper is gone is settled as lost first."""
    session = find(store, team, agent)
    return session if session is None else _settled(store, team, session)


def of_team(store: Store, team: str, problems: list[TeamsError]) -> list[Session]:
    """All sessions, lost ones settled."""
    return [_settled(store, team, session) for session, _ in store.scan(team, SESSION, problems)]


def children(store: Store, team: str, agent: str) -> list[Session]:
    """The sessions that the agent started itself."""
    return [session for session in of_team(store, team, []) if session.caller == agent]


def of_run(store: Store, team: str, run: str) -> list[Session]:
    """The sessions of one run, in the order of their start."""
    return sorted((s for s in of_team(store, team, []) if s.run == run), key=lambda s: s.created_at)


def is_lost(store: Store, team: str, session: Session) -> bool:
    """Whether the session is going on by its record, and no process has it: its keeper is gone, or its machine silent.

    A keeper on another machine can't be looked at; it says every now and then that its agent is alive.
    """
    if session.ended or not session.keeper_lives or not store.host or session.keeper_pid is None:
        return not session.ended and not session.keeper_lives
    if agents.has_ended(session.keeper_pid, session.keeper_started, session.keeper_boot) is False:
        return False
    return agents.is_silent(store, teams.load(store, team), session.agent, session.started_at)


def _settled(store: Store, team: str, session: Session) -> Session:
    """The session, settled if it is lost. On a disk that can't be written it stays until somebody can."""
    if not is_lost(store, team, session):
        return session
    try:
        return settle_lost(store, team, session.agent)
    except TeamsError:
        return session


def settle_lost(store: Store, team: str, agent: str) -> Session:
    """End a session whose keeper is gone: end what the client left, and tell the caller, once."""
    session, _ = store.get(team, SESSION, agent)
    if not is_lost(store, team, session):
        return session
    if session.keeper_lives:
        return finish(store, team, session, "lost", f"nothing was heard of its machine, {session.host}")
    processes.end_marked(session.mark, (("KILL", 2.0),))
    said = logs.end_of_turn(store, team, agent, session.turns, _LOG_END)
    return finish(store, team, session, "lost", f"its keeper was killed{': ' + said if said else ''}")


def linger(found: list[Session]) -> None:
    """Wait until the keepers of sessions that are done are gone: the last that they do is to resume others."""
    give_up = time.monotonic() + _LINGER
    while any(s.ended and s.keeper_lives for s in found) and time.monotonic() < give_up:
        time.sleep(0.005)


def finish(
    store: Store,
    team: str,
    session: Session,
    outcome: Outcome,
    failure: str | None = None,
    output: str | None = None,
    exit_status: int | None = None,
) -> Session:
    """End this generation of the session: its output, or why there is none, goes to the caller, exactly once.

    First what came of it is written down, then the message is stored, under a uid of the generation, and only then is
    the session done. Whoever finds it half-way, after a crash, goes on from what is written down.
    """

    def settle(found: Session) -> Session:
        if found.ended or found.generation != session.generation or found.outcome:
            return found
        return found.having(outcome=outcome, failure=failure, exit_status=exit_status)

    def end(found: Session) -> Session:
        if found.ended or found.generation != session.generation:
            return found
        return found.having(state="paused" if found.pause_asked else "done", ended_at=teams.now(store))

    if output is not None:
        outputs.keep(store, team, session.agent, session.generation, output)
    settled = update(store, team, SESSION, session.agent, settle)[1]
    if settled.ended or settled.generation != session.generation:
        return settled
    pipe(store, team, settled)
    before, after = update(store, team, SESSION, session.agent, end)
    if before is not after:
        history.note(store, team, session.agent, f"session {after.outcome}", generation=after.generation)
    return after


def pipe(store: Store, team: str, session: Session) -> None:
    """Send the caller the output of the session, or why there is none, as a message from the agent."""
    if session.outcome == "completed":
        said = outputs.find(store, team, session.agent) or ""
        body = said if said.strip() else f"Agent {session.agent} completed."
    elif session.outcome == "stopped":
        body = f"Agent {session.agent} was stopped: {session.failure}"
    else:
        body = f"Agent {session.agent} failed: {session.failure}"
    # A name may be as long as a uid, so the number goes into a part of its own.
    uid = f"{session.agent}~output-{session.generation}"
    limited = _within_message(body, session.agent)
    messages.notify(store, team, session.caller, limited, uid, "output", session.agent)


def _within_message(body: str, agent: str) -> str:
    """The body, or its beginning and where the rest is: an output may be longer than a message."""
    if len(body.encode()) <= _MESSAGE:
        return body
    start = body.encode()[:_MESSAGE].decode(errors="ignore")
    return f"{start}\n[{len(body) - len(start)} more characters: teams recall {agent} --output]"


def take(store: Store, team: str, agent: str) -> Session:
    """Make this process the keeper of the session.

    Raises:
        Conflict: Another has it, or it is not to be started.
    """

    def change(session: Session) -> Session:
        if session.state != "starting":
            raise Conflict(f"the session of {agent} is {session.state}", "It has a keeper already.")
        return session.kept_by(os.getpid(), store.host).having(state="running")

    return update(store, team, SESSION, agent, change)[1]


def hand_on(store: Store, team: str, session: Session, pid: int) -> None:
    """Give a session that is starting into the hands of the process that will be its keeper."""

    def change(found: Session) -> Session:
        if found.state != "starting" or found.generation != session.generation:
            return found
        return found.kept_by(pid, store.host)

    update(store, team, SESSION, session.agent, change)


def lapse(store: Store, team: str, session: Session) -> None:
    """End a generation that found nothing to do, as if it had not been."""

    def change(found: Session) -> Session:
        if found.ended or found.generation != session.generation:
            return found
        return found.having(state="paused" if found.pause_asked else "done", outcome=found.outcome_before)

    update(store, team, SESSION, session.agent, change)


def waiting_numbers(store: Store, team: str, session: Session) -> list[int]:
    """The numbers of the messages that the next turn is for: the unread ones, and an interjection in any case."""
    numbers = set(inboxes.unread(store, team, session.agent))
    if session.interrupted:
        numbers.add(session.interjected)
    return sorted(numbers)


def unfinished(store: Store, team: str, agent: str) -> list[str]:
    """Why the agent may not finish yet: what it started is still going on, or it has unread mail. Empty: it may."""
    going = [session.agent for session in children(store, team, agent) if not session.ended]
    reasons = [f"{name} is still at work for you" for name in going]
    unread = inboxes.unread(store, team, agent)
    if unread:
        reasons.append(f"unread messages: {', '.join(f'msg-{number}' for number in unread)}")
    return reasons


def describe(session: Session, row: dict[str, Any]) -> None:
    """Add to the row of a listed agent what its session says."""
    if session.outcome == "stopped" and session.ended:
        row["state"] = "stopped"
    elif row["state"] != "stopped":  # its keeper says more of it than when it was last heard of
        row["state"] = "idle" if session.ended else "active"
    if session.host:
        row["host"] = session.host
    row["session"] = {
        key: value
        for key, value in session.to_json().items()
        if key in ("state", "outcome", "harness", "description", "caller", "directory", "worktree", "branch", "turns")
    }
