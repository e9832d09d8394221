"""The waiting hook: a process beside an idle client that waits for its doorbell, and then wakes the client.

It ends with its client, and there is one for each. It never takes the mail, which the hook of the next turn shows. It
imports next to nothing, since it stays in memory.
"""

from __future__ import annotations

import os
import sys
import time

from teams_cli.agents.seats import bindings
from teams_cli.agents.seats.doorbells import LEAVE, LINE, STOP, Doorbell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.hooks.entry import Standpoint


WAKES, INTERRUPTS = 2, 3
"""The exit statuses: the client is to take a turn; it is to end the one that is going on first."""
_TO_JOIN, _TO_LEAVE = 10.0, 3.0
_LOOK, _LOOK_AFTER_WAKER = 1.0, 5.0


def wait(client: str, standpoint: Standpoint, environ: Mapping[str, str]) -> int:
    """Wait for the bell of the client that runs this hook. The exit status tells the client what to do."""
    if environ.get("TEAMS_SHADOW") or not standpoint.has_team:
        return 0
    client_and_binding = _client(client, standpoint.root)
    if client_and_binding is None:
        return 0
    pid, binding = client_and_binding
    started = bindings.stat_of(pid)[0]
    bell = Doorbell(bindings.terminal_file(standpoint.root, binding.team, binding.agent, "bell"))
    if not started or not _taken(bell, pid):
        return 0
    heard = _listen(bell, pid, started, standpoint, binding.team, environ)
    bell.close()
    if heard in (b"", LEAVE):
        return 0
    sys.stderr.write(f"{LINE}\n")
    return INTERRUPTS if heard == STOP else WAKES


def _client(client: str, root: str) -> tuple[int, bindings.Binding] | None:
    """Return the client whose messages this process waits for. It may join at the same time, by another hook."""
    from teams_cli.agents.seats import terminals
    from teams_cli.clients import known

    pid, seat = bindings.nearest_client(os.getppid()), known.get(client).seat
    if not pid or seat is None or seat.is_headless(terminals.words_of(pid)):
        return None
    give_up = time.monotonic() + _TO_JOIN
    while time.monotonic() < give_up:
        if client_and_binding := bindings.client_above(root, os.getppid()):
            return client_and_binding
        time.sleep(0.1)
    return None


def _taken(bell: Doorbell, pid: int) -> bool:
    """Whether this process is the one that waits: each end of a turn starts one, and the first of a client stays.

    A process whose client has ended goes within a moment. A client that still has our hooks after they were removed
    from its settings is left alone.
    """
    if bell.is_dismissed(pid):
        return False
    give_up = time.monotonic() + _TO_LEAVE
    while not bell.listen(pid):
        if bell.client_pid() == pid or time.monotonic() > give_up:
            return False
        time.sleep(0.2)
    return True


def _listen(
    bell: Doorbell, pid: int, started: str, standpoint: Standpoint, team: str, environ: Mapping[str, str]
) -> bytes:
    """Return why the bell rang; empty if the client ended first."""
    look = time.monotonic() + _LOOK_AFTER_WAKER
    while bindings.stat_of(pid)[0] == started:
        if heard := bell.wait(_LOOK):
            return heard
        if time.monotonic() > look:
            if not bindings.is_locked(f"{standpoint.root}/wakers/{team}.lock"):  # it was killed
                from teams_cli.agents import background
                from teams_cli.store import opening
                from teams_cli.store.files.engine import FILES

                host = environ.get("TEAMS_HOST", "")
                store = opening.open_store(standpoint.root, standpoint.store or FILES, host=host)
                background.start_for_terminals(store, team, environ)
                store.close()
            look = time.monotonic() + _LOOK_AFTER_WAKER
    return b""
