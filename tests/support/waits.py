"""Waiting until something is so, and waits of the program that go on while something else is done."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.cli import TIMEOUT, Cli


def until(ready: Callable[[], Any], what: str | Callable[[], Any] = "", timeout: float = TIMEOUT) -> Any:
    """Wait until *ready* gives something, and give that; *what* says what is missing, or looks how things are then."""
    give_up = time.monotonic() + timeout
    while not (found := ready()):
        assert time.monotonic() < give_up, (what() if callable(what) else what) or ready
        time.sleep(0.02)
    return found


def until_asleep(process: Any) -> None:
    """Wait until a command that waits has looked, and sleeps: it catches the signal that ends it then."""
    status = Path(f"/proc/{process.pid}/status")
    until(lambda: int(status.read_text().partition("SigCgt:")[2].split()[0], 16) & 1 << (signal.SIGTERM - 1))


def begin(cli: Cli, agent: str, *words: str) -> Any:
    """A wait that goes on while something else is done."""
    return cli.start(*(words or ("wait", "--timeout", "60")), "--json", agent=agent)


def ended(process: Any, status: int = 0) -> Any:
    """What it said in the end."""
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == status, (out, err)
    return json.loads(err if status else out)


def nothing(cli: Cli, agent: str) -> None:
    """Nothing that the agent was not told of waits for it."""
    assert cli("wait", "--timeout", "0", agent=agent).status == 14


def at_once(note: Callable[[], object]) -> None:
    """Note that something was told as soon as it is found: who asks has it then."""
    note()
