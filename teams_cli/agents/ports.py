"""Ports: each agent of this machine has a range of its own, so that what two start at once does not collide."""

from __future__ import annotations

import fcntl
import json
import os

from teams_cli import errors
from teams_cli.store.contract import Store

VARIABLE = "TEAMS_PORT_BASE"
EACH = 20
"""Ports that an agent may take, from its base on."""
_FIRST, _END = 10_000, 32_000
"""Below those that Linux gives to clients by itself."""


def base_of(store: Store, team: str, agent: str) -> int:
    """The first port of the agent, always the same; those of teams that are gone are given again.

    Raises:
        StorageFailed: All are taken, or what is noted of them can't be written.
    """
    path = f"{store.root}/ports.json"
    try:
        os.makedirs(store.root, 0o700, exist_ok=True)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise errors.StorageFailed(
            f"can't note the ports of {agent} in {path}: {error.strerror}", "Look at the disk."
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = set(store.teams())
        given = {name: base for name, base in _given(path).items() if name.partition("/")[0] in there}
        name = f"{team}/{agent}"
        if name not in given:
            given[name] = _free(set(given.values()))
            _keep(path, given)
        return given[name]
    finally:
        os.close(lock)


def _free(taken: set[int]) -> int:
    for base in range(_FIRST, _END, EACH):
        if base not in taken:
            return base
    raise errors.StorageFailed("all ranges of ports are taken", "Remove closed teams: teams prune")


def _given(path: str) -> dict[str, int]:
    """The base of each agent; what can't be read was never given."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return {str(name): base for name, base in found.items() if type(base) is int} if isinstance(found, dict) else {}


def _keep(path: str, given: dict[str, int]) -> None:
    temp = f"{path}.new"
    try:
        with open(temp, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            json.dump(given, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, path)
    except OSError as error:
        raise errors.StorageFailed(f"can't write {path}: {error.strerror}", "Look at the disk.") from None
