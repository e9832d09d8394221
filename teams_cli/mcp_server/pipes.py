"""The standard streams of the process as the line of the protocol: one JSON-RPC message a line, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import select
from contextlib import asynccontextmanager
from functools import partial
from threading import Thread

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from teams_cli.records.annotations import AsyncIterator, Awaitable, Callable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
    Outgoing = MemoryObjectSendStream[SessionMessage]

LONGEST = 16 << 20
"""Bytes of a message: a result of 1 MiB can take six times as much in JSON."""
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
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    return source, sink


def lines(source: int) -> Iterator[bytes | None]:
    """The lines that arrive; None for one that is too long."""
    pending: list[bytes] = []
    size = 0
    while data := os.read(source, 1 << 18):
        for number, piece in enumerate(data.split(b"\n")):
            if number:
                yield b"".join(pending) if size <= LONGEST else None
                pending, size = [], 0
            size += len(piece)
            pending = [*pending, piece] if size <= LONGEST else []
    if size:
        yield b"".join(pending) if size <= LONGEST else None


def parsed(line: bytes | None) -> SessionMessage | JSONRPCError | None:
    """The message in a line, or the error to answer it with; None for a blank one."""
    if line is None:
        return _error(None, INVALID_REQUEST, f"a message may have at most {LONGEST} bytes")
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        pass
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "this is not JSON")
    said = document.get("id") if isinstance(document, dict) else None
    if isinstance(said, str) and not said.isascii():  # it may hold half a character, which can't be written
        said = said.encode(errors="replace").decode()
    return _error(said if isinstance(said, str | int) else None, INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")


def _error(id: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))


@asynccontextmanager
async def connected(
    source: int, sink: int, settle: Callable[[], Awaitable[None]]
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The streams of messages over these descriptors. At the end of the input, *settle* says when to stop."""
    arrived, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](16)
    loop = asyncio.get_running_loop()

    async def take(line: bytes | None) -> None:
        message = parsed(line)
        try:
            if isinstance(message, JSONRPCError):
                await outgoing.send(SessionMessage(message))
            elif message is not None:
                await arrived.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def end() -> None:
        await settle()
        await arrived.aclose()

    async with anyio.create_task_group() as group:
        written = anyio.Event()
        group.start_soon(_write_all, leaving, sink, incoming, written)
        Thread(target=_read_all, args=(source, loop, take, end), daemon=True).start()
        yield incoming, outgoing
        await outgoing.aclose()
        with anyio.move_on_after(_GOODBYE):
            await written.wait()
        group.cancel_scope.cancel()


def _read_all(
    source: int,
    loop: asyncio.AbstractEventLoop,
    take: Callable[[bytes | None], Awaitable[None]],
    end: Callable[[], Awaitable[None]],
) -> None:
    """Hand in the lines one by one, each once the one before was taken. The process does not wait for this thread."""
    hand_in = partial(_done_in, loop)
    try:
        for line in lines(source):
            hand_in(take(line))
    except OSError:
        pass
    finally:
        hand_in(end())


def _done_in(loop: asyncio.AbstractEventLoop, work: Awaitable[None]) -> None:
    try:
        asyncio.run_coroutine_threadsafe(work, loop).result()  # type: ignore[arg-type]  # they are coroutines
    except (RuntimeError, asyncio.CancelledError):  # the loop has ended
        return


async def _write_all(
    leaving: MemoryObjectReceiveStream[SessionMessage], sink: int, incoming: Incoming, written: anyio.Event
) -> None:
    """Write what is to leave; when nobody takes it any more, nothing more is taken in."""
    try:
        async for item in leaving:
            data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            if len(data) <= _AT_ONCE and select.select([], [sink], [], 0)[1]:
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
