"""The time by the server, which all machines that share its database go by."""

from __future__ import annotations

from teams_cli.clock import SystemClock, of_epoch
from teams_cli.store.postgres import schema
from teams_cli.store.postgres.connections import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

_ASK_AGAIN = 30.0
"""Seconds."""
_TIME = "extract(epoch FROM clock_timestamp())::float8"


class ServerClock:
    """The server's clock: asked now and then, and counted on from there by this machine's steady one."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._local = SystemClock()
        self._asked = -_ASK_AGAIN
        self._ahead = 0.0
        self._epoch = ""

    def begin(self) -> int:
        """Ask for the time together with the version of the tables, which whoever begins to look has to know; see
        `schema.check`.
        """
        self._server.whereabouts()  # connects, if need be: that is no time of the question's
        return schema.known(self._server, self._ask(f"SELECT {_TIME}, store, version FROM format"))

    def now(self) -> datetime:
        """The time by the server, aware, UTC; right to within the time that a question and its answer take."""
        return of_epoch(self.steady()[1])

    def steady(self) -> tuple[str, float]:
        """The identity of the store, and the server's time: it goes on through restarts, on whichever machine."""
        seconds = self._local.steady()[1]
        if seconds - self._asked >= _ASK_AGAIN:
            self._ask(f"SELECT {_TIME}, store FROM format") or self._ask(f"SELECT {_TIME}, ''")
            seconds = self._local.steady()[1]
        return self._epoch, seconds + self._ahead

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        before = self._local.steady()[1]
        found = self._server.look(sql)
        after = self._local.steady()[1]
        if found:
            seconds, self._epoch = found[0][:2]
            self._ahead = seconds - (before + after) / 2
            if self._epoch:  # there are tables by now
                self._asked = after
        return found
