"""Refusals over HTTP, with status and headers and hints that name requests; also bodies, and the limits of the
server.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import sys

from starlette.responses import Response

from teams_cli import bugs, errors
from teams_cli.serving import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    from starlette.requests import Request

    from teams_cli.commands.declaration import Command, Parameter


STATUSES = {1: 422, 2: 400, 10: 404, 11: 409, 12: 503, 13: 403, 14: 408, 15: 500}
"""The HTTP status for each exit status."""
_METHODS = {command.name: "GET" if command.reads else "POST" for command in requests.offered()}
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
_WORDS = {
    "--as human": "?as=human",
    "--as AGENT or TEAMS_AGENT_ID": "?as=AGENT",
    "--team NAME or TEAMS_TEAM": "?team=NAME",
    "; `-` reads it from standard input": "",
}
_REFUSED = re.compile(r"^\s*([A-Z]\w+)(?:, \w+)*: (.*)$")


def in_requests(text: str) -> str:
    """Return the text with its commands and options written as requests and parameters."""
    for words_of_shell, words_of_request in _WORDS.items():
        text = text.replace(words_of_shell, words_of_request)
    text = requests.in_calls(text, _request)
    return _FLAG.sub(lambda flag: requests.camel_case(flag[1].replace("-", "_")), text)


def _request(command: Command, given: requests.Arguments) -> str:
    """Return the request that runs the command with the arguments, which are in the query or in a JSON body."""
    method, path = _METHODS[command.name], f"/api/{command.name}"
    own = {requests.camel_case(each.key): _value(each, word) for each, word in given if each in command.own}
    query = [f"{each.flags[0].lstrip('-')}={word}" for each, word in given if each not in command.own]
    if method == "GET":
        query += [f"{key}={word}" for key, word in own.items()]
        own = {}
    path += f"?{'&'.join(query)}" if query else ""
    return f"{method} {path} {json.dumps(own, ensure_ascii=False)}" if own else f"{method} {path}"


def _value(parameter: Parameter, word: str) -> Any:
    """Return *word*, the value of an argument, as it is in JSON."""
    bare = word.strip('"')
    return True if parameter.flag else [bare] if parameter.many else bare


def preferred(prefer: str) -> Callable[[str], str]:
    """Return the function that writes hints for a client whose header `Prefer` is *prefer*. With `hints=shell` hints
    name commands, otherwise requests.
    """
    asked = {part.strip().replace('"', "") for part in prefer.lower().split(",")}
    return str if "hints=shell" in asked else in_requests


def description(doc: str) -> tuple[str, str]:
    """Return the first paragraph of a docstring, and the rest as Markdown, with the HTTP status of each refusal."""
    explanation, _, raises = inspect.cleandoc(doc).partition("Raises:")
    summary, _, rest = explanation.strip().partition("\n\n")
    refused = [f"* {line}" for line in _refusals(raises)]
    parts = [rest.strip(), "\n".join(["Refused:", "", *refused]) if refused else ""]
    return in_requests(" ".join(summary.split())), in_requests("\n\n".join(part for part in parts if part))


def _refusals(raises: str) -> list[str]:
    refusals: list[str] = []
    kinds = errors.kinds()
    for line in raises.splitlines():
        if (named := _REFUSED.match(line)) and (kind := kinds.get(named[1])):
            refusals.append(f"{STATUSES[kind.status]} `{kind('').code}`: {named[2]}")
        elif refusals and line.strip():
            refusals[-1] += f" {line.strip()}"
    return refusals


RETRY_AFTER = {"Retry-After": "1"}


class RequestRefused(Exception):
    """Raised when a request is refused before its command runs."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.headers = dict(headers or {})


class Document(Response):
    """A response with a JSON document in ASCII, as the commands print it."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode() + b"\n"


def refused(error: Exception, worded: Callable[[str], str] = in_requests) -> RequestRefused:
    """Return the refusal for an error; *worded* writes its texts for the client. An unexpected error is also logged as
    a bug.
    """
    if isinstance(error, RequestRefused):
        return error
    if isinstance(error, errors.TeamsError):
        headers = RETRY_AFTER if error.status == 12 else {}
        return RequestRefused(STATUSES[error.status], error.code, worded(error.message), worded(error.hint), headers)
    bug = bugs.report(error, ["serve"])
    sys.stderr.write(f"teams: {bug.message}\n  {bug.hint}\n")
    return RequestRefused(500, "bug", bug.message, bug.hint)


def refusal_answer(error: Exception, worded: Callable[[str], str] = in_requests) -> Document:
    """Return the answer to a request that failed with *error*; *worded* writes its texts for the client."""
    refusal = refused(error, worded)
    body = {"error": {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}}
    return Document(body, refusal.status, refusal.headers)


CONNECTIONS = 512
STREAMS = 300
"""The most event streams that may be open; the other connections are for requests."""
WAITING = 96
"""The most requests that may take long; each has a thread."""
QUICK = 8
"""The number of threads for the person's short requests, which never wait for the requests of agents."""
BODY = 8 << 20
"""The most bytes of a body; enough for the longest text, 1 MiB, with every character escaped."""
BODIES = 64 << 20
"""The most bytes of all bodies together that are being read."""
HEAD = 64 << 10
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
UNTAKEN = 256 << 10
"""The number of bytes of an answer that the system keeps for a client that does not take them."""
SEND_SECONDS = 20.0
"""Seconds for which a client may take nothing of an answer."""
KEEP_ALIVE_SECONDS = 15
BEAT_SECONDS = 15.0
"""Seconds without an event after which a stream gets a comment, which shows that both ends are there."""
EVENTS = 1000
"""The number of events in memory for each team; older ones are read from the team's history."""


class Bodies:
    """Reads the bodies of requests, with a limit for each body and for all bodies together."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, request: Request) -> dict[str, Any]:
        """Return the JSON object in the body, or an empty one if there is no body.

        Raises:
            RequestRefused: The body is too large, not a JSON object, of another type, or late.
        """
        length = request.headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:20]) > BODY:
            raise _too_large()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and (kind or length != "0" or "transfer-encoding" in request.headers):
            hint = "Send `Content-Type: application/json`."
            raise RequestRefused(415, "not_json", f"the body is {kind or 'of no type'}, not JSON", hint)
        taken = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in request.stream():
                    taken += part
                    self._held += len(part)
                    self._refuse_too_much(len(taken))
        except TimeoutError:
            raise RequestRefused(408, "too_slow", "the body did not come in time", "Send it at once.") from None
        finally:
            self._held -= len(taken)
        return _parsed(bytes(taken))

    def _refuse_too_much(self, size: int) -> None:
        if size > BODY:
            raise _too_large()
        if self._held > BODIES:
            raise RequestRefused(503, "busy", "too many request bodies are being read", "Try again.", RETRY_AFTER)


def _too_large() -> RequestRefused:
    return RequestRefused(413, "too_large", f"the body has more than {BODY} bytes", "Shorten it.")


def _parsed(data: bytes) -> dict[str, Any]:
    if not data:
        return {}
    try:
        document = json.loads(data, parse_constant=_constant)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "not_json", "the body is not JSON", "Send one JSON object, in UTF-8.") from None
    if not isinstance(document, dict):
        raise RequestRefused(400, "not_json", "the body is not a JSON object", "Send one JSON object.")
    return document


def _constant(name: str) -> NoReturn:
    raise ValueError(name)
