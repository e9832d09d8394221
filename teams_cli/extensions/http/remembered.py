"""The messages of teams in memory: they never change, so a server that looks again and again reads each once."""

from __future__ import annotations

import threading
from bisect import bisect_right

from teams_cli.store.contract import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from teams_cli import errors
    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)

MOST = 20_000
"""Messages of a team that are kept; of longer logs those that are asked for are read anew."""


class Log:
    """The messages of one team after *first*, up to *last*."""

    def __init__(self, first: int) -> None:
        self.first = self.last = first
        self.messages: list[Any] = []
        self.numbers: list[int] = []

    def add(self, messages: list[Any], last: int) -> None:
        """Take the messages up to the number *last*, which is all that there were when it was asked for."""
        for message in messages:
            if message.number <= last:
                self.messages.append(message)
                self.numbers.append(message.number)
        self.last = last

    def after(self, number: int, agent: str | None) -> list[Any]:
        """Those after that number that are for the agent, or all."""
        found = self.messages[bisect_right(self.numbers, number) :]
        if agent is None:
            return found
        return [message for message in found if message.to == agent or agent in (message.recipients or ())]


class Memory:
    """The logs that a server keeps, by team."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.logs: dict[str, Log] = {}


class RememberedStore:
    """The store as a look at a board sees it: messages come from memory where they can."""

    def __init__(self, store: Store, memory: Memory) -> None:
        self._store = store
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    news = Store.news

    def read(
        self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[errors.TeamsError], limit: int = 0
    ) -> list[R]:
        """See the contract. What can't be read is not passed over by memory: then all is read anew."""
        newest = self._store.last(team, kind)
        if limit or newest - after > MOST:
            return self._store.read(team, kind, agent, after, problems, limit)
        with self._memory.lock:
            log = self._memory.logs.get(team)
            if log is None or after < log.first or newest < log.last or log.last - log.first > 2 * MOST:
                log = self._memory.logs[team] = Log(after)
            damaged: list[errors.TeamsError] = []
            if newest > log.last:
                fresh = self._store.read(team, kind, None, log.last, damaged)
                if not damaged:
                    log.add(fresh, newest)
            if not damaged:
                found: list[R] = log.after(after, agent)
                return found
        return self._store.read(team, kind, agent, after, problems)
