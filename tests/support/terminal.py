"""A terminal for a command, and a client without a model for a person at a terminal."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import signal
import sys
import termios
import time
from pathlib import Path

from tests.support.cli import COMMAND, TIMEOUT, Cli, make_team

CLIENT = """#!{python}
import json, os, subprocess, sys, time
def joins():
    event = json.dumps(dict(hook_event_name="SessionStart", session_id="theirs"))
    subprocess.run([*{command!r}, "hook", "claude"], input=event, text=True)
if "-p" in sys.argv:
    given = sys.stdin.read()
    while given == "work":
        time.sleep(0.05)
    print(json.dumps(dict(result="done after " + given, is_error=False)))
    sys.exit()
print("client", *sys.argv[1:], "of", os.environ.get("TEAMS_AGENT_ID"), os.environ.get("MY_OWN"), flush=True)
sys.stdout.write("\\x1b]7501;?\\x1b\\\\\\x1b]7501;state=idle:app=x\\x1b\\\\")
sys.stdout.flush()
for line in sys.stdin:
    line = line.replace("\\x1b]7501;?\\x1b\\\\", "")
    print("said:", line.strip().replace("\\x1b", "^"), flush=True)
    if line.strip() == "work":
        sys.stdout.write("\\x1b]7501;state=working\\x1b\\\\")
        sys.stdout.flush()
    if line.strip() == "ask":
        sys.stdout.write("\\x1b]7501;state=blocked:kind=permission\\x1b\\\\")
        sys.stdout.flush()
    if line.strip() == "rest":
        sys.stdout.write("\\x1b]7501;state=idle\\x1b\\\\")
        sys.stdout.flush()
    if line.strip() == "draw":
        for _ in range(30):
            print(end=".", flush=True)
            time.sleep(0.1)
        print("drawn", flush=True)
    if line.strip() == "join":
        joins()
        print("joined", flush=True)
    if line.strip() == "much":
        print("x" * 3_000_000 + "that was much", flush=True)
    if line.strip() == "bye":
        sys.exit(7)
"""
OPEN: list[int] = []


def team_with_client(top: Path) -> Cli:
    """Return a team, and a client that repeats its input and is recognized as Claude Code."""
    (top / "bin").mkdir()
    path = top / "bin/claude"
    path.write_text(CLIENT.format(python=sys.executable, command=COMMAND))
    path.chmod(0o755)
    return make_team(top / "root", "bob")


def end_all() -> None:
    """Kill all processes that still run in terminals."""
    while OPEN:
        os.kill(OPEN[-1], signal.SIGKILL)
        os.waitpid(OPEN.pop(), 0)


class Terminal:
    """A command in a terminal of its own, with its screen as one text."""

    rest = b""
    """The beginning of a character."""

    def __init__(self, cli: Cli, *words: str, agent: str = "human", has_jobs: bool = True, **environ: str) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            if not has_jobs:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                fcntl.ioctl(0, termios.TIOCNOTTY)
            os.execvpe(COMMAND[0], [*COMMAND, *words], cli.environ(agent, **{"TERM": "xterm", **environ}))
        self.text = ""
        OPEN.append(self.pid)

    def until(self, text: str, patience: float = TIMEOUT) -> None:
        """Read until the text was shown."""
        give_up = time.monotonic() + patience
        while text not in self.text:
            assert time.monotonic() < give_up, f"no {text!r} in {self.text!r}"
            self.read(0.1)

    def sees(self, text: str) -> str:
        """Read until the text was shown; return everything up to it, and forget that."""
        self.until(text)
        before, _, self.text = self.text.partition(text)
        return before + text

    def read(self, seconds: float) -> None:
        """Read the output of the given seconds."""
        try:
            if select.select([self.master], [], [], seconds)[0]:
                data = self.rest + os.read(self.master, 65536)
                text, length = codecs.utf_8_decode(data, "replace", False)
                self.text, self.rest = self.text + text, data[length:]
        except OSError:
            return

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        """Wait until the command has ended; return its exit status."""
        OPEN.remove(self.pid)
        give_up = time.monotonic() + TIMEOUT
        while (ended := os.waitpid(self.pid, os.WNOHANG)) == (0, 0):
            assert time.monotonic() < give_up, self.text
            self.read(0.1)
        self.read(0.1)  # its last words
        return os.waitstatus_to_exitcode(ended[1])
