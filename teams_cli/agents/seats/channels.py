"""The ways to wake and to interrupt a client: each gives it one constant line as its next turn, and returns whether the
client took it.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct

from teams_cli.agents.seats import bindings, lines
from teams_cli.agents.seats.doorbells import LINE, MAIL, STOP, Doorbell, is_heard, ring
from teams_cli.clients import known
from teams_cli.clients.seats import BELL, CONTROL, QUEUE, SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.agents.seats.terminals import Terminal


_PATIENCE = 20.0


def wake(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> str:
    """Wake the client in the first of its ways that works, and return that way, or "" if none did. The bell is tried
    for every client, because our wrapper listens to it too.
    """
    client = _Client(root, team, terminal, secrets)
    ways = (BELL, *(way for way in (client.seat.ways if client.seat else ()) if way != BELL))
    return next((way for way in ways if client.takes(way)), "")


def way_to_stop(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> str:
    """Return the first way in which the client can be interrupted now, or "" if there is none."""
    client = _Client(root, team, terminal, secrets)
    return next((way for way in (client.seat.stops if client.seat else ()) if client.is_within_reach(way)), "")


def stop(way: str, root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Interrupt the client in that way, so that it ends its turn and begins another with our constant line. Returns
    whether the client took the line.
    """
    return _Client(root, team, terminal, secrets).takes(way, instead=True)


class _Client:
    """A client in a terminal, with the *secrets* by which only this machine can reach it."""

    def __init__(self, root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> None:
        self.seat = known.get(terminal.client).seat
        self.pid = terminal.pid
        self.session_id = terminal.session_id
        self.secrets = secrets
        self.bell = bindings.kept(root, team, terminal.agent, "bell")
        self.socket = str(secrets.get("socket") or "")
        daemon = self.seat.daemon if self.seat and self.session_id else None
        self.daemon = daemon.address(secrets.get("environ") or {}) if daemon else ""

    def takes(self, way: str, instead: bool = False) -> bool:
        """Give the client our constant line in that way, and return whether the client took it. With *instead*, the
        client ends its present turn for that.
        """
        if way == BELL:
            return ring(self.bell, STOP if instead else MAIL)
        if way == QUEUE:
            return self._queue()
        if way == CONTROL:
            return bool(self.daemon) and start_turn(self.daemon, self.session_id or "", LINE, instead)
        return self._write({"priority": "now"} if instead else {}) if way == SOCKET else self._post()

    def is_within_reach(self, way: str) -> bool:
        """Whether the client can be interrupted in that way now."""
        if way == BELL:  # our wrapper, which also listens there, can only type
            return is_heard(self.bell) and Doorbell(self.bell).client() > 0
        if way == CONTROL:
            return bool(self.daemon) and lines.is_there(self.daemon)
        from teams_cli.agents.seats import terminals

        # With some options the client asks its person before it takes messages from its socket.
        holds = self.seat.socket.holds if self.seat and self.seat.socket else frozenset()
        return bool(self.socket) and holds.isdisjoint(terminals.words_of(self.pid)) and lines.is_there(self.socket)

    def _queue(self) -> bool:
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
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _write(self, more: Mapping[str, Any]) -> bool:
        """Write the constant line to the client's socket, in the way in which sessions of the client write to each
        other.
        """
        if not self.socket:
            return False
        message: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": LINE}, **more}
        proof: dict[str, Any] = {"type": "auth", "token": self.secrets.get("socketToken")}
        if self.seat and self.seat.socket and self.seat.socket.framed:
            proof, message = {"msgV": 1, **proof}, {"msgV": 1, "msgId": os.urandom(8).hex(), **message}
        try:
            with lines.connected(self.socket, 5) as line:
                line.sendall("".join(json.dumps(part) + "\n" for part in (proof, message)).encode())
        except (OSError, ValueError):
            return False
        return True

    def _post(self) -> bool:
        """Have the client's own server give its session the constant line as a prompt."""
        import http.client

        host, port, password = self.secrets.get("server") or ("", 0, "")
        if not port or not self.session_id:
            return False
        head = {"Content-Type": "application/json"}
        if password:
            head["Authorization"] = "Basic " + base64.b64encode(f"opencode:{password}".encode()).decode()
        line = http.client.HTTPConnection(str(host), int(port), timeout=5)
        try:
            body = json.dumps({"parts": [{"type": "text", "text": LINE}]})
            line.request("POST", f"/session/{self.session_id}/prompt_async", body, head)
            return line.getresponse().status in (200, 204)
        except (OSError, http.client.HTTPException):
            return False
        finally:
            line.close()


_CONTROL_PATIENCE = 5.0
_HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
)
_MOST = 1 << 24
_TEXT, _CONTINUES, _CLOSES, _PING, _PONG = 1, 0, 8, 9, 10
_LAST, _MASKED = 0x80, 0x80


def start_turn(address: str, thread: str, text: str, instead: bool = False) -> bool:
    """Have the daemon of Codex start a turn of that thread with the text. With *instead*, it interrupts the running
    turn first. Returns whether the daemon confirmed that.
    """
    try:
        with lines.connected(address, _CONTROL_PATIENCE) as line:
            control = _Control(line)
            control.ask("initialize", {"clientInfo": {"name": "teams", "title": "teams", "version": "1"}})
            control.say({"method": "initialized"})
            control.ask("thread/resume", {"threadId": thread})
            if instead:
                turns = control.ask("thread/turns/list", {"threadId": thread, "limit": 1}).get("data") or []
                for turn in turns:
                    if turn.get("status") == "inProgress":
                        control.ask("turn/interrupt", {"threadId": thread, "turnId": turn["id"]})
            control.ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
    except (OSError, ValueError, struct.error):
        return False
    return True


class _Control:
    """A WebSocket connection to the daemon of Codex. Everything unexpected raises ValueError."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._asked = 0
        line.sendall(_HANDSHAKE.format(key=base64.b64encode(os.urandom(16)).decode()).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._read(1)
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise ValueError("it does not speak WebSocket")

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method of the daemon, and return its result."""
        self._asked += 1
        self.say({"id": self._asked, "method": method, "params": params})
        while True:
            answer = json.loads(self._message())
            if answer.get("id") == self._asked and "method" not in answer:
                if "error" in answer:
                    raise ValueError(f"{method} was refused")
                return dict(answer.get("result") or {})

    def say(self, message: Mapping[str, Any]) -> None:
        self._send(_TEXT, json.dumps(message).encode())

    def _send(self, kind: int, data: bytes) -> None:
        """Send a WebSocket frame, masked as clients must."""
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", _LAST | kind, _MASKED | size)
        else:
            head = struct.pack(">BBH", _LAST | kind, _MASKED | 126, size)
        mask = os.urandom(4)
        self._line.sendall(head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(data)))

    def _message(self) -> bytes:
        message = b""
        while True:
            kind, is_last, data = self._frame()
            if kind == _CLOSES:
                raise ValueError("it hung up")
            if kind == _PING:
                self._send(_PONG, data)
            elif kind in (_TEXT, _CONTINUES):
                message += data
                if is_last:
                    return message

    def _frame(self) -> tuple[int, bool, bytes]:
        first, size = self._read(2)
        if size == 126:
            (size,) = struct.unpack(">H", self._read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._read(8))
        if size > _MOST:
            raise ValueError("its answer is too long")
        return first & 0x0F, bool(first & _LAST), self._read(size)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._line.recv(size - len(data))
            if not part:
                raise ValueError("it hung up")
            data += part
        return data
