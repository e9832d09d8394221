"""Work: what a request has done, in a thread of its own: one that waits holds up no other, and can be stopped."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import anyio
from anyio import to_thread

from teams_cli import errors
from teams_cli.serving.watching import Requester

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    T = TypeVar("T")

MOST = 128
"""Requests at work at a time; a thread each."""
_TELL_EVERY = 5.0
_PAUSE = 0.02


class Works:
    """The works that are under way, each with its requester, by which it is stopped."""

    def __init__(self) -> None:
        self._running: set[Requester] = set()
        self._threads = anyio.CapacityLimiter(MOST)

    async def run(self, work: Callable[[Requester], T], tell: Callable[[float], Awaitable[None]] | None = None) -> T:
        """What *work* returns, or raises. *tell* is told every few seconds how long it has taken. Cancelled, it stops
        waiting for changes; a change that it makes is made whole.

        Raises:
            Busy: Too much is under way.
        """
        if len(self._running) >= MOST:
            raise errors.Busy(f"{MOST} calls are under way", "Wait for one of them, or cancel one.")
        requester, loop = Requester(), asyncio.get_running_loop()
        self._running.add(requester)

        def in_thread() -> T:
            try:
                return work(requester)
            finally:
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self._running.discard, requester)

        thread = asyncio.ensure_future(to_thread.run_sync(in_thread, abandon_on_cancel=True, limiter=self._threads))
        started = time.monotonic()
        try:
            while not (await asyncio.wait({thread}, timeout=_TELL_EVERY))[0]:
                if tell:
                    await tell(time.monotonic() - started)
        except BaseException:
            requester.leave()
            thread.cancel()
            raise
        return thread.result()

    async def settle(self, patience: float) -> None:
        """Wait until all that runs waits for changes, *patience* seconds at the most."""
        give_up = time.monotonic() + patience
        idle = 0  # looks in a row at which all waited: a single one may fall between two waits of the same call
        while idle < 3 and time.monotonic() < give_up:
            await asyncio.sleep(_PAUSE / 2)
            idle = idle + 1 if all(requester.is_waiting for requester in self._running) else 0

    async def end(self, patience: float) -> None:
        """Stop all that runs, and wait until it did, *patience* seconds at the most."""
        for requester in list(self._running):
            requester.leave()
        give_up = time.monotonic() + patience
        while self._running and time.monotonic() < give_up:
            await asyncio.sleep(_PAUSE)
