"""Telling: what a call was told is noted once its answer is written, and before the next call of the client begins."""

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
    """The calls whose answers are on their way, by the id of their request. One that the client cancelled has none."""

    def __init__(self) -> None:
        self._calls: dict[Any, Call] = {}
        self._cancelled: set[Any] = set()
        self._writing: tuple[Any, Event] = None, Event()
        self._lock = Lock()

    def forget(self, id: Any) -> None:
        """Forget what was to be noted for an earlier request of that id, which was never answered."""
        self._calls.pop(id, None)
        self._cancelled.discard(id)

    def expect(self, id: Any, call: Call) -> None:
        """Have what the call was told be noted once the answer to its request is written."""
        if id in self._cancelled:
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
            else:
                self._cancelled.add(id)
                if call := self._calls.pop(id, None):
                    call.is_given_up = lambda: True

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
