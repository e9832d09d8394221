"""Noting what an answer has shown, once it is written, and before the client's next call begins."""

from __future__ import annotations

from threading import Event, Lock

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.commands.call import Call

_CROSSING = 0.05
"""Seconds in which a client may have cancelled a call whose answer is written, so that it reads none."""


class Telling:
    """The requests at work and whether the client cancelled them, and the calls whose answers are on their way."""

    def __init__(self) -> None:
        self._at_work: dict[Any, bool] = {}
        self._calls: dict[Any, Call] = {}
        self._writing: tuple[Any, Event] = None, Event()
        self._lock = Lock()

    def begin(self, id: Any) -> None:
        """Begin a request. What was to be noted for an earlier one of that id, which got no answer, is forgotten."""
        self._calls.pop(id, None)
        self._at_work[id] = False

    def end(self, id: Any) -> None:
        """End the work on a request, whether or not it has an answer."""
        self._at_work.pop(id, None)

    def expect(self, id: Any, call: Call) -> None:
        """Have what the call was told be noted once the answer to its request is written."""
        if self._at_work.get(id):
            call.is_given_up = lambda: True
        elif call.has_to_note:
            self._calls[id] = call

    def of(self, item: SessionMessage) -> Call | None:
        """The call that the message answers, if something is to be noted of it."""
        call = self._calls.pop(getattr(item.message, "id", None), None)
        return call if isinstance(item.message, JSONRPCResponse) else None

    def hear(self, item: SessionMessage) -> None:
        """Take from a message of the client whether it reads no answer to what is just being told."""
        if isinstance(item.message, JSONRPCNotification) and item.message.method == "notifications/cancelled":
            writing, cancelled = self._writing
            id = (item.message.params or {}).get("requestId")
            if id == writing:
                cancelled.set()
            elif call := self._calls.pop(id, None):
                call.is_given_up = lambda: True
            elif id in self._at_work:
                self._at_work[id] = True

    def tell(self, write: Callable[[], object], id: Any, call: Call) -> None:
        """Write the answer, and note that the caller was told what is in it."""
        with self._lock:
            self._writing = id, (cancelled := Event())
            write()
            if not (call.tells_news and cancelled.wait(_CROSSING)):
                call.note_told()

    def settle(self) -> None:
        """Wait until what was told before is noted."""
        with self._lock:
            return
