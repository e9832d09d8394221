"""What messages take on the disk: in blocks, while the team works and once it is closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from teams_cli import closing
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.caller import Caller
from tests.support.cli import ALPHA

BLOCK = 512
MOST_MB = 15.0


def bench_disk(root: Path, count: int, show: Callable[..., None], against: Callable[[float, float], str]) -> None:
    """The table, of a team with so many messages, which is closed for it."""
    log = root / f"teams/{ALPHA}/messages"
    print(f"\n{count:,} messages on the disk, MB in blocks")
    show("", "MB", "text, MB", "seconds", "limit")
    show("at work", taken(log), text_of(log))
    started = time.perf_counter()
    closing.close(FileStore(str(root)), ALPHA, Caller("lea"), force=True)
    seconds = f"{time.perf_counter() - started:.2f}"
    show("closed", taken(log), text_of(log), seconds, against(MOST_MB, taken(log)))


def taken(top: Path) -> float:
    """What all below it takes in blocks, directories included."""
    return sum(path.lstat().st_blocks for path in [top, *top.rglob("*")]) * BLOCK / 1e6


def text_of(top: Path) -> float:
    """The bytes of all files below it."""
    return sum(path.lstat().st_size for path in top.rglob("*") if path.is_file()) / 1e6
