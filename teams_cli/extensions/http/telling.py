"""Noting what an answer has shown, once it is sent, and before its agent's next request begins."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request

from teams_cli.commands.call import Call
from teams_cli.extensions.http.threads import Threads

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send


class Telling:
    """The answers that are on their way, by the name of the agent."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
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
                    await self._threads.run(call.note_told)
            finally:
                sent.set()
                self._sending[agent].discard(sent)

        return tell  # type: ignore[return-value]  # all that is done with a response is to call it
