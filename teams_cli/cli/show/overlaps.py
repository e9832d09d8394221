"""Overlaps of branches in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def shown(found: list[dict[str, Any]]) -> Parts:
    rows = [[" ".join(each["agents"]), " ".join(each["branches"]), text.listed(each["files"], 20)] for each in found]
    return [Table(["agents", "branches", "conflict in"], rows, "no branches conflict")]
