"""`teams open` and `teams attach`: becomes the client, or what shows it, or stays behind where something is to be done
when it ends. Run as a program, in a window of tmux, it becomes the client that a file describes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from teams_cli.errors import WrongUsage
from teams_cli.records.annotations import Any, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.agents.terminals.opening import Opened
    from teams_cli.commands.call import Call

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
        raise WrongUsage("a client needs a terminal", "Open it in one, or start an agent: teams run-agent …")
    if words := settings.get("attach"):
        os.execv(words[0], words)
    opened: Opened = settings["opened"]
    os.chdir(opened.directory)
    after = settings.get("after")
    if after is None:
        os.execvpe(opened.words[0], opened.words, opened.environ)
    try:
        return subprocess.call(opened.words, env=opened.environ)
    finally:
        after()


if __name__ == "__main__":
    main()
