"""Refusals as HTTP: each error of the program and each fault of a request with its status and headers."""

from __future__ import annotations

import json
import sys

from starlette.responses import Response

from teams_cli import bugs, errors
from teams_cli.extensions.http.wording import STATUSES, in_requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

RETRY_AFTER = {"Retry-After": "1"}


class RequestRefused(Exception):
    """A request that does not get as far as a command."""

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
    """A JSON document in ASCII, as the commands print it."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes of the document."""
        return json.dumps(content).encode() + b"\n"


def refused(error: Exception, worded: Callable[[str], str] = in_requests) -> RequestRefused:
    """How an error is told, *worded* for who asked; one that nobody expected is noted in a log."""
    if isinstance(error, RequestRefused):
        return error
    if isinstance(error, errors.TeamsError):
        headers = RETRY_AFTER if error.status == 12 else {}
        return RequestRefused(STATUSES[error.status], error.code, worded(error.message), worded(error.hint), headers)
    bug = bugs.report(error, ["serve"])
    sys.stderr.write(f"teams: {bug.message}\n  {bug.hint}\n")
    return RequestRefused(500, "bug", bug.message, bug.hint)


def answer(error: Exception, worded: Callable[[str], str] = in_requests) -> Document:
    """The answer to a request that is refused."""
    said = refused(error, worded)
    body = {"error": {"code": said.code, "message": said.message, "hint": said.hint}}
    return Document(body, said.status, said.headers)
