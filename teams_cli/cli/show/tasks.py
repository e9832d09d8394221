"""Tasks in words."""

from __future__ import annotations

from teams_cli.cli.output import Table
from teams_cli.cli.show import present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def _rows(tasks: list[dict[str, Any]]) -> Parts:
    rows = [[task["id"], _status(task), task["priority"], task.get("owner", "-"), task["title"]] for task in tasks]
    return [Table(["task", "status", "priority", "owner", "title"], rows, "no tasks")]


def _status(task: dict[str, Any]) -> str:
    return "blocked" if task["status"] == "pending" and task["blocked"] else str(task["status"])


def _line(task: dict[str, Any]) -> Parts:
    by = f" by {task['owner']}" if "owner" in task else ""
    waits = f", waits for {', '.join(task['openBlockers'])}" if task["openBlockers"] else ""
    return [f"{task['id']}: {task['status']}{by}{waits}: {task['title']}"]


def _claimed(task: dict[str, Any]) -> Parts:
    return [
        *_line(task),
        *present(
            *_indented(task.get("description")),
            f"run: {task['run']}" if "run" in task else None,
            f"claim {task['claim']}, lasts until {task['leaseExpiresAt']} or the next heartbeat",
        ),
    ]


def _whole(task: dict[str, Any]) -> Parts:
    facts = [
        ("status", _status(task)),
        ("owner", task.get("owner")),
        ("priority", task["priority"]),
        ("waits for", ", ".join(task["openBlockers"])),
        ("blocked by", ", ".join(task["blockedBy"])),
        ("requires", ", ".join(task["require"])),
        ("run", task.get("run")),
        ("lease until", task.get("leaseExpiresAt")),
    ]
    notes = [f"{note['at']}  {note['what']} by {note['by']}{_because(note)}" for note in task["notes"]]
    result = ["result:", *_indented(task["result"])] if task.get("result") else []
    said = [f"{name}: {value}" for name, value in facts if value]
    return [f"{task['id']}: {task['title']}", *_indented(task.get("description")), *said, *result, *notes]


def _indented(text: str | None) -> list[str]:
    """The lines of a text of somebody's, set off from what the program says."""
    return [f"  {line}" for line in (text or "").splitlines()]


def _because(note: dict[str, Any]) -> str:
    return f": {note['reason']}" if note.get("reason") else ""


def _beat(done: dict[str, Any]) -> Parts:
    kept = [f"{task['id']}: lasts until {task['leaseExpiresAt']}" for task in done["tasks"]]
    return [f"{done['agent']}: seen {done['lastSeen']}", *kept]


SHOW = {
    "create-task": _line,
    "get-tasks": _rows,
    "show-task": _whole,
    "claim-task": _claimed,
    "update-task": _line,
    "release-task": _line,
    "heartbeat": _beat,
}
