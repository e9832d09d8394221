"""The application: maps each address to the function that answers it."""

from __future__ import annotations

import hmac
import json
import os
from functools import partial
from hmac import compare_digest
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from teams_cli import errors
from teams_cli.commands.call import Call
from teams_cli.extensions.http import feeds, janus, openapi, refusals
from teams_cli.extensions.http.boards import Boards
from teams_cli.extensions.http.feeds import Feeds
from teams_cli.extensions.http.operations import Operations
from teams_cli.extensions.http.refusals import RETRY_AFTER, Bodies, Document, RequestRefused
from teams_cli.serving import requests
from teams_cli.serving.watching import Departed, Watchers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection
    from typing import Any

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from teams_cli.commands.declaration import Command

    Handler = Callable[[Request], Awaitable[Response]]


_READING = ("GET", "HEAD")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer, unless the answer itself sets other values for them."""
_PROOF = "/api/proof"
"""The path where the server proves that it knows the token. A page that stayed open while no server ran asks for the
proof before it sends the token.
"""
_API = ("/api/", "/openapi.json")
"""The prefixes of the paths that serve data. All other paths serve the files of the board."""


class RequestGuard:
    """Refuses requests that are meant for another server, come from a page of another site, or lack the token. Changes
    need the token. On a *private* server, reading data needs it too.

    A page of another site can make a browser send requests to this server. The headers `Host`, `Origin` and
    `Sec-Fetch-Site` show this. Besides, the page can't know the token.
    """

    def __init__(self, app: ASGIApp, port: int, token: str, private: bool) -> None:
        self.app = app
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        if port == 80:  # which clients leave out
            self.hosts |= {"127.0.0.1", "localhost"}
        self.token = token.encode()
        self.private = private

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope, Headers(scope=scope))
        except RequestRefused as refused:
            return await refusals.refusal_answer(refused)(scope, receive, send_with_headers)
        await self.app(scope, receive, send_with_headers)

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Refuse a request that is meant for another server, comes from another site, or lacks the token it needs."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            names = " or ".join(sorted(self.hosts))
            raise RequestRefused(421, "wrong_host", "this server has another name", f"Call it {names}.")
        origins = headers.getlist("origin")
        is_api = scope["path"].startswith(_API)
        # Browsers send these two headers, and pages can't change them. Other programs send neither.
        is_foreign_page = is_api and headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        is_foreign_origin = bool(origins) and origins != [f"http://{hosts[0]}"]
        if is_foreign_page or is_foreign_origin:
            hint = "Use the board of this server."
            raise RequestRefused(403, "foreign_origin", "pages of other sites may not use this server", hint)
        is_change = scope["method"] not in _READING
        shows_private_data = is_api and self.private and scope["path"] != _PROOF
        if is_change or shows_private_data:
            self._check_token(scope, headers.get("authorization", ""))

    def _check_token(self, scope: Scope, authorization: str) -> None:
        scheme, _, token = authorization.partition(" ")
        if not token and scope["path"] == "/api/events":  # a browser's event stream can't send headers
            scheme, token = "bearer", parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scheme.lower() == "bearer" and compare_digest(token.strip().encode(), self.token):
            return
        hint = (
            "`teams serve` prints the token, and server.json in the root has it. "
            "Requests carry it as `Authorization: Bearer TOKEN`."
        )
        message = "the token is wrong" if token else "the token is missing"
        raise RequestRefused(401, "wrong_token", message, hint, {"WWW-Authenticate": "Bearer"})


_BOARD = f"{os.path.dirname(__file__)}/board"
_GENERAL_PARAMETERS = ("team", "as")
"""Parameters that every request may have. They do not belong to the command of the request."""
_SERVER_ENDED = RequestRefused(
    503, "busy", "the server ended before it could answer", "Repeat the request after it is started again.", RETRY_AFTER
)


class Api:
    """The state of a running server, and the handlers of its requests."""

    def __init__(self, base: Call) -> None:
        self.watchers = Watchers(base.store)
        self.operations = Operations(base, self.watchers)
        self.feeds = Feeds(self.watchers)
        self.boards = Boards(self.operations, self.feeds)
        self.bodies = Bodies()

    def application(self, port: int, token: str, private: bool) -> ASGIApp:
        """Return the ASGI application. If the server is *private*, even reading needs the *token*."""
        api = [
            Route("/agents", self._looking(janus.agents)),
            Route("/agents/{name}/message", self.message, methods=["POST"]),
            Route("/agents/{name}/log", self._looking(janus.log, ["lines"])),
            Route("/board", self._looking(self.boards.whole)),
            Route("/board/teams", self._looking(self.boards.teams)),
            Route("/board/rows", _with_refusals(self.boards.rows, ["after", "messages", "finished"])),
            Route("/board/messages", _with_refusals(self.boards.messages, ["before", "limit", "whole"])),
            Route("/board/report", self._looking(self.boards.report)),
            Route("/proof", _with_refusals(partial(_prove, token=token), ["nonce"])),
            Route("/events", _with_refusals(self.events, ["lastEventId", "token"])),
            *(route for command in requests.offered() for route in self._routes(command)),
        ]
        routes = [
            Mount("/api", routes=api),
            Route("/openapi.json", _with_refusals(_describe)),
            Mount("/", StaticFiles(directory=_BOARD, html=True)),
        ]
        app = Starlette(
            routes=routes, exception_handlers={404: _unknown_address, 405: _wrong_method, Exception: _failed}
        )
        return RequestGuard(app, port, token, private)

    def close(self) -> None:
        """End open streams and waits."""
        self.feeds.close()
        self.operations.close()
        self.watchers.close()

    def _routes(self, command: Command) -> list[Route]:
        """Return the routes of a command, under its own name and under the names that OpenCode Teams has for it."""
        list_parameters = [parameter for parameter in requests.parameters(command) if parameter.many]
        list_keys = {requests.camel_case(name) for parameter in list_parameters for name in parameter.spellings}

        async def handle(request: Request) -> Response:
            if command.reads:
                query = request.query_params
                keys = [key for key in query if key not in _GENERAL_PARAMETERS]
                arguments = {key: query.getlist(key) if key in list_keys else query[key] for key in keys}
            else:
                arguments = await self.bodies.read(request)
            document, call = await self.operations.command(request, command, arguments)
            problems = len(call.messages_of_problems())
            headers = {"X-Teams-Damaged": str(problems)} if problems else None
            response = Document(document, headers=headers)
            # Once the response is sent, the call records that the agent got the news in it.
            return self.operations.receipts.noting_response(request, response, call)

        snake = command.name.replace("-", "_")
        path_names = dict.fromkeys((command.name, snake, f"team_{snake}", f"team-{command.name}"))  # each name once
        method = "GET" if command.reads else "POST"
        query_parameters = None if command.reads else ()  # a command itself refuses parameters that it does not have
        answer = _with_refusals(handle, query_parameters, list_keys)
        return [Route(f"/{name}", answer, methods=[method]) for name in path_names]

    def _looking(self, look: Callable[[Call, Request], Any], parameters: Collection[str] = ()) -> Handler:
        """Return a handler that answers with the document that *look* returns. The query may have the *parameters*."""

        async def answer(request: Request) -> Response:
            return Document(await self.operations.call(request, lambda call: look(call, request)))

        return _with_refusals(answer, parameters)

    async def message(self, request: Request) -> Response:
        """Deliver a message to an agent. A refusal has the form that clients of the Janus system expect."""
        name, query = request.path_params["name"], request.query_params
        write_hint = refusals.hint_writer(request.headers.get("prefer", ""))
        try:
            _check_query(request, ("team", "interrupt"))
            body = await self.bodies.read(request)
            sender = body.get("sender")
            response, call = await self.operations.call(
                request,
                lambda call: (janus.send(call, name, body, query.get("interrupt"), query.get("team", "")), call),
                agent=sender if isinstance(sender, str) else "",
            )
            return self.operations.receipts.noting_response(request, response, call)
        except (Departed, ClientDisconnect):  # if the client left, nobody reads this answer
            return janus.refused(_SERVER_ENDED, write_hint)
        except Exception as error:
            return janus.refused(error, write_hint)

    async def events(self, request: Request) -> Any:
        """Answer with the stream of the team's events. A request for the headers alone opens no stream."""
        team = await self.operations.call(request, lambda call: call.load_team().name)
        feed = await self.feeds.of(team)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return self.feeds.stream(feed, feeds.last_event(request))


async def _describe(request: Request) -> Response:
    return Document(openapi.document())


async def _prove(request: Request, token: str) -> Response:
    nonce = request.query_params.get("nonce", "")
    return Document({"proof": hmac.new(token.encode(), nonce.encode(errors="replace"), "sha256").hexdigest()})


def _check_query(request: Request, allowed: Collection[str] | None, lists: Collection[str] = ()) -> None:
    """Refuse a query with a parameter that is not *allowed*; if *allowed* is None, every parameter is allowed. Also
    refuse a query that has a parameter several times, unless the parameter is one of the *lists*.

    Also refuse a blank name of a team or of an agent. A request that names no agent counts as the human's, and a script
    whose variable is empty by mistake must not pass for the human.
    """
    query = request.query_params
    for key in query:
        if allowed is not None and key not in allowed:
            hint = f"It takes {', '.join(allowed)}."
            if request.method not in _READING:
                hint = f"{hint} Put other values into the JSON body: {json.dumps({key: query[key]})}"
            raise errors.InvalidValue(f"{key}: unknown field of the query", hint)
        if len(query.getlist(key)) > 1 and key not in lists:
            raise errors.InvalidValue(f"the query has {key} several times", "Give it once.")
        if key in _GENERAL_PARAMETERS and not query[key].strip():
            raise errors.InvalidValue(f"{key} is blank in the query", f"Write ?{key}=NAME, or leave {key} out.")


def _with_refusals(handle: Handler, parameters: Collection[str] | None = (), lists: Collection[str] = ()) -> Handler:
    """Return a handler that calls *handle*, and answers with the document of a refusal if *handle* raises an error.

    The query of a request may name a team and an agent, and may have the *parameters*. If *parameters* is None, the
    query may have any parameter. The parameters in *lists* may be given several times.
    """
    allowed = None if parameters is None else (*_GENERAL_PARAMETERS, *parameters)

    async def answer(request: Request) -> Response:
        try:
            _check_query(request, allowed, lists)
            return await handle(request)
        except (Departed, ClientDisconnect):  # if the client left, nobody reads this answer
            return refusals.refusal_answer(_SERVER_ENDED)
        except Exception as error:
            return refusals.refusal_answer(error, refusals.hint_writer(request.headers.get("prefer", "")))

    return answer


async def _unknown_address(request: Request, error: Exception) -> Response:
    refused = RequestRefused(404, "unknown_address", "there is no such page", "See /openapi.json.")
    return refusals.refusal_answer(refused)


async def _wrong_method(request: Request, error: Exception) -> Response:
    headers = getattr(error, "headers", None) or {}  # Starlette names the methods of the address in a header
    allowed = headers.get("Allow", "another method")
    return refusals.refusal_answer(
        RequestRefused(405, "wrong_method", f"{request.method} is not allowed here", f"Use {allowed}.", headers)
    )


async def _failed(request: Request, error: Exception) -> Response:
    return refusals.refusal_answer(error)
