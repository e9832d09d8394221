"""A team at a glance, in words and tables."""

from __future__ import annotations

from collections import Counter

from teams_cli import text
from teams_cli.cli.show import moment, state
from teams_cli.cli.show.messages import how_far
from teams_cli.cli.tables import Table
from teams_cli.clock import length
from teams_cli.teams import history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]

_SHORT = 100
"""Characters of a text that a row has."""


def frame(found: dict[str, Any]) -> Parts:
    """The whole frame."""
    closed = ", closed" if found["state"] == "closed" else ""
    counts = ", ".join(f"{count} {status}" for status, count in found["taskCounts"].items() if count) or "no tasks"
    return [
        f"team {found['team']} (leader {found['leader']}{closed})",
        _course(found["course"]),
        *([f"waits for you: {len(found['waiting'])}"] if found["waiting"] else []),
        Table(["what", "from", "text"], [_waiting(row) for row in found["waiting"]]),
        *([f"failed: {len(found['failed'])}"] if found["failed"] else []),
        Table(["task", "status", "blocks", "reason"], [_failed(row) for row in found["failed"]]),
        f"agents: {len(found['agents'])}",
        Table(["agent", "role", "state", "unread", "status"], [_agent(row) for row in found["agents"]], "no agents"),
        f"tasks: {counts}",
        *([f"longest chain of tasks: {', '.join(path)}"] if (path := found["course"]["criticalPath"]) else []),
        Table(["task", "status", "priority", "owner", "title"], [_task(task) for task in found["tasks"]]),
        "messages:" if found["messages"] else "no messages",
        Table(["message", "at", "from", "to", "text"], [_message(message) for message in found["messages"]]),
    ]


def happened(found: dict[str, Any]) -> Parts:
    """What happened, each with what to do about it."""
    lines: Parts = []
    for event in found["events"]:
        lines.append(f"{event['event']}: {event['text']}")
        lines += [f"next: {event['next']}"] if "next" in event else []
    return lines


def _course(course: dict[str, Any]) -> str:
    """How far the work is and when it may be done, in a line."""
    reviewed = f", {course['inReview']} in review" if course["inReview"] else ""
    done = f"{course['done']} of {course['total']} done"
    counts = f"{done}, {course['inProgress']} in progress{reviewed}, {course['ready']} ready"
    held = f" (blocking {course['heldUp']})" if course["heldUp"] else ""
    estimate = course["estimate"]
    left = f"{length(estimate['fromSeconds'])} to {length(estimate['toSeconds'])} left" if estimate else ""
    end = f"about {left}" if left else f"no estimate: {course['noEstimate']}"
    return f"{course['percent']} %: {counts}, {course['blocked']} blocked, {course['failed']} failed{held}; {end}"


def _waiting(row: dict[str, Any]) -> list[str]:
    return [row["id"], row["from"], text.clipped_line(row["text"], _SHORT)]


def _failed(row: dict[str, Any]) -> list[str]:
    return [row["id"], row["status"], str(row["waiting"] or "-"), text.clipped_line(row["reason"], _SHORT)]


def _agent(row: dict[str, Any]) -> list[str]:
    said = row["why"] or row["status"] or "-"
    return [
        row["name"],
        row["role"],
        state(row),
        str(row["queueDepth"]),
        text.clipped_line(said, _SHORT),
    ]


def _task(task: dict[str, Any]) -> list[str]:
    status = "blocked" if task["status"] == "pending" and task["blocked"] else task["status"]
    return [task["id"], status, task["priority"], task.get("owner", "-"), task["title"]]


def _message(message: dict[str, Any]) -> list[str]:
    return [
        message["id"],
        moment(message["timestamp"]),
        message["from"],
        message["to"] + reach_in_short(message),
        text.clipped_line(message["message"], _SHORT),
    ]


def reach_in_short(message: dict[str, Any]) -> str:
    """How far the message got with those it was sent to; empty where that is not told."""
    counts = Counter(how_far(each) for each in message.get("reach", ()))
    words = list(counts) if sum(counts.values()) == 1 else [f"{count} {state}" for state, count in counts.items()]
    said = [*words, *(["not acknowledged in time"] if message.get("overdue") else [])]
    return f" ({', '.join(said)})" if said else ""


def watched(found: dict[str, Any]) -> Parts:
    """The first frame whole, then only what changed."""
    if "changes" in found:
        return [f"{moment(str(entry.get('at')))}  {history.line(entry)}" for entry in found["changes"]]
    return frame(found)
