"""Worktrees of agents in words."""

from __future__ import annotations

from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def shown(found: Any) -> Parts:
    if isinstance(found, list):
        rows = [
            [row["agent"], row["state"], str(row["commits"]), str(row["uncommitted"]), row["path"]] for row in found
        ]
        return [Table(["agent", "holds", "commits", "uncommitted", "path"], rows, "no worktrees")]
    if "diff" in found:
        return [found["diff"].rstrip("\n") or f"{found['agent']} changed nothing"]
    if found["state"] == "merged":
        return [f"{found['branch']}: merged as {found['commit'][:10]}; worktree and branch are removed"]
    return [f"{found['path']}: removed, with {found['branch']}"]
