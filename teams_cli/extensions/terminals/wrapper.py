"""The wrapper runs a client in a terminal of its own inside ours, and wakes it by typing a line.

Only clients that can't be woken otherwise need it. All bytes pass through. The wrapper types a line only while the
client reports that it is idle and the person has typed nothing. It checks both again before it presses Enter, which it
does once. It is a program of its own that imports very little, because every key that the person types passes through
it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import struct
import sys
import termios
import time
import tty

from teams_cli.agents.seats import bindings
from teams_cli.agents.seats.doorbells import LINE, MAIL, Doorbell
from teams_cli.agents.seats.lines import LISTENING, Reports, Typing
from teams_cli.clients.seats import IDLE, WORKING
from teams_cli.store.files.disk import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn


QUIET, SETTLED, BEFORE_ENTER = 2.0, 0.3, 0.3
"""Seconds to wait before the wrapper acts: before it types the line, QUIET since the last key and the last output, and
SETTLED since the client became idle; before it presses Enter, BEFORE_ENTER since the client showed the line.
"""
RESTLESS, UNSHOWN = 30.0, 3.0
"""Seconds after which the wrapper no longer waits for an idle client to stop drawing, or to show the line. It waits for
the first since a starting client reports that it is idle before it takes keys, and draws until then. It waits for the
second since a slow client takes an Enter that arrives with the line for a part of the text.
"""
_TICK = 0.25
_CHUNK = 1 << 16


def main() -> None:
    """Run the client that the first argument describes as JSON, and exit with its status."""
    order = json.loads(sys.argv[1])
    if not os.isatty(0) or not os.isatty(1):
        sys.exit("teams: the wrapper needs a terminal")
    sys.exit(Wrapper(order).run())


class Wrapper:
    """Runs one client in a terminal. *order* has its `words`, `root`, `team` and `agent`, the command of our `hook`,
    the meaning of its `titles`, and whether it is woken by typing (`types`).
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.reports = Reports(order["titles"])
        self.typing = Typing()
        self.bell = Doorbell(bindings.terminal_file(order["root"], order["team"], order["agent"], "bell"))
        self.hears = False
        self.pending = False
        self.reported: str | None = None
        self.changed_at = self.drew_at = time.monotonic()
        self.held: bytearray | None = None
        self.typed_at = 0.0
        self.master = -1
        self.stops = -1
        self.signals = -1

    def run(self) -> int:
        """Run the client until it ends, and return its exit status."""
        leader = self.begin()
        self.signals, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGWINCH, lambda *_: self.resize())
        self.before = termios.tcgetattr(0)
        try:
            tty.setraw(0)
            self.loop()
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, self.before)
            self.bell.close()
        return os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1])

    def begin(self) -> int:
        """Start the client in a terminal of its own, and return the process id of its session leader."""
        self.master, slave = os.openpty()
        self.resize()
        leader, self.stops = start(self.order["words"], slave)
        os.close(slave)
        return leader

    def loop(self) -> None:
        """Pass on keys and output until the client ends."""
        while True:
            self.hears = self.hears or (self.order["types"] and self.bell.listen())
            own = [self.master, self.stops, *([self.bell.fileno()] if self.hears else [])]
            ready = self.wait(own, BEFORE_ENTER / 3 if self.held is not None else _TICK)
            if not self.serve(ready):
                return
            if self.master in ready and not self.show():
                return
            if self.stops in ready and not self.after_stop():
                return
            if self.hears and self.bell.fileno() in ready:
                self.pending = self.bell.read_reason() == MAIL or self.pending
            self.wake_if_idle()

    def wait(self, own: Sequence[int], seconds: float) -> Sequence[Any]:
        """Wait for input from the client or the person, and return the sources that have some."""
        return select.select([0, self.signals, *own], [], [], seconds)[0]

    def serve(self, ready: Sequence[Any]) -> bool:
        """Pass on the person's keys; return False if the person's terminal is closed."""
        if self.signals in ready:
            os.read(self.signals, 512)
        if 0 not in ready:
            return True
        data = os.read(0, _CHUNK)
        self.pass_keys(data)
        return bool(data)

    def pass_keys(self, data: bytes) -> None:
        """Pass on the person's keys. While the wrapper types a line of its own, hold the keys back until it has pressed
        Enter.
        """
        self.typing.feed(data, time.monotonic())
        if self.held is None:
            write_all(self.master, data)
        else:
            self.held += data

    def print(self, data: bytes) -> None:
        """Show output to the person."""
        write_all(1, data)

    def show(self) -> bool:
        """Pass on the client's output; return False if the client has ended."""
        try:
            data = os.read(self.master, _CHUNK)
        except OSError:
            return False
        self.drew_at = time.monotonic()
        self.print(self.reports.feed(data) if self.order["types"] else data)
        if self.reports.is_queried:
            self.reports.is_queried = False
            write_all(self.master, LISTENING)
        while self.reports.new_states:
            self.tell(self.reports.new_states.pop(0))
        return bool(data)

    def tell(self, state: str) -> None:
        """Note the state that the client reported, and pass it to our hook."""
        self.reported, self.changed_at = state, time.monotonic()
        if state == WORKING:
            self.pending = False
            self.typing.is_dirty = False  # the client took the line
        event = {"hook_event_name": "TerminalState", "state": state, "source": "terminal"}
        run_aside(self.order["hook"], json.dumps(event).encode())

    @property
    def state(self) -> str:
        """The client's state as its titles report it, or else as its hooks do."""
        return self.reported or self.by_hooks()

    def by_hooks(self) -> str:
        """Return the state that the client's hooks noted last, or "" if there is none."""
        try:
            path = bindings.terminal_file(self.order["root"], self.order["team"], self.order["agent"], "state")
            with open(path, encoding="ascii") as file:
                return file.read()
        except (OSError, ValueError):
            return ""

    def wake_if_idle(self) -> None:
        """Type the line if there is mail and the client is idle. A moment later, press Enter."""
        now = time.monotonic()
        if self.held is not None:
            if self.may_enter(now):
                self.press_enter()
        elif self.pending and self.may_type(now):
            mark = (b"\x1b[200~", b"\x1b[201~") if self.reports.takes_pastes else (b"", b"")
            write_all(self.master, mark[0] + LINE.encode() + mark[1])
            self.held, self.typed_at = bytearray(), now

    def may_type(self, now: float) -> bool:
        """Return whether the client is idle and the person is not typing."""
        settled = now - self.changed_at
        drawn = now - self.drew_at >= QUIET or settled >= RESTLESS
        calm = self.typing.quiet_for(now) >= QUIET and settled >= SETTLED
        return calm and drawn and not self.typing.is_dirty and self.state == IDLE

    def may_enter(self, now: float) -> bool:
        """Return whether the client showed the typed line a moment ago, or has had long enough to show it."""
        shown = self.drew_at > self.typed_at and now - self.drew_at >= BEFORE_ENTER
        return shown or now - self.typed_at >= UNSHOWN

    def press_enter(self) -> None:
        """Press Enter once, if the client is still idle, and then pass on the held keys.

        Until the client works, the prompt counts as one that the person has typed into, so that no second line follows.
        """
        held, self.held = self.held or bytearray(), None
        if self.state == IDLE:
            write_all(self.master, b"\r")
        self.pending = False
        self.typing.is_dirty = True
        write_all(self.master, bytes(held))

    def resize(self) -> None:
        """Give the client's terminal the size of ours."""
        size = fcntl.ioctl(1, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def after_stop(self) -> bool:
        """Stop this process because Ctrl-Z stopped the client, and continue the client afterwards. Return False if the
        client has ended instead.
        """
        if not os.read(self.stops, 1):
            self.drain()
            return False
        self.stop()
        os.killpg(os.tcgetpgrp(self.master), signal.SIGCONT)
        return True

    def stop(self) -> None:
        """Stop this process until the person's shell continues it."""
        ours = termios.tcgetattr(0)
        termios.tcsetattr(0, termios.TCSAFLUSH, self.before)
        os.kill(os.getpid(), signal.SIGSTOP)
        termios.tcsetattr(0, termios.TCSADRAIN, ours)  # keys that came meanwhile are for the client
        self.resize()

    def drain(self) -> None:
        """Show the client's last output."""
        while select.select([self.master], [], [], 0.05)[0] and self.show():
            continue


def start(words: list[str], slave: int) -> tuple[int, int]:
    """Start the client in the foreground of its terminal, below a session leader that reports its stops; without the
    leader, a stopped client would hang for ever. Return the leader's process id, and the descriptor on which it
    reports.
    """
    stops, reports = os.pipe()
    leader = os.fork()
    if leader:
        os.close(reports)
        return leader, stops
    os.close(stops)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    client = os.fork()
    if client == 0:
        become(words, slave)
    lead(client, reports)


def become(words: list[str], slave: int) -> NoReturn:
    """Replace this process by the client, in the foreground of its terminal."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(slave, os.getpid())
    for number in (signal.SIGTTOU, signal.SIGHUP):  # the client would inherit ignored signals
        signal.signal(number, signal.SIG_DFL)
    for descriptor in (0, 1, 2):
        os.dup2(slave, descriptor)
    os.closerange(3, 256)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        os.write(2, f"teams: {words[0]} can't be started: {error.strerror}\r\n".encode())
        os._exit(127)


def lead(client: int, reports: int) -> NoReturn:
    """Report each time that the client stops, and exit when it exits, with the same status."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(3, reports)  # only the wrapper may hold the other end of the terminal, whose end ends the client
    os.closerange(reports + 1, 256)
    while True:
        _, status = os.waitpid(client, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.write(reports, b"s")
            continue
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)


def run_aside(words: list[str], given: bytes) -> None:
    """Run a command without waiting for it. It gets the bytes *given* on its standard input."""
    source, sink = os.pipe()
    os.write(sink, given)
    os.close(sink)
    if (child := os.fork()) == 0:
        if os.fork():
            os._exit(0)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(source, 0)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.closerange(3, 256)
        os.execv(words[0], words)
    os.close(source)
    os.waitpid(child, 0)


_KEPT = 1 << 18
_LONGEST = 64
_CHANGE = re.compile(rb"\x1b\[\?([\d;]+)([hl])|\x1b\[([<>])(\d*)u|\x1b\[>(4;?\d*)m|\x1b([=>])")
_WHOLE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\[\]])")
_ASKS = rb"\x1b\[[?>=]?[\d;]*c|\x1b\[\??[\d;]*n|\x1b\[\?u|\x1b\[>\d*q|\x1b\[\??\d+\$p|\x1b\[1[1-9]t|\x1b\[2[01]t"
_SAYS = rb"\x1b\](?!8;)[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P_](?:[^\x1b]|\x1b\x1b)*\x1b\\"
_NOT_AGAIN = re.compile(b"|".join([_CHANGE.pattern, _ASKS, _SAYS]))
"""Matches sequences that would act again if repeated: modes, questions to the terminal, the clipboard,
notifications.
"""
_EMPTY = re.compile(rb"\x1b\[[23]J|\x1bc|\x1b\[\?(?:1049|1047|47)[hl]")
"""Matches sequences that clear the screen or switch to another one."""
_ASKED = re.compile(rb"\x1b\[(?:0?(c)|(5)n|(6)n)")
_ON = frozenset((b"7", b"25"))
_OTHER_SCREEN = frozenset((b"47", b"1047", b"1049"))
_AT_ONCE = b"2026"
"""The terminal mode in which output is shown only when the mode ends."""


class Modes:
    """Knows the modes that a client has set in its terminal."""

    def __init__(self) -> None:
        self._set: dict[bytes, bool] = {}
        self._keyboards: list[bytes] = []
        self._keys = b""
        self._pad = b">"
        self._open = b""

    def feed(self, data: bytes) -> None:
        """Note each change of a mode in the output. A sequence that is cut off is completed by the next call."""
        data = self._open + data
        self._open = unfinished(data)
        for modes, switch, keyboard, number, keys, pad in _CHANGE.findall(data):
            if switch:
                self._set.update(dict.fromkeys(modes.split(b";"), switch == b"h"))
            elif keyboard == b">":  # push flags
                self._keyboards.append(number or b"0")
            elif keyboard:  # pop as many
                left = len(self._keyboards) - int(number or 1)
                del self._keyboards[max(0, left) :]
            elif keys:
                self._keys = keys
            else:
                self._pad = pad

    @property
    def other_screen(self) -> bool:
        """Whether the alternate screen is on, which keeps no lines that scroll away."""
        return any(self._set.get(mode) for mode in _OTHER_SCREEN)

    def again(self) -> bytes:
        """Return the bytes that set the same modes in a fresh terminal."""
        codes = [(b"\x1b[?%sh" if on else b"\x1b[?%sl") % mode for mode, on in self._changed()]
        codes += [b"\x1b[>%su" % flags for flags in self._keyboards]
        codes += [b"\x1b[>%sm" % self._keys] if self._keys else []
        return b"".join(codes) + (b"\x1b=" if self._pad == b"=" else b"")

    def undone(self) -> bytes:
        """Return the bytes that reset the modes of the terminal."""
        codes = [b"\x1b[0m"]
        codes += [b"\x1b[<%du" % len(self._keyboards)] if self._keyboards else []
        codes += [(b"\x1b[?%sl" if on else b"\x1b[?%sh") % mode for mode, on in self._changed()]
        codes += [b"\x1b[>4m"] if self._keys else []
        codes += [b"\x1b>"] if self._pad == b"=" else []
        return b"".join(codes) + (b"\x1b[?1049l" if self.other_screen else b"")

    def _changed(self) -> list[tuple[bytes, bool]]:
        """Return the modes that differ from those of a fresh terminal, except the choice of the screen and delayed
        output.
        """
        apart = _OTHER_SCREEN | {_AT_ONCE}
        return [(mode, on) for mode, on in self._set.items() if on != (mode in _ON) and mode not in apart]


class Shown(Modes):
    """Keeps the modes and the last output of a client, to show the screen to a new viewer."""

    def __init__(self) -> None:
        super().__init__()
        self.last = b""

    def feed(self, data: bytes) -> None:
        """Note changes of modes, and keep the output since the screen was last cleared."""
        super().feed(data)
        kept = self.last + data
        ends = [match.end() for match in _EMPTY.finditer(kept, max(0, len(self.last) - _LONGEST))]
        self.last = kept[ends[-1] if ends else 0 :]
        if len(self.last) > 2 * _KEPT:
            start = self.last.find(b"\x1b", -_KEPT)
            self.last = self.last[start if start > 0 else -_KEPT :]

    def repeated(self) -> bytes:
        """Return the bytes that show the client's screen in an empty terminal."""
        whole = self.last[: len(self.last) - len(unfinished(self.last))]
        return (b"\x1b[?1049h" if self.other_screen else b"") + _NOT_AGAIN.sub(b"", whole) + self.again()


def answers(data: bytes) -> bytes:
    """Return the replies that a terminal gives to the questions in a client's output."""
    replies = {b"c": b"\x1b[?62c", b"5": b"\x1b[0n", b"6": b"\x1b[1;1R"}
    return b"".join(replies[b"".join(question)] for question in _ASKED.findall(data))


def unfinished(data: bytes) -> bytes:
    """Return the incomplete control sequence at the end of the data; empty bytes if there is none."""
    start = data.rfind(b"\x1b")
    is_open = start >= 0 and len(data) - start < _LONGEST and not _WHOLE.match(data, start)
    return data[start:] if is_open else b""


if __name__ == "__main__":
    main()
