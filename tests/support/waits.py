"""Waiting until something holds, and waiting commands of the program that run meanwhile."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.cli import TIMEOUT, Cli


def until(ready: Callable[[], Any], what: str | Callable[[], Any] = "", timeout: float = TIMEOUT) -> Any:
    """Wait until *ready* returns a true value, and return it. *what* names what is missing; it may be a function that
    describes the state.
    """
    give_up = time.monotonic() + timeout
    while not (found := ready()):
        assert time.monotonic() < give_up, (what() if callable(what) else what) or ready
        time.sleep(0.02)
    return found


def until_asleep(process: Any) -> None:
    """Wait until a waiting command has looked once and sleeps. From then on it catches the signal that ends it."""
    status = Path(f"/proc/{process.pid}/status")
    until(lambda: int(status.read_text().partition("SigCgt:")[2].split()[0], 16) & 1 << (signal.SIGTERM - 1))


def begin(cli: Cli, agent: str, *words: str) -> Any:
    """Start a waiting command, and leave it running."""
    return cli.start(*(words or ("wait", "--timeout", "100")), "--json", agent=agent)


def ended(process: Any, status: int = 0) -> Any:
    """Wait until the command has ended with the *status*; return its answer."""
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == status, (out, err)
    return json.loads(err if status else out)


def nothing(cli: Cli, agent: str) -> None:
    """Check that a wait of the agent ends without news."""
    assert cli("wait", "--timeout", "0", agent=agent).status == 14


def at_once(note: Callable[[], object]) -> None:
    """Record a note at once, as if the answer had been shown."""
    note()
