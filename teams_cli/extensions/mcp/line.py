"""The connection to the client: JSON-RPC messages over standard input and output, one on each line."""

from __future__ import annotations

import json
import os
import select
from contextlib import asynccontextmanager, suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from functools import partial
from threading import Event, Lock

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from teams_cli import errors
from teams_cli.serving import requests
from teams_cli.text import whole_characters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from typing import Any

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from teams_cli.commands.call import Call

    Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
    Outgoing = MemoryObjectSendStream[SessionMessage]

LONGEST = 16 << 20
"""The maximum size of a message, in bytes. A result of 1 MiB can be six times as long in JSON."""
_READ_BYTES = 1 << 18
"""The maximum number of bytes that are read at once."""
_PIPE_BYTES = 4096
"""The number of bytes that a pipe accepts without blocking when it is writable."""
_LAST_ANSWER_SECONDS = 2.0
"""Seconds that the client is given to read the last answers before the server ends."""
_CANCEL_SECONDS = 0.05
"""Seconds to wait after an answer is written. If the client reports in this time that it cancelled the call, it does
not read the answer.
"""


def take_streams() -> tuple[int, int]:
    """Take over the standard streams. Return a descriptor to read from, and a descriptor to write to. For the rest of
    this process and for the processes that it starts, standard input is then empty, and what they print goes to
    standard error.

    Raises:
        OSError: One of the streams is closed.
    """
    first_free = 3  # the numbers below are those of standard streams, even if one of these is closed
    source = fcntl(0, F_DUPFD_CLOEXEC, first_free)
    sink = fcntl(1, F_DUPFD_CLOEXEC, first_free)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(nothing, 1)
    os.close(nothing)
    return source, sink


async def lines(source: int) -> AsyncIterator[bytes | None]:
    """Yield the lines that arrive, with None in place of a line that is too long."""
    pieces: list[bytes] = []
    size = 0
    while data := await _read(source):
        for number, piece in enumerate(data.split(b"\n")):
            if number > 0:  # a line break precedes the piece
                yield b"".join(pieces) if size <= LONGEST else None
                pieces, size = [], 0
            size += len(piece)
            pieces = [*pieces, piece] if size <= LONGEST else []  # a line that is too long is not kept
    if size:
        yield b"".join(pieces) if size <= LONGEST else None


async def _read(source: int) -> bytes:
    """Wait for bytes from *source* and return them, or empty bytes at the end of the input."""
    try:
        await anyio.wait_readable(source)  # no thread waits, because it would slow down every call
    except OSError:  # it is a file, for example, which the event loop can't watch
        return await anyio.to_thread.run_sync(os.read, source, _READ_BYTES, abandon_on_cancel=True)
    return os.read(source, _READ_BYTES)


def parsed(line: bytes | None) -> SessionMessage | JSONRPCError | None:
    """Return the message in a line. If the line has no valid message, return the error to answer with; if the line is
    blank, None.
    """
    if line is None:
        return _error(None, INVALID_REQUEST, f"a message may have at most {LONGEST} bytes")
    if not line.strip():
        return None
    with suppress(ValueError):  # the code below finds out why the message is not valid
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        if isinstance(message, JSONRPCRequest):
            try:  # the SDK would silently use the last value of a key that stands twice
                json.loads(line, object_pairs_hook=requests.unique_keys)
            except errors.InvalidValue as repeated_key:
                return _error(message.id, INVALID_PARAMS, f"{repeated_key.message}. {repeated_key.hint}")
        return SessionMessage(message)
    try:
        document = json.loads(line)
        repaired_line = whole_characters(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "this is not JSON")
    id = document.get("id") if isinstance(document, dict) else None
    if isinstance(id, str) and not id.isascii():  # it may hold half a character, which can't be written
        id = id.encode(errors="replace").decode()
    elif repaired_line != line:  # the SDK refuses half a character, so a replacement for it is tried
        return parsed(repaired_line)
    return _error(id if isinstance(id, str | int) else None, INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")


def _error(id: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))


class Receipts:
    """Keeps three things: the requests in progress, which of these the client cancelled, and the calls whose answers
    are being written.

    Once an answer is written, and not before, its call records that the caller got the notices in the answer.
    """

    def __init__(self) -> None:
        self._is_cancelled: dict[Any, bool] = {}
        """For the id of each request in progress, whether the client cancelled the request."""
        self._calls: dict[Any, Call] = {}
        """The calls whose answers will be written, by the ids of their requests."""
        self._writing: tuple[Any, Event] = None, Event()
        """The id of the request whose answer is being written, and an event that is set if the client cancels it."""
        self._lock = Lock()

    def begin(self, id: Any) -> None:
        """Record that work on a request begins. Forget an unanswered earlier request with the same id."""
        self._calls.pop(id, None)
        self._is_cancelled[id] = False

    def end(self, id: Any) -> None:
        """Record that work on a request has ended, with or without an answer."""
        self._is_cancelled.pop(id, None)

    def expect(self, id: Any, call: Call) -> None:
        """Once the answer to the request *id* is written, let *call* record that the agent got the news in the answer.
        If the client cancelled the request, *call* records nothing.
        """
        if self._is_cancelled.get(id):
            call.is_given_up = lambda: True
        elif call.has_notes:
            self._calls[id] = call

    def take_call(self, item: SessionMessage) -> Call | None:
        """Remove the call whose answer this message is, and return it. Return None if the message is not an answer, or
        if the answer has no news that the call must record as shown.
        """
        call = self._calls.pop(getattr(item.message, "id", None), None)
        return call if isinstance(item.message, JSONRPCResponse) else None

    def note_cancellation(self, item: SessionMessage) -> None:
        """If the client's message cancels a request, note the cancellation."""
        if not isinstance(item.message, JSONRPCNotification) or item.message.method != "notifications/cancelled":
            return
        id = (item.message.params or {}).get("requestId")
        id_being_written, cancelled = self._writing
        if id == id_being_written:
            cancelled.set()
        elif call := self._calls.pop(id, None):
            call.is_given_up = lambda: True
        elif id in self._is_cancelled:
            self._is_cancelled[id] = True

    def write(self, write: Callable[[], object], id: Any, call: Call) -> None:
        """Call *write*, which writes the answer to the request *id*. Then let *call* record that the agent got the news
        in the answer. If the client has cancelled the request, nothing is recorded.
        """
        with self._lock:
            cancelled = Event()
            self._writing = id, cancelled
            write()
            is_cancelled = call.tells_news and cancelled.wait(_CANCEL_SECONDS)
            if not is_cancelled:
                call.record_shown()

    def settle(self) -> None:
        """Wait until the answer that is being written, if any, is written and recorded."""
        with self._lock:
            return


@asynccontextmanager
async def connected(
    source: int, sink: int, settle: Callable[[], Awaitable[None]], receipts: Receipts
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Yield a stream of the messages that arrive at the descriptor *source*, and a stream for the messages to write to
    the descriptor *sink*. At the end of the input, *settle* waits for the calls that are running. *receipts* learns
    which answers were written, and which requests the client cancelled.
    """
    arrived, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](16)
    async with anyio.create_task_group() as group:
        written = anyio.Event()
        group.start_soon(_write_all, leaving, sink, incoming, written, receipts)
        group.start_soon(_read_all, source, arrived, outgoing, settle, receipts)
        yield incoming, outgoing
        await outgoing.aclose()
        with anyio.move_on_after(_LAST_ANSWER_SECONDS):
            await written.wait()
        group.cancel_scope.cancel()


async def _read_all(
    source: int,
    arrived: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: Outgoing,
    settle: Callable[[], Awaitable[None]],
    receipts: Receipts,
) -> None:
    """Pass on each message that arrives, and answer each line that has no valid message with an error."""
    try:
        async for line in lines(source):
            message = parsed(line)
            if isinstance(message, JSONRPCError):
                await outgoing.send(SessionMessage(message))
            elif message is not None:
                receipts.note_cancellation(message)
                await arrived.send(message)
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):  # the client has left, or reads no more
        pass
    await settle()
    await arrived.aclose()


async def _write_all(
    leaving: MemoryObjectReceiveStream[SessionMessage],
    sink: int,
    incoming: Incoming,
    written: anyio.Event,
    receipts: Receipts,
) -> None:
    """Write each message to the client. Set *written* after the last one, or when the client no longer reads."""
    try:
        async for item in leaving:
            data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            if call := receipts.take_call(item):
                write = partial(_write, sink, data)
                id = getattr(item.message, "id", None)
                await anyio.to_thread.run_sync(receipts.write, write, id, call, abandon_on_cancel=True)
            elif len(data) <= _PIPE_BYTES and select.select([], [sink], [], 0)[1]:  # then writing does not block
                _write(sink, data)
            else:
                await anyio.to_thread.run_sync(_write, sink, data, abandon_on_cancel=True)
    except OSError:  # the client no longer reads, so no more of its messages are accepted
        await incoming.aclose()
        async for _ in leaving:  # so that nobody waits to send a message
            continue
    finally:
        written.set()


def _write(sink: int, data: bytes) -> None:
    while data:
        data = data[os.write(sink, data) :]
