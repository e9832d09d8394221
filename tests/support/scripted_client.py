"""Stands for a model client: `python scripted_client.py start` or `resume SESSION`, with the user turn on standard
input.

It prints a JSON object a line, makes its session id itself, and keeps the turns of each session in `$CLIENT_SESSIONS`.
It carries out the lines of the turn: `say TEXT`, `run SHELL COMMAND`, `sleep SECONDS`, `fail TEXT`, `chat BYTES`. In a
delivered message, only the lines of its body count. If it runs twice at once in one session, the second ends with
status 99.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from uuid import uuid4


def tell(type: str, **more: object) -> None:
    sys.stdout.write(json.dumps({"type": type, **more}) + "\n")
    sys.stdout.flush()


def do(verb: str, rest: str) -> None:
    """Carry out one line of the script."""
    if verb == "say":
        tell("answer", item={"text": rest})
    elif verb == "run":
        done = subprocess.run(["sh", "-c", rest], capture_output=True, text=True)
        tell("tool", status=done.returncode, printed=done.stdout + done.stderr)
    elif verb == "sleep":
        time.sleep(float(rest))
    elif verb == "chat":
        tell("noise", text="x" * int(rest))
    elif verb == "fail":
        tell("error", text=rest)


def main(words: list[str]) -> None:
    session = words[1] if words[0] == "resume" else f"made-{uuid4()}"
    path = os.path.join(os.environ["CLIENT_SESSIONS"], session)
    if words[0] == "resume" and not os.path.exists(path):
        sys.exit(f"no session {session}")
    with open(path, "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(99)
        turn = sys.stdin.read()
        file.write(json.dumps(turn) + "\n")
        file.flush()
        tell("started", session=session)
        for line in turn.splitlines():
            verb, _, rest = line.removeprefix("| ").partition(" ")
            do(verb, rest)


if __name__ == "__main__":
    main(sys.argv[1:])
