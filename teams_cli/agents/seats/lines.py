"""The connection, over a Unix socket, between a detached terminal and a person who views it.

The connection carries frames. A frame has a letter for its kind, the length of its data, and the data. Frames of
unknown kinds are ignored.
"""

from __future__ import annotations

import struct

from teams_cli import sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

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


def open_line(path: str) -> Line | None:
    """Return a connection to the terminal whose socket is at *path*; None if no process listens there."""
    try:
        return Line(sockets.connect(path))
    except OSError:
        return None


def pack_size(rows: int, columns: int) -> bytes:
    """Return the size of a terminal as the data of a frame."""
    return _SIZE.pack(rows, columns)


def unpack_size(data: bytes) -> tuple[int, int] | None:
    """Return the rows and the columns in the *data* of a frame; None if the data is not a valid size."""
    return _SIZE.unpack(data) if len(data) == _SIZE.size else None
