"""Threads: what blocks is run in them, while the loop goes on."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")


class Threads:
    """Up to *most* threads for the jobs of one loop, each started when the others are busy.

    They take half the processor time for a job that anyio's and the standard library's pools take, which also serve
    several loops, and hand over contexts.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._started = 0
        self._busy = 0

    async def run(self, what: Callable[[], T]) -> T:
        """What that returns, or raises, in a thread. Who is cancelled meanwhile is so once it has ended."""
        job = _Job(what, asyncio.get_running_loop())
        self._busy += 1
        try:
            self._start_another()
            self._jobs.put(job)
            found: T = await job.outcome
        except asyncio.CancelledError:
            await job.end()
            raise
        finally:
            self._busy -= 1
        return found

    def _start_another(self) -> None:
        """Start a thread if all are busy, and there may be more."""
        if self._started < min(self._busy, self._most):
            threading.Thread(target=self._work, name=f"request {self._started + 1}", daemon=True).start()
            self._started += 1

    def _work(self) -> None:
        while self._jobs.get().run():
            pass


class _Job:
    """Something to run in a thread, and what comes of it, in the loop."""

    def __init__(self, what: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self._what = what
        self._loop = loop
        self._has_ended = False
        self.outcome: asyncio.Future[Any] = loop.create_future()

    def run(self) -> bool:
        """Run it; whether the loop is still there to hear of it."""
        try:
            ended: tuple[Any, BaseException | None] = self._what(), None
        except BaseException as error:  # a future takes no StopIteration
            ended = None, RuntimeError("it stopped") if isinstance(error, StopIteration) else error
        try:
            self._loop.call_soon_threadsafe(self._settle, *ended)
        except RuntimeError:  # it is closed, and with it whoever waited
            return False
        return True

    def _settle(self, found: Any, error: BaseException | None) -> None:
        self._has_ended = True
        if self.outcome.cancelled():
            return
        if error is None:
            self.outcome.set_result(found)
        else:
            self.outcome.set_exception(error)

    async def end(self) -> None:
        """Wait for the end, whatever it is, of what nobody waits for any more."""
        with anyio.CancelScope(shield=True):
            while not self._has_ended:
                self.outcome = self._loop.create_future()
                with suppress(BaseException):
                    await self.outcome
