"""Overlaps of branches in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def shown(found: list[dict[str, Any]]) -> Parts:
    rows = [[" ".join(each["agents"]), " ".join(each["branches"]), _places(each["places"])] for each in found]
    return [Table(["agents", "branches", "conflict in"], rows, "nobody's changes conflict")]


def _places(places: list[dict[str, Any]]) -> str:
    return text.listed([":".join(filter(None, (each["file"], ",".join(each["symbols"])))) for each in places], 20)


def patch(found: dict[str, Any]) -> Parts:
    return found["diff"].rstrip("\n").split("\n") if found["diff"] else [f"{found['agent']} changed nothing there"]
