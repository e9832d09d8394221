"""The whole content of a directory, to compare before and after."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def snapshot(top: Path) -> dict[str, object]:
    """Return what is at every path below *top*: bytes, the target of a link, or the type. Lock files, which are empty,
    are left out.
    """
    found: dict[str, object] = {}
    for directory, names, files in os.walk(top):
        for name in [*names, *files]:
            path = Path(directory, name)
            if name != ".lock":
                found[str(path.relative_to(top))] = _content(path)
    return found


def _content(path: Path) -> object:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return f"-> {os.readlink(path)}"
    return path.read_bytes() if stat.S_ISREG(mode) else stat.S_IFMT(mode)
