"""`teams open` and `teams attach`: becomes the client, or what shows it, or stays behind where something is to be done
when it ends. Run as a program, in a window of tmux, it becomes the client that a file describes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from teams_cli import errors
from teams_cli.processes import leave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.extensions.terminals.commands import TakingOver
    from teams_cli.extensions.terminals.opening import Opened

_OF_THE_WINDOW = ("TERM", "TMUX", "TMUX_PANE", "COLORTERM")


def main() -> None:
    """Become the client that the file describes, which nobody needs any more then."""
    with open(sys.argv[1], "rb") as file:
        order = json.load(file)
    os.remove(sys.argv[1])
    own = {name: os.environ[name] for name in _OF_THE_WINDOW if name in os.environ}
    os.chdir(order["directory"])
    os.execvpe(order["words"][0], order["words"], {**order["environ"], **own})


def run(call: Call, settings: Mapping[str, Any]) -> int:
    """Start the client in this terminal; its exit status.

    Raises:
        WrongUsage: This is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise errors.WrongUsage("a client needs a terminal", "Run this in one, or start an agent: teams run-agent …")
    if words := settings.get("attach"):
        os.execv(words[0], words)
    if taking := settings.get("taking"):
        return _in_its_place(taking)
    opened: Opened = settings["opened"]
    os.chdir(opened.directory)
    os.execvpe(opened.words[0], opened.words, opened.environ)


def _in_its_place(taking: TakingOver) -> int:
    """Run the client of an agent that is taken over, and give it back however the client ends; the exit status."""
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, leave)
    opened = taking.begin()
    try:
        return _stay_behind(opened)
    finally:
        taking.end()


def _stay_behind(opened: Opened) -> int:
    """Run the client to its end. What the terminal says to all in it is the client's to answer; what is said to us
    alone is passed on; when it is stopped, so are we.
    """
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda number, frame: None)  # not ignored, which the client would inherit
    client = subprocess.Popen(opened.words, env=opened.environ, cwd=opened.directory)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda number, frame: client.send_signal(number))
    while True:
        _, status = os.waitpid(client.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = client.returncode = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        os.kill(os.getpid(), signal.SIGSTOP)
        client.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    main()
