"""`teams attach`: shows a detached terminal in this one, and types there what is typed here, until a key detaches."""

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
_DETACHES = re.compile(rb"\x1c|\x1b\[92(?::\d*)*;(?:5|69|133|197)(?::1)?u|\x1b\[27;5;92~")
"""That key, as terminals say it: in all protocols that clients ask for."""
_TO_READ = 1.0
"""Seconds in which the first line can be read before the client takes the screen."""
_TO_COME = 5.0
_ROWS, _COLUMNS = 24, 80
_CHUNK = 1 << 16
_CLEAR = b"\x1b[2J\x1b[H"


def main() -> None:
    """Show the terminal that the first argument describes, as JSON; exit as its client if it ends."""
    order = json.loads(sys.argv[1])
    line = _call(order["door"])
    if line is None:
        sys.exit(f"teams: the terminal of {order['agent']} is not there any more")
    sys.exit(Attached(order["agent"], line).run())


def _call(door: str) -> Line | None:
    """The line to it; one that is just opened is waited for."""
    give_up = time.monotonic() + _TO_COME
    while (line := lines.call(door)) is None and time.monotonic() < give_up and os.path.exists(f"{door}.lock"):
        time.sleep(0.05)
    return line


class Attached:
    """This terminal, while it shows the agent's."""

    def __init__(self, agent: str, line: Line) -> None:
        self.agent = agent
        self.line = line
        self.modes = Modes()
        self.status: int | None = None

    def run(self) -> int:
        """Show it until the person detaches or the client ends; the exit status."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, leave)
        print(f"[teams] {self.agent}: {KEY} detaches, and leaves it running.", flush=True)
        time.sleep(_TO_READ)
        signals, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGWINCH, lambda *_: self.say_size())
        before = termios.tcgetattr(0)
        try:
            tty.setraw(0)
            write_all(1, _CLEAR)
            self.say_size()
            self.loop(signals)
        finally:
            with suppress(OSError, termios.error):  # the terminal may be what is gone
                write_all(1, self.modes.undone() + b"\r\n")
                termios.tcsetattr(0, termios.TCSADRAIN, before)
        print(self.said(), flush=True)
        return self.status or 0

    def said(self) -> str:
        """Say how the visit ended."""
        if self.status is not None:
            return f"[teams] The client of {self.agent} ended."
        if self.line.is_open:
            return f"[teams] Detached: {self.agent} goes on. Back: teams attach {self.agent}"
        return f"[teams] The terminal of {self.agent} is gone."

    def loop(self, signals: int) -> None:
        """Pass on what comes, until there is no more."""
        while self.line.is_open and self.status is None:
            line = self.line.fileno()
            ready, free, _ = select.select([0, line, signals], [line] if self.line.waits else [], [])
            if signals in ready:
                os.read(signals, 512)
            if free:
                self.line.flush()
            if line in ready:
                self.take()
            if 0 in ready and not self.take_keys():
                return

    def take(self) -> None:
        """Show what came."""
        for kind, data in self.line.heard():
            if kind == OUTPUT:
                self.modes.feed(data)
                write_all(1, data)
            elif kind == END:
                self.status = int(data)

    def take_keys(self) -> bool:
        """Pass on what was typed; False once that was to detach, or the terminal is gone."""
        data = os.read(0, _CHUNK)
        key = _DETACHES.search(data)
        if typed := data[: key.start()] if key else data:
            self.line.send(KEYS, typed)
        return bool(data) and not key

    def say_size(self) -> None:
        """Say how large this terminal is."""
        size = os.get_terminal_size(1)
        self.line.send(SIZE, lines.pack_size(size.lines or _ROWS, size.columns or _COLUMNS))


if __name__ == "__main__":
    main()
