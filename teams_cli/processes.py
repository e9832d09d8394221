"""Processes of this machine: starting one that outlives this process, and ending one with all that it started."""

from __future__ import annotations

import os
import sys
import time

from teams_cli import errors
from teams_cli.clock import boot_id
from teams_cli.environment import OWN_PROGRAM, of_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import NoReturn

TAG = "TEAMS_RUN_ID"
"""The variable by which all processes of a session are found, whatever group or parent they have."""
CHECK = "TEAMS_CHECK_ID"
"""The variable by which the processes of a task's check are found, while the check runs."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_DETACH = """
import os, sys
if os.fork():
    os._exit(0)
os.write(1, b"%d" % os.getpid())
os.dup2(2, 1)
os.execv(sys.argv[1], sys.argv[1:])
"""


_SUBREAPER = 36
_LADDER = (("TERM", 2.0), ("KILL", 2.0))
_adopts = False
_alone = False


def leave(number: int, _frame: object) -> NoReturn:
    """Handle a signal: end in order, with the exit status of a process that the signal ended."""
    raise SystemExit(128 + number)


def adopt_orphans(alone: bool = False) -> None:
    """Make this process the parent of its descendants whose parents end, so that they are found quickly.

    With *alone*, all descendants belong to one session and end with it, also daemons that cleared their environment.
    """
    import ctypes

    global _adopts, _alone
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    _adopts = prctl is not None and prctl(_SUBREAPER, 1, 0, 0, 0) == 0
    _alone = _adopts and alone


def start_detached(words: Sequence[str], environment: Mapping[str, str], log: str, directory: str) -> int:
    """Start a process that outlives this one, with its output in *log*, and return its id.

    It is nobody's child: some clients end all descendants of their tools and servers when they end.

    Raises:
        OSError: It can't be started.
    """
    import subprocess  # 15 ms: only for those who start something

    with open(log, "ab") as out:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _DETACH, *words],
            env={name: value for name, value in environment.items() if name != CHECK},
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
    """Start one of our own programs, `main` of *module*, as `start_detached` does. Its own children do not inherit
    where our packages are.
    """
    return start_detached([sys.executable, "-P", "-c", OWN_PROGRAM, _PACKAGE, module, *words], environment, log, "/")


def outcome_of(
    command: list[str], directory: str, environ: Mapping[str, str], patience: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a program of the user to its end, without input, and return its outcome. A missing program, one that cannot
    run, and one that takes longer than *patience* seconds has failed.
    """
    import subprocess

    try:
        return subprocess.run(
            command,
            cwd=directory,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            check=False,
        )
    except FileNotFoundError:
        status, why = 127, f"there is no {command[0]} on this machine"
    except OSError as error:
        status, why = 126, f"{command[0]} can't be run: {error.strerror}"
    except subprocess.TimeoutExpired:
        status, why = 124, f"{command[0]} did not answer within {patience:g} seconds"
    return subprocess.CompletedProcess(command, status, "", why)


def end_tagged(tag: str, ladder: Sequence[tuple[str, float]] = _LADDER, variable: str = TAG) -> None:
    """End all processes that carry *tag*, with each signal of the ladder in turn, for its number of seconds."""
    _end(lambda: tagged(tag, variable), ladder)


def end_descendants(tag: str, ladder: Sequence[tuple[str, float]] = _LADDER) -> None:
    """End the descendants of this process that have the *tag*, as `end_tagged` does. If this process adopts orphans for
    one session only, those without the tag end too.
    """
    _end(lambda: _descendants(tag), ladder)


def _end(find: Callable[[], Iterator[int]], ladder: Sequence[tuple[str, float]]) -> None:
    for name, patience in ladder:
        _send(find(), name)
        give_up = time.monotonic() + patience
        while any(find()):
            if time.monotonic() > give_up:
                break
            time.sleep(0.02)
            if name == "KILL":  # some have started others meanwhile
                _send(find(), name)
        else:
            return


def _send(pids: Iterable[int], name: str) -> None:
    import signal

    for pid in pids:
        try:
            os.kill(pid, getattr(signal, f"SIG{name}"))
        except (ProcessLookupError, PermissionError):
            continue


def kill(pid: int) -> None:
    """Kill a process, whatever it does."""
    _send([pid], "KILL")


def tagged(tag: str, variable: str = TAG) -> Iterator[int]:
    """Return the other processes that carry *tag* in the environment with which they were started."""
    wanted = f"{variable}={tag}".encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and int(name) != os.getpid() and wanted in of_process(name, "environ"):
            yield int(name)


def _descendants(tag: str) -> Iterator[int]:
    """Return the descendants of this process that carry *tag*, or, for one session alone, that are below no program of
    ours.

    Where the system does not list children, every process of the machine is looked at.
    """
    if not _adopts or not os.path.exists("/proc/thread-self/children"):
        yield from tagged(tag)
        return
    wanted = f"{TAG}={tag}".encode()
    ahead = [(pid, _alone) for pid in _children(os.getpid())]
    while ahead:
        pid, ours = ahead.pop()
        ours = ours and not _is_own(pid)
        ahead += [(child, ours) for child in _children(pid)]
        if wanted in of_process(pid, "environ") or (ours and _is_there(pid)):
            yield pid


def _is_there(pid: int) -> bool:
    try:
        return bool(_started(pid))
    except OSError:
        return True


def _children(pid: int) -> list[int]:
    """Return the processes that a process started or adopted, in any of its threads, with those that ended and were not
    waited for.
    """
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:  # it ended, or is not ours: what it had falls to us
        return found
    return found


def _is_own(pid: int, module: str = "") -> bool:
    """Whether the process was started by `start_own`, for that *module* if it is named."""
    words = of_process(pid, "cmdline")
    return OWN_PROGRAM.encode() in words and (not module or module.encode() in words)


def is_on_its_way(module: str, variables: Mapping[str, str]) -> bool:
    """Whether a process runs that `start_own` started for *module* with these variables."""
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and _is_own(int(name), module) and wanted <= set(of_process(name, "environ")):
            return True
    return False


def process_started(pid: int) -> str:
    """Return when the process was started, in ticks since the start of the machine; empty if it does not exist.

    Raises:
        StorageFailed: It can't be looked at just now, as where no more files can be opened.
    """
    try:
        return _started(pid)
    except OSError as error:
        raise errors.StorageFailed(f"process {pid} can't be looked at: {error.strerror}", "Try again.") from error


def _started(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if state == b"Z" else fields[18].decode()


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped, as by SIGSTOP."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False


def pid_scope(host: str = "") -> str:
    """Return where process ids mean the same as here: this start of the machine, and this pid namespace.

    With *host*, also the name of the machine among those that use the store.
    """
    try:
        place = f"{boot_id()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        place = f"{boot_id()} -" if host else boot_id()
    return f"{place} {host}" if host else place


def identity(pid: int, host: str = "") -> str:
    """Return the identity of a process as text, for `identified_has_ended`."""
    return f"{pid} {process_started(pid)} {pid_scope(host)}"


def identified_has_ended(said: str) -> bool | None:
    """Whether the process with that `identity` has ended, as `has_ended` says. True for any other text."""
    pid, _, rest = said.partition(" ")
    started, _, place = rest.partition(" ")
    return has_ended(int(pid), started, place) if pid.isascii() and pid.isdigit() else True


def host_of(place: str | None) -> str:
    """Return the name of a process's machine; empty if only one machine uses the store."""
    return (place or "").partition(" ")[2].partition(" ")[2]


def has_ended(pid: int, started: str | None, place: str | None) -> bool | None:
    """Whether a noted process has ended; None if that is unknown: in a sandbox, on another machine, or if the system
    refuses to say.
    """
    host = host_of(place)
    if (place or "").partition(" ")[0] != boot_id():
        return None if host else True
    if place != pid_scope(host) or not os.path.isdir("/proc/self"):
        return None
    try:
        now = _started(pid)
    except OSError:  # too many files are open, say
        return None
    return not now or now != started
