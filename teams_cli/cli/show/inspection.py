"""Answers on history, health, settings, clients and workflows, and the watched team, in words."""

from __future__ import annotations

from collections import Counter

from teams_cli import text
from teams_cli.cli.show import counts_of, moment, state
from teams_cli.cli.show.messages import how_far
from teams_cli.cli.tables import Table
from teams_cli.clock import length
from teams_cli.teams import history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.show import Parts


def _entry(entry: dict[str, Any]) -> str:
    return f"{moment(str(entry.get('at')))}  {history.line(entry)}"


def changes(entries: Any) -> Parts:
    return [_entry(entries)] if isinstance(entries, dict) else [_entry(entry) for entry in entries]


def hits(hits: list[dict[str, Any]]) -> Parts:
    """Each hit with where it is; of a task also what it is called."""
    rows = [[hit["in"], hit["id"], hit["from"] or "-", moment(hit["at"]), _text(hit)] for hit in hits]
    return [Table(["in", "id", "from", "at", "text"], rows)] if rows else ["nothing was found"]


def _text(hit: dict[str, Any]) -> str:
    title = hit.get("title")
    return hit["text"] if hit["in"] == "tasks" or not title else f"{hit['text']} ({title})"


def doctor(document: dict[str, Any]) -> Parts:
    if not document["findings"]:
        return [f"{document['root']}: healthy"]
    lines = []
    for item, following in zip(document["findings"], [*document["findings"][1:], {}], strict=True):
        lines.append(f"{item['level']}: {item['where']}: {item['what']}")
        if (remedy := _remedy(item)) and remedy != _remedy(following):
            lines.append(f"  {remedy}")
    return [*lines]


def _remedy(finding: dict[str, Any]) -> str:
    """What is to be done, said once behind all findings that have it in common."""
    return "" if finding.get("level") in (None, "fixed") else str(finding["remedy"] or "")


def settings(document: dict[str, Any]) -> Parts:
    call = [[what, str(said["value"] or "-"), said["source"], ""] for what, said in document["call"].items()]
    rows = [[row["key"], str(row["value"]), row["source"], row["help"]] for row in document["settings"]]
    return [Table(["setting", "value", "from", "what it is"], call + rows)]


def set_to(done: dict[str, Any]) -> Parts:
    return [f"{done['key']}: {done['value']} ({done.get('for') or done['source']})"]


def version(document: dict[str, Any]) -> Parts:
    return [f"teams {document['version']} on Python {document['python']}; the teams are in {document['store']}"]


_SHORT = 100
"""Characters of a text that a row has."""


def frame(frame: dict[str, Any]) -> Parts:
    """Show the whole team at a glance."""
    closed = ", closed" if frame["state"] == "closed" else ""
    waiting = [[row["id"], row["from"], text.clipped_line(row["text"], _SHORT)] for row in frame["waiting"]]
    failed = [
        [row["id"], row["status"], str(row["waiting"] or "-"), text.clipped_line(row["reason"], _SHORT)]
        for row in frame["failed"]
    ]
    tasks = [
        [
            task["id"],
            "blocked" if task["status"] == "pending" and task["blocked"] else task["status"],
            task["priority"],
            task.get("owner", "-"),
            task["title"],
        ]
        for task in frame["tasks"]
    ]
    return [
        f"team {frame['team']} (leader {frame['leader']}{closed})",
        _course(frame["course"]),
        *([f"waits for you: {len(waiting)}"] if waiting else []),
        Table(["what", "from", "text"], waiting),
        *([f"failed: {len(failed)}"] if failed else []),
        Table(["task", "status", "blocks", "reason"], failed),
        f"agents: {len(frame['agents'])}",
        Table(["agent", "role", "state", "unread", "status"], [_agent(row) for row in frame["agents"]], "no agents"),
        f"tasks: {counts_of(frame['taskCounts'])}",
        *([f"longest chain of tasks: {', '.join(path)}"] if (path := frame["course"]["criticalPath"]) else []),
        Table(["task", "status", "priority", "owner", "title"], tasks),
        "messages:" if frame["messages"] else "no messages",
        Table(["message", "at", "from", "to", "text"], [_message(message) for message in frame["messages"]]),
    ]


def happened(document: dict[str, Any]) -> Parts:
    """What happened, each with what to do about it."""
    lines: Parts = []
    for event in document["events"]:
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


def _agent(row: dict[str, Any]) -> list[str]:
    status = text.clipped_line(row["why"] or row["status"] or "-", _SHORT)
    return [row["name"], row["role"], state(row), str(row["queueDepth"]), status]


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


def watched(frame_or_changes: dict[str, Any]) -> Parts:
    """The first frame whole, then only what changed."""
    if "changes" in frame_or_changes:
        return [f"{moment(str(entry.get('at')))}  {history.line(entry)}" for entry in frame_or_changes["changes"]]
    return frame(frame_or_changes)


def change(done: dict[str, Any]) -> list[str]:
    if "commands" in done:
        said = "would run" if done["planned"] else "ran" if done["changed"] else "not needed"
        lines = [f"{said}: {command}" for command in done["commands"]]
        return [*lines, f"next: {done['next']}"] if "next" in done else lines
    if not done["diff"]:
        return [f"{file['path']}: nothing to change" for file in done["files"]]
    asked = done.get("asked", False)
    lines = [line for file in done["files"] for line in _file(file, asked)]
    return [*lines, f"next: {done['next']}"] if "next" in done else lines


def _file(file: dict[str, Any], asked: bool) -> list[str]:
    """What became of the file, with how, unless that was shown when it was asked about."""
    lines: list[str] = [] if asked else file["diff"].splitlines()
    if asked and not file["changed"]:
        lines.append(f"{file['path']}: left as it is")
    if file["changed"]:
        lines.append(f"{file['path']}: changed" + (f"; before: {file['backup']}" if file["backup"] else ""))
    return lines


def serving(server: dict[str, Any]) -> list[str]:
    return [f"{server['url']}/#token={server['token']}"]


def hooked(said: Any) -> list[str]:
    return [str(said)]


def here(document: dict[str, Any]) -> list[str]:
    return [f"{document['directory']}: {document['team'] or 'belongs to no team'}"]


def opened(document: dict[str, Any]) -> list[str]:
    return [f"{document['agent']}: opened"]


def workflow_run(done: dict[str, Any]) -> Parts:
    return [*text.quoted(done["text"]), f"status: {done['status']}; team: {done['team']}; report: {done['report']}"]


def workflows(rows: list[dict[str, Any]]) -> Parts:
    table = [[row["name"], row["pattern"], row["description"], row["path"]] for row in rows]
    return [Table(["workflow", "pattern", "description", "path"], table, "no workflows")]


def workflow_checked(workflow: dict[str, Any]) -> Parts:
    tasks = text.counted(len(workflow["tasks"]), "task")
    agents = text.counted(workflow["agents"], "agent")
    return [
        f"{workflow['name']}: valid; {workflow['pattern']} pattern, {tasks}, {agents}",
        *(f"  --var {name}={'…' if default is None else default}" for name, default in workflow["variables"].items()),
    ]
