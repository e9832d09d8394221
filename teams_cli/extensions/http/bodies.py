"""The JSON bodies of requests: read no further than they may be long, and no longer than a client may take."""

from __future__ import annotations

import asyncio
import json

from teams_cli.extensions.http import limits
from teams_cli.extensions.http.refusals import RETRY_AFTER, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from starlette.requests import Request


class Bodies:
    """Reads bodies; all that are being read together have a bound too."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, request: Request) -> dict[str, Any]:
        """The JSON object in the body; an empty one for no body.

        Raises:
            Refused: It is too large, no JSON object, of another type, or does not come in time.
        """
        length = request.headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:20]) > limits.BODY:
            raise _too_large()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and (kind or length != "0" or "transfer-encoding" in request.headers):
            hint = "Send `Content-Type: application/json`."
            raise RequestRefused(415, "not_json", f"the body is {kind or 'of no type'}, not JSON", hint)
        taken = bytearray()
        try:
            async with asyncio.timeout(limits.BODY_SECONDS):
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
        if size > limits.BODY:
            raise _too_large()
        if self._held > limits.BODIES:
            raise RequestRefused(503, "busy", "too many bodies at once", "Try again.", RETRY_AFTER)


def _too_large() -> RequestRefused:
    return RequestRefused(413, "too_large", f"the body has more than {limits.BODY} bytes", "Shorten it.")


def _parsed(data: bytes) -> dict[str, Any]:
    if not data:
        return {}
    try:
        found = json.loads(data, parse_constant=_constant)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "not_json", "the body is not JSON", "Send one JSON object, in UTF-8.") from None
    if not isinstance(found, dict):
        raise RequestRefused(400, "not_json", "the body is not a JSON object", "Send one JSON object.")
    return found


def _constant(word: str) -> NoReturn:
    raise ValueError(word)
