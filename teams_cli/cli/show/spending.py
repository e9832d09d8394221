"""Usage in words."""

from __future__ import annotations

from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]

_HEADS = ["turns", "input", "cached", "output", "total", "time"]


def spent(found: dict[str, Any]) -> Parts:
    by = found["by"]
    rows = [_row(row[by], row) for row in found["rows"]]
    if rows:
        rows.append(_row("total", found["total"]))
    lines: Parts = [Table([by, *_HEADS], rows, "no started agent has finished a turn yet")]
    if found["coordination"] is not None:
        lines.append(f"coordination (turns for messages alone): {found['coordination']:.0%} of the tokens")
    lines += [_budget(each) for each in found["budgets"]]
    return lines


def _row(name: str, row: dict[str, Any]) -> list[str]:
    turns = f"{row['turns']} ({row['uncounted']} unknown)" if row["uncounted"] else str(row["turns"])
    counts = ["unknown" if row[kind] is None else f"{row[kind]:,}" for kind in ("input", "cached", "output", "total")]
    return [name, turns, *counts, f"{row['seconds']:.0f} s"]


def _budget(budget: dict[str, Any]) -> str:
    share = budget["taken"] / budget["limit"]
    unknown = f"; the tokens of {budget['uncounted']} turns are unknown" if budget["uncounted"] else ""
    whose = budget["of"] or "the team"
    return f"budget of {whose}: {budget['taken']:,} of {budget['limit']:,} tokens ({share:.0%}){unknown}"
