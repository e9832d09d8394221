"""The standard streams of the process as the line of the protocol: one JSON-RPC message a line, and nothing else."""

from __future__ import annotations

import json
import os
import select
from contextlib import asynccontextmanager
from fcntl import F_DUPFD_CLOEXEC, fcntl
from functools import partial

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from teams_cli.text import whole_characters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from teams_cli.extensions.mcp.messaging import Telling

    Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
    Outgoing = MemoryObjectSendStream[SessionMessage]

LONGEST = 16 << 20
"""Bytes of a message: a result of 1 MiB can take six times as much in JSON."""
_MOST = 1 << 18
"""Bytes that are read at once."""
_AT_ONCE = 4096
"""What a pipe takes without blocking once it takes anything."""
_GOODBYE = 2.0
"""How long the last answers may take to be read."""


def claim() -> tuple[int, int]:
    """Take the standard streams: descriptors to read from and to write to. Whatever else of the process, or of those
    that it starts, reads standard input finds nothing there, and what it prints goes to standard error.

    Raises:
        OSError: One of them is closed.
    """
    source, sink = (fcntl(stream, F_DUPFD_CLOEXEC, 3) for stream in (0, 1))  # not in the place of one that is closed
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    return source, sink


async def lines(source: int) -> AsyncIterator[bytes | None]:
    """The lines that arrive; None for one that is too long."""
    pending: list[bytes] = []
    size = 0
    while data := await _arrived(source):
        for number, piece in enumerate(data.split(b"\n")):
            if number:
                yield b"".join(pending) if size <= LONGEST else None
                pending, size = [], 0
            size += len(piece)
            pending = [*pending, piece] if size <= LONGEST else []
    if size:
        yield b"".join(pending) if size <= LONGEST else None


async def _arrived(source: int) -> bytes:
    """What arrived by now, one byte at least; nothing at the end. A thread that reads would have the loop take turns
    with it at every call; it takes one where the system can't say what is readable, as of a file.
    """
    try:
        await anyio.wait_readable(source)
    except OSError:
        return await anyio.to_thread.run_sync(os.read, source, _MOST, abandon_on_cancel=True)
    return os.read(source, _MOST)


def parsed(line: bytes | None) -> SessionMessage | JSONRPCError | None:
    """The message in a line, or the error to answer it with; None for a blank one."""
    if line is None:
        return _error(None, INVALID_REQUEST, f"a message may have at most {LONGEST} bytes")
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        pass
    try:
        document = json.loads(line)
        whole = whole_characters(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "this is not JSON")
    said = document.get("id") if isinstance(document, dict) else None
    if isinstance(said, str) and not said.isascii():  # it may hold half a character, which can't be written
        said = said.encode(errors="replace").decode()
    elif whole != line:
        return parsed(whole)
    return _error(said if isinstance(said, str | int) else None, INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")


def _error(id: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))


@asynccontextmanager
async def connected(
    source: int, sink: int, settle: Callable[[], Awaitable[None]], telling: Telling
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The streams of messages over these descriptors. At the end of the input, *settle* says when to stop."""
    arrived, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](16)
    async with anyio.create_task_group() as group:
        written = anyio.Event()
        group.start_soon(_write_all, leaving, sink, incoming, written, telling)
        group.start_soon(_read_all, source, arrived, outgoing, settle, telling)
        yield incoming, outgoing
        await outgoing.aclose()
        with anyio.move_on_after(_GOODBYE):
            await written.wait()
        group.cancel_scope.cancel()


async def _read_all(
    source: int,
    arrived: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: Outgoing,
    settle: Callable[[], Awaitable[None]],
    telling: Telling,
) -> None:
    """Hand in the messages one by one, each once the one before was taken."""
    try:
        async for line in lines(source):
            message = parsed(line)
            if isinstance(message, JSONRPCError):
                await outgoing.send(SessionMessage(message))
            elif message is not None:
                telling.hear(message)
                await arrived.send(message)
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    await settle()
    await arrived.aclose()


async def _write_all(
    leaving: MemoryObjectReceiveStream[SessionMessage],
    sink: int,
    incoming: Incoming,
    written: anyio.Event,
    telling: Telling,
) -> None:
    """Write what is to leave; when nobody takes it any more, nothing more is taken in."""
    try:
        async for item in leaving:
            data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            if call := telling.of(item):
                write = partial(_write, sink, data)
                id = getattr(item.message, "id", None)
                await anyio.to_thread.run_sync(telling.tell, write, id, call, abandon_on_cancel=True)
            elif len(data) <= _AT_ONCE and select.select([], [sink], [], 0)[1]:
                _write(sink, data)
            else:
                await anyio.to_thread.run_sync(_write, sink, data, abandon_on_cancel=True)
    except OSError:
        await incoming.aclose()
        async for _ in leaving:
            continue
    finally:
        written.set()


def _write(sink: int, data: bytes) -> None:
    while data:
        data = data[os.write(sink, data) :]
