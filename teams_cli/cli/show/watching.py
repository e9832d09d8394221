"""A team at a glance, in words and tables."""

from __future__ import annotations

from teams_cli import history
from teams_cli.cli.output import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def frame(found: dict[str, Any]) -> Parts:
    """The whole frame."""
    closed = ", closed" if found["state"] == "closed" else ""
    counts = ", ".join(f"{count} {status}" for status, count in found["taskCounts"].items() if count) or "no tasks"
    return [
        f"team {found['team']} (leader {found['leader']}{closed})",
        Table(
            ["agent", "role", "state", "unread", "status"], [_agent(row) for row in found["agents"]], "nobody is there"
        ),
        f"tasks: {counts}",
        Table(["task", "status", "priority", "owner", "title"], [_task(task) for task in found["tasks"]]),
        "messages:" if found["messages"] else "no messages",
        Table(["message", "at", "from", "to", "text"], [_message(message) for message in found["messages"]]),
    ]


def _agent(row: dict[str, Any]) -> list[str]:
    state = row.get("session", {}).get("outcome") if row["state"] == "idle" else None
    shown = state if state in ("failed", "lost") else row["state"]
    return [row["name"], row["role"], shown, str(row["queueDepth"]), row["status"] or "-"]


def _task(task: dict[str, Any]) -> list[str]:
    status = "blocked" if task["status"] == "pending" and task["blocked"] else task["status"]
    return [task["id"], status, task["priority"], task.get("owner", "-"), task["title"]]


def _message(message: dict[str, Any]) -> list[str]:
    text = " ".join(message["message"].split())
    short = text if len(text) <= 100 else text[:99] + "…"
    return [message["id"], message["timestamp"][11:19], message["from"], message["to"], short]


def _watched(found: dict[str, Any]) -> Parts:
    """The first frame whole, then only what changed."""
    if "changes" in found:
        return [f"{entry.get('at')}  {history.line(entry)}" for entry in found["changes"]]
    return frame(found)


SHOW = {"watch": _watched}
