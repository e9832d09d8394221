"""Detached terminals: a process for each client that runs where nobody sits, which shows it to whoever attaches."""

from __future__ import annotations

import json
import os
import select
import time

from teams_cli import errors, processes
from teams_cli.agents import logs
from teams_cli.agents.seats import bindings, lines
from teams_cli.clients import hook_settings
from teams_cli.store.contract import Store
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.extensions.terminals.opening import Opened

_DETACHED, _ATTACHING = "teams_cli.extensions.terminals.detached_client", "teams_cli.extensions.terminals.attaching"
_TO_OPEN, _TO_END = 20.0, 20.0
_DOOR = ".tty"
_TERMINAL = "xterm-256color"


def start(store: Store, team: str, opened: Opened) -> None:
    """Start the client in a terminal of its own, and return once one can attach to it.

    Raises:
        Conflict: The agent has such a terminal; or it could not be started.
    """
    door, log = _door(store, team, opened.agent), logs.begin(store, team, opened.agent)
    if is_there(store, team, opened.agent):
        raise errors.Conflict(f"{opened.agent} has a detached terminal already", f"See: teams attach {opened.agent}")
    disk.discard(door)  # of one that was killed
    os.makedirs(os.path.dirname(door), 0o700, exist_ok=True)
    order = {**opened.order, "door": door, "directory": opened.directory}
    environ = {"TERM": _TERMINAL, **opened.environ}
    pid = processes.start_own(_DETACHED, [json.dumps(order)], environ, log)
    give_up = time.monotonic() + _TO_OPEN
    while not is_there(store, team, opened.agent):
        if not bindings.stat_of(pid)[0] or time.monotonic() > give_up:
            raise errors.Conflict(f"the terminal of {opened.agent} could not be opened", f"See {log}")
        time.sleep(0.02)


def is_there(store: Store, team: str, agent: str) -> bool:
    """Whether the agent has one on this machine."""
    door = _door(store, team, agent)
    return os.path.exists(door) and bindings.is_locked(f"{door}.lock")


def attach_words(python: str, store: Store, team: str, agent: str) -> list[str]:
    """The words that show it in this terminal; none if there is none."""
    if not is_there(store, team, agent):
        return []
    order = {"door": _door(store, team, agent), "agent": agent}
    return [*hook_settings.of_module(python, _ATTACHING), json.dumps(order)]


def agents_of(store: Store, team: str) -> list[str]:
    """The agents of the team that have one on this machine."""
    try:
        found = os.listdir(os.path.dirname(_door(store, team, "")))
    except FileNotFoundError:
        return []
    names = [name.removesuffix(_DOOR) for name in found if name.endswith(_DOOR)]
    return [name for name in names if is_there(store, team, name)]


def hang_up(store: Store, team: str, agent: str, watched: bool) -> bool:
    """End the client in it; one that is *watched* only if that is said. Whether it ended."""
    line = lines.call(_door(store, team, agent))
    if line is None:
        return not is_there(store, team, agent)
    line.send(lines.CLOSE, b"watched" if watched else b"")
    give_up = time.monotonic() + _TO_END
    said: list[bytes] = []
    while line.is_open and not said and time.monotonic() < give_up:
        select.select([line], [line] if line.waits else [], [], 0.5)
        line.flush()
        said = [kind for kind, _ in line.heard() if kind in (lines.END, lines.LOOKED_AT)]
    ended = lines.LOOKED_AT not in said and (bool(said) or not line.is_open)
    line.close()
    while ended and is_there(store, team, agent) and time.monotonic() < give_up:
        time.sleep(0.02)
    return ended


def _door(store: Store, team: str, agent: str) -> str:
    return bindings.kept(os.path.abspath(store.root), team, agent, _DOOR[1:])
