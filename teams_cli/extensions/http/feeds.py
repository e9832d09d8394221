"""Feeds: the changes of a team as events, kept up from its history by the team's watcher."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque

from anyio import to_thread

from teams_cli import errors
from teams_cli.extensions.http import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from teams_cli.serving.watching import Watchers

    Found = tuple[int, int, dict[str, Any]]

_BATCH = 1 << 14
"""Bytes that are sent at once, when there is more."""


class Feed:
    """The events of one team; `position` is behind the newest.

    Readers have no queues of their own: each has a position, and takes what is behind it from what is kept in memory,
    or, when it is far behind, from the history itself.
    """

    def __init__(self, watchers: Watchers, team: str, loop: asyncio.AbstractEventLoop) -> None:
        self._watchers = watchers
        self._team = team
        self._loop = loop
        self._kept: deque[tuple[int, int, bytes]] = deque(maxlen=limits.EVENTS)
        self._readers = 0
        self._looking = threading.Lock()
        self._seen = self._before = 0
        self.news = asyncio.Event()
        """Set, and then replaced, when there is something new."""
        self.position = 0
        self.cuts = 0
        """How often the history turned out to be another than the one that was followed."""

    async def catch_up(self) -> None:
        """Get to the end of the history.

        Raises:
            TeamsError: It can't be read.
        """
        await to_thread.run_sync(self.look)

    def join(self) -> None:
        """Count one more who reads, and listen with the first."""
        self._readers += 1
        if self._readers == 1:
            self._watchers.listen(self._team, self._look_quietly)

    def leave(self) -> None:
        """Count one less who reads, and forget all with the last."""
        self._readers -= 1
        if not self._readers:
            self._watchers.forget(self._team, self._look_quietly)
            self._kept.clear()

    async def behind(self, position: int) -> list[tuple[int, bytes]]:
        """The next events behind that position, each with its own; none at the end."""
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
        """Read on from where the history was read to before, and hand what is new to the readers' thread; where the
        history ends.

        Raises:
            TeamsError: It can't be read.
        """
        with self._looking:
            cut, found = self._read_on()
            if cut or found:
                self._before, self._seen = found[-1][:2] if found else (0, 0)
                kept = [(before, after, _event(after, entry)) for before, after, entry in found]
                self._loop.call_soon_threadsafe(self._publish, kept, self._seen, cut)
            return self._seen

    def _read_on(self) -> tuple[bool, deque[Found]]:
        """What is new, at most as much as is kept; and whether the last entry that was seen is not there any more."""
        entries = self._watchers.store.history(self._team, self._before)
        position, cut = self._before, False
        if self._seen:
            last = next(entries, None)
            cut = last is None or last[0] != self._seen
            position = 0 if cut else self._seen
            entries = self._watchers.store.history(self._team, 0) if cut else entries
        found: deque[Found] = deque(maxlen=limits.EVENTS)
        for after, entry in entries:
            found.append((position, after, entry))
            position = after
        return cut, found

    def _publish(self, found: list[tuple[int, int, bytes]], position: int, cut: bool) -> None:
        if cut:
            self.cuts += 1
            self._kept.clear()
        if self._kept and found and found[0][0] != self._kept[-1][1]:
            self._kept.clear()
        self._kept.extend(found)
        self.position = position
        self.news.set()
        self.news = asyncio.Event()


def _batch(events: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The first of these, as many as are sent at once: each reader holds so much, whether it takes it or not."""
    found, size = [], 0
    for after, event in events:
        found.append((after, event))
        size += len(event)
        if size >= _BATCH:
            break
    return found


def _event(position: int, entry: dict[str, Any]) -> bytes:
    return f"id: {position}\nevent: change\ndata: {json.dumps(entry)}\n\n".encode()


class Feeds:
    """The feeds of a server, by team."""

    def __init__(self, watchers: Watchers) -> None:
        self._watchers = watchers
        self._loop = asyncio.get_running_loop()
        self._feeds: dict[str, Feed] = {}

    async def of(self, team: str) -> Feed:
        """The feed of a team that there is, at the end of its history."""
        feed = self._of(team)
        await feed.catch_up()
        return feed

    def end_of(self, team: str) -> int:
        """Where the history ends of a team that there is; for who is in a thread that may wait for the disk.

        Raises:
            TeamsError: It can't be read.
        """
        return self._of(team).look()

    def _of(self, team: str) -> Feed:
        return self._feeds.get(team) or self._feeds.setdefault(team, Feed(self._watchers, team, self._loop))
