"""Runs the operations of requests in threads, because the store blocks. An operation runs only as long as its client
waits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import anyio
from anyio import to_thread

from teams_cli.commands.call import Call
from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.refusals import RETRY_AFTER, RequestRefused
from teams_cli.names import HUMAN
from teams_cli.serving import requests
from teams_cli.serving.watching import Requester, Watchers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from teams_cli.commands.declaration import Command

    T = TypeVar("T")


_PLACE_SECONDS = 5.0
"""Seconds that a request waits for a free thread."""


class Operations:
    """Runs the operations that requests ask for. *base* is the call of the command that started the server."""

    def __init__(self, base: Call, watchers: Watchers) -> None:
        self.base = base
        self.watchers = watchers
        self._quick = anyio.CapacityLimiter(refusals.QUICK)
        self._long = anyio.CapacityLimiter(refusals.WAITING)
        self._threads = anyio.CapacityLimiter(refusals.QUICK + refusals.WAITING)
        self.receipts = Receipts()
        self._clients: set[Requester] = set()

    async def command(self, request: Request, command: Command, arguments: dict[str, Any]) -> tuple[Any, Call]:
        """Run the command of a request. Return its document, and the call, which lists the damaged records.

        Raises:
            TeamsError: The command failed or was refused.
            RequestRefused: Too many other requests wait.
            Departed: The client closed the connection.
        """
        sender = requests.Sender(command, arguments)

        def run(call: Call) -> tuple[Any, Call]:
            return requests.answer(call, command.name, sender.arguments, requests.camel_case), call

        sender.refuse_other_team(request.query_params.get("team", ""))
        default = "" if sender.agent else HUMAN
        agent = sender.known_as(request.query_params.get("as") or default)
        return await self.call(request, run, command.long, agent, sender)

    async def call(
        self,
        request: Request,
        run: Callable[[Call], T],
        long: bool = False,
        agent: str = "",
        sender: requests.Sender | None = None,
    ) -> T:
        """Run the function *run* in a thread, with a call for the request, and return its result. The caller is
        *agent*, or else the agent in the request's query, or else the human. If the *sender* in the request's body
        names a team, the call acts in that team and not in the team of the query.

        The human's requests have threads of their own, so that they need not wait for others. Requests of other agents,
        and requests that may take *long*, use other threads. Those requests end when their client leaves.
        """
        agent = agent or request.query_params.get("as") or HUMAN
        await self.receipts.settle(agent)  # so that no news is given twice
        client = Requester()
        is_quick = agent == HUMAN and not long
        limiter = self._quick if is_quick else self._long
        watch = None if is_quick else asyncio.create_task(_watch_client(request, client))

        def work() -> T:
            return run(self._make_call(request, client, agent, sender))

        self._clients.add(client)
        try:
            await _take_place(limiter, client)
            try:
                return await to_thread.run_sync(work, limiter=self._threads)  # there is a thread for each place
            finally:
                limiter.release_on_behalf_of(client)
        finally:
            self._clients.discard(client)
            if watch:
                watch.cancel()

    def _make_call(self, request: Request, client: Requester, agent: str, sender: requests.Sender | None) -> Call:
        """Return the call for the request, with *agent* as the caller and the user's present configuration."""
        default_team = self.base.given_team
        team = (sender and sender.team) or request.query_params.get("team") or default_team
        token = request.headers.get("x-teams-token", "")
        call = requests.call_as(self.base, self.watchers, client, agent, team, token, sender, default_team)
        call.elsewhere = True  # the directory of this process says nothing about the work of the caller
        return call

    def close(self) -> None:
        """End all requests that wait."""
        for client in list(self._clients):
            client.leave()


async def _watch_client(request: Request, client: Requester) -> None:
    """Wait until the client of the request leaves, and then end the waits of the request."""
    while (await request.receive())["type"] != "http.disconnect":  # parts of the body were all read before
        pass
    client.leave()


async def _take_place(limiter: anyio.CapacityLimiter, client: Requester) -> None:
    """Take a slot of *limiter* for the client. If no slot becomes free in time, refuse the request."""
    # If a place is free, it is taken before other tasks of the event loop run.
    with suppress(anyio.WouldBlock):
        return limiter.acquire_on_behalf_of_nowait(client)
    try:
        with anyio.fail_after(_PLACE_SECONDS):
            await limiter.acquire_on_behalf_of(client)
    except TimeoutError:
        raise RequestRefused(503, "busy", "too many requests wait already", "Try again.", RETRY_AFTER) from None


class Receipts:
    """Keeps, for each agent, the answers that are being sent. Once an answer is sent, and not before, its call records
    that the agent got the news in the answer.
    """

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(refusals.QUICK)
        self._sending: dict[str, set[asyncio.Event]] = {}
        """For each agent, an event for each answer. The event is set once the answer is sent and recorded."""

    async def settle(self, agent: str) -> None:
        """Wait until all earlier answers to the agent are sent, and their news is recorded as shown."""
        for sent in list(self._sending.get(agent, ())):
            await sent.wait()

    def noting_response(self, request: Request, response: Response, call: Call) -> Response:
        """Return a response that first sends *response*, and then lets *call* record that the agent got the news in it.
        If the client left before the response was sent, nothing is recorded.
        """
        if not call.has_notes or call.caller is None:
            return response
        agent, sent = call.caller.name, asyncio.Event()
        self._sending.setdefault(agent, set()).add(sent)

        async def send_and_note(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                has_left = await request.is_disconnected()
                await response(scope, receive, send)
                if has_left:
                    call.is_given_up = lambda: True  # the client may repeat the request, and gets the news then
                else:
                    await to_thread.run_sync(call.record_shown, limiter=self._limiter)
            finally:
                sent.set()
                self._sending[agent].discard(sent)

        return send_and_note  # type: ignore[return-value]  # a response is only called
