"""The record of what changes often about an agent: its status line, the time of its last sign of life, its process,
and what it was notified of.
"""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import seconds_since
from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind, Store, get_if_there, update, upsert
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.records.types import Count, Name, Number, Object, Text, Time, Word
    from teams_cli.teams.permission import Caller

    OnceShown = Callable[[Callable[[], object]], object]
    """Calls the given function as soon as the answer is printed. The function notes what the agent was shown. After a
    crash between printing and noting, the agent is shown it again, so it never misses anything.
    """

_MAX_REFUSED = 50
_MAX_LINES = 50
_NOTED_EVERY = 30.0
"""The minimum seconds between two notes of a sign of life, and between two comparisons of a worktree with others."""
RENEWED_AFTER = 0.25
"""The part of a lease that must have passed before the lease is renewed."""


class Status(Record):
    """A status line that an agent announced."""

    status: Text
    at: Time


class Awaited(Record):
    """A sent message that must be acknowledged. *told* says that the sender was notified that it is overdue."""

    number: Number
    due: Time
    told: bool | None = None


class Agent(Record):
    """The present state of an agent of a team."""

    nested = {"status_history": Status, "awaits": Awaited}  # noqa: RUF012

    agent: Name
    status: Text | None = None
    status_history: list[Status] = field(default_factory=list)
    last_seen: Time | None = None
    note: Text | None = None
    host: Word | None = None
    pid: Count | None = None
    pid_started: Word | None = None
    pid_boot: Word | None = None
    looked_to: Count | None = None
    renewed_at: Time | None = None
    told: list[Word] = field(default_factory=list)
    """The keys of facts that still hold and of which the agent was notified, such as that a task is ready; and the ids
    of the last messages that it was shown whole.
    """
    waiting: bool | None = None
    """Whether the agent has no task and waits for anything that concerns it."""
    offered: Word | None = None
    offered_at: Time | None = None
    """When the agent was last notified of a ready task, whose id is in `offered`. For a while, other agents leave this
    task to it.
    """
    ready_at: Time | None = None
    """When the agent was last notified that tasks are ready."""
    told_to: Count | None = None
    """The number of the last message of which the agent was notified."""
    awaits: list[Awaited] | None = None
    pages: Object | None = None
    """The version of each page that the agent has seen or was notified of."""
    client: Object | None = None
    """The session of a client that `teams` did not start, with `client`, `sessionId`, `directory`, `host` and `at`."""
    notified: list[Word] | None = None
    """In the record of the human: the facts that still hold and for which a desktop notification was sent."""
    worktree: Text | None = None
    """The git worktree in which the agent was last seen, on the machine *host*."""
    refused: list[Word] | None = None
    """The reasons for which a command of the agent was refused once. No command is refused for the same reason again.
    """
    explained: list[Word] | None = None
    """What the agent was shown since it joined: rules, as `lease:SECONDS` and `check`; results of others' tasks, as
    `result:ID:COMPLETED_AT`; and descriptions of these tasks, as `text:ID:CHECKSUM`.
    """
    commit: Word | None = None
    """The last commit of the worktree, if it can be read from a file."""
    changing: list[Text] | None = None
    """Files of the worktree, committed or not, that differ from the main checkout's branch."""
    conflicts: Object | None = None
    """The places where the agent's work conflicts with other work. The key is the other agent, or the branch."""
    checkout: Text | None = None
    """The main checkout of a repository in which the agent was last seen, on the machine *host*."""
    in_turn: bool | None = None
    """Whether a turn of the agent's client is running: the client reported that it began, and has not reported its end.
    """
    completing: Word | None = None
    """The task that the agent is completing, until its landing is queued. If the command is killed, the task stays
    here, so that its landing is queued later.
    """
    silent_until: Time | None = None
    """The time until which the agent said that it may be silent."""

    @property
    def expected_at(self) -> str | None:
        """The last sign of life, or the later time until which the agent said that it may be silent. None if neither is
        known.
        """
        return max(filter(None, (self.last_seen, self.silent_until)), default=None)


AGENT: Kind[Agent] = Kind("agent", Agent, key="agent", logins="own")


def load(store: Store, team: str, agent: str) -> Agent:
    """Return the record of the agent; an empty one if there is none."""
    return get_if_there(store, team, AGENT, agent) or Agent(agent=agent)


def load_other(store: Store, team: str, agent: str) -> Agent:
    """Return the record of another agent; an empty one if there is none, or if it is damaged. `doctor` names such a
    file, but it must not hold up the work of the others.
    """
    try:
        return load(store, team, agent)
    except errors.DamagedRecord:
        return Agent(agent=agent)


def load_all(store: Store, team: str) -> Callable[[str], Agent]:
    """Read the records of all agents at once. Return a function that returns the record of an agent by its name, or an
    empty record if there is none. The function raises an error if the record of this agent is damaged.
    """
    problems: list[errors.TeamsError] = []
    agents = {agent.agent: agent for agent, _ in store.scan(team, AGENT, problems)}

    def agent_named(name: str) -> Agent:
        if name not in agents and problems:  # its record may be one of the damaged ones
            return load(store, team, name)
        return agents.get(name) or Agent(agent=name)

    return agent_named


def announce(store: Store, team_name: str, caller: Caller | None, status: str) -> Agent:
    """Say in one line what you are working on. Others see the line in the list of agents; nobody is woken.

    The last 50 lines are kept.

    Raises:
        InvalidValue: The line is blank, longer than 300 characters, or more than one line.
    """
    name = require(store, team_name, caller, "announce").name
    line = text.one_line(status, "status")
    now = teams.now(store)

    def change(agent: Agent) -> Agent:
        lines = [*agent.status_history, Status(status=line, at=now)][-_MAX_LINES:]
        return agent.having(status=line, status_history=lines, last_seen=now)

    agent = upsert(store, team_name, AGENT, name, Agent(agent=name), change)[1]
    history.note(store, team_name, name, "status announced", status=line)
    return agent


def notes_first_refusal(store: Store, team: str, name: str, reason: str) -> bool:
    """Note that the agent is refused for that *reason*. Return whether this is the first time."""

    def change(agent: Agent) -> Agent:
        reasons = agent.refused or []
        return agent if reason in reasons else agent.having(refused=[*reasons, reason][-_MAX_REFUSED:])

    before, after = upsert(store, team, AGENT, name, Agent(agent=name), change)
    return before is not after


def introduce(store: Store, team: str, name: str, message: str) -> None:
    """Set the agent's status line, unless it has one, to the beginning of *message*, its first broadcast."""
    if load(store, team, name).status is not None:
        return
    line = " ".join(message.split())[: text.MAX_LINE]
    lines = [Status(status=line, at=teams.now(store))]

    def change(agent: Agent) -> Agent:
        return agent if agent.status else agent.having(status=line, status_history=lines)

    upsert(store, team, AGENT, name, Agent(agent=name), change)


def note_sign_of_life(
    store: Store,
    team: str,
    name: str,
    note: str | None = None,
    every: float = _NOTED_EVERY,
    known: Agent | None = None,
    worktree: str = "",
    commit: str = "",
    checkout: str = "",
) -> Agent:
    """Record that the agent is alive, and return its record. If a sign of life was noted less than *every* seconds ago
    and nothing else is new, nothing is written.

    Also note where the agent is: in the *worktree*, with its *commit*, or else in the *checkout*. Each is "" if it is
    not known. *known* is the agent's record, if it was read a moment ago. *note* is what the agent says about its work.
    """

    def change(agent: Agent) -> Agent:
        is_same_host = (agent.host or "") == store.host
        seen_as = {
            "host": store.host or None,
            "worktree": worktree or (agent.worktree if is_same_host else None),
            "commit": (commit or None) if worktree else agent.commit,
            "checkout": checkout or (agent.checkout if is_same_host else None),
        }
        if note is not None:
            seen_as["note"] = note
        is_recent = agent.last_seen and seconds_since(agent.last_seen, store.now()) < every
        is_seen_as_before = all(getattr(agent, key) == value for key, value in seen_as.items())
        if is_recent and note is None and is_seen_as_before:
            return agent
        return agent.having(last_seen=teams.now(store), **seen_as)

    agent = known or load(store, team, name)
    if change(agent) is agent:
        return agent
    return upsert(store, team, AGENT.even_in_closed_team, name, Agent(agent=name), change)[1]


def note_facts(store: Store, team: str, name: str, **facts: Any) -> None:
    """Store *facts* about the agent in the fields of its record that have these names; None clears a field."""

    def change(agent: Agent) -> Agent:
        is_noted = all(getattr(agent, key) == fact for key, fact in facts.items())
        return agent if is_noted else agent.having(**facts)

    agent = load(store, team, name)
    if change(agent) is not agent:
        upsert(store, team, AGENT.even_in_closed_team, name, Agent(agent=name), change)


def note_completing(store: Store, team: str, name: str, task: str | None) -> None:
    """Note that the agent is completing the *task* with this id, in a team whose completed tasks land. After the
    landing was queued, pass None to remove the note.
    """
    upsert(store, team, AGENT, name, Agent(agent=name), lambda agent: agent.having(completing=task))


def note_silence(store: Store, team: str, name: str, until: str) -> None:
    """Record that the agent announced that it may be silent *until* that time."""
    upsert(store, team, AGENT, name, Agent(agent=name), lambda agent: agent.having(silent_until=until))


def register_process(store: Store, team: str, name: str, pid: int, in_turn: bool = False) -> None:
    """Note the process that runs the agent. When this process ends, the agent's tasks become free at once. *in_turn*
    says that a turn of the agent is running, and that the client will report the end of the turn.
    """
    from teams_cli.processes import pid_scope, process_started

    process = {"pid": pid, "pid_started": process_started(pid), "pid_boot": pid_scope(store.host)}

    def change(agent: Agent) -> Agent:
        return agent.having(last_seen=teams.now(store), in_turn=in_turn or None, host=store.host or None, **process)

    upsert(store, team, AGENT.even_in_closed_team, name, Agent(agent=name), change)


def forget_ended_process(store: Store, team: str, name: str) -> None:
    """If the registered process of the agent has ended, forget it. The agent now acts in another process, so the end of
    the old one must not free the agent's tasks.
    """

    def change(agent: Agent) -> Agent:
        return agent.having(pid=None, pid_started=None, pid_boot=None) if is_gone(agent) else agent

    if is_gone(load(store, team, name)):
        update(store, team, AGENT.even_in_closed_team, name, change)


def is_gone(agent: Agent) -> bool:
    """Whether the registered process of the agent has certainly ended. False if no process is registered, or if this
    machine can't see the process.
    """
    if agent.pid is None:
        return False
    from teams_cli.processes import has_ended

    return has_ended(agent.pid, agent.pid_started, agent.pid_boot) is True


def is_in_turn(agent: Agent) -> bool:
    """Whether a turn of the agent's client is running, and the client's process certainly exists."""
    if not agent.in_turn or agent.pid is None:
        return False
    from teams_cli.processes import has_ended

    return has_ended(agent.pid, agent.pid_started, agent.pid_boot) is False


def seconds_between_signs(team: Team, in_worktree: bool = False) -> float:
    """Return the minimum seconds between two notes of a sign of life, or two renewals of leases: a quarter of a lease.
    In a worktree this is shorter, because each note also compares the worktree with those of other agents.
    """
    seconds = team.silence * RENEWED_AFTER
    return min(seconds, _NOTED_EVERY) if in_worktree else seconds


def was_silent(store: Store, agent: Agent) -> bool:
    """Whether the agent's last noted sign of life is longer ago than is usual for an agent at work."""
    return seconds_since(agent.last_seen or "", store.now()) > _NOTED_EVERY


def renewed_lately(store: Store, team: Team, agent: Agent) -> bool:
    """Whether the leases of the agent's tasks were renewed so recently that they are not due again yet."""
    if not agent.renewed_at:
        return False
    return seconds_since(agent.renewed_at, store.now()) < seconds_between_signs(team)


def is_silent(store: Store, team: Team, name: str, since: str | None = None) -> bool:
    """Whether the agent *name* has given no sign of life for the team's `staleAfterSeconds`. If the time *since* is
    later than the last sign of life, the seconds count from *since*. If neither is known, return False.
    """
    expected_at = load_other(store, team.name, name).expected_at
    return _is_long_ago(store, team, max(filter(None, (expected_at, since)), default=None))


def is_around(store: Store, team: Team, agent: Agent) -> bool:
    """Whether the agent is an active member that has not been silent, except as announced, for the team's
    `staleAfterSeconds`.
    """
    member = team.member(agent.agent)
    return member is not None and not _is_long_ago(store, team, agent.expected_at or member.joined_at)


def _is_long_ago(store: Store, team: Team, time: str | None) -> bool:
    return time is not None and seconds_since(time, store.now()) > team.silence
