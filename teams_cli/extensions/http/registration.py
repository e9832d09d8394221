"""The file that a running server keeps in the root: its address, and its token, new at each start."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime

from teams_cli import errors, processes
from teams_cli.clock import rfc3339
from teams_cli.store.files import disk
from teams_cli.store.files.locks import PortableLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LIMIT = 4096
_PATIENCE = 10.0


def register(root: str, url: str, token: str) -> dict[str, Any]:
    """Write down where the server is; what was written. A token that an earlier version kept is taken away: while no
    server runs, another user can listen on its port, and would be handed that token.

    Raises:
        Conflict: Another server of this root is running; names it.
    """
    pid = os.getpid()
    document = {"url": url, "token": token, "pid": pid, "startedAt": rfc3339(datetime.now(UTC))}
    document.update(pidStarted=processes.process_started(pid), pidBoot=processes.pid_scope())
    disk.prepare_root(root)
    with PortableLock(root, _PATIENCE):
        if other := running(root):
            hint = f"Use it, or end it first: kill {other.get('pid')}"
            raise errors.Conflict(f"a server of these teams is running at {other['url']}", hint)
        data = json.dumps(document, indent=2).encode() + b"\n"
        disk.commit(disk.write_temp(f"{root}/tmp", data), _path(root))
        disk.discard(f"{root}/server.token")
    return document


def running(root: str) -> dict[str, Any]:
    """What the server wrote that is running; nothing if none is."""
    other = _found(root)
    return other if other and _runs(other) else {}


def unregister(root: str) -> None:
    """Take away what `register` wrote, if it is still ours."""
    with PortableLock(root, _PATIENCE):
        if _found(root).get("pid") == os.getpid():
            disk.discard(_path(root))


def _path(root: str) -> str:
    return f"{root}/server.json"


def _read(path: str) -> bytes:
    try:
        return disk.read_file(path, _LIMIT)
    except FileNotFoundError:
        return b""


def _found(root: str) -> dict[str, Any]:
    """What the file says; nothing where it says nothing of use."""
    try:
        document = json.loads(_read(_path(root)) or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) and {"url", "pid", "token"} <= document.keys() else {}


def _runs(other: dict[str, Any]) -> bool:
    """Whether that server is there: its process, or where that can't be known, something behind its port."""
    try:
        ended = processes.has_ended(int(other["pid"]), str(other.get("pidStarted", "")), str(other.get("pidBoot", "")))
    except (TypeError, ValueError):
        return False
    return _answers(str(other["url"])) if ended is None else not ended


def _answers(url: str) -> bool:
    host, _, port = url.rpartition("/")[2].partition(":")
    try:
        socket.create_connection((host, int(port)), 1.0).close()
    except (OSError, ValueError):
        return False
    return True
