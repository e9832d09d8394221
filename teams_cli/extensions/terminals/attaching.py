"""The program of `teams attach`. It shows a detached terminal in this terminal and passes on the keys, until the person
presses the key that detaches.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import termios
import time
import tty
from contextlib import suppress

from teams_cli.agents.seats import lines
from teams_cli.agents.seats.lines import END, KEYS, OUTPUT, SIZE, Line
from teams_cli.extensions.terminals.wrapper import Modes
from teams_cli.processes import leave
from teams_cli.store.files.disk import write_all

KEY = "Ctrl-\\"
_DETACH_KEY = re.compile(rb"\x1c|\x1b\[92(?::\d*)*;(?:5|69|133|197)(?::1)?u|\x1b\[27;5;92~")
"""Matches the key that detaches, in all keyboard protocols of terminals."""
_HINT_SECONDS = 1.0
"""Seconds for which the person can read the hint, before the client's screen replaces it."""
_OPEN_SECONDS = 5.0
"""Seconds to wait for a detached terminal to open."""
_ROWS, _COLUMNS = 24, 80
_CHUNK = 1 << 16
_CLEAR = b"\x1b[2J\x1b[H"


def main() -> None:
    """Show the detached terminal that the first argument describes as JSON, once it is open. If the client ends
    meanwhile, exit with the client's status, and otherwise with 0.
    """
    order = json.loads(sys.argv[1])
    give_up = time.monotonic() + _OPEN_SECONDS
    while (line := lines.open_line(order["socket"])) is None:
        if not os.path.exists(f"{order['socket']}.lock") or time.monotonic() >= give_up:
            sys.exit(f"teams: the terminal of {order['agent']} no longer exists")
        time.sleep(0.05)
    sys.exit(Attached(order["agent"], line).run())


class Attached:
    """Connects this terminal to the detached terminal of an agent."""

    def __init__(self, agent: str, line: Line) -> None:
        self.agent = agent
        self.line = line
        """The connection to the process that keeps the detached terminal."""
        self.modes = Modes()
        """The modes that the client set in this terminal. They are reset at the end."""
        self.status: int | None = None
        """The client's exit status; None until the other end of the line reports that the client ended."""

    def run(self) -> int:
        """Show the detached terminal until the client ends or the person detaches. Return the client's exit status; 0
        if the client has not reported its end.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, leave)
        print(f"[teams] {self.agent}: {KEY} detaches, and leaves it running.", flush=True)
        time.sleep(_HINT_SECONDS)
        signals, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)  # a signal writes here, which ends the wait for input
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGWINCH, lambda *_: self.send_size())
        modes_before = termios.tcgetattr(0)
        try:
            tty.setraw(0)
            write_all(1, _CLEAR)
            self.send_size()
            self.loop(signals)
        finally:
            with suppress(OSError, termios.error):  # this terminal may have been closed
                write_all(1, self.modes.resetting() + b"\r\n")
                termios.tcsetattr(0, termios.TCSADRAIN, modes_before)
        ending = f"[teams] The terminal of {self.agent} is gone."
        if self.status is not None:
            ending = f"[teams] The client of {self.agent} ended."
        elif self.line.is_open:
            ending = f"[teams] Detached: {self.agent} goes on. Back: teams attach {self.agent}"
        print(ending, flush=True)
        return self.status or 0

    def loop(self, signals: int) -> None:
        """Pass on output and keys until the client ends or the person detaches. After a signal, the descriptor
        *signals* has input, which ends the wait.
        """
        while self.line.is_open and self.status is None:
            connection = self.line.fileno()
            to_send_on = [connection] if self.line.unsent else []
            ready, writable, _ = select.select([0, connection, signals], to_send_on, [])
            if signals in ready:
                os.read(signals, 512)  # the handler of the signal has done the work
            if writable:
                self.line.flush()
            if connection in ready:
                for kind, data in self.line.receive():
                    if kind == OUTPUT:
                        self.modes.feed(data)
                        write_all(1, data)
                    elif kind == END:
                        self.status = int(data)
            if 0 in ready:
                typed = os.read(0, _CHUNK)
                detach_key = _DETACH_KEY.search(typed)
                keys = typed[: detach_key.start()] if detach_key else typed
                if keys:
                    self.line.send(KEYS, keys)
                if detach_key or not typed:  # without keys, this terminal is gone
                    return

    def send_size(self) -> None:
        """Send the size of this terminal to the detached terminal."""
        size = os.get_terminal_size(1)
        self.line.send(SIZE, lines.pack_size(size.lines or _ROWS, size.columns or _COLUMNS))


if __name__ == "__main__":
    main()
