"""The history of a team: one JSON object a line, for people and live views; derived, never the truth."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_MAX_LINE = 1 << 20


def note(path: str, entry: dict[str, Any]) -> None:
    """Add a line. The change that it tells of is made already, so a disk that refuses is no reason to fail."""
    try:
        descriptor = os.open(path, _APPEND, 0o600)
    except OSError:
        return
    try:
        line = json.dumps(entry).encode() + b"\n"
        os.write(descriptor, line if _at_line_start(descriptor) else b"\n" + line)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _at_line_start(descriptor: int) -> bool:
    """Whether the last line is whole: a power failure may have left a part of one."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    return end == 0 or os.pread(descriptor, 1, end - 1) == b"\n"


def entries(path: str, after: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries from byte *after* on, each with the position behind it; lines that are none are passed over."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW), "rb")
    except OSError:
        return
    with file:
        file.seek(after)
        position = after
        while line := file.readline(_MAX_LINE):
            if not line.endswith(b"\n"):
                return
            position += len(line)
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield position, entry
