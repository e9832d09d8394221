"""Tokens and time that the agents of a team used, by agent, by task or by model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from teams_cli import errors
from teams_cli.agents import budgets
from teams_cli.agents.budgets import TurnUsage
from teams_cli.store.contract import Store
from teams_cli.teams.teams import Team

BY = ("agent", "task", "model")
_COUNTS = ("input", "cached", "output")
_MAIL = "(mail)"
"""The row of turns that were for no task."""


def spent(store: Store, team: Team, by: str, problems: list[errors.TeamsError]) -> dict[str, Any]:
    """Return the tokens and the time that were used. `rows` has them by agent, task or model, as *by* says. There is
    also the total.

    `input` and `output` count tokens, and `cached` is the part of the input that came from a cache. These counts are
    null if no turn was counted. `uncounted` is the number of turns whose client did not report tokens. The tokens of a
    turn for several tasks are divided evenly. `coordination` is the share of tokens in turns for mail alone, from 0 to
    1.
    """
    rows: dict[str, _Row] = {}
    total = _Row()
    turns = []
    for usage in budgets.all_usage(store, team.name, problems):
        for turn in usage.turns:
            turns.append(turn)
            total.add(turn, 1.0)
            for name, share, part in _parts(by, usage.agent, turn):
                rows.setdefault(name, _Row()).add(part, share)
    counted = budgets.total_tokens(turns)
    return {
        "by": by,
        "rows": [
            {by: name, **rows[name].to_document()} for name in sorted(rows, key=lambda name: (-rows[name].size, name))
        ],
        "total": total.to_document(),
        "coordination": round(budgets.total_tokens(t for t in turns if not t.tasks) / counted, 3) if counted else None,
        "budgets": [budget.to_document() for budget in budgets.of_team(store, team)],
    }


class _Row:
    """The sum of what several turns used."""

    def __init__(self) -> None:
        self.turns = self.uncounted = 0
        self.seconds = 0.0
        self.counts = dict.fromkeys(_COUNTS, 0.0)

    def add(self, turn: TurnUsage, share: float) -> None:
        """Add what the turn used, multiplied by *share*, a number between 0 and 1."""
        self.turns += 1
        self.seconds += share * turn.seconds
        if turn.tokens is None:
            self.uncounted += 1
        for tokens in turn.tokens or ():
            for kind in _COUNTS:
                self.counts[kind] += share * getattr(tokens, kind)

    @property
    def size(self) -> float:
        """The number of all tokens. Those from a cache are counted with the input."""
        return self.counts["input"] + self.counts["output"]

    def to_document(self) -> dict[str, Any]:
        counts = {**self.counts, "total": self.size}
        is_counted = self.turns > self.uncounted
        shown = {kind: round(count) if is_counted else None for kind, count in counts.items()}
        return {"turns": self.turns, "uncounted": self.uncounted, **shown, "seconds": round(self.seconds, 1)}


def _parts(by: str, agent: str, turn: TurnUsage) -> Iterator[tuple[str, float, TurnUsage]]:
    """Yield the name of each row to which the turn contributes, the share that counts for it, and the turn, for models
    reduced to their tokens.
    """
    if by == "agent":
        yield agent, 1.0, turn
    elif by == "task":
        names = turn.tasks or [_MAIL]
        for name in names:
            yield name, 1.0 / len(names), turn
    else:
        for model in dict.fromkeys(tokens.model or "unknown" for tokens in turn.tokens or ()) or ["unknown"]:
            tokens = turn.tokens and [each for each in turn.tokens if (each.model or "unknown") == model]
            yield model, 1.0, turn.having(tokens=tokens)
