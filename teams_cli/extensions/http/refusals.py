"""Refusals over HTTP: their status, their headers, and hints that name requests instead of commands. Also the bodies of
requests, and the limits of the server.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import sys

from starlette.responses import Response

from teams_cli import errors
from teams_cli.serving import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    from starlette.requests import Request

    from teams_cli.commands.declaration import Command


STATUSES = {1: 422, 2: 400, 10: 404, 11: 409, 12: 503, 13: 403, 14: 408, 15: 500}
"""The HTTP status for each exit status."""
_METHODS = {command.name: "GET" if command.reads else "POST" for command in requests.offered()}
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
_PHRASES = {
    "--as human": "?as=human",
    "--as AGENT or TEAMS_AGENT_ID": "?as=AGENT",
    "--team NAME or TEAMS_TEAM": "?team=NAME",
    "Put the token from joining into TEAMS_TOKEN": "Send the token from joining as the header X-Teams-Token",
    "; `-` reads it from standard input": "",
}
"""Phrases for the shell, each with the phrase that replaces it in a hint for requests."""
_REFUSED = re.compile(r"^\s*([A-Z]\w+)(?:, \w+)*: (.*)$")
"""Matches a line of `Raises:` that begins with the names of errors."""


def in_requests(text: str) -> str:
    """Return the text for clients of the API: its commands and options are written as requests and parameters."""
    return requests.in_calls(text, _request, _otherwise)


def _otherwise(text: str) -> str:
    """Return a text without commands, with its phrases and options written for requests."""
    for shell_phrase, request_phrase in _PHRASES.items():
        text = text.replace(shell_phrase, request_phrase)
    return _FLAG.sub(lambda flag: requests.camel_case(flag[1].replace("-", "_")), text)


def _request(command: Command, arguments: requests.Arguments) -> str:
    """Return the request that runs the command with the arguments, as a text for a hint."""
    method = _METHODS[command.name]
    query, body = [], {}
    for parameter, value in arguments:
        text = value.strip("'\"")  # as a hint writes it, perhaps in quotation marks
        if parameter not in command.own:  # `--as` or `--team`
            query.append(f"{parameter.flags[0].lstrip('-')}={text}")
            continue
        key = requests.camel_case(parameter.key)
        if method == "GET":
            query.append(f"{key}={text}")
        else:
            text_or_list = [text] if parameter.many else text
            body[key] = True if parameter.flag else text_or_list
    request = f"{method} /api/{command.name}"
    if query:
        request += f"?{'&'.join(query)}"
    if body:
        request += f" {json.dumps(body, ensure_ascii=False)}"
    return request


def hint_writer(prefer: str) -> Callable[[str], str]:
    """Return the function that adapts hints to a client. *prefer* is the client's header `Prefer`. With `hints=shell`,
    hints name commands, as the errors do; otherwise, they name requests.
    """
    preferences = {part.strip().replace('"', "") for part in prefer.lower().split(",")}
    return str if "hints=shell" in preferences else in_requests  # `str` changes nothing


def description(doc: str) -> tuple[str, str]:
    """Split the docstring of a command. Return its first paragraph as the summary. Also return, as Markdown, the other
    paragraphs and the refusals below `Raises:`, each with its HTTP status.
    """
    explanation, _, raises = inspect.cleandoc(doc).partition("Raises:")
    summary, _, details = explanation.strip().partition("\n\n")
    refusals: list[str] = []
    error_classes = errors.kinds()
    for line in raises.splitlines():
        match = _REFUSED.match(line)
        error_class = error_classes.get(match[1]) if match else None
        if match and error_class:
            code = error_class("").code
            refusals.append(f"* {STATUSES[error_class.status]} `{code}`: {match[2]}")
        elif refusals and line.strip():  # the text of the error goes on
            refusals[-1] += f" {line.strip()}"
    parts = [details.strip(), "\n".join(["Refused:", "", *refusals]) if refusals else ""]
    return in_requests(" ".join(summary.split())), in_requests("\n\n".join(filter(None, parts)))


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


def refused(error: Exception, write_hint: Callable[[str], str] = in_requests) -> RequestRefused:
    """Return the refusal for an error. *write_hint* adapts the error's texts to the client. An unexpected error is also
    logged as a bug.
    """
    if isinstance(error, RequestRefused):
        return error
    if isinstance(error, errors.TeamsError):
        status = STATUSES[error.status]
        headers = RETRY_AFTER if status == 503 else {}
        message, hint = write_hint(error.message), write_hint(error.hint)
        return RequestRefused(status, error.code, message, hint, headers)
    bug = errors.report_bug(error, ["serve"])
    sys.stderr.write(f"teams: {bug.message}\n  {bug.hint}\n")
    return RequestRefused(500, "bug", bug.message, bug.hint)


def refusal_answer(error: Exception, write_hint: Callable[[str], str] = in_requests) -> Document:
    """Return the answer to a request that failed with *error*. *write_hint* adapts the error's texts to the client."""
    refusal = refused(error, write_hint)
    body = {"error": {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}}
    return Document(body, refusal.status, refusal.headers)


CONNECTIONS = 512
STREAMS = 300
"""The maximum number of open event streams; the other connections are for requests."""
WAITING = 96
"""The maximum number of concurrent requests that may take long; each has a thread."""
QUICK = 8
"""The number of threads for the person's short requests, which never wait for the requests of agents."""
BODY = 8 << 20
"""The maximum size of a body, in bytes: enough for the longest text, 1 MiB, with every character escaped."""
BODIES = 64 << 20
"""The maximum total size, in bytes, of all bodies that are being read."""
HEAD = 64 << 10
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
UNTAKEN = 256 << 10
"""The number of bytes that the system buffers for a client that does not read its answer."""
SEND_SECONDS = 20.0
"""After this many seconds, a client that reads nothing of its answer is dropped."""
KEEP_ALIVE_SECONDS = 15
BEAT_SECONDS = 15.0
"""After this many seconds without an event, a stream sends a comment, so that both ends see that the connection
works.
"""
EVENTS = 1000
"""The number of events in memory for each team; older ones are read from the team's history."""


class Bodies:
    """Reads the bodies of requests, with a limit for each body and for all bodies together."""

    def __init__(self) -> None:
        self._total = 0
        """The number of bytes of all bodies that are being read."""

    async def read(self, request: Request) -> dict[str, Any]:
        """Return the JSON object in the body, or an empty one if there is no body.

        Raises:
            RequestRefused: The body is too large, not a JSON object, of another type, or late.
            InvalidValue: The object has the same key twice.
        """
        _check_headers(request)
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in request.stream():
                    body += part
                    self._total += len(part)
                    if len(body) > BODY:
                        raise _too_large()
                    if self._total > BODIES:
                        message = "too many request bodies are being read"
                        raise RequestRefused(503, "busy", message, "Try again.", RETRY_AFTER)
        except TimeoutError:
            raise RequestRefused(408, "too_slow", "the body did not come in time", "Send it at once.") from None
        finally:
            self._total -= len(body)
        if not body:
            return {}
        try:
            document = json.loads(body, parse_constant=_refuse_constant, object_pairs_hook=requests.unique_keys)
        except (ValueError, RecursionError):
            raise RequestRefused(400, "not_json", "the body is not JSON", "Send one JSON object, in UTF-8.") from None
        if not isinstance(document, dict):
            raise RequestRefused(400, "not_json", "the body is not a JSON object", "Send one JSON object.")
        return document


def _check_headers(request: Request) -> None:
    """Refuse the request if its headers say that the body is too large or not JSON."""
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > BODY:  # 20 digits are too much in any case
        raise _too_large()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = length != "0" or "transfer-encoding" in request.headers
    # A request without a body needs no type; if it gives one, the type must be JSON, too.
    if kind != "application/json" and (kind or has_body):
        hint = "Send `Content-Type: application/json`."
        raise RequestRefused(415, "not_json", f"the body is {kind or 'of no type'}, not JSON", hint)


def _too_large() -> RequestRefused:
    return RequestRefused(413, "too_large", f"the body has more than {BODY} bytes", "Shorten it.")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and Infinity, which Python reads but JSON does not have
