"""The connection between a detached terminal and a person who looks at it, over a Unix socket; and readers of what the
client in the terminal prints, and of what is typed.

The connection carries frames: a letter for their kind, a length, and that many bytes. Frames of unknown kinds are
ignored.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import contextmanager

from teams_cli.clients.seats import IDLE, PERMISSION, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from teams_cli.records.types import TerminalState


KEYS, SIZE, OUTPUT, END = b"k", b"s", b"o", b"e"
"""Kinds of frames: typed keys, the size of the viewer's terminal, output to show, the exit status of the client."""
CLOSE, LOOKED_AT = b"c", b"l"
"""Kinds of frames: the request to end the client (with any data, even if somebody looks at it), and the answer that
somebody looks at it, so that it continues.
"""
_HEAD = struct.Struct(">cI")
_SIZES = struct.Struct(">HH")
_CHUNK = 1 << 16


class Line:
    """An end of the connection, which never waits for the other end."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(False)
        self._line = line
        self._in = b""
        self._out = bytearray()
        self.is_open = True

    def fileno(self) -> int:
        """Return the descriptor for `select`."""
        return self._line.fileno()

    @property
    def waits(self) -> int:
        """The number of bytes that the other end has not taken yet."""
        return len(self._out) if self.is_open else 0

    def send(self, kind: bytes, data: bytes) -> None:
        """Send a frame as soon as the other end takes it."""
        self._out += _HEAD.pack(kind, len(data)) + data
        self.flush()

    def flush(self) -> None:
        """Send as many of the waiting bytes as the other end takes."""
        try:
            while self._out and self.is_open:
                del self._out[: self._line.send(self._out)]
        except BlockingIOError:
            return
        except OSError:
            self.is_open = False

    def heard(self) -> list[tuple[bytes, bytes]]:
        """Return the frames that arrived since the last call. *is_open* is False once the other end is gone."""
        try:
            data = self._line.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self.is_open = self.is_open and bool(data)
        self._in += data
        return list(iter(self._frame, None))

    def _frame(self) -> tuple[bytes, bytes] | None:
        if len(self._in) < _HEAD.size:
            return None
        kind, length = _HEAD.unpack_from(self._in)
        end = _HEAD.size + length
        if len(self._in) < end:
            return None
        data, self._in = self._in[_HEAD.size : end], self._in[end:]
        return kind, data

    def close(self) -> None:
        self._line.close()


def listen(path: str) -> socket.socket:
    """Return a socket at *path*, on which viewers connect. It changes the working directory to that of the socket,
    because addresses of sockets must be short.
    """
    os.chdir(os.path.dirname(path))
    name = os.path.basename(path)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        if os.path.lexists(name):
            os.remove(name)
        door.bind(name)
    finally:
        os.umask(before)
    door.listen()
    return door


def call(path: str) -> Line | None:
    """Return a connection to the terminal whose socket is at *path*; None if no process listens there."""
    try:
        return Line(connected(path))
    except OSError:
        return None


def is_there(path: str) -> bool:
    """Whether a process listens on the socket at *path*."""
    try:
        connected(path).close()
    except OSError:
        return False
    return True


def connected(path: str, patience: float | None = None) -> socket.socket:
    """Return a connection to the socket at *path*, which may have any length. Each step waits at most *patience*
    seconds.
    """
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(patience)
        with _short(path) as address:
            line.connect(address)
    except OSError:
        line.close()
        raise
    return line


@contextmanager
def _short(path: str) -> Iterator[str]:
    """Yield, for a `with` block, another path to the same socket that is short enough for its address. Without /proc,
    this changes the working directory.
    """
    place = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.path.isdir("/proc/self/fd"):
            yield f"/proc/self/fd/{place}/{os.path.basename(path)}"
        else:
            os.fchdir(place)
            yield os.path.basename(path)
    finally:
        os.close(place)


def pack_size(rows: int, columns: int) -> bytes:
    """Return the size of a terminal as the data of a frame."""
    return _SIZES.pack(rows, columns)


def unpack_size(data: bytes) -> tuple[int, int] | None:
    """Return rows and columns; None if the data is no size."""
    return _SIZES.unpack(data) if len(data) == _SIZES.size else None


ESC = 0x1B
LISTENING = b"\x1b]7501;?\x1b\\"
_QUERY, _STATE = b"7501;?", b"7501;"
_SAID: dict[bytes, TerminalState] = {b"idle": IDLE, b"done": IDLE, b"working": WORKING, b"blocked": PERMISSION}
_LONGEST = 4096
_ANSWERS = b"cRntyIO"
"""The last bytes of the control sequences that terminals send by themselves: their type, the place of the cursor,
whether they have the focus.
"""
_CLEARS = (b"\r", b"\x03", b"\x15")
"""Enter, Ctrl-C and Ctrl-U: after one of these alone, the input line is empty."""


class Reports:
    """Reads the state of a client from its output, which `feed` gets and returns. A state is reported by the control
    sequence OSC 7501, or by a character in the title of the window that *titles* maps to a state.
    """

    def __init__(self, titles: Mapping[str, TerminalState]) -> None:
        self._titles = {mark.encode(): state for mark, state in titles.items()}
        self._open = b""
        self.state: TerminalState | None = None
        self.said: list[TerminalState] = []
        """The states in order, since the list was last emptied: a short turn may begin and end between two looks."""
        self.asked = False
        self.pastes = False

    def feed(self, data: bytes) -> bytes:
        """Read what the client prints next; returns the part that the terminal is to show."""
        if b"?2004" in data:
            self.pastes = data.rfind(b"?2004h") > data.rfind(b"?2004l")
        if not self._open and b"\x1b]" not in data and not data.endswith(b"\x1b"):
            return data
        return b"".join(self._parts(self._open + data))

    def _parts(self, data: bytes) -> Iterator[bytes]:
        """Yield the parts of the output that are to be shown, without queries to us. An unfinished control sequence is
        kept for the next call.
        """
        self._open = b""
        place = 0
        while (start := data.find(b"\x1b]", place)) >= 0:
            yield data[place:start]
            end, after = _end_of(data, start + 2)
            if end < 0:
                return (yield from self._keep(data[start:]))
            if not self._look(data[start + 2 : end]):
                yield data[start:after]
            place = after
        rest = data[place:]
        if rest.endswith(b"\x1b"):
            yield rest[:-1]
            yield from self._keep(b"\x1b")
        else:
            yield rest

    def _keep(self, rest: bytes) -> Iterator[bytes]:
        if len(rest) > _LONGEST:  # no sequence is that long
            yield rest
        else:
            self._open = rest

    def _look(self, command: bytes) -> bool:
        """Record the state that a control sequence reports. Returns whether the sequence was a query to us, which is
        not shown.
        """
        if command == _QUERY:
            self.asked = True
            return True
        if command.startswith(_STATE):
            fields = dict(part.partition(b"=")[::2] for part in command[len(_STATE) :].replace(b";", b":").split(b":"))
            self._note(_SAID.get(fields.get(b"state", b"")))
        elif command[:2] in (b"0;", b"2;"):
            self._note(next((state for mark, state in self._titles.items() if mark in command), None))
        return False

    def _note(self, state: TerminalState | None) -> None:
        if state and state != self.state:
            self.state = state
            self.said.append(state)


def _end_of(data: bytes, start: int) -> tuple[int, int]:
    """Return where a control sequence that began at *start* ends, and where the next part begins; -1 if its end is
    missing.
    """
    bell, string = data.find(b"\x07", start), data.find(b"\x1b\\", start)
    if bell >= 0 and (string < 0 or bell < string):
        return bell, bell + 1
    return string, string + 2


def plain(data: bytes) -> str:
    """Return the text in terminal output. Each control sequence becomes a blank."""
    text = bytearray()
    place = 0
    while place < len(data):
        end = _sequence(data, place)
        text += data[place:end] if data[place] != ESC else b" "
        place = end
    return "".join(c if c.isprintable() or c.isspace() else " " for c in text.decode(errors="replace"))


class Typing:
    """Records whether the input line of a client holds something that a person typed. Bytes that the terminal sends by
    itself are not typed. Any key but Enter may fill the line, for example from the history.
    """

    def __init__(self) -> None:
        self.is_dirty = False
        self.at = 0.0

    def feed(self, data: bytes, now: float) -> None:
        """Read the next bytes that come from the terminal, at the time *now*."""
        typed = typed_in(data)
        if not typed:
            return
        self.at = now
        breaks_line = typed.endswith((b"\x1b\r", b"\\\r"))
        self.is_dirty = not (typed in _CLEARS or (typed.endswith(b"\r") and not breaks_line))

    def quiet_for(self, now: float) -> float:
        """Return the seconds since a person last pressed a key."""
        return now - self.at


def typed_in(data: bytes) -> bytes:
    """Return the part of the bytes that a person typed, without the terminal's own answers, mouse and focus reports."""
    typed = bytearray()
    place = 0
    while place < len(data):
        end = _sequence(data, place)
        part = data[place:end]
        if not _is_answer(part):
            typed += part
        place = end
    return bytes(typed)


def _sequence(data: bytes, start: int) -> int:
    """Return where the key or the control sequence that begins at *start* ends."""
    if data[start] != ESC or start + 1 >= len(data):
        return start + 1
    kind = data[start + 1 : start + 2]
    if kind == b"[":
        end = start + 2
        while end < len(data) and not 0x40 <= data[end] <= 0x7E:
            end += 1
        return min(end + 1, len(data))
    if kind in (b"]", b"P", b"_"):
        end, after = _end_of(data, start + 2)
        return len(data) if end < 0 else after
    return start + 2


def _is_answer(part: bytes) -> bool:
    if part[:2] in (b"\x1b]", b"\x1bP", b"\x1b_") or part[:3] in (b"\x1b[<", b"\x1b[M", b"\x1b[?"):
        return True
    return part[:2] == b"\x1b[" and part[-1:] in _ANSWERS
