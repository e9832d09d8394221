"""The line between a detached terminal and one who looks at it: a Unix socket in a directory of its user alone.

What goes over it are frames: a letter that says what it is, its length, and so many bytes. Unknown ones are
passed over.
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
"""What is typed, the size of the terminal of who looks; what is to be shown, the exit status of the client."""
CLOSE, LOOKED_AT = b"c", b"l"
"""The client is to end: with any data even if somebody looks; the answer that somebody does, and it goes on."""
_HEAD = struct.Struct(">cI")
_SIZES = struct.Struct(">HH")
_CHUNK = 1 << 16


class Line:
    """One end of it; never waits for the other."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(False)
        self._line = line
        self._in = b""
        self._out = bytearray()
        self.is_open = True

    def fileno(self) -> int:
        """The descriptor for `select`."""
        return self._line.fileno()

    @property
    def waits(self) -> int:
        """The bytes that the other end has not taken yet."""
        return len(self._out) if self.is_open else 0

    def send(self, kind: bytes, data: bytes) -> None:
        """Say that, as soon as the other end takes it."""
        self._out += _HEAD.pack(kind, len(data)) + data
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as it is taken."""
        try:
            while self._out and self.is_open:
                del self._out[: self._line.send(self._out)]
        except BlockingIOError:
            return
        except OSError:
            self.is_open = False

    def heard(self) -> list[tuple[bytes, bytes]]:
        """What the other end said since the last time; it is not open any more once that is gone."""
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
        """Be there no more."""
        self._line.close()


def listen(path: str) -> socket.socket:
    """Where those who want to look call. Goes to the directory of it: the addresses of sockets are short."""
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
    """The line to the terminal there; None if there is none."""
    try:
        return Line(connected(path))
    except OSError:
        return None


def is_there(path: str) -> bool:
    """Whether anything listens there."""
    try:
        connected(path).close()
    except OSError:
        return False
    return True


def connected(path: str, patience: float | None = None) -> socket.socket:
    """The connection to what listens there, however long the path is; it waits for so many seconds at most."""
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
    """The same place by a path that is short enough for a socket. Where the system tells nobody of its open files, that
    takes going to the directory.
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
    """The size of a terminal, as it is said."""
    return _SIZES.pack(rows, columns)


def unpack_size(data: bytes) -> tuple[int, int] | None:
    """The rows and columns; None if that is no size."""
    return _SIZES.unpack(data) if len(data) == _SIZES.size else None


ESC = 0x1B
LISTENING = b"\x1b]7501;?\x1b\\"
_QUERY, _STATE = b"7501;?", b"7501;"
_SAID: dict[bytes, TerminalState] = {b"idle": IDLE, b"done": IDLE, b"working": WORKING, b"blocked": PERMISSION}
_LONGEST = 4096
_ANSWERS = b"cRntyIO"
"""The ends of what terminals say by themselves: what they are, where the cursor is, whether they have the focus."""
_CLEARS = (b"\r", b"\x03", b"\x15")
"""Enter, Ctrl-C and Ctrl-U: after these alone nothing is left of what was typed."""


class Reports:
    """The output of a client: `feed` gives what the terminal is to be shown, and keeps what was said.

    *titles* says by which character in the window's title the client means which state.
    """

    def __init__(self, titles: Mapping[str, TerminalState]) -> None:
        self._titles = {mark.encode(): state for mark, state in titles.items()}
        self._open = b""
        self.state: TerminalState | None = None
        self.said: list[TerminalState] = []
        """What it said since this was emptied, in order: a short turn may be over within one look."""
        self.asked = False
        self.pastes = False

    def feed(self, data: bytes) -> bytes:
        """Look at what the client prints next; what of it the terminal is to be shown."""
        if b"?2004" in data:
            self.pastes = data.rfind(b"?2004h") > data.rfind(b"?2004l")
        if not self._open and b"\x1b]" not in data and not data.endswith(b"\x1b"):
            return data
        return b"".join(self._parts(self._open + data))

    def _parts(self, data: bytes) -> Iterator[bytes]:
        """What is to be shown, with what is asked of us taken out; an unfinished command is kept for the next time."""
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
        if len(rest) > _LONGEST:  # no command is that long
            yield rest
        else:
            self._open = rest

    def _look(self, said: bytes) -> bool:
        """Take note of a command; whether it was for us alone."""
        if said == _QUERY:
            self.asked = True
            return True
        if said.startswith(_STATE):
            fields = dict(part.partition(b"=")[::2] for part in said[len(_STATE) :].replace(b";", b":").split(b":"))
            self._note(_SAID.get(fields.get(b"state", b"")))
        elif said[:2] in (b"0;", b"2;"):
            self._note(next((state for mark, state in self._titles.items() if mark in said), None))
        return False

    def _note(self, state: TerminalState | None) -> None:
        if state and state != self.state:
            self.state = state
            self.said.append(state)


def _end_of(data: bytes, start: int) -> tuple[int, int]:
    """Where a command that began at *start* ends, and where what follows begins; -1 if it is not all there."""
    bell, string = data.find(b"\x07", start), data.find(b"\x1b\\", start)
    if bell >= 0 and (string < 0 or bell < string):
        return bell, bell + 1
    return string, string + 2


def plain(data: bytes) -> str:
    """The text in what was printed, without the commands to the terminal, each of which becomes a blank."""
    text = bytearray()
    place = 0
    while place < len(data):
        end = _sequence(data, place)
        text += data[place:end] if data[place] != ESC else b" "
        place = end
    return "".join(c if c.isprintable() or c.isspace() else " " for c in text.decode(errors="replace"))


class Typing:
    """The input of a client: whether the line has something that a person typed. What the terminal says by itself is
    not typed; any key but Enter may fill the line: history, completion.
    """

    def __init__(self) -> None:
        self.is_dirty = False
        self.at = 0.0

    def feed(self, data: bytes, now: float) -> None:
        """Look at what comes from the terminal next."""
        typed = typed_in(data)
        if not typed:
            return
        self.at = now
        self.is_dirty = not (typed in _CLEARS or _is_sent(typed))

    def quiet_for(self, now: float) -> float:
        """The seconds since the last key."""
        return now - self.at


def _is_sent(typed: bytes) -> bool:
    """Whether the typed bytes end with an Enter that submits the line, not one that only breaks it."""
    return typed.endswith(b"\r") and not typed.endswith((b"\x1b\r", b"\\\r"))


def typed_in(data: bytes) -> bytes:
    """What of it a person typed: all but the terminal's own answers, the mouse, and the focus."""
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
    """Where the key, or the command of the terminal, that begins at *start* ends."""
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
