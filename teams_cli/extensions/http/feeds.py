"""Feeds: the changes of a team as server-sent events, read from its history."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque

from anyio import to_thread
from starlette.responses import StreamingResponse

from teams_cli import errors
from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.refusals import RETRY_AFTER, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from typing import Any

    from starlette.requests import Request
    from starlette.types import Message, Receive, Scope, Send

    from teams_cli.serving.watching import Watchers

    Entry = tuple[int, int, dict[str, Any]]
    "The position before an entry, the position of the entry, and the entry."


_BATCH = 1 << 14
"""The number of bytes that are sent at once."""


class Feed:
    """The events of one team; `position` is the position of the newest event.

    Readers have no queues of their own. Each reader has a position. It takes the next events from memory or, if it is
    far behind, from the history.
    """

    def __init__(self, watchers: Watchers, team: str, loop: asyncio.AbstractEventLoop) -> None:
        self._watchers = watchers
        self._team = team
        self._loop = loop
        self._kept: deque[tuple[int, int, bytes]] = deque(maxlen=refusals.EVENTS)
        self._readers = 0
        self._looking = threading.Lock()
        self._seen = self._before = 0
        self.news = asyncio.Event()
        """An event that is set, and then replaced by a new one, when the feed has new events."""
        self.position = 0
        self.cuts = 0
        """The number of times that another history replaced the one that was read, so that earlier positions mean
        nothing.
        """

    async def catch_up(self) -> None:
        """Read to the end of the history.

        Raises:
            TeamsError: The history can't be read.
        """
        await to_thread.run_sync(self.look)

    def join(self) -> None:
        """Add a reader. The first reader starts the watch on the team."""
        self._readers += 1
        if self._readers == 1:
            self._watchers.listen(self._team, self._look_quietly)

    def leave(self) -> None:
        """Remove a reader. The watch ends when the last reader leaves."""
        self._readers -= 1
        if not self._readers:
            self._watchers.forget(self._team, self._look_quietly)
            self._kept.clear()

    async def after(self, position: int) -> list[tuple[int, bytes]]:
        """Return the next events after *position*, each with its own position; an empty list if there are none yet."""
        if position >= self.position:
            return []
        if self._kept and position >= self._kept[0][0]:
            return _batch((after, event) for before, after, event in self._kept if before >= position)
        return await to_thread.run_sync(self._from_history, position)

    def _from_history(self, position: int) -> list[tuple[int, bytes]]:
        entries = self._watchers.store.history(self._team, position)
        return _batch((after, _event(after, entry)) for after, entry in entries)

    def _look_quietly(self) -> None:
        try:
            self.look()
        except errors.TeamsError:  # the next look may read it again
            return

    def look(self) -> int:
        """Read the new entries of the history, and pass them to the thread of the readers. Return the end position of
        the history.

        Raises:
            TeamsError: The history can't be read.
        """
        with self._looking:
            cut, entries = self._read_on()
            if cut or entries:
                self._before, self._seen = entries[-1][:2] if entries else (0, 0)
                kept = [(before, after, _event(after, entry)) for before, after, entry in entries]
                self._loop.call_soon_threadsafe(self._publish, kept, self._seen, cut)
            return self._seen

    def _read_on(self) -> tuple[bool, deque[Entry]]:
        """Return whether the last entry that was seen is gone, and the new entries, at most as many as are kept."""
        entries = self._watchers.store.history(self._team, self._before)
        position, cut = self._before, False
        if self._seen:
            last = next(entries, None)
            cut = last is None or last[0] != self._seen
            position = 0 if cut else self._seen
            entries = self._watchers.store.history(self._team, 0) if cut else entries
        new: deque[Entry] = deque(maxlen=refusals.EVENTS)
        for after, entry in entries:
            new.append((position, after, entry))
            position = after
        return cut, new

    def _publish(self, entries: list[tuple[int, int, bytes]], position: int, cut: bool) -> None:
        if cut:
            self.cuts += 1
            self._kept.clear()
        if self._kept and entries and entries[0][0] != self._kept[-1][1]:
            self._kept.clear()
        self._kept.extend(entries)
        self.position = position
        self.news.set()
        self.news = asyncio.Event()


def _batch(events: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the first of the events, as many as are sent at once, so that a slow reader holds no more in memory."""
    batch, size = [], 0
    for after, event in events:
        batch.append((after, event))
        size += len(event)
        if size >= _BATCH:
            break
    return batch


def _event(position: int, entry: dict[str, Any]) -> bytes:
    return f"id: {position}\nevent: change\ndata: {json.dumps(entry)}\n\n".encode()


class Feeds:
    """Keeps the feeds of a server, one for each team."""

    def __init__(self, watchers: Watchers) -> None:
        self._watchers = watchers
        self._loop = asyncio.get_running_loop()
        self._feeds: dict[str, Feed] = {}

    async def of(self, team: str) -> Feed:
        """Return the feed of an existing team, after the feed has read to the end of the team's history."""
        feed = self._of(team)
        await feed.catch_up()
        return feed

    def end_of(self, team: str) -> int:
        """Return the end position of a team's history. This may wait for the disk, so it must not run in the event
        loop.

        Raises:
            TeamsError: The history can't be read.
        """
        return self._of(team).look()

    def wake(self) -> None:
        """Wake all readers."""
        for feed in self._feeds.values():
            feed.news.set()

    def _of(self, team: str) -> Feed:
        return self._feeds.get(team) or self._feeds.setdefault(team, Feed(self._watchers, team, self._loop))


_BEAT = b": beat\n\n"
_START = b"retry: 1000\n\n"
UNKNOWN = -1


def last_event(request: Request) -> int | None:
    """Return the position that the client has seen; None for a new client, `UNKNOWN` if the position is not a
    number.
    """
    position = request.headers.get("last-event-id") or request.query_params.get("lastEventId")
    if position is None:
        return None
    return int(position) if position.isascii() and position.isdigit() and len(position) < 19 else UNKNOWN


class Streams:
    """Counts the open event streams of a server, and makes new ones."""

    def __init__(self) -> None:
        self.closing = False
        self.open = 0

    def stream(self, feed: Feed, seen: int | None) -> EventStream:
        """Return a stream of the events after the position *seen*, or from now on if *seen* is None.

        Raises:
            RequestRefused: Too many streams are open.
        """
        if self.open >= refusals.STREAMS:
            hint = "Close one, or read /api/board from time to time."
            raise RequestRefused(503, "busy", f"{self.open} event streams are open already", hint, RETRY_AFTER)
        return EventStream(self, feed, seen)


class EventStream(StreamingResponse):
    """One event stream. A client that takes no data for a while is dropped, and may connect again."""

    def __init__(self, streams: Streams, feed: Feed, seen: int | None) -> None:
        super().__init__(self._events(), headers={"x-accel-buffering": "no"}, media_type="text/event-stream")
        self._streams = streams
        self._feed = feed
        self._cuts = feed.cuts
        self._unknown = seen is not None and not 0 <= seen <= feed.position
        self._position = feed.position if seen is None or self._unknown else seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client leaves or takes no data for a while, or the server ends."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(refusals.SEND_SECONDS):
                await send(message)

        self._streams.open += 1
        self._feed.join()
        try:
            await super().__call__(scope, receive, send_in_time)
        except TimeoutError:
            scope["abort"]()
        finally:
            self._feed.leave()
            self._streams.open -= 1

    async def _events(self) -> AsyncIterator[bytes]:
        yield _START
        while not self._streams.closing:
            news = self._feed.news
            if self._unknown or self._cuts != self._feed.cuts:
                yield self._reset()
            elif events := await self._feed.after(self._position):
                yield b"".join(event for _, event in events)
                self._position = events[-1][0]
            elif self._position >= self._feed.position:  # it may be ahead after reading the history
                try:
                    await asyncio.wait_for(news.wait(), refusals.BEAT_SECONDS)
                except TimeoutError:
                    yield _BEAT
            else:  # no entry of the history is left
                self._position = self._feed.position

    def _reset(self) -> bytes:
        """Return an event that makes the client read everything again, because its last event is not in the history."""
        self._unknown, self._cuts, self._position = False, self._feed.cuts, self._feed.position
        return f'id: {self._position}\nevent: reset\ndata: {{"position": {self._position}}}\n\n'.encode()
