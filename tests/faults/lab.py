"""Commands in forks of this process, in which one system call fails or is the last.

Calls are counted from the first that touches the root, so that the same command makes the same calls each time.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import signal
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import teams_cli
from teams_cli.cli.main import run

START = "start"
CHANGING = ("create", "mkdir", "write", "rename", "replace", "unlink", "rmdir", "chmod", START)
"""Calls that change the disk. `create` opens a file for writing, `start` starts another program."""
_COUNTED = (*CHANGING[1:-1], "open", "fsync", "stat", "listdir", "scandir", "read", "pread", "readlink")
PATIENCE = 600
_WRONG = dict.fromkeys(("create", "mkdir", "write", "rename", "replace"), errno.ENOSPC) | {START: errno.EAGAIN}
"""The error of each call; other calls fail with an error of the disk."""


class Fault(NamedTuple):
    """What happens at the *nth* call, 0 for never: `kill` ends the process before it, `error` makes it fail, `errors`
    also fails all later calls of its kind for a path.
    """

    what: str
    nth: int = 0


NONE = Fault("")


class Answer(NamedTuple):
    """The outcome of a command: its exit status (-9 if it was killed), its output, and the calls that it made."""

    status: int
    said: str
    calls: list[str]


def changes(calls: list[str]) -> list[int]:
    """Return the numbers of the calls that change something. A file is created, written and renamed into place; only
    the rename counts, since nobody reads the file before.
    """
    changing = [(nth, call) for nth, call in enumerate(calls, start=1) if call in CHANGING]
    following = [call for _, call in changing[1:]] + [""]
    chain = {("create", "write"), ("write", "rename"), ("write", "replace")}
    return [nth for (nth, call), then in zip(changing, following, strict=True) if (call, then) not in chain]


def warm() -> None:
    """Import all modules that commands need, so that not every fork has to."""
    for module in pkgutil.walk_packages(teams_cli.__path__, "teams_cli."):
        if not any(word in module.name for word in ("extensions.http", "extensions.mcp", "postgres", "__main__")):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # what is not looked at by the forks need not be copied for them


class _Calls:
    """Counts the system calls, and strikes at one."""

    def __init__(self, root: str, fault: Fault, starts: bool) -> None:
        self.root, self.fault, self.starts = root, fault, starts
        self.made: list[str] = []
        self.write = os.write
        self.struck = ""
        self._begun = False

    def __enter__(self) -> _Calls:
        for name in _COUNTED:
            setattr(os, name, self._counted(name, getattr(os, name)))
        fcntl.flock = self._counted("flock", fcntl.flock)
        builtins.open = self._counted("open", builtins.open)
        if self.starts:
            subprocess.Popen.__init__ = self._counted(START, subprocess.Popen.__init__)  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        """The process ends within the block."""

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if not self._counts(arguments):
                return real(*arguments, **options)
            what = "create" if name == "open" and _writes(arguments) else name
            self.made.append(what)
            again = self.fault.what == "errors" and what == self.struck and isinstance(arguments[0], str)
            if len(self.made) == self.fault.nth or again:
                self.struck = what
                if self.fault.what == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                number = _WRONG.get(what, errno.EIO)
                raise OSError(number, os.strerror(number), *(arguments[:1] if what != START else ()))
            return real(*arguments, **options)

        return call

    def _counts(self, arguments: tuple[Any, ...]) -> bool:
        """Whether the call concerns the root. After the first such call, open files count, too, except standard ones
        and pipes to programs, since no disk fails there.
        """
        about = arguments[0] if arguments else None
        if isinstance(about, subprocess.Popen):
            return self._begun
        if isinstance(about, str):
            ours = about == self.root or about.startswith(f"{self.root}/")
            self._begun = self._begun or ours
            return ours
        return self._begun and isinstance(about, int) and about > 2 and not stat.S_ISFIFO(os.fstat(about).st_mode)


def _writes(arguments: tuple[Any, ...]) -> bool:
    """Whether a file is opened for writing, by flags or by a mode."""
    how = arguments[1] if len(arguments) > 1 else "r"
    return bool(set(how) & set("wax+")) if isinstance(how, str) else bool(how & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def command(
    root: Path,
    agent: str,
    words: list[str],
    fault: Fault = NONE,
    about: str = "",
    program: Callable[[list[str]], int] = run,
    directory: str = "..",
) -> Answer:
    """Run a command as the agent, in the team alpha, with the fault at a call that concerns the root or a path in
    *about*.

    With another *program*, the calls that start further programs are counted. *directory* is relative to the root.
    """
    said, result = os.memfd_create("said"), os.memfd_create("result")
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            _surround(str(root), agent, said, os.path.join(root, directory))
            with _Calls(about or str(root), fault, program is not run) as calls:
                status = program(list(words))
            calls.write(result, json.dumps(calls.made).encode())
        except BaseException:
            os.write(said, traceback.format_exc().encode())
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    text, calls = (_content(descriptor).decode(errors="replace") for descriptor in (said, result))
    return Answer(status, text, json.loads(calls or "[]"))


def _content(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


def _surround(root: str, agent: str, said: int, directory: str) -> None:
    """Give this process the environment of a command, and a file for its output."""
    signal.alarm(PATIENCE)
    for name in [name for name in os.environ if name.startswith(("TEAMS_", "OPENCODE_", "JANUS_"))]:
        del os.environ[name]
    os.environ.update(TEAMS_HOME=root, TEAMS_TEAM="alpha", TEAMS_AGENT_ID=agent, NO_COLOR="1")
    os.chdir(directory)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (said, 1), (said, 2)):
        os.dup2(descriptor, place)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = sys.stderr = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
