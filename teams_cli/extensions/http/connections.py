"""Limiting uvicorn's connections in number, and in how long a silent client may hold one."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from teams_cli.extensions.http import limits

_BODY = b'{"error": {"code": "busy", "message": "too many connections are open", "hint": "Close some, and retry."}}'
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
_FULL += b"Content-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)


class HttpConnection(H11Protocol):
    """One connection. A request's head has to come in time, and what is sent has to be taken in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        """Take the connection, unless there are too many."""
        if len(self.connections) >= limits.CONNECTIONS:
            transport.write(_FULL)
            transport.close()
            return
        super().connection_made(transport)
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
        super().data_received(data)
        if self._is_busy():
            self._clear()
        elif self._deadline is None:
            self._wait_for_head()

    def handle_events(self) -> None:
        """Begin the requests that are whole; the application of each may abort the connection."""
        super().handle_events()
        if self.scope is not None:
            self.scope.setdefault("abort", self.transport.abort)  # type: ignore[typeddict-item]

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
