"""The waiting hook: a process beside an idle client. It waits until the client's doorbell rings, and then wakes the
client.

Each client has one such process, which ends with the client. The process does not read the mail; the hook of the next
turn shows it. The module imports next to nothing, because the process stays in memory.
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
"""The exit statuses that make the client take a turn, and that make it end its current turn first."""
_SECONDS_TO_JOIN, _SECONDS_TO_LEAVE = 10.0, 3.0
_SECONDS_BETWEEN_LOOKS, _SECONDS_BETWEEN_LOOKS_AFTER_WAKER = 1.0, 5.0


def wait(client: str, standpoint: Standpoint, environ: Mapping[str, str]) -> int:
    """Wait until the doorbell of the client that runs this hook rings. Return the exit status, which tells the client
    whether to take a turn.
    """
    if environ.get("TEAMS_SHADOW") or not standpoint.has_team:  # the variable marks a copy of an agent's session
        return 0
    client_and_binding = _joined_client(client, standpoint.root)
    if client_and_binding is None:
        return 0
    pid, binding = client_and_binding
    started, _ = bindings.stat_of(pid)
    bell = Doorbell(bindings.terminal_file(standpoint.root, binding.team, binding.agent, "bell"))
    if not started or not _begin_to_listen(bell, pid):
        return 0
    reason = _listen(bell, pid, started, standpoint, binding.team, environ)
    bell.close()
    if reason in (b"", LEAVE):  # the client has ended, or our hooks were removed from it
        return 0
    sys.stderr.write(f"{LINE}\n")
    return INTERRUPTS if reason == STOP else WAKES


def _joined_client(client: str, root: str) -> tuple[int, bindings.Binding] | None:
    """Return the process id of the client, and the member that it is; None if no person sits in front of the client. If
    the client has not joined yet, wait some seconds, because another hook may be about to make it join.
    """
    from teams_cli.agents.seats import terminals
    from teams_cli.clients import known

    pid, seat = bindings.nearest_client(os.getppid()), known.get(client).seat
    if not pid or seat is None or seat.is_headless(terminals.words_of(pid)):
        return None
    give_up = time.monotonic() + _SECONDS_TO_JOIN
    while time.monotonic() < give_up:
        if client_and_binding := bindings.client_above(root, os.getppid()):
            return client_and_binding
        time.sleep(0.1)
    return None


def _begin_to_listen(bell: Doorbell, pid: int) -> bool:
    """Listen to the doorbell of the client *pid*, and return True. Return False if another process already listens for
    this client: the end of each turn starts such a process, but only the first one stays. Return False also if our
    hooks were removed from the client's settings.

    If the process of an earlier client, which has ended, still listens, wait a few seconds for it to leave.
    """
    if bell.is_dismissed(pid):
        return False
    give_up = time.monotonic() + _SECONDS_TO_LEAVE
    while not bell.listen(pid):
        if bell.client_pid() == pid or time.monotonic() > give_up:
            return False
        time.sleep(0.2)
    return True


def _listen(
    bell: Doorbell, pid: int, started: str, standpoint: Standpoint, team: str, environ: Mapping[str, str]
) -> bytes:
    """Wait until the bell rings to wake the client *pid*, and return the reason. Return b"" if the client ends first,
    that is, if no process with this id has the start time *started* any more. Bells are rung by a process called the
    waker, which is started again if it was killed in the meantime.
    """
    next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS_AFTER_WAKER
    while bindings.stat_of(pid)[0] == started:
        if reason := bell.wait(_SECONDS_BETWEEN_LOOKS):
            return reason
        if time.monotonic() > next_look:
            if not bindings.is_locked(f"{standpoint.root}/wakers/{team}.lock"):  # the waker was killed
                from teams_cli.agents import background
                from teams_cli.store import opening
                from teams_cli.store.files.engine import FILES

                host = environ.get("TEAMS_HOST", "")
                store = opening.open_store(standpoint.root, standpoint.store or FILES, host=host)
                background.start_for_terminals(store, team, environ)
                store.close()
            next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS_AFTER_WAKER
    return b""
