"""The removal of closed teams in words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.tables import Table

    Parts = list[str | Table]


def pruned(rows: list[dict[str, Any]]) -> Parts:
    lines: Parts = [
        f"{row['ref']}: {_said(row)}, kept work"
        if "ref" in row
        else f"{row['team']}: {_said(row)}, closed {row['closedAt']}"
        for row in rows
    ]
    if any(not row["removed"] and not row["kept"] for row in rows):
        lines.append("Nothing was removed. To remove them: teams prune --yes")
    return lines or ["no team was closed that long ago"]


def _said(row: dict[str, Any]) -> str:
    return "removed" if row["removed"] else f"kept ({row['kept']})" if row["kept"] else "would be removed"
