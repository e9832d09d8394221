"""A wire between a client and a PostgreSQL server that can be cut at a chosen moment."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

_KEY_DATA = b"K\x00\x00\x00\x0c"
_TERMINATE = b"X\x00\x00\x00\x04"


class Wire:
    """Forwards connections from a loopback port to the socket of a server.

    `cut` cuts the connection when a client sends given bytes: before the server receives them, or after its answer and
    before the client receives it. Later connections work unless the cut is *for_good*. As a *pooler*, the wire gives
    clients another process id than that of the server's process, as poolers do.
    """

    def __init__(self, path: str, pooler: bool = False) -> None:
        self.path = path
        self.pooler = pooler
        self.plans: list[tuple[bytes, bool]] = []
        self.for_good = False
        self.freeze_at = b""
        self._hold_at = b""
        self._held, self._let_go = threading.Event(), threading.Event()
        self.cuts = 0
        self.heard: list[bytes] = []
        """What clients said so far; `lose_at` cuts the connection when so much was said, for good."""
        self.lose_at = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, at: bytes, after: bool, for_good: bool = False) -> None:
        """Cut the connection on which these bytes come next, after the cuts that were asked for earlier."""
        self.plans.append((at, after))
        self.for_good = for_good

    def hold(self, at: bytes) -> None:
        """Hold back the next message with these bytes, as if the process had been stopped, until `go_on`."""
        self._hold_at = at

    def wait_held(self, patience: float = 60) -> None:
        """Wait until a message is held back."""
        assert self._held.wait(patience), "nobody said it"

    def go_on(self) -> None:
        """Forward the message that was held back."""
        self._let_go.set()

    def mend(self) -> None:
        """Let connections be made again."""
        self.for_good = False

    def close(self) -> None:
        self._listener.close()
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.for_good and self.cuts:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.path)
            self._ends += [client, server]
            gate = threading.Event()
            gate.set()
            threading.Thread(target=self._up, args=[client, server, gate], daemon=True).start()
            threading.Thread(target=self._down, args=[client, server, gate], daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, gate: threading.Event) -> None:
        """Forward from the client to the server."""
        try:
            self._pass_up(client, server, gate)
        except OSError:  # one end is gone
            _shut(client)

    def _pass_up(self, client: socket.socket, server: socket.socket, gate: threading.Event) -> None:
        while data := _received(client):
            if self.freeze_at and self.freeze_at in data:
                self.freeze_at = b""
                return  # the client is not heard of any more; nobody is told
            self.heard.append(data)
            if len(self.heard) == self.lose_at:
                self.plans, self.for_good = [(b"", False)], True
            if self._hold_at and self._hold_at in data:
                self._hold_at = b""
                self._held.set()
                self._let_go.wait()
            if self.plans and self.plans[0][0] in data:
                _, after = self.plans.pop(0)
                self.cuts += 1
                if after:
                    gate.clear()
                    server.sendall(data)
                    server.recv(1 << 16)
                else:
                    server.sendall(_TERMINATE)
                _shut(client)
                _shut(server)
                return
            server.sendall(data)
        _shut(server)

    def _down(self, client: socket.socket, server: socket.socket, gate: threading.Event) -> None:
        """Forward from the server to the client."""
        while gate.is_set() and (data := _peeked(server, gate)):
            if self.pooler and (at := data.find(_KEY_DATA)) >= 0:
                data = data[: at + 5] + b"\x00\x00\x00\x01" + data[at + 9 :]
            try:
                client.sendall(data)
            except OSError:
                return
        if gate.is_set():
            _shut(client)


def _received(end: socket.socket) -> bytes:
    try:
        return end.recv(1 << 16)
    except OSError:
        return b""


def _peeked(server: socket.socket, gate: threading.Event) -> bytes:
    """Return the next bytes from the server; b"" if the gate is closed, because another thread reads them then."""
    import select

    while gate.is_set():
        try:
            if select.select([server], [], [], 0.002)[0] and gate.is_set():
                return server.recv(1 << 16)
        except (OSError, ValueError):
            return b""
    return b""


def _shut(end: Any) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        time.sleep(0)
    end.close()
