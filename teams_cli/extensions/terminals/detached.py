"""Detached terminals: each is a process that runs a client in the background, and shows it to the viewers that
attach.
"""

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
    """Start the client in a detached terminal, and return once `teams attach` works.

    Raises:
        Conflict: The agent has a detached terminal already, or the new one could not be started.
    """
    door, log = _door(store, team, opened.agent), logs.begin(store, team, opened.agent)
    if is_there(store, team, opened.agent):
        raise errors.Conflict(f"{opened.agent} has a detached terminal already", f"See: teams attach {opened.agent}")
    disk.discard(door)  # that of a killed terminal
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
    """Return whether the agent has a detached terminal on this machine."""
    door = _door(store, team, agent)
    return os.path.exists(door) and bindings.is_locked(f"{door}.lock")


def attach_words(python: str, store: Store, team: str, agent: str) -> list[str]:
    """Return the command that shows the agent's detached terminal; an empty list if it has none."""
    if not is_there(store, team, agent):
        return []
    order = {"door": _door(store, team, agent), "agent": agent}
    return [*own_entries.of_module(python, _ATTACHING), json.dumps(order)]


def agents_of(store: Store, team: str) -> list[str]:
    """Return the agents of the team that have a detached terminal on this machine."""
    try:
        files = os.listdir(os.path.dirname(_door(store, team, "")))
    except FileNotFoundError:
        return []
    names = [name.removesuffix(_DOOR) for name in files if name.endswith(_DOOR)]
    return [name for name in names if is_there(store, team, name)]


def hang_up(store: Store, team: str, agent: str, watched: bool) -> bool:
    """End the client of a detached terminal. If somebody watches it, end it only if *watched* is True. Return whether
    it ended.
    """
    line = lines.open_line(_door(store, team, agent))
    if line is None:
        return not is_there(store, team, agent)
    line.send(lines.CLOSE, b"watched" if watched else b"")
    give_up = time.monotonic() + _TO_END
    kinds: list[bytes] = []
    while line.is_open and not kinds and time.monotonic() < give_up:
        select.select([line], [line] if line.unsent else [], [], 0.5)
        line.flush()
        kinds = [kind for kind, _ in line.receive() if kind in (lines.END, lines.LOOKED_AT)]
    ended = lines.LOOKED_AT not in kinds and (bool(kinds) or not line.is_open)
    line.close()
    while ended and is_there(store, team, agent) and time.monotonic() < give_up:
        time.sleep(0.02)
    return ended


def _door(store: Store, team: str, agent: str) -> str:
    return bindings.terminal_file(os.path.abspath(store.root), team, agent, _DOOR[1:])


_ROWS, _COLUMNS = 40, 120
_REDRAW = 0.2
"""Seconds for which the terminal of a new viewer has one row less. The change of the size makes the client redraw
itself.
"""
_TO_TAKE, _TO_LOOK = 2.0, 1.0
_LAST_WORDS = 2000
_LADDER = ((signal.SIGHUP, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 1.0))
"""The signals that end a client, each with the seconds until the next one. The first is what a closed terminal
sends.
"""
_TOO_MUCH = 1 << 20
"""The number of bytes that may wait for a viewer who does not take them."""
_CLEAR = b"\x1b[2J\x1b[H"


def main() -> None:
    """Run the client that the first argument describes as JSON, until it ends."""
    order = json.loads(sys.argv[1])
    if not _take_lock(order):
        sys.exit(f"teams: {order['agent']} has a detached terminal already")
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sys.exit(Detached(order).run())


def _take_lock(order: dict[str, Any]) -> bool:
    """Take the lock of the agent's terminal. Return False if another process holds the lock for more than a second;
    `is_there` holds it only for a moment.
    """
    give_up = time.monotonic() + _TO_LOOK
    while locks.hold(f"{order['door']}.lock", order["root"]) is None:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


class Detached(Wrapper):
    """Runs one client, and shows it to its viewers. *order* also has the client's `directory`, and the `door`, the
    socket for viewers.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.shown = Shown()
        self.size = (_ROWS, _COLUMNS)
        self.viewers: list[Viewer] = []
        """The viewers, in the order in which they attached or last typed."""
        self.whole_at = 0.0
        self.signals_left: list[tuple[int, float]] = []
        self.signal_at = 0.0

    def run(self) -> int:
        """Run the client until it ends, and return its exit status."""
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
        """Notify the viewers that the client ended. If it failed, log its last output."""
        give_up = time.monotonic() + _TO_TAKE
        for viewer in self.viewers:
            viewer.line.send(END, str(status).encode())
        while (full := [viewer for viewer in self.viewers if viewer.line.unsent]) and time.monotonic() < give_up:
            for viewer in select.select([], full, [], _TO_TAKE)[1]:
                viewer.line.flush()
        if status:
            words = plain(self.shown.last).strip()[-_LAST_WORDS:]
            print(f"teams: {self.order['agent']}: the client ended with {status}: {words}", flush=True)

    def wait(self, own: Sequence[int], seconds: float) -> Sequence[Any]:
        """Wait for input from the client or a viewer, and return the sources that have some."""
        full = [viewer for viewer in self.viewers if viewer.line.unsent]
        sources: list[Any] = [self.door, *self.viewers, *own]
        ready, free, _ = select.select(sources, full, [], seconds)
        for viewer in free:
            viewer.catch_up(self.shown)
        return ready

    def serve(self, ready: Sequence[Any]) -> bool:
        """Handle the messages of viewers, take new viewers, and do what is due. Always return True: the client runs on
        without viewers.
        """
        for viewer in [viewer for viewer in self.viewers if viewer in ready]:
            for kind, data in viewer.line.receive():
                self.take(viewer, kind, data)
        if self.door in ready:
            self.viewers.insert(0, Viewer(self.door.accept()[0]))
        for viewer in [viewer for viewer in self.viewers if not viewer.line.is_open]:
            self.viewers.remove(viewer)
            viewer.line.close()
            self.resize()
        if self.whole_at and time.monotonic() >= self.whole_at:
            self.whole_at = 0.0
            self.resize()
        if self.signals_left and time.monotonic() >= self.signal_at:
            self.end_client()
        return True

    def take(self, viewer: Viewer, kind: bytes, data: bytes) -> None:
        """Do what a viewer asks. Replies that a terminal sends by itself are passed on only from the viewer who typed
        last.
        """
        if kind == SIZE and (size := lines.unpack_size(data)):
            is_new, viewer.size = viewer.size is None, size
            self.lead(viewer, is_new)
        elif kind == KEYS and viewer.size:
            if typed_in(data) and viewer is not self.viewers[-1]:
                self.lead(viewer)
            if viewer is self.viewers[-1]:
                self.pass_keys(data)
        elif kind == CLOSE:
            self.close(viewer, bool(data))

    def close(self, caller: Viewer, watched: bool) -> None:
        """End the client on behalf of *caller*. If it has viewers, end it only if *watched* is True."""
        if not watched and any(viewer.size for viewer in self.viewers):
            caller.line.send(LOOKED_AT, b"")
        elif not self.signals_left:
            self.signals_left = list(_LADDER)
            self.end_client()

    def end_client(self) -> None:
        """Send the next signal to the foreground process of the terminal. The last signal is repeated."""
        number, seconds = self.signals_left[0]
        del self.signals_left[: len(self.signals_left) > 1]
        self.signal_at = time.monotonic() + seconds
        with suppress(OSError):  # it has ended meanwhile
            group = os.tcgetpgrp(self.master)
            if group:  # 0 is no group, and for `killpg` our own
                os.killpg(group, number)

    def lead(self, viewer: Viewer, is_new: bool = False) -> None:
        """Give the client's terminal the size of this viewer's, and show the screen to a new viewer."""
        self.viewers.remove(viewer)
        self.viewers.append(viewer)
        if is_new:
            viewer.show(self.shown.repeated())
            self.whole_at = time.monotonic() + _REDRAW
        self.resize()

    def print(self, data: bytes) -> None:
        """Show the output to the viewers. If there are none, answer the questions that the client asks its terminal."""
        self.shown.feed(data)
        looking = [viewer for viewer in self.viewers if viewer.size]
        for viewer in looking:
            viewer.show(data)
        if not looking and (replies := answers(data)):
            write_all(self.master, replies)

    def resize(self) -> None:
        """Give the client's terminal the size of the viewer who attached or typed last."""
        self.size = next((viewer.size for viewer in reversed(self.viewers) if viewer.size), self.size)
        rows, columns = self.size
        size = struct.pack("HHHH", max(1, rows - bool(self.whole_at)), columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def stop(self) -> None:
        """Do nothing. There is no shell that could continue a stopped client, so the caller continues it at once."""


class Viewer:
    """A viewer of a detached terminal; `size` is None until the viewer has sent it."""

    def __init__(self, line: socket.socket) -> None:
        self.line = Line(line)
        self.size: tuple[int, int] | None = None
        self.is_behind = False

    def fileno(self) -> int:
        """Return the descriptor for `select`."""
        return self.line.fileno()

    def show(self, data: bytes) -> None:
        """Send output to the viewer. A viewer who is far behind gets the whole screen later instead."""
        self.is_behind = self.is_behind or self.line.unsent > _TOO_MUCH
        if not self.is_behind:
            self.line.send(OUTPUT, data)

    def catch_up(self, shown: Shown) -> None:
        """Send output that waits. When nothing waits any more, send the screen to a viewer who was behind."""
        self.line.flush()
        if self.is_behind and not self.line.unsent:
            self.is_behind = False
            self.show(_CLEAR + shown.repeated())
