"""Sessions. A session records the life of an agent that `teams` started: its state, its process, and its outcome.

    starting → running ⇄ waiting → done → starting → …
                                  ↘ paused

At any time one process holds the session: first the process that starts it, then its keeper, which runs the agent's
turns. Only the keeper takes a session out of `running` and `waiting`. A process that finds the keeper gone ends the
session as lost. Only one process can take a session out of `done`, so it is never resumed twice.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.clock import parse_rfc3339
from teams_cli.records.records import Owed, Record, field
from teams_cli.store.contract import Kind, Store, get_if_there, update, upsert
from teams_cli.store.files import disk
from teams_cli.teams import presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from teams_cli.records.types import Count, Name, Object, Outcome, Permissions, SessionState, Text, Time, Word
    from teams_cli.teams.presence import Agent
    from teams_cli.teams.teams import Team


BEGIN_AGAIN = "begin-again"
"""The value of the field `about` in a notice that restarts an agent."""


class Resume(Record):
    """Records when a message resumed the session, and who sent the message."""

    at: Time
    by: Name


class Session(Record):
    """The record of an agent that `teams` started. `caller` is the member that started the agent and gets its output.
    `run` has the same value for an agent that `run-agent` started and for all agents below it, at any depth.
    `generation` counts how often the agent was started or resumed.

    *fresh* means that the next turn begins a new session of the client. *restarted* is the member that last asked for a
    restart, followed by a ~ and the uid of that request. *unstarted* is the agent that requested this agent from inside
    a sandbox, where nothing can be started. The keeper of the requesting agent, which runs outside the sandbox, then
    starts this agent. *taken_by* is the person who sits in the agent's place in a terminal. *checkout* is the checkout
    that the worktree was made from, so that a removed worktree can be made again.
    """

    nested = {"resumes": Resume, "owed": Owed}  # noqa: RUF012

    agent: Name
    caller: Name
    run: Word
    depth: Count = 1
    harness: Name
    model: Text | None = None
    acp_command: Text | None = None
    permissions: Permissions | None = None
    prompt: Text
    description: Text
    directory: Text
    variables: Object | None = None
    worktree: Text | None = None
    branch: Text | None = None
    checkout: Text | None = None
    port_base: Count | None = None
    state: SessionState = "starting"
    outcome: Outcome | None = None
    outcome_before: Outcome | None = None
    generation: Count = 1
    turns: Count = 0
    session_id: Word
    session_known: bool | None = None
    fresh: bool | None = None
    restarted: Word | None = None
    unstarted: Name | None = None
    keeper_pid: Count | None = None
    keeper_started: Word | None = None
    keeper_boot: Word | None = None
    created_at: Time
    started_at: Time
    ended_at: Time | None = None
    exit_status: int | None = None
    failure: Text | None = None
    limited_until: Time | None = None
    interjected: Count = 0
    delivered: Count = 0
    given: list[Count] | None = None
    stop_asked: Name | None = None
    pause_asked: Text | None = None
    taken_by: Name | None = None
    resumes: list[Resume] = field(default_factory=list)
    owed: list[Owed] | None = None

    @property
    def ended(self) -> bool:
        """Whether the session is done or paused, so that no process works on it."""
        return self.state in ("done", "paused")

    @property
    def outcome_or_state(self) -> str:
        """The outcome of the session, or its state while it has no outcome."""
        return self.outcome or self.state

    @property
    def interrupted(self) -> bool:
        """Whether the session has an interjection or a restart that has not been delivered yet."""
        return self.interjected > self.delivered or self.restart_notice is not None

    @property
    def restart_notice(self) -> Owed | None:
        """The notice that restarts the agent, until it is sent. None if no restart was requested, or the notice was
        sent.
        """
        return next((notice for notice in self.owed or () if notice.about == BEGIN_AGAIN), None)

    def paid(self, notice: Owed, number: int) -> Session:
        """Return the session after its stored *notice* was sent as the message *number*. If the notice restarts the
        agent, the message becomes the agent's next turn.
        """
        if notice.about != BEGIN_AGAIN:
            return self
        return self.having(interjected=max(self.interjected, number))

    @property
    def tag(self) -> str:
        """A mark in the environment of the client's processes, by which they are found. Each generation has its own
        mark.
        """
        return f"{self.run}.{self.agent}.{self.generation}"

    def kept_by(self, pid: int, host: str = "") -> Session:
        """Return the session with the process *pid* on the machine *host* as its keeper."""
        from teams_cli import processes

        started = processes.process_started(pid) or None
        return self.having(keeper_pid=pid, keeper_started=started, keeper_boot=processes.pid_scope(host))

    @property
    def holder(self) -> tuple[int, int | None, str | None]:
        """The generation of the session, and the process that holds it: its id and when it started."""
        return self.generation, self.keeper_pid, self.keeper_started

    @property
    def host(self) -> str:
        """The machine where the keeper runs and the client's session is stored; "" if there is only one machine."""
        from teams_cli import processes

        return processes.host_of(self.keeper_boot)

    def is_limited(self, now: datetime) -> bool:
        """Whether the provider refuses the agent's requests at the time *now*."""
        return self.limited_until is not None and parse_rfc3339(self.limited_until) > now

    def present_worktree(self, host: str) -> str | None:
        """Return the path of the session's worktree. None if the session has no worktree, or if the directory is gone,
        which only the agent's own machine can find out. *host* is the name of this machine.
        """
        is_gone = self.host in ("", host) and not os.path.isdir(self.worktree or "")
        return None if is_gone else self.worktree

    @property
    def keeper_lives(self) -> bool:
        """Whether the process that holds the session, or held it last, still runs. If this machine can't find out, for
        example because the process is on another machine, the process counts as running until the session has ended.
        """
        if self.keeper_pid is None:
            return False
        from teams_cli import processes

        has_ended = processes.has_ended(self.keeper_pid, self.keeper_started, self.keeper_boot)
        if has_ended is None:
            return not self.ended
        return not has_ended


def of_client(agent: str, client: str, session_id: str, directory: str, at: str, turns: int = 1) -> Session:
    """Return a record for a client that `teams` does not run itself, so that the client's session can be copied to
    answer a question. The returned session is never resumed.
    """
    return Session(
        agent=agent,
        caller=agent,
        run="terminal",
        harness=client,
        prompt="",
        description="",
        directory=directory,
        turns=turns,
        session_id=session_id,
        session_known=True,
        created_at=at,
        started_at=at,
    )


SESSION: Kind[Session] = Kind("session", Session, key="agent", logins="session")


def new_id() -> str:
    from uuid import uuid4

    return str(uuid4())


def find(store: Store, team: str, agent: str) -> Session | None:
    """Return the agent's session; None if `teams` did not start the agent."""
    return get_if_there(store, team, SESSION, agent)


def was_stopped(store: Store, team: str, agent: str) -> bool:
    """Whether `teams` started the agent and the agent was stopped. Nothing resumes a stopped agent, so it reads no
    mail.
    """
    session = find(store, team, agent)
    return session is not None and session.ended and session.outcome == "stopped"


def is_idle(store: Store, team: str, agent: str) -> bool:
    """Whether `teams` started the agent, and a message may resume it: it is done, and was not stopped."""
    session = find(store, team, agent)
    return session is not None and session.state == "done" and session.outcome != "stopped"


def may_have_ended(store: Store, team: Team, agent: Agent) -> bool:
    """Whether the agent was notified that nothing is left to do, is not waiting, can't be woken, and does not lead the
    team.
    """
    was_notified = any(key.startswith("settled:") for key in agent.told)
    if not was_notified or agent.waiting or agent.agent == team.leader:
        return False
    from teams_cli.agents.seats import terminals

    return not any(find_client(store, team.name, agent.agent) for find_client in (find, terminals.find))


def that_may_have_ended(store: Store, team: Team, names: Iterable[str]) -> list[str]:
    """Return the agents among *names* that may have ended: they know that nothing is left to do, and can't be woken."""
    return [name for name in names if may_have_ended(store, team, presence.load_other(store, team.name, name))]


def get(store: Store, team: str, agent: str) -> Session:
    """Return the agent's session. Raises NotFound if `teams` did not start the agent."""
    return store.get(team, SESSION, agent)[0]


def take(store: Store, team: str, agent: str) -> Session:
    """Make this process the keeper of the session.

    Raises:
        Conflict: Another process holds the session, or the session is not waiting to be started.
    """

    def held_by_us(session: Session) -> Session:
        if session.state != "starting" or session.outcome:
            raise errors.Conflict(f"the session of {agent} is {session.outcome_or_state}", "It runs already.")
        return session.kept_by(os.getpid(), store.host).having(state="running")

    return update(store, team, SESSION.even_in_closed_team, agent, held_by_us)[1]


def take_over(store: Store, team: str, session: Session) -> Session | None:
    """Make this process the one that starts the session. The process that created the session was inside a client's
    sandbox, and could not start it. Returns the session, or None if another process has started or ended it.
    """

    def held_by_us(current: Session) -> Session:
        if current.state != "starting" or current.outcome or current.unstarted != session.unstarted:
            raise errors.Conflict(f"the session of {session.agent} is {current.state}", "It was started.")
        return current.kept_by(os.getpid(), store.host).having(unstarted=None)

    try:
        return update(store, team, SESSION, session.agent, held_by_us)[1]
    except errors.Conflict:
        return None


def waiting_numbers(store: Store, team: str, session: Session) -> list[int]:
    """Return the numbers of the messages for the agent's next turn: unread messages and an undelivered interjection. If
    the last turn was cut off, the messages of that turn are included, except those that the agent has handled.
    """
    from teams_cli.messages import inboxes  # slow to import, and not needed to read a session
    from teams_cli.messages.messages import MESSAGE

    numbers = set(inboxes.unread(store, team, session.agent))
    if session.interjected > session.delivered:
        numbers.add(session.interjected)
    if session.given:
        open_numbers = {entry.number for entry in inboxes.load(store, team, session.agent).open}
        for message in store.fetch(team, MESSAGE, session.given, []):
            if message.number in open_numbers or message.only_informs:  # those were handled when read
                numbers.add(message.number)
    return sorted(numbers)


_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_ID = _FIRST | frozenset("-.")
"""The characters of a session id. The first character must be in `_FIRST`."""


def is_session_id(text: str) -> bool:
    """Whether the text can be a client's session id that is safe in a command line: neither an option nor a path."""
    return bool(text) and text[0] in _FIRST and _ID.issuperset(text)


def note_started_here(store: Store, team: str, session: Session) -> None:
    """Record on this machine how the agent was started, and each id of its session, so that `check_started_here`
    notices if somebody changes the session. Nothing is recorded if no other machine uses the store.
    """
    if not store.host:
        return
    directory = f"{store.root}/started/{team}"
    recorded_digest, recorded_ids = _recorded_start(store, team, session.agent)
    digest = _digest(session)
    is_same_start = recorded_digest == digest  # else the earlier ids no longer count
    ids = [*recorded_ids, session.session_id] if is_same_start else [session.session_id]
    disk.prepare_root(store.root)
    disk.make_directories(directory, store.root)
    lines = "\n".join([digest, *dict.fromkeys(ids)]).encode()
    disk.commit(disk.write_temp(f"{store.root}/tmp", lines), f"{directory}/{session.agent}")


def check_started_here(store: Store, team: str, session: Session) -> None:
    """Raise an error if the record of the session differs from how this machine started the agent.

    Raises:
        NotAllowed: The record differs, or its session id is not valid.
    """
    if not is_session_id(session.session_id):
        why = f"the session id {session.session_id[:60]!r} of {session.agent} is not valid"
    elif not is_started_here(store, team, session):
        why = f"the record of {session.agent} in {store.address} differs from how this machine started it"
    else:
        return
    raise errors.NotAllowed(why, "See who changed it (teams history), and start another agent: teams run-agent")


def is_started_here(store: Store, team: str, session: Session) -> bool:
    """Whether the record of the session agrees with what this machine recorded when it started the agent. Without
    this check, another machine that writes to the store could choose what runs here. If no other machine uses the
    store, only the form of the session id is checked.
    """
    if not is_session_id(session.session_id):
        return False
    if not store.host:
        return True
    digest, ids = _recorded_start(store, team, session.agent)
    if not (session.model or session.permissions) and digest == _hash(_values_of_first_version(session)):
        return True  # the first version recorded neither ids nor the model and the permissions
    return digest == _digest(session) and session.session_id in ids


def _recorded_start(store: Store, team: str, agent: str) -> tuple[str, list[str]]:
    """Return the digest that this machine recorded at the start of the agent, or "", and the ids of its session."""
    try:
        digest, *ids = disk.read_file(f"{store.root}/started/{team}/{agent}").decode().split("\n")
    except FileNotFoundError:
        return "", []
    return digest, ids


def _digest(session: Session) -> str:
    """Return a digest of everything in the session that says how the agent is started."""
    values = [*_values_of_first_version(session), session.model, session.permissions]
    values += [session.worktree, session.run, session.caller, session.depth]
    if session.acp_command:  # else the digest stays as earlier versions recorded it
        values.append(session.acp_command)
    return _hash(values)


def _values_of_first_version(session: Session) -> list[object]:
    return [session.prompt, session.directory, session.harness, session.variables]


def _hash(values: list[object]) -> str:
    import json
    from hashlib import sha256

    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


_KEYS = ("client", "sessionId", "directory", "host")
"""The keys of a client's report of its session."""


def note_reported(store: Store, team: str, agent: str, client: str, session_id: str, directory: str) -> None:
    """Record the session that the agent's client reported, and the session's directory, so that the session can be
    copied. Nothing is recorded if `teams` started the agent, if the session id is not valid, or if the same report is
    recorded already.
    """
    report = {"client": client, "sessionId": session_id, "directory": directory, "host": store.host}
    recorded = presence.load(store, team, agent).client or {}
    is_recorded = report.items() <= recorded.items()
    if is_recorded or not is_session_id(session_id) or find(store, team, agent) is not None:
        return
    at = teams.now(store)
    new_record = presence.Agent(agent=agent)
    upsert(store, team, presence.AGENT, agent, new_record, lambda member: member.having(client={**report, "at": at}))
    note_started_here(store, team, of_client(agent, client, session_id, directory, at))


def find_reported(store: Store, team: str, agent: str) -> Session | None:
    """Return the session that the agent's client reported on this machine. None if the client reported no session, or
    if this machine has no record of the report.
    """
    report = presence.load(store, team, agent).client
    if not report or report.get("host", "") != store.host:
        return None
    if not all(isinstance(report.get(key), str) for key in _KEYS):  # others that use the store may have written it
        return None
    session = of_client(agent, report["client"], report["sessionId"], report["directory"], str(report.get("at")))
    return session if is_started_here(store, team, session) else None
