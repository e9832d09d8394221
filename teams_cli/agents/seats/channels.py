"""The channels for waking and interrupting a client. Each channel gives the client one constant line as its next turn,
which the client may refuse.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
from collections.abc import Mapping
from typing import Any

from teams_cli import sockets
from teams_cli.agents.seats import bindings, terminals
from teams_cli.agents.seats.doorbells import LINE, MAIL, STOP, Doorbell, has_listener, ring
from teams_cli.clients import known
from teams_cli.clients.seats import BELL, CONTROL, QUEUE, SOCKET

_QUEUE_TIMEOUT = 20.0
_TIMEOUT = 5.0
"""Maximum seconds for each step of a conversation with a client's own server or daemon."""


class Client:
    """A client in a terminal. *secrets* has what this machine needs to reach it, such as its socket and its program."""

    def __init__(self, root: str, team: str, terminal: terminals.Terminal, secrets: Mapping[str, Any]) -> None:
        self.seat = known.get(terminal.client).seat
        self.pid = terminal.pid
        self.session_id = terminal.session_id
        self.secrets = secrets
        self.bell = bindings.terminal_file(root, team, terminal.agent, "bell")
        self.socket = str(secrets.get("socket") or "")
        daemon = self.seat.daemon if self.seat and self.session_id else None
        self.daemon = daemon.address(secrets.get("environ") or {}) if daemon else ""
        """The path of the daemon's socket; "" if the client has no daemon, or no known session."""

    def wake(self) -> str:
        """Wake the client over the first of its channels that works. Return this channel, or "" if none worked. The
        bell is tried for every client, because the wrapper that `teams` runs around a client listens to it.
        """
        own_ways = self.seat.ways if self.seat else ()
        for way in dict.fromkeys((BELL, *own_ways)):
            if self.take_line(way):
                return way
        return ""

    def way_to_stop(self) -> str:
        """Return the first channel over which the client can be interrupted now, or "" if there is none."""
        ways = self.seat.stops if self.seat else ()
        return next((way for way in ways if self._can_be_stopped(way)), "")

    def take_line(self, way: str, interrupts: bool = False) -> bool:
        """Give the client the fixed line of text that begins a turn (`LINE`), over the channel *way*. Return whether
        the client took it. With *interrupts*, the client first ends its current turn.
        """
        if way == BELL:
            return ring(self.bell, STOP if interrupts else MAIL)
        if way == QUEUE:
            return self._enqueue()
        if way == CONTROL:
            return bool(self.daemon) and start_turn(self.daemon, self.session_id or "", LINE, interrupts)
        if way == SOCKET:
            return self._write_to_socket(interrupts)
        return self._post_to_server()  # the only other way; it interrupts nothing

    def _can_be_stopped(self, way: str) -> bool:
        if way == BELL:
            # Our wrapper listens there too, with the process id 0. It only types, which interrupts nothing.
            return has_listener(self.bell) and Doorbell(self.bell).client_pid() > 0
        if way == CONTROL:
            return bool(self.daemon) and sockets.has_listener(self.daemon)
        # The way is SOCKET. With some options the client asks its person before it takes messages from its socket.
        asking_options = self.seat.socket.asking_options if self.seat and self.seat.socket else ()
        asks_person = not {*asking_options}.isdisjoint(terminals.words_of(self.pid))
        return bool(self.socket) and not asks_person and sockets.has_listener(self.socket)

    def _enqueue(self) -> bool:
        """Run the client's program to put `LINE` into the queue of its session. Return whether this worked."""
        import subprocess

        program = self.secrets.get("program") or []
        if not program or not self.session_id:
            return False
        try:
            done = subprocess.run(
                [*program, "queue", "--thread", self.session_id, "--message", LINE],
                env=dict(self.secrets.get("environ") or {}),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_QUEUE_TIMEOUT,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _write_to_socket(self, interrupts: bool) -> bool:
        """Write `LINE` to the client's socket, as a message from another session. With *interrupts*, the client first
        ends its current turn. Return whether this worked.
        """
        if not self.socket:
            return False
        proof: dict[str, Any] = {"type": "auth", "token": self.secrets.get("socketToken")}
        message: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": LINE}}
        if interrupts:
            message["priority"] = "now"
        if self.seat and self.seat.socket and self.seat.socket.framed:
            proof, message = {"msgV": 1, **proof}, {"msgV": 1, "msgId": os.urandom(8).hex(), **message}
        try:
            with sockets.connect(self.socket, _TIMEOUT) as connection:
                connection.sendall(f"{json.dumps(proof)}\n{json.dumps(message)}\n".encode())
        except (OSError, ValueError):
            return False
        return True

    def _post_to_server(self) -> bool:
        """Give `LINE` to the session as a prompt, through the client's own server. Return whether this worked."""
        import http.client

        host, port, password = self.secrets.get("server") or ("", 0, "")
        if not port or not self.session_id:
            return False
        headers = {"Content-Type": "application/json"}
        if password:
            headers["Authorization"] = "Basic " + base64.b64encode(f"opencode:{password}".encode()).decode()
        connection = http.client.HTTPConnection(str(host), int(port), timeout=_TIMEOUT)
        try:
            body = json.dumps({"parts": [{"type": "text", "text": LINE}]})
            connection.request("POST", f"/session/{self.session_id}/prompt_async", body, headers)
            return connection.getresponse().status in (200, 204)
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


_HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
)
_MAX_FRAME = 1 << 24
_TEXT, _CONTINUATION, _CLOSE, _PING, _PONG = 1, 0, 8, 9, 10
"""The kinds of WebSocket frames (opcodes of RFC 6455)."""
_KIND = 0x0F
"""The bits with the kind in the first byte of a frame."""
_LAST, _MASKED = 0x80, 0x80
"""The bit in the first byte of a message's last frame, and the bit in the second byte of a frame with a mask."""
_SIZE_IN_2_BYTES, _SIZE_IN_8_BYTES = 126, 127
"""The values of the size field in a frame's header which say that the real size follows in 2 or in 8 bytes."""


def start_turn(address: str, thread: str, text: str, interrupts: bool = False) -> bool:
    """Ask the daemon of Codex, at *address*, to start a turn of the *thread* with the *text*. With *interrupts*, the
    running turn is interrupted first. Returns whether everything worked.
    """
    try:
        with sockets.connect(address, _TIMEOUT) as connection:
            control = _Control(connection)
            control.call("initialize", {"clientInfo": {"name": "teams", "title": "teams", "version": "1"}})
            control.send({"method": "initialized"})
            control.call("thread/resume", {"threadId": thread})
            if interrupts:
                turns = control.call("thread/turns/list", {"threadId": thread, "limit": 1}).get("data") or []
                for turn in turns:
                    if turn.get("status") == "inProgress":
                        control.call("turn/interrupt", {"threadId": thread, "turnId": turn["id"]})
            control.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
    except (OSError, ValueError, struct.error):
        return False
    return True


class _Control:
    """A WebSocket connection to the daemon of Codex. Its methods raise ValueError on any unexpected answer."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._calls = 0
        connection.sendall(_HANDSHAKE.format(key=base64.b64encode(os.urandom(16)).decode()).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):  # byte by byte, because a frame may follow at once
            head += self._read(1)
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise ValueError("it does not speak WebSocket")

    def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method of the daemon, and return its result."""
        self._calls += 1
        self.send({"id": self._calls, "method": method, "params": params})
        while True:  # the daemon also sends events, and requests of its own
            answer = json.loads(self._read_message())
            if answer.get("id") == self._calls and "method" not in answer:
                if "error" in answer:
                    raise ValueError(f"{method} was refused")
                return dict(answer.get("result") or {})

    def send(self, message: Mapping[str, Any]) -> None:
        """Send the message without waiting for an answer."""
        self._send_frame(_TEXT, json.dumps(message).encode())

    def _send_frame(self, kind: int, data: bytes) -> None:
        """Send a WebSocket frame of less than 64 KiB, masked as clients must."""
        size = len(data)
        if size < _SIZE_IN_2_BYTES:
            head = struct.pack(">BB", _LAST | kind, _MASKED | size)
        else:
            head = struct.pack(">BBH", _LAST | kind, _MASKED | _SIZE_IN_2_BYTES, size)
        mask = os.urandom(4)
        self._connection.sendall(head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(data)))

    def _read_message(self) -> bytes:
        """Return the next message, put together from its frames. Pings are answered."""
        message = b""
        while True:
            first, size = self._read(2)
            if size == _SIZE_IN_2_BYTES:
                (size,) = struct.unpack(">H", self._read(2))
            elif size == _SIZE_IN_8_BYTES:
                (size,) = struct.unpack(">Q", self._read(8))
            if size > _MAX_FRAME:
                raise ValueError("its answer is too long")
            kind, data = first & _KIND, self._read(size)
            if kind == _CLOSE:
                raise ValueError("it hung up")
            if kind == _PING:
                self._send_frame(_PONG, data)
            elif kind in (_TEXT, _CONTINUATION):
                message += data
                if first & _LAST:
                    return message

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._connection.recv(size - len(data))
            if not part:
                raise ValueError("it hung up")
            data += part
        return data
