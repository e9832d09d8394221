"""Server-sent events: streams of a team's changes that a client can take up again where it lost them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from teams_cli.extensions.http import limits
from teams_cli.extensions.http.refusals import RETRY_AFTER, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from teams_cli.extensions.http.feeds import Feed

_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
_BEAT = b": beat\n\n"
_START = b"retry: 1000\n\n"
UNKNOWN = -1


def last_event(request: Request) -> int | None:
    """The position that the client has seen; None for a new client, `UNKNOWN` for one that says what can't be."""
    said = request.headers.get("last-event-id") or request.query_params.get("lastEventId")
    if said is None:
        return None
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else UNKNOWN


class Streams:
    """The open event streams of a server."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()
        self.open = 0

    def stream(self, feed: Feed, seen: int | None) -> EventStream:
        """A stream from that position on.

        Raises:
            Refused: There are as many as there may be.
        """
        if self.open >= limits.STREAMS:
            hint = "Close one, or read /api/board again and again."
            raise RequestRefused(503, "busy", f"{self.open} event streams are open already", hint, RETRY_AFTER)
        return EventStream(self, feed, seen)


class EventStream:
    """One stream, as an ASGI application. A client that takes nothing for a while is dropped: nothing is kept for it,
    and it can come back.
    """

    def __init__(self, streams: Streams, feed: Feed, seen: int | None) -> None:
        self._streams = streams
        self._feed = feed
        self._cuts = feed.cuts
        self._unknown = seen is not None and not 0 <= seen <= feed.position
        self._position = feed.position if seen is None or self._unknown else seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client goes, takes nothing, or the server ends."""
        self._streams.open += 1
        self._feed.join()
        try:
            await _first(self._pump(send), _departure(receive), self._streams.closing.wait())
            if self._streams.closing.is_set():
                await _sent(send, b"", last=True)
        except TimeoutError:
            scope["abort"]()
        finally:
            self._feed.leave()
            self._streams.open -= 1

    async def _pump(self, send: Send) -> None:
        async with asyncio.timeout(limits.SEND_SECONDS):
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await _sent(send, _START)
        while True:
            news = self._feed.news
            if self._unknown or self._cuts != self._feed.cuts:
                await _sent(send, self._reset())
            elif found := await self._feed.behind(self._position):
                await _sent(send, b"".join(event for _, event in found))
                self._position = found[-1][0]
            elif self._position >= self._feed.position:  # ahead by what was read from the history itself
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), limits.BEAT_SECONDS)
                    continue
                await _sent(send, _BEAT)
            else:  # what is left of the history has no entry any more
                self._position = self._feed.position

    def _reset(self) -> bytes:
        """Tell the client to look at everything anew: what it has seen is not in the history."""
        self._unknown, self._cuts, self._position = False, self._feed.cuts, self._feed.position
        return f'id: {self._position}\nevent: reset\ndata: {{"position": {self._position}}}\n\n'.encode()


async def _sent(send: Send, data: bytes, last: bool = False) -> None:
    """Send a part.

    Raises:
        TimeoutError: The client does not take what was sent before.
    """
    async with asyncio.timeout(limits.SEND_SECONDS):
        await send({"type": "http.response.body", "body": data, "more_body": not last})


async def _departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def _first(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Run these until one ends, and end the others."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
