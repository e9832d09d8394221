"""The control socket of a client whose daemon runs its sessions: one turn is started there, as its own front ends do.

It speaks JSON-RPC in the messages of a WebSocket (RFC 6455), of which this is as much as that takes.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct

from teams_cli.agents.seats.lines import connected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_PATIENCE = 5.0
_HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
)
_MOST = 1 << 24
_TEXT, _CONTINUES, _CLOSES, _PING, _PONG = 1, 0, 8, 9, 10
_LAST, _MASKED = 0x80, 0x80


def start_turn(address: str, thread: str, text: str, instead: bool = False) -> bool:
    """Have the daemon start a turn of that thread with the text, *instead* of the one that runs if so asked; whether it
    said that it did.
    """
    try:
        with connected(address, _PATIENCE) as line:
            control = _Control(line)
            control.ask("initialize", {"clientInfo": {"name": "teams", "title": "teams", "version": "1"}})
            control.say({"method": "initialized"})
            control.ask("thread/resume", {"threadId": thread})
            if instead:
                _end_turn(control, thread)
            control.ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
    except (OSError, ValueError, struct.error):
        return False
    return True


def _end_turn(control: _Control, thread: str) -> None:
    """End the turn of the thread that runs, if one does."""
    turns = control.ask("thread/turns/list", {"threadId": thread, "limit": 1}).get("data") or []
    for turn in turns:
        if turn.get("status") == "inProgress":
            control.ask("turn/interrupt", {"threadId": thread, "turnId": turn["id"]})


class _Control:
    """The connection. Whatever is not as it should be is a ValueError."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._asked = 0
        line.sendall(_HANDSHAKE.format(key=base64.b64encode(os.urandom(16)).decode()).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._read(1)
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise ValueError("it speaks no WebSocket")

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method, and wait for its result."""
        self._asked += 1
        self.say({"id": self._asked, "method": method, "params": params})
        while True:
            said = json.loads(self._message())
            if said.get("id") == self._asked and "method" not in said:
                if "error" in said:
                    raise ValueError(f"{method} was refused")
                return dict(said.get("result") or {})

    def say(self, said: Mapping[str, Any]) -> None:
        """Send a message."""
        self._send(_TEXT, json.dumps(said).encode())

    def _send(self, kind: int, data: bytes) -> None:
        """Send a frame, masked, as what a client sends has to be."""
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", _LAST | kind, _MASKED | size)
        else:
            head = struct.pack(">BBH", _LAST | kind, _MASKED | 126, size)
        mask = os.urandom(4)
        self._line.sendall(head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(data)))

    def _message(self) -> bytes:
        """The next message, of one frame or several."""
        found = b""
        while True:
            kind, is_last, data = self._frame()
            if kind == _CLOSES:
                raise ValueError("it hung up")
            if kind == _PING:
                self._send(_PONG, data)
            elif kind in (_TEXT, _CONTINUES):
                found += data
                if is_last:
                    return found

    def _frame(self) -> tuple[int, bool, bytes]:
        first, size = self._read(2)
        if size == 126:
            (size,) = struct.unpack(">H", self._read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._read(8))
        if size > _MOST:
            raise ValueError("it says too much")
        return first & 0x0F, bool(first & _LAST), self._read(size)

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self._line.recv(size - len(found))
            if not part:
                raise ValueError("it hung up")
            found += part
        return found
