"""Detached terminals. Each is a process that runs a client in the background, and shows the client to the viewers that
attach.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import termios
import time
from contextlib import suppress

from teams_cli import errors, processes, sockets
from teams_cli.agents import logs
from teams_cli.agents.seats import bindings, lines
from teams_cli.agents.seats.control_sequences import plain, typed_in
from teams_cli.agents.seats.lines import CLOSE, END, KEYS, LOOKED_AT, OUTPUT, SIZE, Line
from teams_cli.clients import own_entries
from teams_cli.extensions.terminals.wrapper import Screen, Wrapper, terminal_replies
from teams_cli.processes import leave
from teams_cli.store.contract import Store
from teams_cli.store.files import disk, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.extensions.terminals.opening import Opened


_DETACHED, _ATTACHING = "teams_cli.extensions.terminals.detached", "teams_cli.extensions.terminals.attaching"
_OPEN_SECONDS, _END_SECONDS = 20.0, 20.0
"""Seconds that a terminal may take to open, and a client to end."""
_SUFFIX = "tty"
"""The suffix of the names of sockets to which viewers connect."""
_TERMINAL_TYPE = "xterm-256color"


def start(store: Store, team: str, opened: Opened) -> None:
    """Start the client in a detached terminal. Return as soon as a viewer can attach.

    Raises:
        Conflict: The agent has a detached terminal already, or the new one could not be started.
    """
    path = _socket_path(store, team, opened.agent)
    log = logs.begin(store, team, opened.agent)
    if is_there(store, team, opened.agent):
        raise _taken(opened.agent)
    disk.discard(path)  # a killed terminal leaves it behind
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    order = {**opened.order, "socket": path, "directory": opened.directory}
    environ = {"TERM": _TERMINAL_TYPE, **opened.environ}
    pid = processes.start_own(_DETACHED, [json.dumps(order)], environ, log)
    give_up = time.monotonic() + _OPEN_SECONDS
    while not is_there(store, team, opened.agent):
        started_at, _ = bindings.stat_of(pid)
        has_ended = not started_at
        if has_ended or time.monotonic() > give_up:
            raise errors.Conflict(f"the terminal of {opened.agent} could not be opened", f"See {log}")
        time.sleep(0.02)
    if locks.holder_of(f"{path}.lock") not in (pid, None):  # None: the system does not show it
        raise _taken(opened.agent)  # by a command that began at the same time


def _taken(agent: str) -> errors.Conflict:
    return errors.Conflict(f"{agent} has a detached terminal already", f"See: teams attach {agent}")


def is_there(store: Store, team: str, agent: str) -> bool:
    """Return whether the agent has a detached terminal on this machine."""
    path = _socket_path(store, team, agent)
    return os.path.exists(path) and bindings.is_locked(f"{path}.lock")


def attach_words(store: Store, team: str, agent: str) -> list[str]:
    """Return the command that shows the agent's detached terminal; an empty list if it has none."""
    if not is_there(store, team, agent):
        return []
    order = {"socket": _socket_path(store, team, agent), "agent": agent}
    return [*own_entries.of_module(sys.executable, _ATTACHING), json.dumps(order)]


def agents_of(store: Store, team: str) -> list[str]:
    """Return the agents of the team that have a detached terminal on this machine."""
    try:
        files = os.listdir(os.path.dirname(_socket_path(store, team, "")))
    except FileNotFoundError:
        return []
    agents = [file.removesuffix(f".{_SUFFIX}") for file in files if file.endswith(f".{_SUFFIX}")]
    return [agent for agent in agents if is_there(store, team, agent)]


def end_client(store: Store, team: str, agent: str, even_if_watched: bool) -> bool:
    """End the client in the agent's detached terminal, and return whether it ended. If somebody watches it, end it only
    if *even_if_watched* is True.
    """
    line = lines.open_line(_socket_path(store, team, agent))
    if line is None:  # the terminal has closed, or accepts no connection
        return not is_there(store, team, agent)
    line.send(CLOSE, b"watched" if even_if_watched else b"")  # any data means: even if it is watched
    give_up = time.monotonic() + _END_SECONDS
    reply = b""
    while line.is_open and not reply and time.monotonic() < give_up:
        select.select([line], [line] if line.unsent else [], [], 0.5)
        line.flush()
        for kind, _ in line.receive():
            if kind in (END, LOOKED_AT):
                reply = kind
    is_cut = not reply and not line.is_open  # the terminal closed before it sent a reply
    has_ended = reply == END or is_cut
    line.close()
    while has_ended and is_there(store, team, agent) and time.monotonic() < give_up:  # its process ends a little later
        time.sleep(0.02)
    return has_ended


def _socket_path(store: Store, team: str, agent: str) -> str:
    return bindings.terminal_file(os.path.abspath(store.root), team, agent, _SUFFIX)


_ROWS, _COLUMNS = 40, 120
"""The size of the client's terminal before the first viewer attaches."""
_REDRAW_SECONDS = 0.2
"""After a viewer attaches, the client's terminal has one row fewer for this many seconds. The client notices the change
of size, and draws its screen anew.
"""
_FAREWELL_SECONDS = 2.0
"""Seconds that viewers are given to read the last output."""
_LOCK_SECONDS = 1.0
"""Seconds that `is_there`, in other processes, may hold the lock of a terminal."""
_LOGGED_LENGTH = 2000
"""The number of characters of a failed client's output that are logged."""
_END_SIGNALS = ((signal.SIGHUP, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 1.0))
"""The signals that end a client, each with the seconds until the next signal. A terminal sends the first of them when
it closes.
"""
_WAITING_BYTES = 1 << 20
"""The maximum number of bytes of output that wait for a viewer who does not read."""
_CLEAR = b"\x1b[2J\x1b[H"


def main() -> None:
    """Run the client that the first argument describes as JSON, until it ends."""
    order = json.loads(sys.argv[1])
    give_up = time.monotonic() + _LOCK_SECONDS  # the function `is_there` holds the lock only for a moment
    while locks.hold(f"{order['socket']}.lock", order["root"]) is None:
        if time.monotonic() > give_up:
            sys.exit(f"teams: {order['agent']} has a detached terminal already")
        time.sleep(0.02)
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sys.exit(Detached(order).run())


class Detached(Wrapper):
    """Runs one client, and shows it to its viewers. Besides the keys of `Wrapper`, *order* has the client's
    `directory`, and the path of the `socket` to which viewers connect.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.screen = Screen()
        self.size = (_ROWS, _COLUMNS)
        self.viewers: list[Viewer] = []
        """The viewers, in the order in which they attached or last typed."""
        self.redraw_ends_at = 0.0
        """When a viewer attaches, the client's terminal loses a row for a moment. This is the time at which it gets the
        row back; 0 if it has all rows.
        """
        self.next_signals: list[tuple[int, float]] = []
        """The signals that must still be sent to end the client, each with the seconds until the next one."""
        self.signal_at = 0.0
        """The time at which the next of these signals is sent."""

    def run(self) -> int:
        self.socket = sockets.listen(self.order["socket"])
        try:
            os.chdir(self.order["directory"])
            leader = self.start()
            self.loop()
            status = os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1])
        finally:
            os.remove(self.order["socket"])
            self.bell.close()
        self.report_end(status)
        return status

    def report_end(self, status: int) -> None:
        """Notify the viewers that the client ended with *status*. If the client failed, log its last output."""
        give_up = time.monotonic() + _FAREWELL_SECONDS
        for viewer in self.viewers:
            viewer.line.send(END, str(status).encode())
        while (behind := [viewer for viewer in self.viewers if viewer.line.unsent]) and time.monotonic() < give_up:
            for viewer in select.select([], behind, [], _FAREWELL_SECONDS)[1]:
                viewer.line.flush()
        if status:
            output = plain(self.screen.output).strip()[-_LOGGED_LENGTH:]
            print(f"teams: {self.order['agent']}: the client ended with {status}: {output}", flush=True)

    def wait(self, sources: Sequence[int], seconds: float) -> Sequence[Any]:
        behind = [viewer for viewer in self.viewers if viewer.line.unsent]
        readable: list[Any] = [self.socket, *self.viewers, *sources]
        writable: list[Any] = [*behind, *self.behind()]
        ready, taking, _ = select.select(readable, writable, [], seconds)
        for viewer in behind:
            if viewer in taking:
                viewer.catch_up(self.screen)
        if self.master in taking:
            self.send(b"")
        return ready

    def serve_people(self, ready: Sequence[Any]) -> bool:
        """Handle the messages of viewers, and accept new viewers. Always return True, because the client runs on
        without viewers.

        Also do what is due: give the client's terminal the row back that it lost so that the client draws again, and
        send the next signal to a client that is being ended.
        """
        viewers_with_messages = [viewer for viewer in self.viewers if viewer in ready]
        for viewer in viewers_with_messages:
            for kind, data in viewer.line.receive():
                self.handle(viewer, kind, data)
        if self.socket in ready:
            self.viewers.insert(0, Viewer(self.socket.accept()[0]))  # it is the last only once it sends its size
        viewers_that_left = [viewer for viewer in self.viewers if not viewer.line.is_open]
        for viewer in viewers_that_left:
            self.viewers.remove(viewer)
            viewer.line.close()
            self.resize()
        if self.redraw_ends_at and time.monotonic() >= self.redraw_ends_at:
            self.redraw_ends_at = 0.0
            self.resize()
        if self.next_signals and time.monotonic() >= self.signal_at:
            self.send_signal()
        return True

    def handle(self, viewer: Viewer, kind: bytes, data: bytes) -> None:
        """Handle a message of the *kind* SIZE, KEYS or CLOSE: the new size of the viewer's terminal, typed keys, or a
        request to end the client. Terminals also send their replies to the client's questions as KEYS. KEYS are passed
        on only from the viewer who attached or typed last, so that the client gets each reply once.
        """
        if kind == SIZE and (size := lines.unpack_size(data)):
            if not viewer.is_watching:  # it is new
                viewer.show(self.screen.drawing())
                self.redraw_ends_at = time.monotonic() + _REDRAW_SECONDS
            viewer.size = size
            self.put_last(viewer)
        elif kind == KEYS and viewer.is_watching:
            if typed_in(data) and viewer is not self.viewers[-1]:
                self.put_last(viewer)
            if viewer is self.viewers[-1]:
                self.pass_keys(data)
        elif kind == CLOSE:
            even_if_watched = bool(data)
            if not even_if_watched and any(viewer.is_watching for viewer in self.viewers):
                viewer.line.send(LOOKED_AT, b"")
            elif not self.next_signals:
                self.next_signals = list(_END_SIGNALS)
                self.send_signal()

    def put_last(self, viewer: Viewer) -> None:
        """Record that this viewer is the last one who attached or typed. The client's terminal then gets the size of
        the viewer's terminal.
        """
        self.viewers.remove(viewer)
        self.viewers.append(viewer)
        self.resize()

    def send_signal(self) -> None:
        """Send the next of the signals that end a client to the processes in the foreground of its terminal. The
        signals begin with SIGHUP and end with SIGKILL, which further calls repeat.
        """
        number, seconds = self.next_signals[0]
        if len(self.next_signals) > 1:
            del self.next_signals[0]
        self.signal_at = time.monotonic() + seconds
        with suppress(OSError):  # the process has ended meanwhile
            group = os.tcgetpgrp(self.master)
            if group:  # 0 is no group, and for `killpg` our own
                os.killpg(group, number)

    def display(self, data: bytes) -> None:
        """Show output of the client to the viewers. In its output, a client also asks its terminal questions, such as
        where the cursor is. The viewers' terminals answer these questions. If nobody watches, answer the usual ones.
        """
        self.screen.feed(data)
        watching = [viewer for viewer in self.viewers if viewer.is_watching]
        for viewer in watching:
            viewer.show(data)
        if not watching and (replies := terminal_replies(data)):
            self.send(replies)

    def resize(self) -> None:
        """Give the client's terminal the size of the viewer who attached or typed last."""
        self.size = next((viewer.size for viewer in reversed(self.viewers) if viewer.size), self.size)
        rows, columns = self.size
        if self.redraw_ends_at:
            rows -= 1
        termios.tcsetwinsize(self.master, (max(1, rows), columns))

    def stop(self) -> None:
        """Do nothing, so that `follow_stop` continues the client at once. This process must not stop, because no shell
        could continue it.
        """


class Viewer:
    """A viewer of a detached terminal. `size` is the size of the viewer's terminal, or None until the viewer has sent
    it.
    """

    def __init__(self, line: socket.socket) -> None:
        self.line = Line(line)
        self.size: tuple[int, int] | None = None
        self.is_behind = False
        """Whether output was left out, because too much waited for the viewer."""

    @property
    def is_watching(self) -> bool:
        """Whether output is shown to the viewer. A connection that only asks to end the client never sends a size."""
        return self.size is not None

    def fileno(self) -> int:
        """Return the descriptor for `select`."""
        return self.line.fileno()

    def show(self, data: bytes) -> None:
        """Send output to the viewer. If too much output still waits to be sent, send nothing; once the viewer has
        caught up, it gets the whole screen.
        """
        self.is_behind = self.is_behind or self.line.unsent > _WAITING_BYTES
        if not self.is_behind:
            self.line.send(OUTPUT, data)

    def catch_up(self, screen: Screen) -> None:
        """Send output that waits for the viewer. If output was left out before, and now nothing waits any more, send
        the whole *screen*.
        """
        self.line.flush()
        if self.is_behind and not self.line.unsent:
            self.is_behind = False
            self.show(_CLEAR + screen.drawing())
