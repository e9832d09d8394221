"""Sessions: the life of an agent that `teams` started; what it is doing, whose it is, and how it ended.

    starting → running ⇄ waiting → done → starting → …
                                  ↘ paused

One keeper process has the session from `running` on. It alone leaves `running` and `waiting`; whoever finds it gone
settles the session as lost. Only one process gets a session out of `done`, so a session is never resumed twice.
"""

from __future__ import annotations

import os

from teams_cli import agents, history, inboxes, messages, processes, teams
from teams_cli.clock import boot_id, parse_rfc3339, seconds_since
from teams_cli.errors import Conflict, NotFound, TeamsError
from teams_cli.records import Record, field
from teams_cli.store.contract import Kind, update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from teams_cli.shapes import Count, Name, Outcome, SessionState, Text, Time, Word
    from teams_cli.store.contract import Store

_GRACE = 30.0
_RESUMES = 500
_RESUMABLE = ("completed", "failed", "lost")


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
    worktree: Text | None = None
    branch: Text | None = None
    state: SessionState = "starting"
    outcome: Outcome | None = None
    generation: Count = 1
    turns: Count = 0
    session_id: Word
    keeper_pid: Count | None = None
    keeper_started: Word | None = None
    keeper_boot: Word | None = None
    created_at: Time
    started_at: Time
    ended_at: Time | None = None
    exit_status: int | None = None
    output: Text | None = None
    failure: Text | None = None
    interjected: Count = 0
    delivered: Count = 0
    stop_asked: Name | None = None
    piped: bool = True
    resumes: list[Resume] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether nothing is going on in it."""
        return self.state in ("done", "paused")

    @property
    def mark(self) -> str:
        """What its processes carry in their environment."""
        return f"{self.run}.{self.agent}"


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
    if session is not None and is_lost(store, session):
        return settle_lost(store, team, agent)
    return session


def of_team(store: Store, team: str, problems: list[TeamsError]) -> list[Session]:
    """All sessions, lost ones settled."""
    found = [session for session, _ in store.scan(team, SESSION, problems)]
    return [settle_lost(store, team, s.agent) if is_lost(store, s) else s for s in found]


def children(store: Store, team: str, agent: str) -> list[Session]:
    """The sessions that the agent started itself."""
    return [session for session in of_team(store, team, []) if session.caller == agent]


def of_run(store: Store, team: str, run: str) -> list[Session]:
    """The sessions of one run, in the order of their start."""
    return sorted((s for s in of_team(store, team, []) if s.run == run), key=lambda s: s.created_at)


def is_lost(store: Store, session: Session) -> bool:
    """Whether the session is going on by its file, and no keeper has it."""
    if session.ended:
        return False
    if session.keeper_pid is None:
        return seconds_since(session.started_at, store.now()) > _GRACE
    if session.keeper_boot != boot_id():
        return True
    return agents.process_started(session.keeper_pid) != session.keeper_started


def settle_lost(store: Store, team: str, agent: str) -> Session:
    """End a session whose keeper is gone: end what the client left, and tell the caller, once."""
    session = find(store, team, agent)
    if session is None or not is_lost(store, session):
        assert session is not None
        return session
    processes.end_marked(session.mark, (("KILL", 2.0),))
    return finish(store, team, session, "lost", "its keeper was killed; what it did until then is in its log")


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
        return found.having(outcome=outcome, failure=failure, output=output, exit_status=exit_status)

    def end(found: Session) -> Session:
        if found.ended or found.generation != session.generation:
            return found
        nobody: dict[str, None] = {"keeper_pid": None, "keeper_started": None, "keeper_boot": None}
        return found.having(state="done", ended_at=teams.now(store), **nobody)

    settled = update(store, team, SESSION, session.agent, settle)[1]
    if settled.ended or settled.generation != session.generation:
        return settled
    if settled.piped:
        pipe(store, team, settled)
    before, after = update(store, team, SESSION, session.agent, end)
    if before is not after:
        history.note(store, team, session.agent, f"session {after.outcome}", generation=after.generation)
    return after


def pipe(store: Store, team: str, session: Session) -> None:
    """Send the caller the output of the session, as a message from the agent."""
    if session.outcome == "completed":
        body = session.output if (session.output or "").strip() else f"Agent {session.agent} completed."
    else:
        body = f"Agent {session.agent} {session.outcome}: {session.failure}"
    limited = _within_message(body or "", session.agent)
    uid = f"output-{session.agent}-{session.generation}"
    messages.notify(store, team, session.caller, limited, uid, "output", session.agent)


def _within_message(body: str, agent: str) -> str:
    """The body, or its beginning and where the rest is: an output may be longer than a message."""
    limit = 60_000
    if len(body.encode()) <= limit:
        return body
    start = body.encode()[:limit].decode(errors="ignore")
    return f"{start}\n[{len(body) - len(start)} more characters: teams recall {agent} --output]"


def take(store: Store, team: str, agent: str) -> Session:
    """Make this process the keeper of the session.

    Raises:
        Conflict: Another has it, or it is not to be started.
    """

    def change(session: Session) -> Session:
        if session.state != "starting" or session.keeper_pid is not None:
            raise Conflict(f"the session of {agent} is {session.state}", "It has a keeper already.")
        return session.having(
            state="running",
            keeper_pid=os.getpid(),
            keeper_started=agents.process_started(os.getpid()),
            keeper_boot=boot_id(),
        )

    return update(store, team, SESSION, agent, change)[1]


def reopen(store: Store, team: str, agent: str, by: str, limit: int, for_output: bool = False) -> bool:
    """Get an idle session out of `done`, for a message from *by*; whether this process did, and so starts a keeper.

    A stopped agent stays so; one that failed is not resumed by the output of what it started.

    When the same two resumed each other more than *limit* times within an hour, the session is paused instead, and
    the leader is told.
    """
    won: list[str] = []

    def change(session: Session) -> Session:
        won.clear()
        if session.state != "done" or session.outcome not in (("completed",) if for_output else _RESUMABLE):
            return session
        if reason := too_often(store, session, by, limit):
            won.append(reason)
            return session.having(state="paused", failure=reason)
        won.append("starting")
        return session.having(
            state="starting",
            generation=session.generation + 1,
            started_at=teams.now(store),
            outcome=None,
            failure=None,
            output=None,
            stop_asked=None,
        )

    try:
        update(store, team, SESSION, agent, change)
    except NotFound:
        return False
    if won and won != ["starting"]:
        tell_paused(store, team, agent, won[0])
    return won == ["starting"]


def too_often(store: Store, session: Session, by: str, limit: int) -> str:
    """Why the session shall not be resumed once more: *by* did *limit* times within an hour, or all did ten times that.

    Empty while it may. Agents that answer each other without end cost money and get nowhere.
    """
    lately = [resume.by for resume in session.resumes if seconds_since(resume.at, store.now()) < 3600]
    if lately.count(by) >= limit:
        return f"{by} resumed it {limit} times within an hour"
    return f"it was resumed {len(lately)} times within an hour" if len(lately) >= 10 * limit else ""


def resumed(session: Session, senders: Iterable[str], at: str) -> Session:
    """The session with one more turn for the messages of these."""
    return session.having(resumes=[*session.resumes, *(Resume(at=at, by=name) for name in senders)][-_RESUMES:])


def pause(store: Store, team: str, agent: str, reason: str) -> None:
    """Let the session rest, keeping its mail, until somebody interjects; tell the leader."""
    update(store, team, SESSION, agent, lambda s: s.having(state="paused", failure=reason, keeper_pid=None))
    tell_paused(store, team, agent, reason)


def tell_paused(store: Store, team: str, agent: str, reason: str) -> None:
    leader = teams.load(store, team).leader
    body = f"{agent} is paused: {reason}. `teams interject {agent} TEXT` lets it go on."
    messages.notify(store, team, leader, body, f"paused-{agent}-{parse_rfc3339(teams.now(store)):%Y%m%d%H%M}")
    history.note(store, team, agent, "session paused", reason=reason)


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
    if session.outcome == "stopped":
        row["state"] = "stopped"
    elif session.ended and row["state"] == "stale":  # it ended as it should: nothing is to be heard of it
        row["state"] = "idle"
    row["session"] = {
        key: value
        for key, value in session.to_json().items()
        if key in ("state", "outcome", "harness", "description", "caller", "directory", "worktree", "branch", "turns")
    }
