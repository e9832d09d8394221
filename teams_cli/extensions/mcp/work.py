"""Work: what a request has done, in a thread of its own: one that waits holds up no other, and can be stopped."""

from __future__ import annotations

import asyncio
import os
import select
import time
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread

from teams_cli import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection
    from typing import Any, TypeVar

    from teams_cli.store.contract import Store, Watch

    T = TypeVar("T")

MOST = 128
"""Requests at work at a time; a thread each."""
_TELL_EVERY = 5.0
_PAUSE = 0.02
_LATER = 1.5
_AGAIN = 1.0


class Stopped(Exception):
    """Nobody wants the answer any more."""


class Stop:
    """Says that nobody wants the answer any more; wakes whoever waits in the meantime."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pipe: tuple[int, int] | None = None
        self.is_set = False
        self.is_waited_for = False
        """Whether the work waits for a change, and so can be stopped without harm."""

    def set(self) -> None:
        with self._lock:
            self.is_set = True
            if self._pipe:
                os.write(self._pipe[1], b"x")

    def fileno(self) -> int:
        """What `select` wakes on when it is set.

        Raises:
            StorageFailed: The system has no more open files to give.
        """
        with self._lock:
            if self._pipe is None:
                try:
                    self._pipe = os.pipe()
                except OSError as error:
                    hint = "Let fewer wait at once, or raise the limit with ulimit -n."
                    raise errors.StorageFailed(f"can't wait: {error.strerror}", hint) from None
                if self.is_set:
                    os.write(self._pipe[1], b"x")
            return self._pipe[0]

    def close(self) -> None:
        with self._lock:
            for descriptor in self._pipe or ():
                os.close(descriptor)
            self._pipe = None


def stoppable(store: Store, stop: Stop) -> Store:
    """The store, but that waiting for changes in it ends with `Stopped` when *stop* is set."""
    return _Stoppable(store, stop)  # type: ignore[return-value]  # stands in for it in all but its watches


class _Stoppable:
    def __init__(self, store: Store, stop: Stop) -> None:
        self._store = store
        self._stop = stop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def watch(self, team: str, topics: Collection[str] | None = None) -> Watch:
        return _Watch(self._store.watch(team, topics), self._stop)  # type: ignore[return-value]  # nobody sets `slow`


class _Watch:
    def __init__(self, watch: Watch, stop: Stop) -> None:
        self._watch = watch
        self._stop = stop
        self.fileno = watch.fileno
        self.close = watch.close

    @property
    def slow(self) -> str:
        """Why changes are seen late; empty where they wake at once."""
        return self._watch.slow

    @property
    def heard(self) -> frozenset[str]:
        """The topics of the changes that ended the last wait."""
        return self._watch.heard

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when time ran out.

        Raises:
            Stopped: Nobody wants to know any more.
        """
        self._stop.is_waited_for = True
        try:
            return self._watch.wait(0) or self._sleep(timeout)
        finally:
            self._stop.is_waited_for = False

    def _sleep(self, timeout: float) -> bool:
        """Until there may be something; False when time ran out."""
        changes = self._watch.fileno()
        give_up = time.monotonic() + timeout
        soon = timeout
        while not self._stop.is_set:
            left = max(0.0, give_up - time.monotonic())
            if changes is not None and self._watch.slow:  # not all that happens wakes it: who waits looks for itself
                select.select([changes, self._stop.fileno()], [], [], min(left, _AGAIN))
                self._watch.wait(0)
                return timeout > 0 and not self._stop.is_set
            if changes is not None:
                ready = select.select([changes, self._stop.fileno()], [], [], min(left, soon))[0]
                if self._watch.wait(0):
                    return True
                soon = _LATER if ready else timeout  # what concerns nobody may do so when it is left half done
            elif self._watch.wait(min(left, _PAUSE)):
                return True
            if not left:
                return False
        raise Stopped


class _Hands:
    """Threads that do one work after the other; starting one takes longer than most works. No end waits for them."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def do(self, work: Callable[[], None]) -> None:
        try:
            self._idle.pop().put(work)
        except IndexError:
            Thread(target=self._do_all, args=(work,), daemon=True).start()

    def _do_all(self, work: Callable[[], None]) -> None:
        given: SimpleQueue[Callable[[], None]] = SimpleQueue()
        while True:
            work()
            del work  # what it holds is not kept until the next
            self._idle.append(given)
            work = given.get()


class Works:
    """The works that are under way."""

    def __init__(self) -> None:
        self._running: set[Stop] = set()
        self._hands = _Hands()

    async def run(self, work: Callable[[Stop], T], tell: Callable[[float], Awaitable[None]] | None = None) -> T:
        """What *work* returns, or raises. *tell* is told every few seconds how long it has taken. Cancelled, it stops
        waiting for changes; a change that it makes is made whole.

        Raises:
            Busy: Too much is under way.
        """
        if len(self._running) >= MOST:
            raise errors.Busy(f"{MOST} calls are under way", "Wait for one of them, or cancel one.")
        stop, loop = Stop(), asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._running.add(stop)
        self._hands.do(partial(self._work, work, stop, loop, future))
        started = time.monotonic()
        try:
            while not (await asyncio.wait({future}, timeout=_TELL_EVERY))[0]:
                if tell:
                    await tell(time.monotonic() - started)
        except BaseException:
            stop.set()
            future.cancel()
            raise
        return future.result()

    def _work(
        self, work: Callable[[Stop], T], stop: Stop, loop: asyncio.AbstractEventLoop, future: asyncio.Future[T]
    ) -> None:
        result: Any = None
        failure: BaseException | None = None
        try:
            result = work(stop)
        except BaseException as error:
            failure = error

        def settle() -> None:
            self._running.discard(stop)
            if future.done():
                pass
            elif failure is not None:
                future.set_exception(failure)
            else:
                future.set_result(result)
            stop.close()

        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle)

    async def settle(self, patience: float) -> None:
        """Wait until all that runs waits for changes, *patience* seconds at the most."""
        give_up = time.monotonic() + patience
        idle = 0  # looks in a row at which all waited: a single one may fall between two waits of the same call
        while idle < 3 and time.monotonic() < give_up:
            await asyncio.sleep(_PAUSE / 2)
            idle = idle + 1 if all(stop.is_waited_for for stop in self._running) else 0

    async def end(self, patience: float) -> None:
        """Stop all that runs, and wait until it did, *patience* seconds at the most."""
        for stop in list(self._running):
            stop.set()
        give_up = time.monotonic() + patience
        while self._running and time.monotonic() < give_up:
            await asyncio.sleep(_PAUSE)
