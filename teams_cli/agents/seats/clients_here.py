"""Which process of this machine is the client that runs a hook, and what can be seen of it."""

from __future__ import annotations

import os

from teams_cli.agents.seats import bindings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from teams_cli.clients.seats import Daemon, Seat

_EPOCH_BITS = 80


def process(seat: Seat, session_id: str) -> int:
    """The client that runs the hook which we are; 0 if it can't be told.

    Of one whose tools and hooks a daemon runs, that is the terminal which the session belongs to, not the daemon.
    """
    found = bindings.nearest_client(os.getppid())
    if found and seat.daemon and seat.daemon.word in words_of(found):
        return _behind_daemon(seat.daemon, found, session_id)
    return found


def words_of(pid: int) -> list[str]:
    """The command line of a process."""
    return [word.decode(errors="replace") for word in _read(pid, "cmdline").split(b"\0")[:-1]]


def variables_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with, if it is ours to know."""
    pairs = (entry.decode(errors="replace").partition("=") for entry in _read(pid, "environ").split(b"\0") if entry)
    return {name: value for name, _, value in pairs}


def terminal_of(pid: int) -> str:
    """The terminal that a process reads from, as `/dev/pts/3`; empty if from none."""
    try:
        path = os.readlink(f"/proc/{pid}/fd/0")
    except OSError:
        return ""
    return path if path.startswith(("/dev/pts/", "/dev/tty")) else ""


def program_of(pid: int) -> list[str]:
    """The words that start the client's program, without what it was asked to do."""
    words = words_of(pid)
    try:
        program = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        program = words[0] if words else ""
    is_script = os.path.basename(program) in ("node", "bun", "deno") and len(words) > 1
    return [program, next(word for word in [*words[1:], ""] if not word.startswith("-"))] if is_script else [program]


def _behind_daemon(daemon: Daemon, its_pid: int, session_id: str) -> int:
    """The terminal of a session that a shared daemon runs: the one that names it, else the youngest that was there
    when the session was made and has none.
    """
    rivals = [pid for pid in _terminals(daemon, os.path.basename(program_of(its_pid)[0])) if pid != its_pid]
    named = [pid for pid in rivals if session_id in words_of(pid)]
    made = _made_at(session_id)
    before = [pid for pid in rivals if not made or started_at(pid) <= made + 1]
    candidates = named or before or rivals
    return max(candidates, key=started_at, default=0)


def _terminals(daemon: Daemon, program: str) -> Iterator[int]:
    """The processes of that program that read from a terminal."""
    for name in os.listdir("/proc"):
        if not name.isdigit() or bindings.name_of(int(name)) != program[:15]:
            continue
        if terminal_of(int(name)) and daemon.word not in words_of(int(name)):
            yield int(name)


def started_at(pid: int) -> float:
    """When a process was started, in seconds since 1970; 0 if there is none."""
    started = bindings.stat_of(pid)[0]
    if not started:
        return 0.0
    with open("/proc/stat", "rb") as file:
        booted = next(line.split()[1] for line in file if line.startswith(b"btime"))
    return int(booted) + int(started) / os.sysconf("SC_CLK_TCK")


def _made_at(session_id: str) -> float:
    """When a session with an id that tells it (RFC 9562, version 7) was made; 0 for others."""
    digits = session_id.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return 0.0
    try:
        return (int(digits, 16) >> _EPOCH_BITS) / 1000
    except ValueError:
        return 0.0


def _read(pid: int, what: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{what}", "rb") as file:
            return file.read()
    except OSError:
        return b""
