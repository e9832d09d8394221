"""The end of a wait in words."""

from __future__ import annotations

from teams_cli.cli.show.agents import ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.output import Table


def _waited(found: dict[str, Any]) -> list[str | Table]:
    if "task" in found:
        return [f"{found['task']['id']}: {found['task']['status']}"]
    if "plan" in found:
        return [f"{found['plan']['id']}: {found['plan']['status']}"]
    if "unread" in found:
        return [f"unread: {', '.join(found['unread'])}"]
    if "outcome" in found:
        return ended(found)
    if "agent" in found:
        return [f"{found['agent']}: nothing in progress"]
    counts = ", ".join(f"{count} {status}" for status, count in found["taskCounts"].items() if count) or "no tasks"
    return [f"settled: {counts}", *([f"stuck: {', '.join(found['stuck'])}"] if found["stuck"] else [])]


SHOW = {"wait": _waited}
