"""Wakers: of the process that resumes idle agents when mail comes, one for each team on each machine, never two."""

from __future__ import annotations

import fcntl
import os

from teams_cli import logs, processes
from teams_cli.store import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.store.contract import Store


def start(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Start this machine's waker of the team, unless there is one."""
    held = hold(store, team)
    if held is None:
        return
    os.close(held)  # the one that is started takes it; of two, one ends
    clean = {key: value for key, value in environ.items() if not key.startswith(("TEAMS_", "OPENCODE_AGENT"))}
    ours = {**store.variables, "TEAMS_TEAM": team}
    processes.start_own("teams_cli.waker", [], {**clean, **ours}, logs.path_of(store, team, ".waker"))


def hold(store: Store, team: str) -> int | None:
    """The lock that the waker has as long as it lives; None if another process has it."""
    directory = f"{store.root}/wakers"
    disk.make_directories(directory, store.root)
    descriptor = os.open(f"{directory}/{team}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
