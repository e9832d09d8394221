"""Workflows and their runs in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def run(done: dict[str, Any]) -> Parts:
    return [*text.quoted(done["text"]), f"status: {done['status']}; team: {done['team']}; report: {done['report']}"]


def workflows(rows: list[dict[str, Any]]) -> Parts:
    table = [[row["name"], row["pattern"], row["description"], row["path"]] for row in rows]
    return [Table(["workflow", "pattern", "description", "path"], table, "no workflows")]


def checked(found: dict[str, Any]) -> Parts:
    tasks = text.counted(len(found["tasks"]), "task")
    return [
        f"{found['name']}: valid; {found['pattern']} pattern, {tasks}, {text.counted(found['agents'], 'agent')}",
        *(f"  --var {name}={'…' if default is None else default}" for name, default in found["variables"].items()),
    ]
