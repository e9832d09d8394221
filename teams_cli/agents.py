"""What changes often about an agent: its status line, when it was last seen, the process that runs it."""

from __future__ import annotations

import os

from teams_cli import history, inboxes, teams, text
from teams_cli.clock import boot_id, seconds_since
from teams_cli.errors import NotFound, TeamsError
from teams_cli.records import Record, field
from teams_cli.roles import require
from teams_cli.store.contract import Kind, update, upsert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.caller import Caller
    from teams_cli.shapes import Count, Name, Text, Time, Word
    from teams_cli.store.contract import Store
    from teams_cli.teams import Member, Team

_HISTORY = 50
_SEEN_EVERY = 30.0


class Status(Record):
    """A status line that an agent announced."""

    status: Text
    at: Time


class Agent(Record):
    """One agent of a team, as it is now."""

    nested = {"status_history": Status}  # noqa: RUF012

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


AGENT: Kind[Agent] = Kind("agent", Agent, key="agent")


def load(store: Store, team: str, agent: str) -> Agent:
    """What is known of the agent; nothing if it never said anything."""
    try:
        return store.get(team, AGENT, agent)[0]
    except NotFound:
        return Agent(agent=agent)


def announce(store: Store, team_name: str, caller: Caller | None, status: str) -> Agent:
    """Say in a line what you are working on. The others see it in the list of agents; it wakes nobody.

    The last 50 lines are kept.

    Raises:
        InvalidValue: It is blank, longer than 300 characters, or more than one line.
    """
    require(store, team_name, caller, "announce")
    assert caller is not None
    line = text.one_line(status, "status")
    at = teams.now(store)

    def change(agent: Agent) -> Agent:
        lines = [*agent.status_history, Status(status=line, at=at)][-_HISTORY:]
        return agent.having(status=line, status_history=lines, last_seen=at)

    agent = upsert(store, team_name, AGENT, caller.name, Agent(agent=caller.name), change)[1]
    history.note(store, team_name, caller.name, "status announced", status=line)
    return agent


def introduce(store: Store, team: str, name: str, message: str) -> None:
    """Take the beginning of an agent's first broadcast as its status, if it announced none."""
    if load(store, team, name).status is not None:
        return
    line = Status(status=" ".join(message.split())[: text.MAX_LINE], at=teams.now(store))

    def change(agent: Agent) -> Agent:
        return agent if agent.status else agent.having(status=line.status, status_history=[line])

    upsert(store, team, AGENT, name, Agent(agent=name), change)


def saw(store: Store, team: str, name: str, note: str | None = None, every: float = _SEEN_EVERY) -> Agent:
    """Note that the agent is alive, unless that was noted within the last *every* seconds."""

    def change(agent: Agent) -> Agent:
        recent = agent.last_seen and seconds_since(agent.last_seen, store.now()) < every
        if note is None and recent and (agent.host or "") == store.host:
            return agent
        said = agent.note if note is None else note
        return agent.having(last_seen=teams.now(store), note=said, host=store.host or None)

    agent = load(store, team, name)
    if change(agent) is agent:
        return agent
    return upsert(store, team, AGENT, name, Agent(agent=name), change)[1]


def register_process(store: Store, team: str, name: str, pid: int) -> None:
    """Note the process that runs the agent: when it is gone, the agent's tasks are free at once."""
    place = {"pid_started": process_started(pid), "pid_boot": process_place(store.host), "host": store.host or None}

    def change(agent: Agent) -> Agent:
        return agent.having(pid=pid, last_seen=teams.now(store), **place)

    upsert(store, team, AGENT, name, Agent(agent=name), change)


def forget_ended_process(store: Store, team: str, name: str) -> None:
    """Forget the process that was registered for the agent, if that has ended: somebody else acts under the name now,
    and what it takes on is not free because of the one before.
    """

    def change(agent: Agent) -> Agent:
        return agent.having(pid=None, pid_started=None, pid_boot=None) if is_gone(agent) else agent

    if is_gone(load(store, team, name)):
        update(store, team, AGENT, name, change)


def process_started(pid: int) -> str:
    """When the process was started, in ticks since the start of the machine; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if state == b"Z" else fields[18].decode()


def process_place(host: str = "") -> str:
    """Where the ids of processes mean what they mean here: this start of the machine, this namespace of processes.

    With *host*, also what the machine is called among those that use the store.
    """
    try:
        place = f"{boot_id()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        place = f"{boot_id()} -" if host else boot_id()
    return f"{place} {host}" if host else place


def host_of(place: str | None) -> str:
    """What the machine of a process is called; empty where there is only one."""
    return (place or "").partition(" ")[2].partition(" ")[2]


def has_ended(pid: int, started: str | None, place: str | None) -> bool | None:
    """Whether a process that was noted has ended; None where that can't be known: in a sandbox, on another machine."""
    host = host_of(place)
    if (place or "").partition(" ")[0] != boot_id():
        return None if host else True
    if place != process_place(host) or not os.path.isdir("/proc/self"):
        return None
    return process_started(pid) != started


def is_gone(agent: Agent) -> bool:
    """Whether the process that was registered for the agent has ended, as far as this machine can tell."""
    return agent.pid is not None and has_ended(agent.pid, agent.pid_started, agent.pid_boot) is True


def is_silent(store: Store, team: Team, name: str, since: str | None = None) -> bool:
    """Whether nothing was heard of the agent for the team's `staleAfterSeconds`, counted at least from *since*."""
    seen = max(filter(None, (load(store, team.name, name).last_seen, since)), default=None)
    return seen is not None and seconds_since(seen, store.now()) > float(team.settings.get("staleAfterSeconds", 300))


def listing(store: Store, team: Team, working: set[str], problems: list[TeamsError]) -> list[dict[str, Any]]:
    """All members that did not leave, in the order of joining; *working* are those that own a task in progress."""
    rows = []
    for member in team.members:
        if member.active or member.stopped_by:
            try:
                rows.append(_row(store, team, member, member.agent_id in working))
            except TeamsError as problem:
                problems.append(problem)
    return rows


def _row(store: Store, team: Team, member: Member, working: bool) -> dict[str, Any]:
    agent = load(store, team.name, member.agent_id)
    row = {
        "name": member.agent_id,
        "displayName": member.agent_name,
        "role": member.role,
        "agentType": member.agent_type,
        "status": agent.status,
        "statusHistory": [entry.to_json() for entry in agent.status_history],
        "state": state_of(store, team, member, agent, working),
        "queueDepth": len(inboxes.unread(store, team.name, member.agent_id)),
        "lastSeen": agent.last_seen or member.joined_at,
    }
    if agent.host:
        row["host"] = agent.host
    if agent.note:
        row["note"] = agent.note
    return row


def state_of(store: Store, team: Team, member: Member, agent: Agent, working: bool) -> str:
    """`stopped` after a shutdown, `stale` when not seen for too long or its process is gone, else `active`, `idle`."""
    if member.stopped_by:
        return "stopped"
    seen = agent.last_seen or member.joined_at
    limit = float(team.settings.get("staleAfterSeconds", 300))
    if is_gone(agent) or (seen and seconds_since(seen, store.now()) > limit):
        return "stale"
    return "active" if working else "idle"
