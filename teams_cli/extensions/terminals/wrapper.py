"""The wrapper runs a client in a new terminal inside ours, and wakes the client by typing a line.

Only clients that can't be woken otherwise need the wrapper. All bytes pass through. The wrapper types a line only while
the client reports that it is idle and the person has typed nothing. Before it presses Enter, which it does once, it
checks again that the client is idle. It is a program of its own that imports very little, because every key that the
person types passes through it.
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
from teams_cli.agents.seats.control_sequences import LISTENING, StateReader, Typing
from teams_cli.agents.seats.doorbells import LINE, MAIL, Doorbell
from teams_cli.clients.seats import IDLE, WORKING
from teams_cli.processes import leave
from teams_cli.store.files.disk import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn


_QUIET = 2.0
"""Seconds without a key and without output, after which the wrapper may type the line. A starting client reports that
it is idle before it accepts keys, but it draws until it accepts them.
"""
_SETTLED = 0.3
"""Seconds for which the client must be idle before the wrapper types the line."""
_RESTLESS = 30.0
"""If an idle client does not stop drawing, the wrapper types the line after these seconds."""
_BEFORE_ENTER = 0.3
"""Seconds that the wrapper waits before it presses Enter, after the client has shown the line. If Enter arrived
together with the line, a slow client would take it for a part of the text.
"""
_UNSHOWN = 3.0
"""If the client does not show the line, the wrapper presses Enter after these seconds."""
_TICK = 0.25
"""The maximum number of seconds between two checks whether the client can be woken."""
_CHUNK = 1 << 16


def main() -> None:
    """Run the client that the first argument describes as JSON, and exit with its status."""
    order = json.loads(sys.argv[1])
    if not os.isatty(0) or not os.isatty(1):
        sys.exit("teams: the wrapper needs a terminal")
    sys.exit(Wrapper(order).run())


class Wrapper:
    """Runs one client in a terminal. *order* has the client's command (`words`), its `root`, `team` and `agent`, and
    the command of our `hook`. `types` says whether the client is woken by typing. `titles` has the meanings of the
    titles that the client gives its terminal.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.reports = StateReader(order["titles"])
        self.typing = Typing()
        self.bell = Doorbell(bindings.terminal_file(order["root"], order["team"], order["agent"], "bell"))
        self.has_bell = False
        """Whether this process listens to the bell, by which others say that there is mail. Only one process can."""
        self.has_mail = False
        """Whether the bell rang because of mail, and the client has not been woken since."""
        self.reported_state: str | None = None
        """The state that the client last reported in its output; None if it has reported none."""
        self.changed_at = self.drew_at = time.monotonic()
        self.held_keys: bytearray | None = None
        """The keys that the person has typed since the wrapper typed its line. None if no line of the wrapper waits for
        its Enter.
        """
        self.typed_at = 0.0
        self.master = -1
        """The wrapper's end of the client's terminal. Writing to it does not wait: see `send`."""
        self.unsent = bytearray()
        """Keys that the client's terminal has not taken yet, because the client is busy."""
        self.stops = -1
        """The descriptor on which each stop of the client is reported. It reaches its end when the client has ended."""
        self.signals = -1
        """The descriptor that becomes readable when this process gets a signal, so that a wait for input ends."""

    def run(self) -> int:
        """Run the client until it ends, and return its exit status."""
        leader = self.start()
        for number in (signal.SIGHUP, signal.SIGTERM):  # so that the person's terminal gets its modes back
            signal.signal(number, leave)
        self.signals, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGWINCH, lambda *_: self.resize())
        self.person_modes = termios.tcgetattr(0)
        try:
            tty.setraw(0)
            self.loop()
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, self.person_modes)
            self.bell.close()
        return os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1])

    def start(self) -> int:
        """Start the client in a new terminal. Return the process id of the session leader of that terminal."""
        self.master, slave = os.openpty()
        os.set_blocking(self.master, False)
        self.resize()
        leader, self.stops = start_client(self.order["words"], slave)
        os.close(slave)
        return leader

    def loop(self) -> None:
        """Pass on keys and output until the client ends."""
        while True:
            if self.order["types"] and not self.has_bell:  # another process may have it until it ends
                self.has_bell = self.bell.listen()
            sources = [self.master, self.stops]
            if self.has_bell:
                sources.append(self.bell.fileno())
            waits_for_enter = self.held_keys is not None
            seconds = _BEFORE_ENTER / 3 if waits_for_enter else _TICK  # Enter is to follow without much delay
            ready = self.wait(sources, seconds)
            if not self.serve_people(ready):
                return
            if self.master in ready and not self.show_output():
                return
            if self.stops in ready and not self.follow_stop():
                return
            if self.has_bell and self.bell.fileno() in ready and self.bell.read_reason() == MAIL:
                self.has_mail = True
            self.wake_if_idle()

    def wait(self, sources: Sequence[int], seconds: float) -> Sequence[Any]:
        """Wait until one of the *sources* or the person's terminal has input, for *seconds* at most. Return all that
        have input. Meanwhile, send keys that are still unsent.
        """
        ready, writable, _ = select.select([0, self.signals, *sources], self.behind(), [], seconds)
        if writable:
            self.send(b"")
        return ready

    def behind(self) -> list[int]:
        """Return a list with the client's terminal if keys are still to be sent to it; otherwise an empty one."""
        return [self.master] if self.unsent else []

    def send(self, data: bytes) -> None:
        """Send keys to the client after those that are still unsent: as many as its terminal takes now.

        A client that is busy reads no keys, and may print more before it reads them. If this process waited for it, it
        would show nothing of this, and both would wait for each other for ever.
        """
        self.unsent += data
        try:
            while self.unsent:
                del self.unsent[: os.write(self.master, self.unsent)]
        except BlockingIOError:
            return
        except OSError:  # the client is gone, which the next read shows
            self.unsent.clear()

    def serve_people(self, ready: Sequence[Any]) -> bool:
        """Pass on the person's keys. Return False if the person's terminal is closed."""
        if self.signals in ready:
            os.read(self.signals, 512)  # the handler of the signal has done the work
        if 0 not in ready:
            return True
        data = os.read(0, _CHUNK)
        self.pass_keys(data)
        return bool(data)

    def pass_keys(self, data: bytes) -> None:
        """Pass on the person's keys. From the moment when the wrapper types its line until it presses Enter, hold the
        keys back.
        """
        self.typing.feed(data, time.monotonic())
        if self.held_keys is None:
            self.send(data)
        else:
            self.held_keys += data

    def display(self, data: bytes) -> None:
        """Show output of the client to the person."""
        write_all(1, data)

    def show_output(self) -> bool:
        """Pass on the client's output. Note each state of the client that the output reports, and run our hook for it.
        Return False if the client has ended.
        """
        try:
            data = os.read(self.master, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.drew_at = time.monotonic()
        self.display(self.reports.feed(data) if self.order["types"] else data)
        if self.reports.is_queried:  # the client asks whether we understand its reports
            self.reports.is_queried = False
            self.send(LISTENING)
        while self.reports.new_states:
            state = self.reports.new_states.pop(0)
            self.reported_state, self.changed_at = state, time.monotonic()
            if state == WORKING:
                self.has_mail = False
                self.typing.is_dirty = False  # the client took the line
            event = {"hook_event_name": "TerminalState", "state": state, "source": "terminal"}
            run_in_background(self.order["hook"], json.dumps(event).encode())
        return bool(data)

    def state(self) -> str:
        """Return the state that the client itself last reported in its output. If it has reported none, return the
        state that its hooks noted in a file, or "" if there is no such file.
        """
        if self.reported_state:
            return self.reported_state
        try:
            path = bindings.terminal_file(self.order["root"], self.order["team"], self.order["agent"], "state")
            with open(path, encoding="ascii") as file:
                return file.read()
        except (OSError, ValueError):
            return ""

    def wake_if_idle(self) -> None:
        """If there is mail and the client is idle, type the line that wakes the client. A later call finishes this: a
        moment after the client showed the line, or after `_UNSHOWN` seconds, it presses Enter if the client is still
        idle, and passes on the held keys.
        """
        now = time.monotonic()
        if self.held_keys is not None:
            has_shown = self.drew_at > self.typed_at and now - self.drew_at >= _BEFORE_ENTER
            if has_shown or now - self.typed_at >= _UNSHOWN:
                held_keys, self.held_keys = bytes(self.held_keys), None
                if self.state() == IDLE:
                    self.send(b"\r")
                self.has_mail = False
                self.typing.is_dirty = True  # until the client begins to work, so that no second line is typed
                self.send(held_keys)
        elif self.has_mail and self.may_type(now):
            line = LINE.encode()
            if self.reports.takes_pastes:  # the client wants pasted text between these marks
                line = b"\x1b[200~" + line + b"\x1b[201~"
            self.send(line)
            self.held_keys, self.typed_at = bytearray(), now

    def may_type(self, now: float) -> bool:
        """Return whether the wrapper may type its line: the client is idle and draws nothing, and the person has typed
        nothing into its prompt.
        """
        since_change = now - self.changed_at
        has_stopped_drawing = now - self.drew_at >= _QUIET or since_change >= _RESTLESS
        is_calm = has_stopped_drawing and since_change >= _SETTLED and self.typing.quiet_for(now) >= _QUIET
        return is_calm and not self.typing.is_dirty and self.state() == IDLE

    def resize(self) -> None:
        """Give the client's terminal the size of the person's terminal."""
        size = fcntl.ioctl(1, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def follow_stop(self) -> bool:
        """Stop this process, because Ctrl-Z has stopped the client. When this process is continued, continue the
        client. Return False if the client has not stopped but ended.
        """
        if not os.read(self.stops, 1):
            while select.select([self.master], [], [], 0.05)[0] and self.show_output():
                continue  # until all is shown that the client printed last
            return False
        self.stop()
        os.killpg(os.tcgetpgrp(self.master), signal.SIGCONT)
        return True

    def stop(self) -> None:
        """Stop this process until the shell of the person continues it."""
        wrapper_modes = termios.tcgetattr(0)
        termios.tcsetattr(0, termios.TCSAFLUSH, self.person_modes)
        os.kill(os.getpid(), signal.SIGSTOP)
        termios.tcsetattr(0, termios.TCSADRAIN, wrapper_modes)  # drops no keys: those typed meanwhile are the client's
        self.resize()


def start_client(words: list[str], slave: int) -> tuple[int, int]:
    """Start the client in the terminal whose inner end is *slave*. The client is a child of a new process, the leader
    of the terminal's session. Return the process id of the leader, and a descriptor on which the leader reports each
    stop of the client.

    Without the leader, nothing would continue a stopped client.
    """
    stops, reports = os.pipe()
    leader = os.fork()
    if leader:
        os.close(reports)
        return leader, stops
    os.close(stops)  # from here on, this is the leader
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    client = os.fork()
    if client == 0:
        become_client(words, slave)  # never returns
    lead_session(client, reports)  # never returns


def become_client(words: list[str], slave: int) -> NoReturn:
    """Replace this process with the client. It runs in the foreground of the terminal whose inner end is *slave*."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # it would stop this process, which is in the background until then
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


def lead_session(client: int, reports: int) -> NoReturn:
    """Report each stop of the *client* on the descriptor *reports*. When the client exits, exit with the same
    status.
    """
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
        os._exit(code if code >= 0 else 128 - code)  # like a shell after a signal, whose number is negative here


def run_in_background(words: list[str], data: bytes) -> None:
    """Run a command without waiting for it. The command gets *data* on its standard input."""
    source, sink = os.pipe()
    os.write(sink, data)  # a pipe holds that much without a reader
    os.close(sink)
    if (child := os.fork()) == 0:
        if os.fork():  # the command is a grandchild, so that this process need not wait for it
            os._exit(0)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(source, 0)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.closerange(3, 256)
        os.execv(words[0], words)
    os.close(source)
    os.waitpid(child, 0)


_KEPT_BYTES = 1 << 18
"""The number of bytes of output that are kept if a client never clears its screen."""
_LONGEST_SEQUENCE = 64
"""The maximum length of a control sequence, in bytes. A longer one is treated as complete."""
_MODE_CHANGE = re.compile(rb"\x1b\[\?([\d;]+)([hl])|\x1b\[([<>])(\d*)u|\x1b\[>(4;?\d*)m|\x1b([=>])")
"""Matches sequences that switch modes on (`h`) or off (`l`), push (`>`) or pop (`<`) flags of the keyboard protocol, or
change what modified keys or the keypad send.
"""
_COMPLETE_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\[\]])")
_QUESTIONS = rb"\x1b\[[?>=]?[\d;]*c|\x1b\[\??[\d;]*n|\x1b\[\?u|\x1b\[>\d*q|\x1b\[\??\d+\$p|\x1b\[1[1-9]t|\x1b\[2[01]t"
_COMMANDS = rb"\x1b\](?!8;)[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P_](?:[^\x1b]|\x1b\x1b)*\x1b\\"
_NOT_REPEATED = re.compile(b"|".join([_MODE_CHANGE.pattern, _QUESTIONS, _COMMANDS]))
"""Matches sequences that would have an effect again if they were repeated: modes, questions to the terminal, the
clipboard, notifications.
"""
_CLEARING = re.compile(rb"\x1b\[[23]J|\x1bc|\x1b\[\?(?:1049|1047|47)[hl]")
"""Matches sequences that clear the screen or switch to another one."""
_ANSWERABLE = re.compile(rb"\x1b\[0?(?P<code>c|5n|6n)")
"""Matches the questions that `terminal_replies` answers. *code* is a key of `_REPLIES`."""
_REPLIES = {b"c": b"\x1b[?62c", b"5n": b"\x1b[0n", b"6n": b"\x1b[1;1R"}
"""The replies to questions for the terminal's type (`c`), its state (`5n`) and the cursor's position (`6n`)."""
_INITIALLY_ON = frozenset((b"7", b"25"))
_ALTERNATE_SCREEN = frozenset((b"47", b"1047", b"1049"))
_DELAYED_OUTPUT = b"2026"
"""The terminal mode in which output is shown only when the mode ends."""


class Modes:
    """Keeps the modes that a client has set in its terminal, such as the alternate screen, so that another terminal can
    get the same modes, and so that they can be reset.
    """

    def __init__(self) -> None:
        self._is_on: dict[bytes, bool] = {}
        self._keyboard_flags: list[bytes] = []
        self._modified_keys = b""
        self._keypad = b">"
        self._unfinished = b""

    def feed(self, data: bytes) -> None:
        """Note each change of a mode in the output. If the output ends within a control sequence, the next call
        completes the sequence.
        """
        data = self._unfinished + data
        self._unfinished = unfinished(data)
        for modes, switch, stack_change, number, modified_keys, keypad in _MODE_CHANGE.findall(data):
            if switch:
                self._is_on.update(dict.fromkeys(modes.split(b";"), switch == b"h"))
            elif stack_change == b">":  # push *number*
                self._keyboard_flags.append(number or b"0")
            elif stack_change:  # pop as many as *number*
                remaining = len(self._keyboard_flags) - int(number or 1)
                del self._keyboard_flags[max(0, remaining) :]
            elif modified_keys:
                self._modified_keys = modified_keys
            else:
                self._keypad = keypad

    @property
    def is_alternate_screen(self) -> bool:
        """Whether the alternate screen is on. Lines that scroll off this screen are lost."""
        return any(self._is_on.get(mode) for mode in _ALTERNATE_SCREEN)

    def setting(self) -> bytes:
        """Return the bytes that give a fresh terminal the same modes as this one."""
        codes = [(b"\x1b[?%sh" if is_on else b"\x1b[?%sl") % mode for mode, is_on in self._changed()]
        codes += [b"\x1b[>%su" % flags for flags in self._keyboard_flags]
        if self._modified_keys:
            codes.append(b"\x1b[>%sm" % self._modified_keys)
        if self._keypad == b"=":
            codes.append(b"\x1b=")
        return b"".join(codes)

    def resetting(self) -> bytes:
        """Return the bytes that give a terminal with these modes the modes of a fresh terminal."""
        codes = [b"\x1b[0m"]  # this resets colours and the like
        if self._keyboard_flags:
            codes.append(b"\x1b[<%du" % len(self._keyboard_flags))
        codes += [(b"\x1b[?%sl" if is_on else b"\x1b[?%sh") % mode for mode, is_on in self._changed()]
        if self._modified_keys:
            codes.append(b"\x1b[>4m")
        if self._keypad == b"=":
            codes.append(b"\x1b>")
        if self.is_alternate_screen:
            codes.append(b"\x1b[?1049l")
        return b"".join(codes)

    def _changed(self) -> list[tuple[bytes, bool]]:
        """Return the modes that differ from a fresh terminal, each with True if the mode is now on. The modes for the
        alternate screen and for delayed output are left out.
        """
        changed = []
        for mode, is_on in self._is_on.items():
            is_left_out = mode in _ALTERNATE_SCREEN or mode == _DELAYED_OUTPUT
            was_on = mode in _INITIALLY_ON
            if is_on != was_on and not is_left_out:
                changed.append((mode, is_on))
        return changed


class Screen(Modes):
    """Keeps the modes and the last output of a client, to show its screen to a new viewer."""

    def __init__(self) -> None:
        super().__init__()
        self.output = b""

    def feed(self, data: bytes) -> None:
        """Note changes of modes, and keep the output. When the screen is cleared, drop earlier output."""
        super().feed(data)
        search_start = max(0, len(self.output) - _LONGEST_SEQUENCE)  # a sequence may have begun in the earlier output
        self.output += data
        if clearings := list(_CLEARING.finditer(self.output, search_start)):
            self.output = self.output[clearings[-1].end() :]
        if len(self.output) > 2 * _KEPT_BYTES:
            start = self.output.find(b"\x1b", -_KEPT_BYTES)  # not in the middle of a sequence
            self.output = self.output[start if start > 0 else -_KEPT_BYTES :]

    def drawing(self) -> bytes:
        """Return the bytes that draw the client's screen in an empty terminal."""
        complete = self.output[: len(self.output) - len(unfinished(self.output))]
        switch = b"\x1b[?1049h" if self.is_alternate_screen else b""
        return switch + _NOT_REPEATED.sub(b"", complete) + self.setting()


def terminal_replies(data: bytes) -> bytes:
    """Return the replies that a terminal would give to the usual questions in *data*, the output of a client."""
    return b"".join(_REPLIES[match["code"]] for match in _ANSWERABLE.finditer(data))


def unfinished(data: bytes) -> bytes:
    """Return the incomplete control sequence at the end of the data; empty bytes if there is none."""
    start = data.rfind(b"\x1b")
    is_incomplete = start >= 0 and len(data) - start < _LONGEST_SEQUENCE and not _COMPLETE_SEQUENCE.match(data, start)
    return data[start:] if is_incomplete else b""


if __name__ == "__main__":
    main()
