"""Connections: as uvicorn handles them, and no more, and none for longer than its client takes part in it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from teams_cli.http_api import limits

_BODY = b'{"error": {"code": "busy", "message": "too many connections are open", "hint": "Close some, and retry."}}'
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
_FULL += b"Content-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)

_BEGIN = b"HTTP/1.1 "


class _Joining:
    """The transport of a connection, with the head of an answer sent in one go with its body, where that comes at once:
    uvicorn writes each by itself.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send it; the head of an answer when the next is sent, or the loop goes on."""
        if self._head:
            self._flush(data)
        elif data.startswith(_BEGIN):
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def _flush(self, more: bytes = b"") -> None:
        head, self._head = self._head, b""
        if head:
            self._transport.write(head + more)

    def close(self) -> None:
        """Close it once all is sent."""
        self._flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """How many bytes are still to be sent."""
        return len(self._head) + self._transport.get_write_buffer_size()


class HttpConnection(HttpToolsProtocol):
    """One connection. A request's head has to come in time, and be no longer than it may; what is sent has to be taken
    in time.
    """

    _deadline: asyncio.TimerHandle | None = None
    _fields = 0
    """Bytes of the fields of a request, in its head and behind its body."""
    _unended = 0
    """Bytes since the last head, part of a body or request that ended: of what has not, the parser keeps all."""
    _has_ended = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        """Take the connection, unless there are too many."""
        if len(self.connections) >= limits.CONNECTIONS:
            transport.write(_FULL)
            transport.close()
            return
        super().connection_made(cast("asyncio.Transport", _Joining(transport, self.loop)))
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._clear()
        if self.transport is not None:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if self.transport is None:
            return
        self._has_ended = False
        super().data_received(data)
        self._unended = 0 if self._has_ended else self._unended + len(data)
        if self._unended > limits.HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")
        if self._is_busy():
            self._clear()
        elif self._deadline is None:
            self._wait_for_head()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._fields = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head, or of the trailer.

        Raises:
            ValueError: They are too long; the parser makes a wrong request of it.
        """
        self._fields += len(name) + len(value)
        if self._fields > limits.HEAD:
            raise ValueError("the head is too long")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the answer; the application of a request may abort the connection."""
        self._has_ended = True
        super().on_headers_complete()
        self.scope.setdefault("abort", self.transport.abort)  # type: ignore[typeddict-item]

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._has_ended = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        self._has_ended = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on, or end."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self.loop.call_later(limits.SEND_SECONDS, self._abort_untaken, self.cycle)

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._clear()
        self._deadline = self.loop.call_later(limits.HEAD_SECONDS, self._abort_idle)

    def _clear(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _abort_idle(self) -> None:
        self._deadline = None
        if not self._is_busy():
            self.transport.abort()

    def _abort_untaken(self, cycle: object) -> None:
        if self.cycle is cycle and self.transport.get_write_buffer_size():
            self.transport.abort()
