"""The HTTP server. It serves only this machine, until it gets a signal."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import secrets
import signal
import socket
import sys
from datetime import UTC, datetime

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from teams_cli import errors, processes
from teams_cli.agents.seats.bindings import is_locked
from teams_cli.clock import rfc3339
from teams_cli.commands.call import Call
from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.app import Api
from teams_cli.extensions.http.commands import LAST_PORT
from teams_cli.store.files import disk, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_BODY = b'{"error": {"code": "busy", "message": "too many connections are open", "hint": "Close some, and retry."}}'
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


class HttpConnection(H11Protocol):
    """One connection, with two time limits that uvicorn lacks: for the arrival of a request's head, and for a client
    that does not read its answer.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        """Take the connection. If too many are open, answer with an error and close it."""
        if len(self.connections) >= refusals.CONNECTIONS:
            transport.write(_BUSY)
            transport.close()
            return
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        if self.transport is not None:  # None if the connection was refused because too many were open
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request. The head of a request must be complete within a time limit. The limit begins again
        when the server waits for the next request.
        """
        if self.transport is None:  # the connection was refused because too many were open
            return
        super().data_received(data)
        if self._is_busy():
            self._cancel_deadline()
        elif self._deadline is None:
            self._wait_for_head()

    def handle_events(self) -> None:
        """Begin the requests that have arrived completely. The scope of each request gets a function `abort`, by which
        the application can abort the connection.
        """
        super().handle_events()
        if self.scope is not None:
            self.scope.setdefault("abort", self.transport.abort)  # type: ignore[typeddict-item]

    def on_response_complete(self) -> None:
        """If the client has not read the end of its answer, give it some seconds, and then drop it."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self.loop.call_later(refusals.SEND_SECONDS, self._abort_untaken, self.cycle)

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(refusals.HEAD_SECONDS, self._abort_idle)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _abort_idle(self) -> None:
        self._deadline = None
        if not self._is_busy():
            self.transport.abort()

    def _abort_untaken(self, cycle: object) -> None:
        """Disconnect the client if it has not read its whole answer yet, and no other request has begun. *cycle* is
        uvicorn's object for the request.
        """
        if self.cycle is cycle and self.transport.get_write_buffer_size():
            self.transport.abort()


_HOST = "127.0.0.1"
_PORTS_TRIED = 100
_REGISTRATION, _LOCK = "server.json", "server.lock"
_REGISTRATION_BYTES = 4096
_SHUTDOWN_SECONDS = 3
"""Seconds that running requests are given to end when the server shuts down."""
_INTERRUPTED = 130


def run(call: Call, settings: Mapping[str, Any]) -> int:
    """Serve until a signal arrives. Return 0 after SIGTERM and 130 after an interrupt. If *settings* has `browse`, and
    a server of this data directory is running already, open its board and return 0 at once.

    Raises:
        Conflict: A server of this data directory is running, or no port is free.
    """
    root = call.store.root
    if settings["browse"] and is_locked(f"{root}/{_LOCK}") and (running := _registration(root)):
        call.say(f"a server of these teams is running; to end it: kill {running['pid']}")
        call.show(_shown(running))
        _open_board(running)
        return 0
    with _listen(call, settings["port"]) as listener:
        server = HttpServer(call, listener, secrets.token_urlsafe(32), settings["private"], settings["browse"])
        try:
            server.run([listener])
        finally:
            server.unregister()
    return _INTERRUPTED if server.is_interrupted else 0


def _shown(registration: dict[str, Any]) -> dict[str, Any]:
    return {key: registration[key] for key in ("url", "token", "pid")}


def _open_board(registration: dict[str, Any]) -> None:
    import webbrowser

    webbrowser.open(f"{registration['url']}/#token={registration['token']}")


class HttpServer(uvicorn.Server):
    """The server of uvicorn. While it runs, it is registered in the data directory. When it ends, it ends all event
    streams and waiting requests.
    """

    def __init__(self, call: Call, listener: socket.socket, token: str, private: bool, browse: bool) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._call = call
        self._port = listener.getsockname()[1]
        self._token = token
        self._private = private
        self._browse = browse
        self.is_interrupted = False
        self.api: Api | None = None
        self._lock: int | None = None
        super().__init__(
            uvicorn.Config(
                self._application,
                interface="asgi3",
                loop="asyncio",
                http=HttpConnection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=refusals.CONNECTIONS,
                h11_max_incomplete_event_size=refusals.HEAD,
                timeout_keep_alive=refusals.KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )

    async def _application(self, scope: Any, receive: Any, send: Any) -> None:
        await self._asgi(scope, receive, send)  # set in `startup`, when the event loop runs

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and print the address.

        Raises:
            Conflict: A server of this data directory is running.
        """
        registration = self._register()
        self.api = Api(self._call)
        self._asgi = self.api.application(self._port, self._token, self._private)
        await super().startup(sockets)
        self._call.show(_shown(registration))
        if sys.stderr.isatty():
            self._call.say("Ctrl-C ends the server")
        if self._browse:
            import threading

            threading.Thread(target=_open_board, args=[registration], daemon=True).start()

    def _register(self) -> dict[str, Any]:
        """Take the server's lock. Write and return the registration, by which programs find the server."""
        root, pid = self._call.store.root, os.getpid()
        disk.prepare_root(root)
        self._lock = locks.hold(f"{root}/{_LOCK}", root)
        if self._lock is None:
            running = _registration(root)
            message = f"a server of these teams is running at {running.get('url', 'an unknown address')}"
            raise errors.Conflict(message, f"Use it, or end it first: kill {running.get('pid', 'PID')}")
        registration = {
            "url": f"http://{_HOST}:{self._port}",
            "token": self._token,
            "pid": pid,
            "startedAt": rfc3339(datetime.now(UTC)),
            "pidStarted": processes.process_started(pid),  # this and the next are for earlier versions
            "pidBoot": processes.pid_scope(),
        }
        data = json.dumps(registration, indent=2).encode() + b"\n"
        disk.commit(disk.write_temp(f"{root}/tmp", data), f"{root}/{_REGISTRATION}")
        # Programs of earlier versions would send the token in this file to the old port, where another user may listen.
        disk.discard(f"{root}/server.token")
        return registration

    def unregister(self) -> None:
        """Remove the file `server.json`, by which programs find a running server, if it is this server's."""
        if self._lock is not None:
            disk.discard(f"{self._call.store.root}/{_REGISTRATION}")
            os.close(self._lock)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams and the waiting requests, and then the server."""
        if self.api:
            self.api.close()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Record whether the signal is an interrupt, and begin to shut down the server."""
        if sig == signal.SIGINT:
            self.is_interrupted = True
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # uvicorn would raise the signal again: the exit status tells of it


def _registration(root: str) -> dict[str, Any]:
    """Return what the running server has registered. Return {} if there is no registration, or no valid one."""
    try:
        document = json.loads(disk.read_file(f"{root}/{_REGISTRATION}", _REGISTRATION_BYTES))
    except (FileNotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) and {"url", "pid", "token"} <= document.keys() else {}


def _listen(call: Call, first_port: int) -> socket.socket:
    """Return a socket that listens on *first_port*, or on the next free port."""
    for port in range(first_port, min(first_port + _PORTS_TRIED, LAST_PORT + 1)):
        # asyncio gives TCP_NODELAY only to sockets that say that they are TCP; without, each answer takes 40 ms more.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, refusals.UNTAKEN)
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_HOST, port))
            listener.listen(refusals.CONNECTIONS)
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRINUSE:
                continue
            message = f"can't listen on port {port}: {error.strerror}"
            raise errors.StorageFailed(message, "Choose another: --port") from None
        if port != first_port:
            call.say(f"teams: port {first_port} is taken; serving on port {port}")
        return listener
    raise errors.Conflict(f"no port from {first_port} on is free", "Choose another: --port")
