"""The connection, over a Unix socket, between a detached terminal and a person who views it. Also parsers for what the
client in the terminal prints, and for what the person types.

The connection carries frames. A frame has a letter for its kind, the length of its data, and the data. Frames of
unknown kinds are ignored.
"""

from __future__ import annotations

import os
import socket
import struct

from teams_cli.clients.seats import IDLE, PERMISSION, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.records.types import TerminalState


KEYS, SIZE, OUTPUT, END = b"k", b"s", b"o", b"e"
"""Kinds of frames: typed keys; the size of the viewer's terminal; output to show; the exit status of the client."""
CLOSE, LOOKED_AT = b"c", b"l"
"""Kinds of frames: the request to end the client, and the answer that the client continues because somebody views it. A
request with any data ends the client even if somebody views it.
"""
_HEADER = struct.Struct(">cI")
"""The kind of a frame, and the length of its data."""
_SIZE = struct.Struct(">HH")
_CHUNK = 1 << 16


class Line:
    """One end of the connection between a detached terminal and a viewer. It never waits for the other end."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._received = b""
        self._unsent = bytearray()
        self.is_open = True

    def fileno(self) -> int:
        """Return the descriptor of the connection, for `select`."""
        return self._connection.fileno()

    @property
    def unsent(self) -> int:
        """The number of bytes that the other end has not taken yet."""
        return len(self._unsent) if self.is_open else 0

    def send(self, kind: bytes, data: bytes) -> None:
        """Queue a frame, and send as much as the other end takes now; `flush` sends the rest."""
        self._unsent += _HEADER.pack(kind, len(data)) + data
        self.flush()

    def flush(self) -> None:
        """Send as many of the unsent bytes as the other end takes."""
        try:
            while self._unsent and self.is_open:
                del self._unsent[: self._connection.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self.is_open = False

    def receive(self) -> list[tuple[bytes, bytes]]:
        """Return the frames that arrived since the last call: the kind and the data of each. *is_open* is False once
        the other end is gone.
        """
        try:
            data = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self.is_open = self.is_open and bool(data)
        self._received += data
        frames = []
        while len(self._received) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._received)
            end = _HEADER.size + length
            if len(self._received) < end:
                break
            frames.append((kind, self._received[_HEADER.size : end]))
            self._received = self._received[end:]
        return frames

    def close(self) -> None:
        """Close this end of the connection."""
        self._connection.close()


def listen(path: str) -> socket.socket:
    """Return a socket at *path*, to which viewers connect. The working directory is changed to the directory of the
    socket, because the address of a socket must be short.
    """
    os.chdir(os.path.dirname(path))
    name = os.path.basename(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)  # only this user may connect
    try:
        if os.path.lexists(name):
            os.remove(name)
        listener.bind(name)
    finally:
        os.umask(umask)
    listener.listen()
    return listener


def open_line(path: str) -> Line | None:
    """Return a connection to the terminal whose socket is at *path*; None if no process listens there."""
    try:
        return Line(connect(path))
    except OSError:
        return None


def has_listener(path: str) -> bool:
    """Whether a process listens on the socket at *path*."""
    try:
        connect(path).close()
    except OSError:
        return False
    return True


def connect(path: str, timeout: float | None = None) -> socket.socket:
    """Return a connection to the socket at *path*, which may be a long path. Each step waits at most *timeout* seconds,
    or without limit if *timeout* is None. On a system without /proc, the working directory is changed.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:  # the address of a socket must be short
            address = os.path.basename(path)
            if os.path.isdir("/proc/self/fd"):
                address = f"/proc/self/fd/{directory}/{address}"
            else:
                os.fchdir(directory)
            connection.connect(address)
        finally:
            os.close(directory)
    except OSError:
        connection.close()
        raise
    return connection


def pack_size(rows: int, columns: int) -> bytes:
    """Return the size of a terminal as the data of a frame."""
    return _SIZE.pack(rows, columns)


def unpack_size(data: bytes) -> tuple[int, int] | None:
    """Return the rows and the columns in the *data* of a frame; None if the data is not a valid size."""
    return _SIZE.unpack(data) if len(data) == _SIZE.size else None


_ESC = 0x1B
_OSC = b"\x1b]"
"""The beginning of an operating system command: a control sequence with text, such as the title of the window."""
LISTENING = b"\x1b]7501;?\x1b\\"
"""The answer to a client that asks whether its terminal understands reports of its state."""
_QUERY, _STATE = b"7501;?", b"7501;"
_TITLES = (b"0;", b"2;")
"""The beginnings of the commands that set the title of the window."""
_STATES: dict[bytes, TerminalState] = {b"idle": IDLE, b"done": IDLE, b"working": WORKING, b"blocked": PERMISSION}
_MAX_SEQUENCE = 4096
"""Maximum number of bytes of a control sequence. A longer sequence is treated as ordinary output."""
_ANSWERS = b"cRntyIO"
"""The last bytes of the control sequences that terminals send by themselves, for example to report their type, the
position of the cursor, or the focus.
"""
_CLEARS = (b"\r", b"\x03", b"\x15")
"""Enter, Ctrl-C and Ctrl-U: after one of these keys alone, the input line is empty."""


class StateReader:
    """Finds the state of a client in its output, all of which must be passed to `feed`. The client reports a state by
    the control sequence OSC 7501, or by a character in the title of its window. *titles* has the state that each such
    character stands for.
    """

    def __init__(self, titles: Mapping[str, TerminalState]) -> None:
        self._titles = {mark.encode(): state for mark, state in titles.items()}
        self._unfinished = b""
        """The beginning of a control sequence whose end the client has not printed yet."""
        self._state: TerminalState | None = None
        self.new_states: list[TerminalState] = []
        """The states since this list was last emptied, oldest first. It is a list because a short turn may begin and
        end before the state is looked at.
        """
        self.is_queried = False
        """Whether the client asked whether its terminal understands reports. It is reset by the code that answers."""
        self.takes_pastes = False
        """Whether the client has asked its terminal to mark pasted text."""

    def feed(self, data: bytes) -> bytes:
        """Read the output that the client prints next. Returns the part that the terminal must show: everything except
        queries that this program answers itself. A control sequence that is not complete yet is held back until a later
        call.
        """
        if b"?2004" in data:
            self.takes_pastes = data.rfind(b"?2004h") > data.rfind(b"?2004l")
        data = self._unfinished + data
        self._unfinished = b""
        shown = bytearray()
        position = 0
        while (start := data.find(_OSC, position)) >= 0:
            end, after = _end_of_string(data, start + len(_OSC))
            if end < 0:  # the rest of the command is still to come
                break
            command = data[start + len(_OSC) : end]
            self._note_command(command)
            shown_until = start if command == _QUERY else after  # this program answers queries itself
            shown += data[position:shown_until]
            position = after
        # Now *start* is the beginning of an unfinished command, or -1.
        if start < 0 and data.endswith(b"\x1b"):  # perhaps the first byte of the next command
            start = len(data) - 1
        if start >= 0 and len(data) - start <= _MAX_SEQUENCE:
            self._unfinished = data[start:]
            data = data[:start]
        return bytes(shown) + data[position:]

    def _note_command(self, command: bytes) -> None:
        """Record what *command*, the text of an OSC escape sequence, holds: the question whether the terminal
        understands reports of the client's state, or such a report, or a title of the window that shows the state.
        """
        state = None
        if command == _QUERY:
            self.is_queried = True
        elif command.startswith(_STATE):
            for field in command.removeprefix(_STATE).replace(b";", b":").split(b":"):
                name, _, value = field.partition(b"=")
                if name == b"state":
                    state = _STATES.get(value)
        elif command.startswith(_TITLES):
            state = next((meaning for mark, meaning in self._titles.items() if mark in command), None)
        if state and state != self._state:
            self._state = state
            self.new_states.append(state)


def _end_of_string(data: bytes, start: int) -> tuple[int, int]:
    """Return the position where the text of a control sequence ends, and the position after the sequence. If the end of
    the sequence is missing, the first number is -1, and the second has no meaning.
    """
    bell = data.find(b"\x07", start)
    terminator = data.find(b"\x1b\\", start)
    if bell >= 0 and (terminator < 0 or bell < terminator):
        return bell, bell + 1
    return terminator, terminator + 2


def plain(data: bytes) -> str:
    """Return the text in terminal output. Each control sequence is replaced with a space."""
    text = bytearray()
    position = 0
    while position < len(data):
        end = _end_of_key(data, position)
        text += data[position:end] if data[position] != _ESC else b" "
        position = end
    return "".join(c if c.isprintable() or c.isspace() else " " for c in text.decode(errors="replace"))


class Typing:
    """Records in `is_dirty` whether the input line of a client holds text that a person typed. Bytes that the terminal
    sends by itself do not count. Any key but Enter may fill the line, for example from the history.
    """

    def __init__(self) -> None:
        self.is_dirty = False
        self._last_key = 0.0

    def feed(self, data: bytes, now: float) -> None:
        """Read the next bytes that come from the terminal, at the time *now*."""
        typed = typed_in(data)
        if not typed:
            return
        self._last_key = now
        # Enter after Escape (Alt-Enter) or after a backslash sends nothing: it begins another line of the input.
        is_sent = typed.endswith(b"\r") and not typed.endswith((b"\x1b\r", b"\\\r"))
        self.is_dirty = typed not in _CLEARS and not is_sent

    def quiet_for(self, now: float) -> float:
        """Return the seconds since a person last pressed a key."""
        return now - self._last_key


def typed_in(data: bytes) -> bytes:
    """Return the bytes of *data* that a person typed, without the answers and the mouse and focus reports that the
    terminal sends by itself.
    """
    typed = bytearray()
    position = 0
    while position < len(data):
        end = _end_of_key(data, position)
        key = data[position:end]
        is_answer = key.startswith(b"\x1b[") and key[-1:] in _ANSWERS
        is_report = key.startswith((b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b[<", b"\x1b[M", b"\x1b[?"))
        if not (is_answer or is_report):
            typed += key
        position = end
    return bytes(typed)


def _end_of_key(data: bytes, start: int) -> int:
    """Return where the key or the control sequence that begins at *start* ends."""
    if data[start] != _ESC or start + 1 >= len(data):  # an ordinary byte, or Escape alone
        return start + 1
    kind = data[start + 1 : start + 2]
    if kind == b"[":  # parameters follow, up to a last byte from @ to ~
        end = start + 2
        while end < len(data) and not 0x40 <= data[end] <= 0x7E:
            end += 1
        return min(end + 1, len(data))
    if kind in (b"]", b"P", b"_"):  # a sequence with text
        end, after = _end_of_string(data, start + 2)
        return len(data) if end < 0 else after
    return start + 2
