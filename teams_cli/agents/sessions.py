"""Sessions: the life of an agent that `teams` started; what it is doing, whose it is, and how it ended.

    starting → running ⇄ waiting → done → starting → …
                                  ↘ paused

One process has the session all the time: first the one that starts it, then its keeper. The keeper alone leaves
`running` and `waiting`; whoever finds it gone settles the session as lost. Only one process gets a session out of
`done`, so a session is never resumed twice.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.records.records import Owed, Record, field
from teams_cli.store.contract import Kind, Store
from teams_cli.store.files import disk
from teams_cli.store.retrying import update, upsert
from teams_cli.teams import presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import Count, Name, Object, Outcome, Permissions, SessionState, Text, Time, Word


BEGIN_AGAIN = "begin-again"
"""The `about` of the notice with which an agent begins again."""


class Resume(Record):
    """A time when a message resumed the session."""

    at: Time
    by: Name


class Session(Record):
    """One agent that was started. `caller` gets its output; `run` is shared by all that one `run-agent` led to.

    A *fresh* one begins its client's session anew with the next turn. In *restarted* is who last had it begin again,
    and, behind a ~, under which name of that request. One that is *unstarted* was started by that agent inside a
    sandbox, and is to be started outside, by its keeper. In the place of one that is *taken_by* somebody, that person
    sits in a terminal. The *checkout* is noted when its worktree is removed: the next turn has a new worktree of that.
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
        """Whether nothing is going on in it."""
        return self.state in ("done", "paused")

    @property
    def outcome_or_state(self) -> str:
        """Its outcome if it has one, else its state."""
        return self.outcome or self.state

    @property
    def interrupted(self) -> bool:
        """Whether somebody interjected, or had it begin again, and the text was not delivered yet."""
        return self.interjected > self.delivered or self.begins_again is not None

    @property
    def begins_again(self) -> Owed | None:
        """What the agent is still to be told that is to begin again; None if it is not, or was told."""
        return next((told for told in self.owed or () if told.about == BEGIN_AGAIN), None)

    def paid(self, told: Owed, number: int) -> Session:
        """The session once a notice was sent that it owed: one that has its agent begin again is its next turn."""
        if told.about != BEGIN_AGAIN:
            return self
        return self.having(interjected=max(self.interjected, number))

    @property
    def tag(self) -> str:
        """What the processes of its clients carry in their environment; those of the next generation another."""
        return f"{self.run}.{self.agent}.{self.generation}"

    def kept_by(self, pid: int, host: str = "") -> Session:
        """The session in the hands of that process, on the machine called so."""
        from teams_cli import processes

        started = processes.process_started(pid) or None
        return self.having(keeper_pid=pid, keeper_started=started, keeper_boot=processes.pid_scope(host))

    def starts(self, session: Session) -> bool:
        """Whether this is still the start of that generation of the session."""
        return self.state == "starting" and self.generation == session.generation

    @property
    def held(self) -> tuple[int, int | None, str | None]:
        """The generation of the session, and the process that holds it."""
        return self.generation, self.keeper_pid, self.keeper_started

    @property
    def host(self) -> str:
        """The machine where its keeper runs, and its client's own session is; empty where there is only one."""
        from teams_cli import processes

        return processes.host_of(self.keeper_boot)

    def present_worktree(self, host: str) -> str | None:
        """Return its worktree. None if it has none, or if its directory is gone from this machine, called *host*."""
        is_gone = self.host in ("", host) and not os.path.isdir(self.worktree or "")
        return None if is_gone else self.worktree

    @property
    def keeper_lives(self) -> bool:
        """Whether the process that has the session, or had it last, is there; True where that can't be known."""
        if self.keeper_pid is None:
            return False
        from teams_cli import processes

        ended = processes.has_ended(self.keeper_pid, self.keeper_started, self.keeper_boot)
        return not self.ended if ended is None else not ended


def of_client(agent: str, client: str, session_id: str, directory: str, at: str, turns: int = 1) -> Session:
    """The session of a client that nobody keeps, as those are that `teams` keeps: to be copied, never to be resumed."""
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
    """The agent's session; None if it was not started by `teams`."""
    try:
        return store.get(team, SESSION, agent)[0]
    except errors.NotFound:
        return None


def was_stopped(store: Store, team: str, agent: str) -> bool:
    """Whether the agent was started by `teams` and stopped: nothing resumes it, and it reads no mail."""
    session = find(store, team, agent)
    return session is not None and session.ended and session.outcome == "stopped"


def get(store: Store, team: str, agent: str) -> Session:
    """The agent's session.

    Raises:
        NotFound: It was not started by `teams`.
    """
    return store.get(team, SESSION, agent)[0]


def take(store: Store, team: str, agent: str) -> Session:
    """Make this process the keeper of the session.

    Raises:
        Conflict: Another has it, or it is not to be started.
    """

    def change(session: Session) -> Session:
        if session.state != "starting" or session.outcome:
            raise errors.Conflict(f"the session of {agent} is {session.outcome_or_state}", "It runs already.")
        return session.kept_by(os.getpid(), store.host).having(state="running")

    return update(store, team, SESSION.also_closed, agent, change)[1]


def hand_on(store: Store, team: str, session: Session, pid: int) -> None:
    """Give a session that is starting into the hands of the process that will be its keeper."""
    kept = SESSION.also_closed
    update(store, team, kept, session.agent, lambda now: now.kept_by(pid, store.host) if now.starts(session) else now)


def leave_to(store: Store, team: str, session: Session, agent: str) -> None:
    """Leave a session that is starting to the keeper of that agent."""
    update(store, team, SESSION, session.agent, lambda now: now.having(unstarted=agent) if now.starts(session) else now)


def left_to(store: Store, team: str, agent: str) -> list[Session]:
    """The sessions that wait for the keeper of that agent to start them."""
    return [found for found, _ in store.scan(team, SESSION, []) if found.unstarted == agent and not found.ended]


def take_over(store: Store, team: str, session: Session) -> Session | None:
    """Have this process start a session that was left to it; None if it is started, or over."""

    def change(found: Session) -> Session:
        if found.state != "starting" or found.outcome or found.unstarted != session.unstarted:
            raise errors.Conflict(f"the session of {session.agent} is {found.state}", "It was started.")
        return found.kept_by(os.getpid(), store.host).having(unstarted=None)

    try:
        return update(store, team, SESSION, session.agent, change)[1]
    except errors.Conflict:
        return None


def waiting_numbers(store: Store, team: str, session: Session) -> list[int]:
    """The numbers of the messages that the next turn is for: the unread ones, and an interjection in any case.

    With them comes what a turn was given that did not end by itself, as far as the agent did not handle it.
    """
    from teams_cli.messages import inboxes  # not for those who only look whether there is a session
    from teams_cli.messages.messages import MESSAGE

    numbers = set(inboxes.unread(store, team, session.agent))
    if session.interjected > session.delivered:
        numbers.add(session.interjected)
    if session.given:
        is_open = {entry.number for entry in inboxes.load(store, team, session.agent).open}
        given = store.fetch(team, MESSAGE, session.given, [])
        numbers |= {message.number for message in given if message.number in is_open or message.only_informs}
    return sorted(numbers)


_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_ID = _FIRST | frozenset("-.")


def is_session_id(text: str) -> bool:
    """Whether a client's id of a session can stand among the words of a command without being an option or a path."""
    return bool(text) and text[0] in _FIRST and _ID.issuperset(text)


def note_started_here(store: Store, team: str, session: Session) -> None:
    """Keep what the agent is started with, on this machine; an id of its session beside those before."""
    if store.host:
        directory = f"{store.root}/started/{team}"
        digest, ids = _known(store, team, session.agent)
        now = _digest(session)
        kept = [*(ids if digest == now else ()), session.session_id]
        disk.prepare_root(store.root)
        disk.make_directories(directory, store.root)
        lines = "\n".join([now, *dict.fromkeys(kept)]).encode()
        disk.commit(disk.write_temp(f"{store.root}/tmp", lines), f"{directory}/{session.agent}")


def check_started_here(store: Store, team: str, session: Session) -> None:
    """Raises NotAllowed: The session's record is not what this machine started the agent with."""
    if not is_session_id(session.session_id):
        why = f"the session id {session.session_id[:60]!r} of {session.agent} is not valid"
        raise errors.NotAllowed(why, "See who changed it (teams history), and start another agent: teams run-agent")
    if not is_started_here(store, team, session):
        why = f"the record of {session.agent} in {store.address} differs from how this machine started it"
        raise errors.NotAllowed(why, "See who changed it (teams history), and start another agent: teams run-agent")


def is_started_here(store: Store, team: str, session: Session) -> bool:
    """Whether this machine started the agent with what the record of its session says."""
    if not store.host:
        return is_session_id(session.session_id)
    digest, ids = _known(store, team, session.agent)
    if not is_session_id(session.session_id):
        return False
    if not (session.model or session.permissions) and digest == _hash(_of_old(session)):
        return True  # noted by a version that kept no ids
    return digest == _digest(session) and session.session_id in ids


def _known(store: Store, team: str, agent: str) -> tuple[str, list[str]]:
    """The digest that was noted, and the ids; an empty one if nothing was."""
    try:
        digest, *ids = disk.read_file(f"{store.root}/started/{team}/{agent}").decode().split("\n")
    except FileNotFoundError:
        return "", []
    return digest, ids


def _digest(session: Session) -> str:
    kept = [session.worktree, session.run, session.caller, session.depth]
    kept += [session.acp_command] if session.acp_command else []
    return _hash([*_of_old(session), session.model, session.permissions, *kept])


def _of_old(session: Session) -> list[object]:
    return [session.prompt, session.directory, session.harness, session.variables]


def _hash(said: list[object]) -> str:
    import json
    from hashlib import sha256

    return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


_KEYS = ("client", "sessionId", "directory", "host")


def note_told(store: Store, team: str, agent: str, client: str, session_id: str, directory: str) -> None:
    """Note where the agent's client has its session, unless `teams` keeps one of that agent."""
    place = dict(zip(_KEYS, (client, session_id, directory, store.host), strict=True))
    before = presence.load(store, team, agent).client
    if not is_session_id(session_id) or (before and place.items() <= before.items()):
        return
    if find(store, team, agent) is not None:
        return
    noted = {**place, "at": teams.now(store)}
    upsert(store, team, presence.AGENT, agent, presence.Agent(agent=agent), lambda before: before.having(client=noted))
    note_started_here(store, team, _session(agent, noted))


def find_told(store: Store, team: str, agent: str) -> Session | None:
    """The session that the agent's client told of on this machine, and not another in its name; None if it did not."""
    noted = presence.load(store, team, agent).client
    if not noted or noted.get("host", "") != store.host or not all(isinstance(noted.get(key), str) for key in _KEYS):
        return None
    session = _session(agent, noted)
    return session if is_started_here(store, team, session) else None


def _session(agent: str, told: dict[str, Any]) -> Session:
    at = str(told.get("at"))
    return of_client(agent, str(told["client"]), str(told["sessionId"]), str(told["directory"]), at)
