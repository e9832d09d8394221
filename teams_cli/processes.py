"""Processes of this machine: starting one that outlives us, and ending one with all that it left behind."""

from __future__ import annotations

import os
import sys
import time

from teams_cli.clock import boot_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TAG = "TEAMS_RUN_ID"
"""The variable by which all processes of a session are found, whatever group or parent they have."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OWN = (
    "import sys; sys.path.append(sys.argv.pop(1)); from importlib import import_module; "
    "import_module(sys.argv.pop(1)).main()"
)
_DETACH = """
import os, sys
if os.fork():
    os._exit(0)
os.write(1, b"%d" % os.getpid())
os.dup2(2, 1)
os.execv(sys.argv[1], sys.argv[1:])
"""


_SUBREAPER = 36
_adopts = False


def adopt_orphans() -> None:
    """Have what descends from this process fall to it when its parents end, so that it can be ended with the rest:
    some daemons clear the environment by which they would be known.
    """
    import ctypes

    global _adopts
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    _adopts = prctl is not None and prctl(_SUBREAPER, 1, 0, 0, 0) == 0


def start_detached(words: Sequence[str], environment: Mapping[str, str], log: str, directory: str) -> int:
    """Start a process that goes on when we end, its output going to *log*; its id.

    It is nobody's child: some clients end, when they go, all that descends from the tools and servers they started.

    Raises:
        OSError: It can't be started.
    """
    import subprocess  # 15 ms: only for those who start something

    with open(log, "ab") as out:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _DETACH, *words],
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=out,
            start_new_session=True,
            check=False,
        )
    if not done.stdout:
        raise OSError(f"{words[0]} can't be started: see {log}")
    return int(done.stdout)


def start_own(module: str, words: Sequence[str], environment: Mapping[str, str], log: str) -> int:
    """Start one of our own programs, `main` of *module*, as `start_detached` does; what it starts in turn does not
    inherit where our packages are.
    """
    return start_detached([sys.executable, "-P", "-c", _OWN, _PACKAGE, module, *words], environment, log, "/")


def end_tagged(tag: str, ladder: Sequence[tuple[str, float]] = (("TERM", 2.0), ("KILL", 2.0))) -> None:
    """End all processes that carry *tag*, with the signals of the ladder, each given its seconds."""
    for name, patience in ladder:
        send(tag, name)
        if gone(tag, patience, again=name == "KILL"):
            return


def send(tag: str, name: str) -> None:
    """Send a signal (INT, TERM, KILL) to all processes that carry *tag*."""
    import signal

    for pid in tagged(tag):
        try:
            os.kill(pid, getattr(signal, f"SIG{name}"))
        except (ProcessLookupError, PermissionError):
            continue


def kill(pid: int) -> None:
    """Kill a process, whatever it does at the moment."""
    import signal

    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def gone(tag: str, patience: float, again: bool = False) -> bool:
    """Whether all processes that carry *tag* ended within *patience* seconds; with *again*, kill those that come."""
    give_up = time.monotonic() + patience
    while any(tagged(tag)):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
        if again:
            send(tag, "KILL")
    return True


def tagged(tag: str) -> Iterator[int]:
    """The processes that carry *tag* in the environment they were started with, but for ourselves."""
    wanted = f"{TAG}={tag}".encode()
    adopted = set(_descendants()) if _adopts else set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and int(name) != os.getpid() and (int(name) in adopted or wanted in _environment(name)):
            yield int(name)


def _descendants() -> Iterator[int]:
    """What descends from this process, but for programs of ours and what they start: these have a life of their own."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (parent := _parent(int(name))):
            children.setdefault(parent, []).append(int(name))
    ahead = [os.getpid()]
    while ahead:
        for pid in children.get(ahead.pop(), ()):
            if not _is_own(pid):
                ahead.append(pid)
                yield pid


def _parent(pid: int) -> int:
    """The process that it is a child of; 0 if there is no such process, or it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except OSError:
        return 0
    return 0 if state == b"Z" else int(parent)


def _is_own(pid: int) -> bool:
    """Whether the process was started by `start_own`."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return _OWN.encode() in file.read()
    except OSError:
        return False


def _environment(pid: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:  # it ended, or is not ours
        return []


def process_started(pid: int) -> str:
    """When the process was started, in ticks since the start of the machine; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if state == b"Z" else fields[18].decode()


def is_stopped(pid: int) -> bool:
    """Whether the process stands still, as after SIGSTOP: it is there, and does nothing until it is let go on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False


def pid_scope(host: str = "") -> str:
    """Where the ids of processes mean what they mean here: this start of the machine, this namespace of processes.

    With *host*, also what the machine is called among those that use the store.
    """
    try:
        place = f"{boot_id()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        place = f"{boot_id()} -" if host else boot_id()
    return f"{place} {host}" if host else place


def identity(pid: int, host: str = "") -> str:
    """A process in one text, for `identified_has_ended`."""
    return f"{pid} {process_started(pid)} {pid_scope(host)}"


def identified_has_ended(said: str) -> bool | None:
    """As `has_ended`, of the process that `identity` told; True of what is no such text."""
    pid, _, rest = said.partition(" ")
    started, _, place = rest.partition(" ")
    return has_ended(int(pid), started, place) if pid.isascii() and pid.isdigit() else True


def host_of(place: str | None) -> str:
    """What the machine of a process is called; empty where there is only one."""
    return (place or "").partition(" ")[2].partition(" ")[2]


def has_ended(pid: int, started: str | None, place: str | None) -> bool | None:
    """Whether a process that was noted has ended; None where that can't be known: in a sandbox, on another machine."""
    host = host_of(place)
    if (place or "").partition(" ")[0] != boot_id():
        return None if host else True
    if place != pid_scope(host) or not os.path.isdir("/proc/self"):
        return None
    return process_started(pid) != started
