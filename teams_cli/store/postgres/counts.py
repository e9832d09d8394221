"""Seeing that something changed by counting: for those to whom no server tells it."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.store.postgres.connections import Server

# What is counted from is moved on now and then, with both counts from one look: what is counted stays little. No change
# takes five minutes from its row to its commit.
_LOOK = """SELECT of.team, edge.at::text, (SELECT sum(last) FROM counters WHERE team = of.team),
    (SELECT count(*) FROM changes WHERE team = of.team AND at > %s::timestamptz),
    (SELECT count(*) FROM changes WHERE team = of.team AND at > edge.at)
    FROM unnest(%s::text[]) AS of (team), (SELECT clock_timestamp() - interval '5 minutes' AS at) AS edge"""
_MOVE_AFTER = 300.0


class Counts:
    """What there is in some teams, counted in one query for all."""

    def __init__(self, server: Server, teams: Sequence[str]) -> None:
        self._server = server
        self._teams = list(teams)
        self._since = "-infinity"
        self._moved = float("-inf")
        self._asked: set[str] = set()
        self._seen: dict[str, tuple[Any, ...]] = {}
        self.looks = 0
        """How many looks saw another count than the one before."""

    def look(self) -> int:
        """Look once more; how many looks saw another count than the one before."""
        self.looks += bool(self.changed(self._teams))
        return self.looks

    def changed(self, teams: Sequence[str]) -> set[str]:
        """The teams in which something was changed since the last look at them, but for those new to us."""
        since, began = self._since, time.monotonic()
        move = began - self._moved > _MOVE_AFTER
        if since == "-infinity":
            since = str(self._server.look("SELECT (clock_timestamp() - interval '5 minutes')::text")[0][0])
            self._since, move, self._moved = since, False, began
        rows = self._server.look(_LOOK, [since, list(teams)])
        found = {team: (last, count) for team, _, last, count, _ in rows}
        changed = {team for team in found if team in self._asked and self._seen.get(team) != found[team]}
        self._seen, self._asked = found, set(teams)
        if move and rows:
            self._since, self._moved = rows[0][1], began
            self._seen = {team: (last, later) for team, _, last, _, later in rows}
        return changed
