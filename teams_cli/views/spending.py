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
            for name, share, turn_in_row in _rows_of_turn(by, usage.agent, turn):
                rows.setdefault(name, _Row()).add(turn_in_row, share)
    all_tokens = budgets.total_tokens(turns)
    mail_tokens = budgets.total_tokens(turn for turn in turns if not turn.tasks)
    return {
        "by": by,
        "rows": [
            {by: name, **rows[name].to_document()} for name in sorted(rows, key=lambda name: (-rows[name].size, name))
        ],
        "total": total.to_document(),
        "coordination": round(mail_tokens / all_tokens, 3) if all_tokens else None,
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
        """Return the row as JSON. Counts of tokens are None if no turn was counted."""
        counts = {**self.counts, "total": self.size}
        is_counted = self.turns > self.uncounted
        shown = {kind: round(count) if is_counted else None for kind, count in counts.items()}
        return {"turns": self.turns, "uncounted": self.uncounted, **shown, "seconds": round(self.seconds, 1)}


def _rows_of_turn(by: str, agent: str, turn: TurnUsage) -> Iterator[tuple[str, float, TurnUsage]]:
    """Yield the name of each row to which the agent's turn contributes, the share of the turn that counts for the row,
    and the turn. In a row of a model, the turn has only the tokens of this model.
    """
    if by == "agent":
        yield agent, 1.0, turn
    elif by == "task":
        names = turn.tasks or [_MAIL]
        for name in names:
            yield name, 1.0 / len(names), turn
    else:
        models = dict.fromkeys(tokens.model or "unknown" for tokens in turn.tokens or ())
        for model in models or ["unknown"]:  # a turn without tokens counts as uncounted
            tokens = turn.tokens and [each for each in turn.tokens if (each.model or "unknown") == model]
            yield model, 1.0, turn.having(tokens=tokens)
