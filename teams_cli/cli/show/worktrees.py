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
        if found and "ref" in found[0]:
            return [Table(["kept", "at", "holds"], [[one["ref"], one["at"], ", ".join(one["holds"])] for one in found])]
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
        return [found["diff"].rstrip("\n") or f"{found['agent']} changed nothing"]
    kept = [f"kept as {found['kept']}: teams worktree restore {found['kept']}"] if found.get("kept") else []
    if found["state"] == "merged":
        merged = f"{found['branch']}: merged into {found['onto']} as {found['commit'][:10]}"
        return [f"{merged}; worktree and branch are removed", *kept]
    if found["state"] == "restored":
        return [f"{found['path']}: restored, on {found['branch']}"]
    return [f"{found['path']}: removed, with {found['branch']}", *kept]


def _is_more(row: dict[str, Any]) -> bool:
    """Whether it holds other things than its commits and files."""
    return any(not what.split(" ", 1)[1:] or what.split(" ", 1)[1].rstrip("s") not in _COUNTED for what in row["holds"])


_COUNTED = ("commit", "uncommitted file")
