"""Feeds: the changes of a team as server-sent events, read from its history."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from contextlib import suppress

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


_BATCH_BYTES = 1 << 14
"""The number of bytes that are sent at once."""


class Feed:
    """The events of one team. `position` is the end position of the newest event in the team's history.

    A feed has no queue for each reader. Instead, each reader has a position in the history, and takes the events after
    that position from memory. If these are no longer in memory, the reader takes them from the history.
    """

    def __init__(self, watchers: Watchers, team: str, loop: asyncio.AbstractEventLoop) -> None:
        self._watchers = watchers
        self._team = team
        self._loop = loop
        self._recent: deque[tuple[int, int, bytes]] = deque(maxlen=refusals.EVENTS)
        """The newest events, each with the position before it and the position after it."""
        self._readers = 0
        self._reading = threading.Lock()
        self._last = 0
        """The position of the last entry that was read; 0 before the first."""
        self._last_entry: dict[str, Any] = {}
        self._before_last = 0
        """The position before the last entry that was read."""
        self.news = asyncio.Event()
        """An event of asyncio. When the feed has new events, it is set and replaced by a new one."""
        self.position = 0
        self.replacements = 0
        """How many times the history was replaced by another one. Each time, all earlier positions become invalid."""

    def join(self) -> None:
        """Add a reader. With the first reader, the feed begins to watch the team."""
        self._readers += 1
        if self._readers == 1:
            self._watchers.listen(self._team, self._try_to_read)

    def leave(self) -> None:
        """Remove a reader. After the last reader, the feed stops watching the team."""
        self._readers -= 1
        if not self._readers:
            self._watchers.forget(self._team, self._try_to_read)
            self._recent.clear()

    async def after(self, position: int) -> list[tuple[int, bytes]]:
        """Return some of the events after *position*, the oldest first, each with the position that follows it. Return
        an empty list if there are none yet.
        """
        if position >= self.position:
            return []
        if self._recent:
            before_oldest, _, _ = self._recent[0]
            if position >= before_oldest:
                later_events = ((end, event) for before, end, event in self._recent if before >= position)
                return _first_batch(later_events)

        def from_history() -> list[tuple[int, bytes]]:
            entries = self._watchers.store.history(self._team, position)
            later_events = ((end, _event(end, entry)) for end, entry in entries)
            return _first_batch(later_events)

        return await to_thread.run_sync(from_history)  # it may wait for the disk

    def _try_to_read(self) -> None:
        with suppress(errors.TeamsError):  # the next change reads it again
            self.read()

    def read(self) -> int:
        """Read the new entries of the history, and pass them to the thread of the event loop. Return the end position
        of the history.

        The last entry of the earlier call is read again. If it is gone, or is a different entry now, the history was
        replaced, for example from a backup, and is read from its beginning.
        """
        with self._reading:
            position = self._last
            entries = self._watchers.store.history(self._team, self._before_last)
            is_replaced = False
            if self._last:
                last_entry = next(entries, None)
                is_replaced = last_entry != (self._last, self._last_entry)
            if is_replaced:
                position = 0
                entries = self._watchers.store.history(self._team, position)
            new: deque[Entry] = deque(maxlen=refusals.EVENTS)
            for end, entry in entries:
                new.append((position, end, entry))
                position = end
            if is_replaced or new:
                # If there are no new entries, the history was replaced by an empty one.
                self._before_last, self._last, self._last_entry = new[-1] if new else (0, 0, {})
                events = [(before, end, _event(end, entry)) for before, end, entry in new]
                self._loop.call_soon_threadsafe(self._publish, events, self._last, is_replaced)
            return self._last

    def _publish(self, events: list[tuple[int, int, bytes]], position: int, is_replaced: bool) -> None:
        """Put new events into memory, and wake the readers. This runs in the thread of the event loop."""
        if is_replaced:
            self.replacements += 1
        # Entries are missing before the first new event if more were read at once than are kept.
        has_gap = bool(self._recent and events) and events[0][0] != self._recent[-1][1]
        if is_replaced or has_gap:
            self._recent.clear()
        self._recent.extend(events)
        self.position = position
        self.news.set()
        self.news = asyncio.Event()


def _first_batch(events: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the first of *events*, as many as are sent at once: few, because a slow reader keeps them in memory."""
    batch, size = [], 0
    for end, event in events:
        batch.append((end, event))
        size += len(event)
        if size >= _BATCH_BYTES:
            break
    return batch


def _event(position: int, entry: dict[str, Any]) -> bytes:
    return f"id: {position}\nevent: change\ndata: {json.dumps(entry)}\n\n".encode()


class Feeds:
    """Keeps the feeds of a server, one for each team, and counts the event streams that are open."""

    def __init__(self, watchers: Watchers) -> None:
        self._watchers = watchers
        self._loop = asyncio.get_running_loop()
        self._feeds: dict[str, Feed] = {}
        self.open_streams = 0
        self.is_closing = False

    async def of(self, team: str) -> Feed:
        """Return the feed of an existing team, after the feed has read to the end of the team's history.

        Raises:
            TeamsError: The history can't be read.
        """
        feed = self._feed_of(team)
        await to_thread.run_sync(feed.read)
        return feed

    def end_of(self, team: str) -> int:
        """Return the end position of a team's history. This may wait for the disk, so it must not run in the event
        loop.

        Raises:
            TeamsError: The history can't be read.
        """
        return self._feed_of(team).read()

    def stream(self, feed: Feed, seen: int | None) -> EventStream:
        """Return a stream of the events after the position *seen*. If *seen* is None, the stream has only events that
        happen from now on.

        Raises:
            RequestRefused: Too many streams are open.
        """
        if self.open_streams >= refusals.STREAMS:
            hint = "Close one, or read /api/board from time to time."
            raise RequestRefused(503, "busy", f"{self.open_streams} event streams are open already", hint, RETRY_AFTER)
        return EventStream(self, feed, seen)

    def close(self) -> None:
        """End all streams."""
        self.is_closing = True
        for feed in self._feeds.values():
            feed.news.set()

    def _feed_of(self, team: str) -> Feed:
        return self._feeds.get(team) or self._feeds.setdefault(team, Feed(self._watchers, team, self._loop))


_BEAT = b": beat\n\n"
_START = b"retry: 1000\n\n"


def last_event(request: Request) -> int | None:
    """Return the position of the last event that the client has. Return None for a new client. If the client's position
    is not a number, return -1, which is the position of no event.
    """
    position = request.headers.get("last-event-id") or request.query_params.get("lastEventId")
    if position is None:
        return None
    return int(position) if position.isascii() and position.isdigit() and len(position) < 19 else -1


class EventStream(StreamingResponse):
    """A stream of the events after the position *seen*; if *seen* is None, of the events from now on. A client that
    takes no data for a while is dropped, and may connect again.
    """

    def __init__(self, feeds: Feeds, feed: Feed, seen: int | None) -> None:
        super().__init__(self._events(), headers={"x-accel-buffering": "no"}, media_type="text/event-stream")
        self._feeds = feeds
        self._feed = feed
        self._replacements = feed.replacements
        """The feed's number of replacements when the client's position was last checked."""
        self._is_position_unknown = seen is not None and not 0 <= seen <= feed.position
        """Whether the position *seen* is outside the history. False once the client has been told so."""
        self._position = feed.position if seen is None or self._is_position_unknown else seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client leaves or takes no data for a while, or the server ends."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(refusals.SEND_SECONDS):
                await send(message)

        self._feeds.open_streams += 1
        self._feed.join()
        try:
            await super().__call__(scope, receive, send_in_time)
        except TimeoutError:
            scope["abort"]()  # closes the connection: see `HttpConnection`
        finally:
            self._feed.leave()
            self._feeds.open_streams -= 1

    async def _events(self) -> AsyncIterator[bytes]:
        """Yield events as they happen, until the server ends. Yield a comment if none happens for a while.

        Yield the event `reset`, after which the client reads everything again, if the client's position is not in the
        history: it was unknown from the beginning, or the history was replaced.
        """
        yield _START
        while not self._feeds.is_closing:
            news = self._feed.news  # taken before the look, so that no event is missed
            if self._is_position_unknown or self._replacements != self._feed.replacements:
                self._is_position_unknown, self._replacements = False, self._feed.replacements
                self._position = position = self._feed.position
                yield f'id: {position}\nevent: reset\ndata: {{"position": {position}}}\n\n'.encode()
            elif events := await self._feed.after(self._position):
                yield b"".join(event for _, event in events)
                self._position = events[-1][0]
            elif self._position >= self._feed.position:  # greater after events that were read from the history
                try:
                    await asyncio.wait_for(news.wait(), refusals.BEAT_SECONDS)
                except TimeoutError:
                    yield _BEAT
            else:  # the history no longer has entries after the client's position, so there is nothing to send
                self._position = self._feed.position
