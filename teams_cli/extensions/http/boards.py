"""Boards: a page first gets all rows of a team, and then only the rows that changed since its version."""

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
    from collections.abc import Iterator
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


class Board:
    """Keeps the rows of a board, each with the version in which it last changed."""

    def __init__(self) -> None:
        self._epoch = secrets.token_hex(4)
        self._version = 0
        self._rows: dict[tuple[str, str], tuple[int, str]] = {}
        self._gone: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def take(self, tables: dict[str, Rows], after: str) -> dict[str, Any]:
        """Store *tables* as the present rows. Return the rows that changed since the version *after*, with None for a
        removed row.
        """
        with self._lock:
            self._note(tables)
            epoch, _, number = after.partition("-")
            is_known = epoch == self._epoch and number.isascii() and number.isdigit() and int(number) <= self._version
            since = int(number) if is_known else -1
            changed: dict[str, dict[str, Any]] = {}
            for (table, key), (version, _) in self._rows.items():
                if version > since:
                    changed.setdefault(table, {})[key] = tables[table][key]
            for (table, key), version in self._gone.items() if is_known else ():
                if version > since:
                    changed.setdefault(table, {})[key] = None
            return {"version": f"{self._epoch}-{self._version}", "whole": not is_known, "rows": changed}

    def _note(self, tables: dict[str, Rows]) -> None:
        """Give the next version to the rows that changed or were removed."""
        version = self._version + 1
        now = {(table, key): json.dumps(row) for table, rows in tables.items() for key, row in rows.items()}
        fresh = {place: text for place, text in now.items() if self._rows.get(place, (0, ""))[1] != text}
        gone = [place for place in self._rows if place not in now]
        if not fresh and not gone:
            return
        for place in gone:
            del self._rows[place]
            self._gone[place] = version
        for place, text in fresh.items():
            self._rows[place] = version, text
            self._gone.pop(place, None)
        self._version = version


class Boards:
    """Answers the requests of a page. It keeps a board for each team and number of finished tasks."""

    def __init__(self, operations: Operations, feeds: Feeds) -> None:
        self._operations = operations
        self._feeds = feeds
        self._boards: dict[tuple[str, int], Board] = {}
        self._lock = threading.Lock()

    async def whole(self, request: Request) -> Response:
        """Answer with the whole board of the team."""

        def look(call: Call) -> dict[str, Any]:
            position, team = self._position_and_team(call)
            document = {
                "team": team_documents.to_document(team),
                **board.board(call.store, team, call.config, call.problems),
            }
            problems = [problem.message for problem in call.problems]
            return {**document, "problems": problems, "position": position}

        return Document(await self._operations.call(request, look))

    def _position_and_team(self, call: Call) -> tuple[int, Team]:
        """Return the end position of the team's history, and the team. The position is read first, so that events after
        it miss no change.
        """
        position = self._feeds.end_of(call.load_team().name)
        return position, call.load_team()

    async def rows(self, request: Request) -> Response:
        """Answer with the rows of the board that changed since the version `after`, and the messages after number
        `messages`.
        """
        finished = _number(request, "finished", board.FINISHED, 100_000)
        seen = _number(request, "messages", 0)
        after = request.query_params.get("after", "")

        def look(call: Call) -> dict[str, Any]:
            position, team = self._position_and_team(call)
            tables = board.rows(call.store, team, call.config, finished, call.problems)
            tables["facts"]["team"] = team_documents.to_document(team)
            if run := _run(call, team.name):
                tables["facts"]["run"] = run
            tables["facts"]["problems"] = [problem.message for problem in call.problems]
            document = self._board(team.name, finished).take(tables, after)
            start = 0 if document["whole"] else seen
            document["messages"] = board.newest(call.store, team.name, start, _MESSAGES, call.problems)
            return {**document, "now": teams.now(call.store), "position": position}

        return Document(await self._operations.call(request, look))

    async def messages(self, request: Request) -> Response:
        """Answer with the last `limit` messages before the number `before`, the oldest first."""
        before, limit = _number(request, "before", 1 << 40), _number(request, "limit", _MESSAGES, 1000)
        whole = _number(request, "whole", 0, 1) == 1

        def look(call: Call) -> list[dict[str, Any]]:
            last = call.store.last(call.team, MESSAGE) + 1
            older = board.older(call.store, call.load_team().name, min(before, last), limit, call.problems)
            return [board.letter(message, whole) for message in older]

        return Document(await self._operations.call(request, look))

    async def report(self, request: Request) -> Response:
        """Answer with the run that made the team, and the run's report as Markdown, if it has one."""
        return Document(
            await self._operations.call(request, lambda call: reports.report_of(call.store, call.load_team().name))
        )

    async def teams(self, request: Request) -> Response:
        """Answer with all teams, each with its state, its description and the run that made it, if any."""
        return Document(await self._operations.call(request, lambda call: list(_teams(call))))

    def _board(self, team: str, finished: int) -> Board:
        with self._lock:
            kept = self._boards.pop((team, finished), None) or Board()
            self._boards[team, finished] = kept
            while len(self._boards) > _BOARDS:
                del self._boards[next(iter(self._boards))]
            return kept


def _teams(call: Call) -> Iterator[dict[str, Any]]:
    for team in teams.all_of(call.store, call.problems):
        yield {"name": team.name, "state": team.state, "description": team.description, "run": _run(call, team.name)}


def _run(call: Call, team: str) -> dict[str, Any] | None:
    """Return the workflow and the status of the run that made the team, or None if no run made it."""
    made = [run for run, _ in call.store.scan(team, RUN, call.problems)]
    return {"workflow": made[-1].workflow, "status": made[-1].status} if made else None


def _number(request: Request, name: str, default: int, most: int = 1 << 40) -> int:
    """Return the number that the request gives as *name*, or *default* if it gives none.

    Raises:
        InvalidValue: The value is not a whole number, or is more than *most*.
    """
    value = request.query_params.get(name)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) < 14 and int(value) <= most):
        raise errors.InvalidValue(f"{value!r} is not a valid {name}", f"Give a whole number from 0 to {most}.")
    return int(value)
