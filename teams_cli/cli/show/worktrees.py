"""Worktrees of agents in words."""

from __future__ import annotations

from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


_HOLDS = {"unknown": "may hold work"}


def shown(found: Any) -> Parts:
    if isinstance(found, list):
        rows = [
            [
                row["agent"],
                _HOLDS.get(row["state"], row["state"]),
                str(row["commits"]),
                str(row["uncommitted"]),
                row["path"],
            ]
            for row in found
        ]
        more = [f"{row['agent']}: {', '.join(row['holds'])}" for row in found if _is_more(row)]
        return [Table(["agent", "holds", "commits", "uncommitted", "path"], rows, "no worktrees"), *more]
    if "diff" in found:
        return found["diff"].rstrip("\n").split("\n") if found["diff"] else [f"{found['agent']} changed nothing"]
    kept = [f"kept as {found['kept']}: teams worktree restore {found['kept']}"] if found.get("kept") else []
    if found["state"] == "merged":
        merged = f"{found['branch']}: merged into {found['onto']} as {found['commit'][:10]}"
        return [f"{merged}; worktree and branch removed", *kept]
    if found["state"] == "restored":
        return [f"{found['path']}: restored, on {found['branch']}"]
    return [f"{found['path']}: removed, with {found['branch']}", *kept]


def kept(found: list[dict[str, Any]]) -> Parts:
    rows = [[one["ref"], one["at"], ", ".join(one["holds"]) or "no changes"] for one in found]
    return [Table(["kept", "at", "holds"], rows, "no kept work")]


def _is_more(row: dict[str, Any]) -> bool:
    """Whether it holds other things than its commits and files."""
    return any(what.partition(" ")[2].rstrip("s") not in ("commit", "uncommitted file") for what in row["holds"])
