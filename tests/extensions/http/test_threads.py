"""The threads in which requests are answered: what each job comes to, whoever waits for it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from teams_cli.extensions.http.janus import Threads


def test_more_jobs_than_threads_come_to_their_ends() -> None:
    async def test() -> None:
        threads, names = Threads(3), set()

        def job() -> int:
            names.add(threading.current_thread().name)
            return 7

        assert await asyncio.gather(*(threads.run(job) for _ in range(50))) == [7] * 50
        assert names <= {"request 1", "request 2", "request 3"}

    asyncio.run(test())


def test_a_job_that_raises_does_so_where_it_is_waited_for() -> None:
    """Also what a future can't take; the thread goes on with the next."""

    def fail() -> None:
        raise StopIteration

    async def test() -> None:
        threads = Threads(1)
        with pytest.raises(RuntimeError):
            await threads.run(fail)
        assert await threads.run(lambda: 7) == 7

    asyncio.run(test())


def test_who_is_cancelled_is_so_once_the_job_has_ended() -> None:
    """So that nothing it uses is put away under its hands; and its place is free again."""

    async def test() -> None:
        threads, begun, go, ended = Threads(1), threading.Event(), threading.Event(), []

        def job() -> None:
            begun.set()
            assert go.wait(60)
            ended.append(True)

        waiting = asyncio.create_task(threads.run(job))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        for _ in range(2):
            waiting.cancel()
            await asyncio.sleep(0.05)
        assert not waiting.done() and not ended
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert ended == [True] and await threads.run(lambda: 7) == 7

    asyncio.run(test())
