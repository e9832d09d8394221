"""Commands as forks of a process that has loaded the program.

A short command spends most of its time on starting the interpreter and loading modules, which is the same each time. A
forked command is still a process of its own with its own arguments, environment, directory and pipes, and runs the
program's own entry point. If TESTS_FRESH is set, every command is started afresh. So is a command whose environment has
settings for the interpreter, and every command on a system without process handles.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.fork_server import exactly

LOADED = [
    "teams_cli.agents.sessions",
    "teams_cli.cli.main",
    "teams_cli.cli.output",
    "teams_cli.cli.command_line",
    "teams_cli.commands.call",
    "teams_cli.commands.messages",
    "teams_cli.commands.tasks",
    "teams_cli.messages.notices",
    "teams_cli.store.files.engine",
    "teams_cli.tasks.claims",
    "teams_cli.views.mail",
]
REPOSITORY = Path(__file__).parents[2]
DATABASE = "teams_cli.extensions.postgres.engine"
_SAID_TO_THE_INTERPRETER = ("PYTHON", "LC_", "LANG")
_PIPED = 1 << 15
"""The bytes that a pipe takes at once on every system."""

_servers: dict[tuple[str, ...], Forks] = {}
_starting = threading.Lock()


def run(words: Sequence[str], environ: Mapping[str, str], given: bytes, patience: float) -> tuple[int, bytes, bytes]:
    """Run one command to its end; return its exit status and its output. Raises `subprocess.TimeoutExpired`."""
    loaded = (*LOADED, DATABASE) if environ.get("TEAMS_STORE", "").startswith("postgres") else tuple(LOADED)
    with _starting:  # two threads of a test that begins with both would start one each, and lose the first
        if loaded not in _servers:
            _servers[loaded] = Forks(loaded)
    return _servers[loaded].run(words, environ, given, patience)


def can_run(environ: Mapping[str, str], given: bytes) -> bool:
    """Whether a fork would do the same as a fresh process."""
    if "TESTS_FRESH" in os.environ or not hasattr(os, "pidfd_open") or len(given) > _PIPED:
        return False
    names = {name for name in {*environ, *os.environ} if name.startswith(_SAID_TO_THE_INTERPRETER)}
    return all(environ.get(name, "") == os.environ.get(name, "") for name in names)


def end() -> None:
    """End the processes that fork for commands."""
    while _servers:
        _servers.popitem()[1].end()


class Forks:
    """A process that has loaded some modules and forks for each command. It ends with this process."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.directory = tempfile.mkdtemp(prefix="forks")
        self.address = os.path.join(self.directory, "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen(64)
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.fork_server", str(listener.fileno()), *modules],
                env={name: value for name, value in os.environ.items() if not name.startswith("TEAMS_")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,  # pipes, as each command has: the interpreter looks at them when it starts
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
                cwd=REPOSITORY,  # wherever the test that asks first may be
            )

    def end(self) -> None:
        with self.process as process:
            assert process.stdin is not None
            process.stdin.close()
        shutil.rmtree(self.directory)

    def run(
        self, words: Sequence[str], environ: Mapping[str, str], given: bytes, patience: float
    ) -> tuple[int, bytes, bytes]:
        """See `run` above."""
        pipes = [os.pipe(), os.pipe(), os.pipe()]
        os.write(pipes[0][1], given)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.address)
            theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
            socket.send_fds(connection, [b"x"], theirs)
            request = json.dumps([list(words), dict(environ), os.getcwd()]).encode()
            connection.sendall(len(request).to_bytes(4, "little") + request)
            for descriptor in (*theirs, pipes[0][1]):
                os.close(descriptor)
            pid = int.from_bytes(exactly(connection, 4), "little")
            out, err = _all_from(pipes[1][0], pipes[2][0], pid, words, patience)
            status = int.from_bytes(exactly(connection, 4), "little")
        return os.waitstatus_to_exitcode(status), out, err


def _all_from(out: int, err: int, pid: int, words: Sequence[str], patience: float) -> tuple[bytes, bytes]:
    """Return all output from two pipes, read until no process holds the pipes open."""
    said = {out: b"", err: b""}
    open_still, give_up = {out, err}, time.monotonic() + patience
    try:
        while open_still:
            ready = select.select(list(open_still), [], [], max(give_up - time.monotonic(), 0))[0]
            if not ready:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(words), patience, said[out], said[err])
            for descriptor in ready:
                piece = os.read(descriptor, 1 << 16)
                said[descriptor] += piece
                open_still -= set() if piece else {descriptor}
    finally:
        os.close(out)
        os.close(err)
    return said[out], said[err]
