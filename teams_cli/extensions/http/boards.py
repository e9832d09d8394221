"""Boards. A page first gets all rows of a team; later it gets only the rows that changed since the version it has."""

from __future__ import annotations

import json
import secrets
import threading

from teams_cli import errors
from teams_cli.commands import teams as team_documents
from teams_cli.commands.call import Call
from teams_cli.extensions.http.refusals import Document
from teams_cli.messages.messages import MESSAGE
from teams_cli.runs import reports
from teams_cli.runs.runs import RUN
from teams_cli.teams import teams
from teams_cli.views import board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from starlette.requests import Request
    from starlette.responses import Response

    from teams_cli.extensions.http.feeds import Feeds
    from teams_cli.extensions.http.operations import Operations
    from teams_cli.teams.teams import Team
    from teams_cli.views.board import Rows

_BOARDS = 32
"""The number of boards in memory. A page whose board was dropped gets all rows again."""
_MESSAGES = 200
"""The number of messages that a page gets, unless it asks for another number."""
_HIGHEST = 1 << 40
"""The highest message number that a page may ask for. No message has a number this high."""


class Board:
    """Keeps the rows of a board, each with the version in which it last changed, so that pages get only the changes."""

    def __init__(self) -> None:
        self._epoch = secrets.token_hex(4)
        """The first part of all versions of this board. It is different for each board, so that the versions of a
        dropped board are recognised as unknown.
        """
        self._version = 0
        self._rows: dict[tuple[str, str], tuple[int, str]] = {}
        """For each table and key: the version in which the row last changed, and the row as JSON."""
        self._removed: dict[tuple[str, str], int] = {}
        """For each table and key of a removed row: the version in which the row was removed."""
        self._lock = threading.Lock()

    def update(self, tables: dict[str, Rows], after: str) -> dict[str, Any]:
        """Store *tables* as the present rows of each table. Return a dict: `rows` has the rows that changed since the
        version *after*, with None for each removed row, and `version` is the present version of the board. If *after*
        is not a version of this board, `rows` has all rows, and `whole` is True.
        """
        with self._lock:
            self._store(tables)
            epoch, _, number = after.partition("-")
            is_of_this_board = epoch == self._epoch and number.isascii() and number.isdigit()
            is_version = is_of_this_board and int(number) <= self._version
            last_seen = int(number) if is_version else None
            changed: dict[str, dict[str, Any]] = {}
            for (table, key), (version, _) in self._rows.items():
                if last_seen is None or version > last_seen:
                    changed.setdefault(table, {})[key] = tables[table][key]
            if last_seen is not None:
                for (table, key), version in self._removed.items():
                    if version > last_seen:
                        changed.setdefault(table, {})[key] = None
            return {"version": f"{self._epoch}-{self._version}", "whole": last_seen is None, "rows": changed}

    def _store(self, tables: dict[str, Rows]) -> None:
        """Store *tables* as the present rows. Rows that are new, changed or removed get the board's next version."""
        next_version = self._version + 1
        present = {(table, key): json.dumps(row) for table, rows in tables.items() for key, row in rows.items()}
        removed = [table_and_key for table_and_key in self._rows if table_and_key not in present]
        for table_and_key in removed:
            del self._rows[table_and_key]
            self._removed[table_and_key] = next_version
            self._version = next_version
        for table_and_key, row in present.items():
            _, stored_row = self._rows.get(table_and_key, (0, None))  # None: the row is new
            if row != stored_row:
                self._rows[table_and_key] = next_version, row
                self._removed.pop(table_and_key, None)  # the row may have been removed earlier
                self._version = next_version


class Boards:
    """Answers the requests of pages. It keeps a board for each team and each number of finished tasks that a page asks
    for.
    """

    def __init__(self, operations: Operations, feeds: Feeds) -> None:
        self._operations = operations
        self._feeds = feeds
        self._boards: dict[tuple[str, int], Board] = {}
        self._lock = threading.Lock()

    def whole(self, call: Call, request: Request) -> dict[str, Any]:
        """Return the whole board of the team, and the position in the history after which to read later changes."""
        position, team = self._position_and_team(call)
        document = {
            "team": team_documents.to_document(team),
            **board.board(call.store, team, call.config, call.problems),
        }
        return {**document, "problems": call.messages_of_problems(), "position": position}

    def _position_and_team(self, call: Call) -> tuple[int, Team]:
        # The position is read before the team, so that no change is missed: later changes have events after it.
        position = self._feeds.end_of(call.load_team().name)
        return position, call.load_team()

    async def rows(self, request: Request) -> Response:
        """Answer with the rows of the board that changed since the version `after`, and with the newest messages whose
        number is above `messages`. Both values are in the query.
        """
        finished = _number(request, "finished", board.FINISHED, 100_000)
        last_seen_message = _number(request, "messages", 0)
        after = request.query_params.get("after", "")

        def look(call: Call) -> dict[str, Any]:
            position, team = self._position_and_team(call)
            tables = board.rows(call.store, team, call.config, finished, call.problems)
            tables["facts"]["team"] = team_documents.to_document(team)
            if run := _run(call, team.name):
                tables["facts"]["run"] = run
            tables["facts"]["problems"] = call.messages_of_problems()
            document = self._board(team.name, finished).update(tables, after)
            seen = 0 if document["whole"] else last_seen_message  # with all rows, the page gets messages again
            document["messages"] = board.newest(call.store, team.name, seen, _MESSAGES, call.problems)
            return {**document, "now": teams.now(call.store), "position": position}

        return Document(await self._operations.call(request, look))

    async def messages(self, request: Request) -> Response:
        """Answer with the last `limit` messages before the number `before`, the oldest first."""
        before, limit = _number(request, "before", _HIGHEST), _number(request, "limit", _MESSAGES, 1000)
        in_full = _number(request, "whole", 0, 1) == 1

        def look(call: Call) -> list[dict[str, Any]]:
            end = call.store.last(call.team, MESSAGE) + 1
            older = board.older(call.store, call.load_team().name, min(before, end), limit, call.problems)
            return [board.letter(message, in_full) for message in older]

        return Document(await self._operations.call(request, look))

    def report(self, call: Call, request: Request) -> Any:
        """Return the run that made the team, and the run's report as Markdown, if it has one."""
        return reports.report_of(call.store, call.load_team().name)

    def teams(self, call: Call, request: Request) -> list[dict[str, Any]]:
        """Return all teams, each with its state, its description and the run that made it, if any."""
        return [
            {"name": team.name, "state": team.state, "description": team.description, "run": _run(call, team.name)}
            for team in teams.all_of(call.store, call.problems)
        ]

    def _board(self, team: str, finished: int) -> Board:
        """Return the board of the team for pages that show this number of *finished* tasks. If the board is not in
        memory, make one without rows. If too many boards are in memory then, drop the least recently used one.
        """
        with self._lock:
            requested = self._boards.pop((team, finished), None) or Board()
            self._boards[team, finished] = requested  # at the end, because the first board is dropped
            if len(self._boards) > _BOARDS:
                del self._boards[next(iter(self._boards))]
            return requested


def _run(call: Call, team: str) -> dict[str, Any] | None:
    """Return the workflow and the status of the run that made the team; None if no run made it."""
    runs = [run for run, _ in call.store.scan(team, RUN, call.problems)]
    return {"workflow": runs[-1].workflow, "status": runs[-1].status} if runs else None


def _number(request: Request, name: str, default: int, most: int = _HIGHEST) -> int:
    """Return the number *name* in the query of the request, or *default* without one. Refuse numbers above *most*."""
    value = request.query_params.get(name)
    if value is None:
        return default
    # The length is limited because Python refuses to parse a very long number.
    if not (value.isascii() and value.isdigit() and len(value) < 14 and int(value) <= most):
        raise errors.InvalidValue(f"{value!r} is not a valid {name}", f"Give a whole number from 0 to {most}.")
    return int(value)
