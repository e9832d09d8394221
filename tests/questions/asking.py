"""How questions are asked here, and what is made of the answers."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from teams_cli.membership import joining
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, COMMAND, TIMEOUT, Cli, make_team
from tests.support.waits import until


def ask(cli: Cli, *words: str, agent: str = "bob") -> dict[str, Any]:
    found: dict[str, Any] = cli.ok("ask-others", *words, agent=agent)
    return found


def by_responder(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {said["responder_id"]: said for said in found["responses"]}


class Person:
    """The person at `teams human`, on a pseudo-terminal."""

    def __init__(self, cli: Cli, *words: str) -> None:
        self.end, inside = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, "human", *words], env=cli.environ(), stdin=inside, stdout=inside, stderr=inside, close_fds=True
        )
        os.close(inside)
        self.shown = ""

    def sees(self, text: str, within: float = TIMEOUT) -> None:
        """Wait until the console shows *text*, and forget what came before it."""
        give_up = time.monotonic() + within
        while text not in self.shown:
            ready = select.select([self.end], [], [], max(0.0, give_up - time.monotonic()))[0]
            assert ready, f"{text!r} was not shown: {self.shown!r}"
            self.shown += os.read(self.end, 4096).decode(errors="replace")
        self.shown = self.shown.partition(text)[2]

    def types(self, line: str) -> None:
        os.write(self.end, line.encode() + b"\n")

    def leave(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)
        os.close(self.end)


wait_for = until


def team_that_answers(directory: Path) -> Cli:
    """lea leads; bob asks; ann, cid and dot answer by command; questions to agents are on."""
    made = make_team(directory / "root", "bob")
    for name in ("ann", "cid", "dot"):
        joining.join(made.store(), ALPHA, Caller(name), answer=f"echo {name} says $(jq -r .question)")
    made.ok("set", "broadcast", "agents", agent="lea")
    return made
