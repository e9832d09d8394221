"""What a client's hook costs at every tool call: with nothing to say, against bare Python."""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from teams_cli.clients import settings_files
from tests.benchmarks.limits import TOLERANCE, against, in_every_try
from tests.support.cli import ALPHA

_HOOK, _MOST = "hook claude", 1.1


def bench_hook(root: Path, rounds: int, show: Callable[..., None]) -> list[str]:
    """The hook as it is installed, where nothing is new, in turns with `python -c pass`; its name if it was too slow in
    every try.
    """
    print(f"\nA hook with nothing to say, best of {rounds} (median), ms")
    show("", "best", "median", "x python", "limit")
    given = json.dumps({"hook_event_name": "PostToolBatch", "tool_response": "x" * 20_000}).encode()
    environ = {**os.environ, "TEAMS_HOME": str(root), "TEAMS_TEAM": ALPHA, "TEAMS_AGENT_ID": "a0"}

    def measure(names: list[str]) -> list[str]:
        ratio = _beside_bare(environ, given, rounds, show)
        return names if ratio > _MOST * TOLERANCE else []

    return in_every_try([_HOOK], measure)


def _beside_bare(environ: dict[str, str], given: bytes, rounds: int, show: Callable[..., None]) -> float:
    """How many times as long as bare Python the hook takes."""
    hook = shlex.split(settings_files.hook_command(sys.executable, "claude"))
    _seconds(hook, environ, given)
    bare, quiet = [], []
    for _ in range(rounds):
        bare.append(_seconds([sys.executable, "-c", "pass"], environ, given))
        quiet.append(_seconds(hook, environ, given))
    ratio = min(quiet) / min(bare)
    show("python -c pass", min(bare) * 1000, statistics.median(bare) * 1000, 1.0)
    show(_HOOK, min(quiet) * 1000, statistics.median(quiet) * 1000, f"{ratio:.2f}", against(_MOST, ratio))
    return ratio


def _seconds(words: list[str], environ: dict[str, str], given: bytes) -> float:
    started = time.perf_counter()
    subprocess.run(words, env=environ, input=given, check=True, capture_output=True)
    return time.perf_counter() - started
