"""The line between a detached terminal and one who looks at it: a Unix socket in a directory of its user alone.

What goes over it are frames: a letter that says what it is, its length, and so many bytes. Unknown ones are
passed over.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
        """What `select` looks at."""
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
    """The connection to what listens there, however long the path is; it waits for so many seconds at most.

    Raises:
        OSError: Nothing does.
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
