"""Terminals: the clients that people sit in front of, as members of a team; the state of each client, and the source
that reported the state.

    idle ⇄ working ⇄ permission          gone, when its process ended; idle again when its session is resumed

The last report is kept with its time. Silence only makes a state doubtful. A client is `unknown` if it has sent no
report for a long time while it was working or on another machine. It is also `unknown` if it was woken and is a client
that does not report the beginning of a turn.
"""

from __future__ import annotations

import os

from teams_cli import errors, processes
from teams_cli.agents.seats import bindings
from teams_cli.clients import known
from teams_cli.clients.seats import GONE, IDLE, PERMISSION, UNKNOWN, WORKING
from teams_cli.clock import seconds_since
from teams_cli.environment import of_process
from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind, Store, get_if_there, update
from teams_cli.teams import history, presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.clients.contract import Seat
    from teams_cli.records.types import Count, Name, TerminalState, Text, Time, Word


_NOTED_EVERY = 10.0
"""Seconds after which a report is recorded even if it repeats a known state."""
IN_TURN = (WORKING, PERMISSION)
"""The states in which the client is in a turn."""


class Waking(Record):
    """Records when a message woke the client, and who sent the message."""

    at: Time
    by: Name


class Terminal(Record):
    """A client in a terminal. `wokenTo` is the newest message for which the client was woken. `toldTo` is the newest
    message whose sender was notified that the client was not reached. `unheard` counts how often in a row nothing could
    wake the client.
    """

    nested = {"wakings": Waking}  # noqa: RUF012

    agent: Name
    client: Name
    version: Word | None = None
    session_id: Word | None = None
    directory: Text
    pid: Count
    pid_started: Word | None = None
    pid_boot: Word | None = None
    tty: Word | None = None
    way: Word | None = None
    state: TerminalState = "idle"
    since: Time
    source: Word
    heard_at: Time
    waits_for: Text | None = None
    leader_told: bool | None = None
    joined_at: Time
    turns: Count = 0
    woken_to: Count = 0
    woken_at: Time | None = None
    wakes: Count = 0
    unheard: Count = 0
    told_to: Count = 0
    wakings: list[Waking] = field(default_factory=list)

    @property
    def host(self) -> str:
        """The machine of the client; "" if there is only one machine."""
        return processes.host_of(self.pid_boot)

    @property
    def has_ended(self) -> bool | None:
        """Whether the process of the client has ended; None if this machine can't find out."""
        return processes.has_ended(self.pid, self.pid_started, self.pid_boot)

    @property
    def is_awaited(self) -> bool:
        """Whether the client was woken and has reported nothing since."""
        return bool(self.woken_at and not self.unheard and self.woken_at > self.heard_at)


TERMINAL: Kind[Terminal] = Kind("terminal", Terminal, key="agent", logins="own")


def find(store: Store, team: str, agent: str) -> Terminal | None:
    """Return the agent's terminal; None if the agent never sat in one."""
    return get_if_there(store, team, TERMINAL, agent)


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Terminal]:
    """Return all terminals of the team, including those whose clients are gone."""
    return [terminal for terminal, _ in store.scan(team, TERMINAL, problems)]


def state_of(store: Store, team: teams.Team, terminal: Terminal) -> str:
    """Return the current state of the client. It is `unknown` if the client was woken and may have begun a turn without
    reporting it, as some clients do.
    """
    state = state_known(store, team, terminal)
    if state == IDLE and terminal.is_awaited:
        client = known.find(terminal.client)
        if client and client.seat and client.seat.begins_silently:
            return UNKNOWN
    return state


def state_known(store: Store, team: teams.Team, terminal: Terminal) -> str:
    """Return the state that was last reported, with two exceptions: `gone` if the client's process ended, and `unknown`
    if the client fell silent while it was working or on another machine. A client that was woken and has reported
    nothing since stays `idle` here, so that it is woken again.
    """
    if terminal.state == GONE or terminal.has_ended:
        return GONE
    if terminal.state == WORKING and seconds_since(terminal.heard_at, store.now()) > team.silence:
        return UNKNOWN
    if terminal.has_ended is None and presence.is_silent(store, team, terminal.agent, terminal.heard_at):
        return UNKNOWN  # its process is on another machine
    return terminal.state


def note_report(
    store: Store, team: str, agent: str, state: TerminalState, source: str, session_id: str, waits_for: str | None
) -> Terminal:
    """Record that the agent's client is in the *state*, and return its terminal. *source* says who reported it.
    *session_id* is the client's session or "", and *waits_for* is the tool call that needs a permission, or None.
    Nothing is written if the state is already known and the last report was recorded only a moment ago.
    """
    now = teams.now(store)

    def change(terminal: Terminal) -> Terminal:
        if session_id and session_id != terminal.session_id:
            terminal = terminal.having(session_id=session_id)
        if terminal.state != state:
            return terminal.having(
                state=state,
                since=now,
                source=source,
                heard_at=now,
                turns=terminal.turns + 1 if state == WORKING else terminal.turns,
                waits_for=waits_for if state == PERMISSION else None,
                leader_told=None,
            )
        if state == PERMISSION and waits_for and terminal.waits_for is None:  # only this report names the tool call
            return terminal.having(waits_for=waits_for, heard_at=now)
        if terminal.is_awaited or seconds_since(terminal.heard_at, store.now()) >= _NOTED_EVERY:
            return terminal.having(heard_at=now)
        return terminal

    before, after = update(store, team, TERMINAL.even_in_closed_team, agent, change)
    if before.state != after.state:
        presence.note_facts(store, team, agent, in_turn=after.state in IN_TURN or None)
    return after


def end(store: Store, team: str, agent: str, pid: int, source: str) -> None:
    """Record that the agent's client is gone, if this client is still the process *pid*. *source* says who or what
    reported this.
    """

    def change(terminal: Terminal) -> Terminal:
        if terminal.pid != pid or terminal.state == GONE:
            return terminal
        now = teams.now(store)
        return terminal.having(state=GONE, since=now, source=source, heard_at=now, waits_for=None)

    before, after = update(store, team, TERMINAL.even_in_closed_team, agent, change)
    if before is not after:
        history.note(store, team, agent, "terminal gone", client=after.client, source=source)


def describe(store: Store, team: teams.Team, terminal: Terminal, row: dict[str, Any]) -> None:
    """Put the state of the agent's client, and the facts about its terminal, into the *row* of a listed agent. The row
    of a stopped agent keeps its state.
    """
    state = state_of(store, team, terminal)
    if row["state"] != "stopped":
        row["state"] = state
    if state == terminal.state:
        since = terminal.since
    else:  # nothing reported this state: it is as old as the last sign of the client
        since = terminal.woken_at if terminal.woken_at and terminal.is_awaited else terminal.heard_at
    age = max(0.0, seconds_since(since, store.now()))
    document = terminal.to_json()
    shown = {key: document[key] for key in _SHOWN if key in document}
    row["terminal"] = {**shown, "state": state, "age": round(age, 1)}
    if terminal.host:
        row["terminal"]["host"] = row["host"] = terminal.host


_SHOWN = (
    *("client", "version", "sessionId", "directory", "pid", "tty", "way"),
    *("state", "since", "source", "heardAt", "waitsFor", "wokenAt"),
)
_BITS_AFTER_TIME = 80
"""The bits of a UUID version 7 that follow its time."""


def pid_of_client(seat: Seat, session_id: str) -> int:
    """Return the process id of the client whose hook this process is, or 0 if the client is unknown. If a daemon runs
    the hooks of many clients, the client is the process in a terminal that uses the session *session_id*.
    """
    client = bindings.nearest_client(os.getppid())
    if not client or not seat.daemon or seat.daemon.word not in words_of(client):  # no daemon runs this hook
        return client
    program = os.path.basename(program_of(client)[0])
    pids = []  # the processes that run the same program in a terminal
    for name in os.listdir("/proc"):
        if not name.isdigit() or bindings.name_of(int(name)) != program[:15]:  # the kernel keeps 15 characters
            continue
        if terminal_of(int(name)) and seat.daemon.word not in words_of(int(name)) and int(name) != client:
            pids.append(int(name))
    candidates = [pid for pid in pids if session_id in words_of(pid)]
    if not candidates and (made_at := _made_at(session_id)):  # else the youngest that existed then
        candidates = [pid for pid in pids if _started_at(pid) <= made_at + 1]  # the time of boot has whole seconds
    return max(candidates or pids, key=_started_at, default=0)  # the youngest


def words_of(pid: int) -> list[str]:
    """Return the command line of a process."""
    return [word.decode(errors="replace") for word in of_process(pid, "cmdline")[:-1]]


def variables_of(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty if the process belongs to another user."""
    pairs = (entry.decode(errors="replace").partition("=") for entry in of_process(pid, "environ") if entry)
    return {name: value for name, _, value in pairs}


def terminal_of(pid: int) -> str:
    """Return the terminal that a process reads from, such as `/dev/pts/3`; empty if it reads from none."""
    try:
        path = os.readlink(f"/proc/{pid}/fd/0")
    except OSError:
        return ""
    return path if path.startswith(("/dev/pts/", "/dev/tty")) else ""


def program_of(pid: int) -> list[str]:
    """Return the words that start the client's program, without its arguments: the program and, if this is a JavaScript
    interpreter, the script.
    """
    words = words_of(pid)
    try:
        program = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        program = words[0] if words else ""
    if os.path.basename(program) in ("node", "bun", "deno") and len(words) > 1:
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        return [program, script]
    return [program]


def _started_at(pid: int) -> float:
    """Return the time at which the process started, in seconds since 1970; 0 if there is no such process."""
    started = bindings.stat_of(pid)[0]
    if not started:
        return 0.0
    with open("/proc/stat", "rb") as file:
        boot_time = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    return boot_time + int(started) / os.sysconf("SC_CLK_TCK")


def _made_at(session_id: str) -> float:
    """Return the time at which a session was made, in seconds since 1970, if its id contains the time (UUID version 7,
    RFC 9562); otherwise 0.
    """
    digits = session_id.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return 0.0
    try:
        return (int(digits, 16) >> _BITS_AFTER_TIME) / 1000  # the time is in milliseconds
    except ValueError:
        return 0.0
