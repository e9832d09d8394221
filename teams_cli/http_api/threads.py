"""Threads: what blocks is run in them, while the loop goes on."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

from teams_cli.records.annotations import Any, Callable

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")
    Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, asyncio.Future[Any]]


class Threads:
    """Up to *most* threads for the jobs of one loop, each started when the others are busy.

    They take half the processor time for a job that anyio's and the standard library's pools take, which also serve
    several loops, and hand over contexts.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._started = 0
        self._busy = 0

    async def run(self, what: Callable[[], T]) -> T:
        """What that returns, or raises, in a thread. Who is cancelled meanwhile is so once it has ended."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._busy += 1
        if self._started < min(self._busy, self._most):
            self._started += 1
            threading.Thread(target=self._work, name=f"request {self._started}", daemon=True).start()
        self._jobs.put((what, loop, done))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if not done.done():
                await asyncio.wait([done])
            raise
        finally:
            self._busy -= 1

    def _work(self) -> None:
        while True:
            what, loop, done = self._jobs.get()
            try:
                settle, outcome = done.set_result, what()
            except BaseException as error:
                settle, outcome = done.set_exception, error
            try:
                loop.call_soon_threadsafe(settle, outcome)
            except RuntimeError:  # the loop is closed, and with it whoever waited
                return
            del what, done, settle, outcome  # nothing of a job is kept until the next
