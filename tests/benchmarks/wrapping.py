"""What our wrapper costs whoever types into a client: the way of a key there and back, and memory."""

from __future__ import annotations

import json
import os
import pty
import signal
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

_KEYS = 500
_READY = b"ready"
_ECHO = "import os, tty\ntty.setraw(0)\nos.write(1, b'ready')\nwhile data := os.read(0, 1024): os.write(1, data)"
_CLIENT = [sys.executable, "-c", _ECHO]
_LIMITS = {"ms a key more": 1.0, "MiB": 15.0}


def bench_wrapping(directory: Path, show: Callable[..., None], against: Callable[[float, float], str]) -> None:
    """A client that echoes each key, in a terminal of its own and in the wrapper."""
    print(f"\nThe wrapper: {_KEYS} keys there and back, median, ms; memory")
    show("", "direct", "wrapped", "limit")
    whose = {"root": str(directory), "team": "alpha", "agent": "ann"}
    order = {"words": _CLIENT, **whose, "hook": ["true"], "titles": {}, "types": True}
    direct, _ = _typed(_CLIENT)
    wrapped, size = _typed([sys.executable, "-m", "teams_cli.extensions.terminals.wrapper", json.dumps(order)])
    more = (wrapped - direct) * 1000
    show("a key", f"{direct * 1000:.3f}", f"{wrapped * 1000:.3f}", against(_LIMITS["ms a key more"], more))
    show("memory, MiB", "", size, against(_LIMITS["MiB"], size))


def _typed(words: list[str]) -> tuple[float, float]:
    """How long a key takes to come back, in seconds, and the memory of the process, in MiB."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvp(words[0], words)
    try:
        said = b""
        while _READY not in said:
            said += os.read(master, 1024)
        return statistics.median(_way(master) for _ in range(_KEYS)), _resident(pid)
    finally:
        os.kill(pid, signal.SIGHUP)
        os.waitpid(pid, 0)
        os.close(master)


def _way(master: int) -> float:
    began = time.perf_counter()
    os.write(master, b"x")
    os.read(master, 1024)
    return time.perf_counter() - began


def _resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024
