"""Processes of this machine: starting one that outlives this process, and ending one with all processes that it
started.
"""

from __future__ import annotations

import os
import sys
import time

from teams_cli import errors
from teams_cli.clock import boot_id
from teams_cli.environment import OWN_PROGRAM, of_process, parent_of, variables_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import NoReturn

TAG = "TEAMS_RUN_ID"
"""The variable by which all processes of a session are found, whatever their group or parent."""
CHECK = "TEAMS_CHECK_ID"
"""The variable by which the processes of a task's check are found while the check runs."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_DETACH = """
import os, sys
if os.fork():
    os._exit(0)
os.write(1, b"%d" % os.getpid())
os.dup2(2, 1)
os.execv(sys.argv[1], sys.argv[1:])
"""


_PR_SET_CHILD_SUBREAPER = 36
_LADDER = (("TERM", 2.0), ("KILL", 2.0))
"""The signals to send one after the other, each with the seconds that processes then have to end."""
_PATIENCE = 120.0
"""The maximum number of seconds that a program of the user may take if its outcome is wanted."""
_adopts_orphans = False
_is_for_one_session = False


def leave(number: int, _frame: object) -> NoReturn:
    """Handle the signal *number*: exit in the usual way, with the exit status that shells give a process ended by this
    signal.
    """
    raise SystemExit(128 + number)


def adopt_orphans(alone: bool = False) -> None:
    """Let this process become the parent of each descendant whose own parent ends, so that all are found quickly.

    *alone* says that this process serves only one session, so all its descendants belong to that session.
    `end_descendants` then also ends daemons that have removed the tag of the session from their environment.
    """
    import ctypes

    global _adopts_orphans, _is_for_one_session
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    _adopts_orphans = prctl is not None and prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    _is_for_one_session = _adopts_orphans and alone


def start_own(module: str, words: Sequence[str], environment: Mapping[str, str], log: str) -> int:
    """Start the function `main` of *module* as a background program of `teams`, and return its process id. It keeps
    running after this process has ended. Its output goes to *log*.

    The process does not become a descendant of this one. Some clients, when they end, end all descendants of their
    tools. The path of our packages is an argument of the program. If it were an environment variable, the programs that
    it starts would inherit the variable.

    Raises:
        OSError: The process can't be started.
    """
    import subprocess  # takes 15 ms, and few commands start a process

    program = [sys.executable, "-P", "-c", OWN_PROGRAM, _PACKAGE, module, *words]
    with open(log, "ab") as out:
        launcher = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _DETACH, *program],
            # Without the variable, the end of a check does not end a program that the check started.
            env={name: value for name, value in environment.items() if name != CHECK},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=out,
            start_new_session=True,
        )
    if not launcher.stdout:
        raise OSError(f"{sys.executable} can't be started: see {log}")
    return int(launcher.stdout)


def outcome_of(command: list[str], directory: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program of the user to its end, without input, and return its outcome. No error is raised if the program
    fails. As in a shell, the exit status is 127 if the program is missing, 126 if it can't be run, and 124 if it takes
    longer than two minutes.
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
            timeout=_PATIENCE,
        )
    except FileNotFoundError:
        status, why = 127, f"there is no {command[0]} on this machine"
    except OSError as error:
        status, why = 126, f"{command[0]} can't be run: {error.strerror}"
    except subprocess.TimeoutExpired:
        status, why = 124, f"{command[0]} did not answer within {_PATIENCE:g} seconds"
    return subprocess.CompletedProcess(command, status, "", why)


def end_tagged(tag: str, ladder: Sequence[tuple[str, float]] = _LADDER, variable: str = TAG) -> None:
    """End all processes whose environment has *variable* with the value *tag*, by the signals of the *ladder*."""
    _end(lambda: _tagged(tag, variable), ladder)


def new_mark() -> str:
    """Return a new value for the variable `CHECK`, which marks the processes of a task's check. The value names this
    process, so that `end_orphaned_checks` notices that this process has ended.
    """
    return f"{os.urandom(8).hex()} {identity(os.getpid())}"


def end_orphaned_checks() -> None:
    """End the processes of checks whose program was killed before it could end them."""
    prefix = f"{CHECK}=".encode()
    entries = {entry for pid in _all_pids() for entry in of_process(pid, "environ") if entry.startswith(prefix)}
    for entry in entries:
        mark = entry.removeprefix(prefix).decode(errors="replace")
        launcher = mark.partition(" ")[2]  # the identity that `new_mark` put into the mark
        if launcher and identified_has_ended(launcher):
            end_tagged(mark, variable=CHECK)


def end_descendants(tag: str, ladder: Sequence[tuple[str, float]] = _LADDER) -> None:
    """End the descendants of this process that have the *tag*, with the signals of the *ladder*, one after the other.
    If `adopt_orphans` was called with `alone`, also end descendants without the tag.
    """
    _end(lambda: _descendants(tag), ladder)


def _end(find: Callable[[], Iterator[int]], ladder: Sequence[tuple[str, float]]) -> None:
    """End the processes that *find* yields, by the signals of the *ladder*, each with its seconds to take effect."""
    for name, patience in ladder:
        _send(find(), name)
        give_up = time.monotonic() + patience
        while any(find()):
            if time.monotonic() > give_up:
                break
            time.sleep(0.02)
            if name == "KILL":  # the processes may have started others before they were killed
                _send(find(), name)
        else:  # all have ended
            return


def _send(pids: Iterable[int], name: str) -> None:
    """Send the signal called *name*, such as TERM, to the processes that have not ended and are this user's."""
    import signal

    for pid in pids:
        try:
            os.kill(pid, getattr(signal, f"SIG{name}"))
        except (ProcessLookupError, PermissionError):
            continue


def kill(pid: int) -> None:
    """Kill a process; do nothing if it has ended or belongs to another user."""
    _send([pid], "KILL")


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def _tagged(tag: str, variable: str) -> Iterator[int]:
    wanted = f"{variable}={tag}".encode()
    for pid in _all_pids():
        if pid != os.getpid() and wanted in of_process(pid, "environ"):
            yield pid


def _descendants(tag: str) -> Iterator[int]:
    """Yield the descendants of this process that have the *tag*. If this process serves only one session, also yield
    descendants without the tag, except background programs of `teams` and their descendants. If descendants can't be
    found, yield all processes of the machine that have the *tag*.
    """
    if not _adopts_orphans or not os.path.exists("/proc/thread-self/children"):
        yield from _tagged(tag, TAG)
        return
    wanted = f"{TAG}={tag}".encode()
    pending = [(pid, _is_for_one_session) for pid in _children(os.getpid())]
    while pending:
        pid, is_of_session = pending.pop()
        is_of_session = is_of_session and not _is_own_program(pid)
        pending += [(child, is_of_session) for child in _children(pid)]
        if wanted in of_process(pid, "environ") or (is_of_session and _may_run(pid)):
            yield pid


def _may_run(pid: int) -> bool:
    """Return whether the process runs; True also if the system refuses to say."""
    try:
        return bool(_started(pid))
    except OSError:
        return True


def _children(pid: int) -> list[int]:
    """Return the processes that a process started or adopted, in any of its threads, including zombies."""
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += map(int, file.read().split())
    except OSError:  # the process has ended, so this process adopts its children; or it belongs to another user
        return children
    return children


def _is_own_program(pid: int, module: str = "") -> bool:
    words = of_process(pid, "cmdline")
    return OWN_PROGRAM.encode() in words and (not module or module.encode() in words)


def is_on_its_way(module: str, variables: Mapping[str, str]) -> bool:
    """Return whether a process is running that `start_own` started for *module*, with these environment *variables*."""
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    return any(_is_own_program(pid, module) and wanted <= set(of_process(pid, "environ")) for pid in _all_pids())


def environments_of_programs(variable: str, value: str) -> Iterator[dict[str, str]]:
    """Yield the environments of the running programs whose environment has the *variable* with this *value*. Programs
    of `teams` do not count, nor those that are stopped, or that outlived the process which started them.
    """
    for pid in _tagged(value, variable):
        if not _is_of_teams(pid) and _is_attended(pid):
            yield variables_of(pid)


def _is_of_teams(pid: int) -> bool:
    words = of_process(pid, "cmdline")
    return OWN_PROGRAM.encode() in words or b"teams_cli" in words or b"teams" in map(os.path.basename, words[:2])


def _is_attended(pid: int) -> bool:
    """Return whether the process is not stopped, and the process that started it is there. Otherwise a process of
    another session, such as `init`, has adopted it.
    """
    parent = parent_of(pid)
    try:
        return not is_stopped(pid) and parent > 0 and os.getsid(pid) == os.getsid(parent)
    except OSError:  # one of them has ended
        return False


def process_started(pid: int) -> str:
    """Return the time at which the process was started, in clock ticks since the start of the machine; empty if there
    is no such process.

    Raises:
        StorageFailed: The system refuses to say, for example because too many files are open.
    """
    try:
        return _started(pid)
    except OSError as error:
        raise errors.StorageFailed(f"process {pid} can't be looked at: {error.strerror}", "Try again.") from error


def _started(pid: int) -> str:
    """Return what `process_started` returns, but raise OSError if the system refuses to say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()  # a name in parentheses may itself have some
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if state == b"Z" else fields[18].decode()  # a zombie has ended; field 22 of the file is the start time


def is_stopped(pid: int) -> bool:
    """Return whether the process is stopped by a signal such as SIGSTOP."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False


def pid_scope(host: str = "") -> str:
    """Return a text that says where the process ids of this process are valid: if two processes get the same text, an
    id means the same process to both. The text has the boot id, the pid namespace and, if it is given, the name *host*
    of the machine. The name is needed only if several machines use the store.
    """
    try:
        scope = f"{boot_id()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        scope = f"{boot_id()} -" if host else boot_id()  # the name of the machine is always the third word
    return f"{scope} {host}" if host else scope


def identity(pid: int, host: str = "") -> str:
    """Return the identity of a process as a text, for `identified_has_ended`."""
    return f"{pid} {process_started(pid)} {pid_scope(host)}"


def identified_has_ended(identity: str) -> bool | None:
    """Return whether a process has ended. *identity* is the text that the function `identity` returned for the process.
    Return None if this is unknown, for example because the process ran on another machine, and True for any other text.
    """
    pid, _, started_and_scope = identity.partition(" ")
    started, _, scope = started_and_scope.partition(" ")
    return has_ended(int(pid), started, scope) if pid.isascii() and pid.isdigit() else True


def host_of(scope: str | None) -> str:
    """Return the name of the machine in a *scope* that `pid_scope` returned. Return "" if the scope has none, because
    only one machine uses the store.
    """
    return (scope or "").partition(" ")[2].partition(" ")[2]


def has_ended(pid: int, started: str | None, scope: str | None) -> bool | None:
    """Return whether a process has ended, by its *pid*, *started* (from `process_started`) and *scope* (from
    `pid_scope`). Return None if this can't be known, because the process ran in a sandbox or on another machine, or
    because the system refuses to say.
    """
    host = host_of(scope)
    if (scope or "").partition(" ")[0] != boot_id():
        return None if host else True  # without a host it ran on this machine, which was restarted since
    if scope != pid_scope(host) or not os.path.isdir("/proc/self"):  # the id may mean another process here
        return None
    try:
        started_now = _started(pid)
    except OSError:  # for example because too many files are open
        return None
    return not started_now or started_now != started  # another process may have the id by now
