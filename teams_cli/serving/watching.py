"""Watch teams for changes, with one thread per team for all requests of a server."""

from __future__ import annotations

import threading
import time

from teams_cli import errors
from teams_cli.store.contract import EVERY_TOPIC, Store, concerns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from teams_cli.store.contract import Watch

    Listener = Callable[[], None]
    Topics = Collection[str] | None

_ROUND = 1.0
"""The most seconds that the thread of a team waits for a change."""
_MOST_IDLE_ROUNDS = 30
"""The thread of a team ends after this many rounds without a listener."""


class Watchers:
    """Watches teams for the requests of a server, with one thread per team."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.closed = False
        self._lock = threading.Lock()
        self._listeners: dict[str, dict[Listener, Topics]] = {}
        self._running: set[str] = set()

    def listen(self, team: str, listener: Listener, topics: Topics = None) -> None:
        """Call *listener* in another thread whenever the team may have changed, and at least every second. With
        *topics*, call it only when one of the topics may have changed.
        """
        with self._lock:
            self._listeners.setdefault(team, {})[listener] = topics
            if team not in self._running and not self.closed:
                self._running.add(team)
                threading.Thread(target=self._watch, args=(team,), name=f"watch {team}", daemon=True).start()

    def forget(self, team: str, listener: Listener) -> None:
        """Stop calling the listener."""
        with self._lock:
            self._listeners.get(team, {}).pop(listener, None)

    def close(self) -> None:
        """End all threads, and wake all requests that wait."""
        self.closed = True
        for team in list(self._listeners):
            self._call_listeners(team, EVERY_TOPIC)

    def _watch(self, team: str) -> None:
        """Run in the team's thread: call the listeners after changes, until the server ends or no listener is left."""
        watch: Watch | None = None
        idle_rounds = 0
        try:
            while not self.closed:
                watch, changed_topics = self._wait_for_change(team, watch)
                has_listeners = self._call_listeners(team, changed_topics)
                idle_rounds = 0 if has_listeners else idle_rounds + 1
                if idle_rounds > _MOST_IDLE_ROUNDS and self._retire(team):
                    return
        except BaseException:
            self._running.discard(team)  # so that the next listener starts another thread
            raise
        finally:
            if watch is not None:
                watch.close()

    def _wait_for_change(self, team: str, watch: Watch | None) -> tuple[Watch | None, frozenset[str]]:
        """Wait for a change, at most a second, or begin to watch if *watch* is None. Return the watch, and the topics
        that may have changed. The returned watch is None if the store can't be read now.
        """
        try:
            if watch is None:  # before there was a watch, anything may have changed
                return self.store.watch(team), EVERY_TOPIC
            return watch, watch.heard if watch.wait(_ROUND) else frozenset()
        except errors.TeamsError:
            if watch is not None:
                watch.close()
            time.sleep(_ROUND)
            return None, EVERY_TOPIC

    def _call_listeners(self, team: str, changed_topics: frozenset[str]) -> bool:
        """Call the listeners that the change concerns. Return whether the team has any listeners."""
        with self._lock:
            listeners = list(self._listeners.get(team, {}).items())
        for listener, topics in listeners:
            if concerns(topics, changed_topics):
                listener()
        return bool(listeners)

    def _retire(self, team: str) -> bool:
        """Record that the thread of the team ends, and return True. Return False if the team has a listener again."""
        with self._lock:
            if self._listeners.get(team):
                return False
            self._listeners.pop(team, None)
            self._running.discard(team)
            return True


class Departed(Exception):
    """Raised when nobody waits for the answer to a request, because the client is gone or the server ends."""


class Requester:
    """Knows whether the client of a request is still there. When the client is gone, the request's waits end."""

    def __init__(self) -> None:
        self.is_gone = False
        self._wake: set[threading.Event] = set()

    @property
    def is_waiting(self) -> bool:
        """Whether the request waits for a change, and so can be stopped without harm."""
        return bool(self._wake)

    def leave(self) -> None:
        """End every wait of the request, because its client is gone."""
        self.is_gone = True
        for event in list(self._wake):
            event.set()

    def wait(self, event: threading.Event, timeout: float) -> bool:
        """Wait for the event, at most *timeout* seconds. Return whether the event happened.

        Raises:
            Departed: The client is gone.
        """
        self._wake.add(event)  # before the look at `is_gone`, so that `leave` in another thread is not missed
        happened = not self.is_gone and event.wait(timeout)
        self._wake.discard(event)
        if self.is_gone:
            raise Departed
        return happened


class SharedWatch:
    """A watch of a team for one request. The thread that watches the team for all requests wakes this watch."""

    slow = ""
    heard = EVERY_TOPIC

    def __init__(self, watchers: Watchers, team: str, topics: Topics, client: Requester) -> None:
        self._watchers = watchers
        self._team = team
        self._client = client
        self._event = threading.Event()
        watchers.listen(team, self._event.set, topics)

    def wait(self, timeout: float) -> bool:
        happened = self._client.wait(self._event, timeout)
        if happened:  # after a timeout the event stays, so that a change at this moment ends the next wait
            self._event.clear()
        return happened

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        self._watchers.forget(self._team, self._event.set)


class WatchedStore:
    """The store as one request sees it. Its watches use the server's watchers, and end when the client is gone."""

    def __init__(self, watchers: Watchers, client: Requester) -> None:
        self._watchers = watchers
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watchers.store, name)

    def watch(self, team: str, topics: Topics = None) -> Watch:
        return SharedWatch(self._watchers, team, topics, self._client)
