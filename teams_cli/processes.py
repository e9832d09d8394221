"""Processes of this machine: starting one that outlives us, and ending one with all that it left behind."""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MARK = "TEAMS_RUN_ID"
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


def end_marked(mark: str, ladder: Sequence[tuple[str, float]] = (("TERM", 2.0), ("KILL", 2.0))) -> None:
    """End all processes that carry *mark*, with the signals of the ladder, each given its seconds."""
    for name, patience in ladder:
        send(mark, name)
        if gone(mark, patience, again=name == "KILL"):
            return


def send(mark: str, name: str) -> None:
    """Send a signal (INT, TERM, KILL) to all processes that carry *mark*."""
    for pid in marked(mark):
        try:
            os.kill(pid, getattr(signal, f"SIG{name}"))
        except (ProcessLookupError, PermissionError):
            continue


def gone(mark: str, patience: float, again: bool = False) -> bool:
    """Whether all processes that carry *mark* ended within *patience* seconds; with *again*, kill those that come."""
    give_up = time.monotonic() + patience
    while any(marked(mark)):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
        if again:
            send(mark, "KILL")
    return True


def marked(mark: str) -> Iterator[int]:
    """The processes that carry *mark* in the environment they were started with, but for ourselves."""
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and int(name) != os.getpid() and wanted in _environment(name):
            yield int(name)


def _environment(pid: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:  # it ended, or is not ours
        return []
