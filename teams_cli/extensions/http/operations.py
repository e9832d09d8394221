"""Running commands for requests: in threads, since the store blocks, and no longer than somebody waits for them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from bisect import bisect_right
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import cast

import anyio
from anyio import to_thread

from teams_cli import errors, processes
from teams_cli.clock import rfc3339
from teams_cli.commands.call import Call
from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.refusals import RETRY_AFTER, RequestRefused
from teams_cli.names import HUMAN
from teams_cli.serving import requests
from teams_cli.serving.watching import Requester, WatchedStore, Watchers
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.store.files.locks import PortableLock
from teams_cli.teams import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from teams_cli.commands.declaration import Command
    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)
    T = TypeVar("T")


_PATIENCE = 5.0


class Operations:
    """What runs the operations of a server that was started with *base*."""

    def __init__(self, base: Call, watchers: Watchers) -> None:
        self.base = base
        self.watchers = watchers
        self._quick = anyio.CapacityLimiter(refusals.QUICK)
        self._long = anyio.CapacityLimiter(refusals.WAITING)
        self._threads = anyio.CapacityLimiter(refusals.QUICK + refusals.WAITING)
        self.telling = Telling()
        self._clients: set[Requester] = set()

    async def command(self, request: Request, command: Command, given: dict[str, Any]) -> tuple[Any, Call]:
        """The document with which a command answers a request, and its call, which says what was damaged on the way.

        Raises:
            TeamsError: The command refuses.
            Refused: Too many others wait.
            Departed: The client did not wait for it.
        """

        sender = requests.Sender(command, given)

        def run(call: Call) -> tuple[Any, Call]:
            return requests.answer(call, command.name, sender.rest, requests.camel_case), call

        agent = sender.known_as(request.query_params.get("as") or ("" if sender.agent else HUMAN))
        return await self.call(request, run, command.long, agent, sender)

    async def call(
        self,
        request: Request,
        run: Callable[[Call], T],
        long: bool = False,
        agent: str = "",
        sender: requests.Sender | None = None,
    ) -> T:
        """What *run* makes of the call of a request, in a thread, by *agent* or as the request says.

        One that may take *long*, or that may have to ask the person for leave, takes no place of those that the
        person's own requests wait for, and ends when its client goes.

        Raises:
            Refused: Too many others wait.
            Departed: The client did not wait for it.
        """
        agent = agent or request.query_params.get("as") or HUMAN
        await self.telling.settle(agent)
        client = Requester()
        may_wait = long or agent != HUMAN
        limiter = self._long if may_wait else self._quick
        watch = asyncio.create_task(_look_out(request, client)) if may_wait else None
        self._clients.add(client)
        try:
            await _acquire(limiter, client)
            try:
                work = partial(self._run, run, request, agent, client, sender)
                return await to_thread.run_sync(work, limiter=self._threads)
            finally:
                limiter.release_on_behalf_of(client)
        finally:
            self._clients.discard(client)
            if watch:
                watch.cancel()

    async def team(self, request: Request) -> str:
        """The name of the team that the request is about."""
        return await self.call(request, lambda call: call.load_team().name)

    def _run(
        self, run: Callable[[Call], T], request: Request, agent: str, client: Requester, sender: requests.Sender | None
    ) -> T:
        """What *run* makes of the call of a request; the user's rules are those of now."""
        base = self.base
        store = cast("Store", WatchedStore(self.watchers, client))
        fresh = Call(
            store,
            config.load(store.root, base.environ),
            team=base.said_team,
            sources=base.sources,
            environ=base.environ,
            directory=base.said_directory,
        )
        said = (sender and sender.team) or request.query_params.get("team") or base.said_team
        token = request.headers.get("x-teams-token", "")
        call = requests.call_as(fresh, agent, said or fresh.only_team(), token, sender)
        call.elsewhere = True
        call.is_given_up = lambda: client.is_gone
        return run(call)

    def close(self) -> None:
        """Let nobody wait any more."""
        for client in list(self._clients):
            client.leave()


async def _look_out(request: Request, client: Requester) -> None:
    """Note when the client goes; the body was read before."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return client.leave()


async def _acquire(limiter: anyio.CapacityLimiter, client: Requester) -> None:
    with suppress(anyio.WouldBlock):  # mostly there is room
        return limiter.acquire_on_behalf_of_nowait(client)
    try:
        with anyio.fail_after(_PATIENCE):
            await limiter.acquire_on_behalf_of(client)
    except TimeoutError:
        raise RequestRefused(503, "busy", "too many requests wait already", "Try again.", RETRY_AFTER) from None


class Telling:
    """The answers that are on their way, by the name of the agent."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(refusals.QUICK)
        self._sending: dict[str, set[asyncio.Event]] = {}

    async def settle(self, agent: str) -> None:
        """Wait until what the agent was told before is noted."""
        for sent in list(self._sending.get(agent, ())):
            await sent.wait()

    def expect(self, request: Request, response: Response, call: Call) -> Response:
        """The response; once it is sent, unless the client has gone before, it is noted what the call was told."""
        if not call.has_to_note or call.caller is None:
            return response
        agent, sent = call.caller.name, asyncio.Event()
        self._sending.setdefault(agent, set()).add(sent)

        async def tell(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                gone = await request.is_disconnected()
                await response(scope, receive, send)
                if gone:
                    call.is_given_up = lambda: True
                else:
                    await to_thread.run_sync(call.note_told, limiter=self._limiter)
            finally:
                sent.set()
                self._sending[agent].discard(sent)

        return tell  # type: ignore[return-value]  # all that is done with a response is to call it


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


_LIMIT = 4096
_REGISTRATION_PATIENCE = 10.0


def register(root: str, url: str, token: str) -> dict[str, Any]:
    """Write down where the server is; what was written. A token that an earlier version kept is taken away: while no
    server runs, another user can listen on its port, and would be handed that token.

    Raises:
        Conflict: Another server of this root is running; names it.
    """
    pid = os.getpid()
    document = {"url": url, "token": token, "pid": pid, "startedAt": rfc3339(datetime.now(UTC))}
    document.update(pidStarted=processes.process_started(pid), pidBoot=processes.pid_scope())
    disk.prepare_root(root)
    with PortableLock(root, _REGISTRATION_PATIENCE):
        if other := running(root):
            hint = f"Use it, or end it first: kill {other.get('pid')}"
            raise errors.Conflict(f"a server of these teams is running at {other['url']}", hint)
        data = json.dumps(document, indent=2).encode() + b"\n"
        disk.commit(disk.write_temp(f"{root}/tmp", data), _path(root))
        disk.discard(f"{root}/server.token")
    return document


def running(root: str) -> dict[str, Any]:
    """What the server wrote that is running; nothing if none is."""
    other = _found(root)
    return other if other and _runs(other) else {}


def unregister(root: str) -> None:
    """Take away what `register` wrote, if it is still ours."""
    with PortableLock(root, _REGISTRATION_PATIENCE):
        if _found(root).get("pid") == os.getpid():
            disk.discard(_path(root))


def _path(root: str) -> str:
    return f"{root}/server.json"


def _read(path: str) -> bytes:
    try:
        return disk.read_file(path, _LIMIT)
    except FileNotFoundError:
        return b""


def _found(root: str) -> dict[str, Any]:
    """What the file says; nothing where it says nothing of use."""
    try:
        document = json.loads(_read(_path(root)) or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) and {"url", "pid", "token"} <= document.keys() else {}


def _runs(other: dict[str, Any]) -> bool:
    """Whether that server is there: its process, or where that can't be known, something behind its port."""
    try:
        ended = processes.has_ended(int(other["pid"]), str(other.get("pidStarted", "")), str(other.get("pidBoot", "")))
    except (TypeError, ValueError):
        return False
    return _answers(str(other["url"])) if ended is None else not ended


def _answers(url: str) -> bool:
    host, _, port = url.rpartition("/")[2].partition(":")
    try:
        socket.create_connection((host, int(port)), 1.0).close()
    except (OSError, ValueError):
        return False
    return True
