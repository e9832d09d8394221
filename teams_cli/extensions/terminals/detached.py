"""Detached terminals: a process for each client that runs where nobody sits, which shows it to whoever attaches."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios
import time
from contextlib import suppress

from teams_cli import errors, processes
from teams_cli.agents import logs
from teams_cli.agents.seats import bindings, lines
from teams_cli.agents.seats.lines import CLOSE, END, KEYS, LOOKED_AT, OUTPUT, SIZE, Line, plain, typed_in
from teams_cli.clients import own_entries
from teams_cli.extensions.terminals.wrapper import Shown, Wrapper, answers
from teams_cli.processes import leave
from teams_cli.store.contract import Store
from teams_cli.store.files import disk, locks
from teams_cli.store.files.disk import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.extensions.terminals.opening import Opened


_DETACHED, _ATTACHING = "teams_cli.extensions.terminals.detached", "teams_cli.extensions.terminals.attaching"
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
    return [*own_entries.of_module(python, _ATTACHING), json.dumps(order)]


def agents_of(store: Store, team: str) -> list[str]:
    """The agents of the team that have one on this machine."""
    try:
        files = os.listdir(os.path.dirname(_door(store, team, "")))
    except FileNotFoundError:
        return []
    names = [name.removesuffix(_DOOR) for name in files if name.endswith(_DOOR)]
    return [name for name in names if is_there(store, team, name)]


def hang_up(store: Store, team: str, agent: str, watched: bool) -> bool:
    """End the client in it; one that is *watched* only if that is said. Whether it ended."""
    line = lines.call(_door(store, team, agent))
    if line is None:
        return not is_there(store, team, agent)
    line.send(lines.CLOSE, b"watched" if watched else b"")
    give_up = time.monotonic() + _TO_END
    kinds: list[bytes] = []
    while line.is_open and not kinds and time.monotonic() < give_up:
        select.select([line], [line] if line.waits else [], [], 0.5)
        line.flush()
        kinds = [kind for kind, _ in line.heard() if kind in (lines.END, lines.LOOKED_AT)]
    ended = lines.LOOKED_AT not in kinds and (bool(kinds) or not line.is_open)
    line.close()
    while ended and is_there(store, team, agent) and time.monotonic() < give_up:
        time.sleep(0.02)
    return ended


def _door(store: Store, team: str, agent: str) -> str:
    return bindings.kept(os.path.abspath(store.root), team, agent, _DOOR[1:])


_ROWS, _COLUMNS = 40, 120
_REDRAW = 0.2
"""Seconds for which who attaches has a row less: a client draws itself anew when its size changes."""
_TO_TAKE, _TO_LOOK = 2.0, 1.0
_LAST_WORDS = 2000
_LADDER = ((signal.SIGHUP, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 1.0))
"""How a client is ended, and the seconds that each signal is given: first it is told that its terminal is closed."""
_TOO_MUCH = 1 << 20
"""Bytes that may wait for one who looks and does not take them."""
_CLEAR = b"\x1b[2J\x1b[H"


def main() -> None:
    """Run the client that the first argument describes, as JSON, to its end."""
    order = json.loads(sys.argv[1])
    if not _is_alone(order):
        sys.exit(f"teams: {order['agent']} has a detached terminal already")
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sys.exit(Detached(order).run())


def _is_alone(order: dict[str, Any]) -> bool:
    """Whether we are the one terminal of the agent, until we end. Who looks whether there is one has the lock for a
    moment.
    """
    give_up = time.monotonic() + _TO_LOOK
    while locks.hold(f"{order['door']}.lock", order["root"]) is None:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


class Detached(Wrapper):
    """One client and those who look at it. *order* has, besides, the `door` at which they call and its `directory`."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.shown = Shown()
        self.size = (_ROWS, _COLUMNS)
        self.lookers: list[Looker] = []
        """In the order in which they attached or typed."""
        self.whole_at = 0.0
        self.signals_left: list[tuple[int, float]] = []
        self.signal_at = 0.0

    def run(self) -> int:
        """Run it to its end; its exit status."""
        self.door = lines.listen(self.order["door"])
        try:
            os.chdir(self.order["directory"])
            leader = self.begin()
            self.loop()
            status = os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1])
        finally:
            os.remove(self.order["door"])
            self.bell.close()
        self.part(status)
        return status

    def part(self, status: int) -> None:
        """Tell those who look that it ended, and the log what it said last if it failed."""
        give_up = time.monotonic() + _TO_TAKE
        for looker in self.lookers:
            looker.line.send(END, str(status).encode())
        while (full := [looker for looker in self.lookers if looker.line.waits]) and time.monotonic() < give_up:
            for looker in select.select([], full, [], _TO_TAKE)[1]:
                looker.line.flush()
        if status:
            words = plain(self.shown.last).strip()[-_LAST_WORDS:]
            print(f"teams: {self.order['agent']}: the client ended with {status}: {words}", flush=True)

    def wait(self, own: Sequence[int], seconds: float) -> Sequence[Any]:
        """Wait for something to come, there or from those who look; from where it did."""
        full = [looker for looker in self.lookers if looker.line.waits]
        sources: list[Any] = [self.door, *self.lookers, *own]
        ready, free, _ = select.select(sources, full, [], seconds)
        for looker in free:
            looker.catch_up(self.shown)
        return ready

    def serve(self, ready: Sequence[Any]) -> bool:
        """Take what those who look say, and who comes to look."""
        for looker in [looker for looker in self.lookers if looker in ready]:
            for kind, data in looker.line.heard():
                self.take(looker, kind, data)
        if self.door in ready:
            self.lookers.insert(0, Looker(self.door.accept()[0]))
        for looker in [looker for looker in self.lookers if not looker.line.is_open]:
            self.lookers.remove(looker)
            looker.line.close()
            self.resize()
        if self.whole_at and time.monotonic() >= self.whole_at:
            self.whole_at = 0.0
            self.resize()
        if self.signals_left and time.monotonic() >= self.signal_at:
            self.end_client()
        return True

    def take(self, looker: Looker, kind: bytes, data: bytes) -> None:
        """Do what one who looks said. What their terminal says by itself counts from the last one alone."""
        if kind == SIZE and (size := lines.unpack_size(data)):
            is_new, looker.size = looker.size is None, size
            self.lead(looker, is_new)
        elif kind == KEYS and looker.size:
            if typed_in(data) and looker is not self.lookers[-1]:
                self.lead(looker)
            if looker is self.lookers[-1]:
                self.pass_keys(data)
        elif kind == CLOSE:
            self.close(looker, bool(data))

    def close(self, caller: Looker, watched: bool) -> None:
        """End the client for one who called for that; one that is *watched* only if they said so."""
        if not watched and any(looker.size for looker in self.lookers):
            caller.line.send(LOOKED_AT, b"")
        elif not self.signals_left:
            self.signals_left = list(_LADDER)
            self.end_client()

    def end_client(self) -> None:
        """Give what stands in front of the terminal the next signal; the last again and again."""
        number, seconds = self.signals_left[0]
        del self.signals_left[: len(self.signals_left) > 1]
        self.signal_at = time.monotonic() + seconds
        with suppress(OSError):  # it has ended meanwhile
            group = os.tcgetpgrp(self.master)
            if group:  # 0 where nobody is in front of it any more, and of `killpg` our own
                os.killpg(group, number)

    def lead(self, looker: Looker, is_new: bool = False) -> None:
        """Have the terminal be as large as theirs; one who just came is shown it."""
        self.lookers.remove(looker)
        self.lookers.append(looker)
        if is_new:
            looker.show(self.shown.repeated())
            self.whole_at = time.monotonic() + _REDRAW
        self.resize()

    def print(self, data: bytes) -> None:
        """Have those who look see it. While there is nobody, what a client asks of its terminal is answered here."""
        self.shown.feed(data)
        looking = [looker for looker in self.lookers if looker.size]
        for looker in looking:
            looker.show(data)
        if not looking and (replies := answers(data)):
            write_all(self.master, replies)

    def resize(self) -> None:
        """Give the client's terminal the size of the one who attached or typed last; of nobody, that which it had."""
        self.size = next((looker.size for looker in reversed(self.lookers) if looker.size), self.size)
        rows, columns = self.size
        size = struct.pack("HHHH", max(1, rows - bool(self.whole_at)), columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def stop(self) -> None:
        """Nothing: there is no shell that would go on with a client that was stopped; it goes on at once."""


class Looker:
    """One who looks; their *size* is None until they said it."""

    def __init__(self, line: socket.socket) -> None:
        self.line = Line(line)
        self.size: tuple[int, int] | None = None
        self.is_behind = False

    def fileno(self) -> int:
        """The descriptor for `select`."""
        return self.line.fileno()

    def show(self, data: bytes) -> None:
        """Have them see it; one who is far behind sees later what is there then."""
        self.is_behind = self.is_behind or self.line.waits > _TOO_MUCH
        if not self.is_behind:
            self.line.send(OUTPUT, data)

    def catch_up(self, shown: Shown) -> None:
        """Send on what waits for them."""
        self.line.flush()
        if self.is_behind and not self.line.waits:
            self.is_behind = False
            self.show(_CLEAR + shown.repeated())
