"""The lines of a watched team on a terminal, cut to its width, in one column or two."""

from __future__ import annotations

import textwrap
from datetime import datetime
from itertools import zip_longest

from rich.cells import cell_len
from rich.text import Text

from teams_cli.clock import length
from teams_cli.commands.inspection import reach_in_short
from teams_cli.commands.phrases import agent_state
from teams_cli.tasks.tasks import FINISHED
from teams_cli.teams import history
from teams_cli.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Frame = dict[str, Any]
    Line = Text

_TWO_COLUMNS = 140
"""The least width of a terminal with two columns."""
_WIDEST_NAME = 20
_MOST_LINES = 3
"""The most lines of a text in a wide terminal."""
_MOST_WAITING, _MOST_FAILED = 8, 6
_VERBS = {"question": "asks:", "plan": "proposes:", "message": "writes:", "review": "asks"}
"""For each kind of thing that waits for the person, the verb between the agent's name and the text."""
_STATES = {
    "failed": "bold red",
    "lost": "bold red",
    "silent": "bold red",
    "cancelled": "dim",
    "waiting": "cyan",
    "paused": "yellow",
    "limited": "yellow",
    "stale": "yellow",
    "active": "green",
    "in_progress": "cyan",
    "in_review": "magenta",
    "completed": "green",
    "blocked": "yellow",
    "stopped": "dim",
}


def head(frame: Frame, width: int) -> list[Line]:
    """Return three lines: the team and its leader; how much of the work is done; and when the rest may be done. The
    number of failed tasks is at the end of the second line, or of the third if the second has no room.
    """
    course = frame["course"]
    title = Text(f"{safe(frame['team'])} ", style="bold")
    title.append(f"led by {safe(frame['leader'] or 'nobody')}", style="dim")
    if frame["state"] != "active":
        title.append(f", {frame['state']}", style="yellow")
    progress, end = _progress(course, width), Text(outlook(course), style="dim")
    if course["failed"] or course["heldUp"]:
        held = f", holding up {course['heldUp']}" if course["heldUp"] else ""
        failures = Text(f"{course['failed']} failed{held}", style="bold red")
        separator = Text(" · ")
        if progress.cell_len + separator.cell_len + failures.cell_len <= width:
            progress = separator.join((progress, failures))
        else:
            end = separator.join((failures, end))
    return [_cut(line, width) for line in (title, progress, end)]


def _progress(course: dict[str, Any], width: int) -> Line:
    """Return a line with the bar and the number of tasks in each state."""
    size = 10 if width < 100 else 24
    done = size * course["percent"] // 100
    line = Text("█" * done + "░" * (size - done), style="green")
    line.append(f" {course['percent']} %", style="bold default")
    line.append(f"  {course['done']}/{course['total']} · {course['inProgress']} in work", style="default")
    if course["inReview"]:
        line.append(f" · {course['inReview']} in review", style="default")
    return line.append(f" · {course['ready']} ready · {course['blocked']} blocked", style="default")


def outlook(course: dict[str, Any]) -> str:
    """Return the pace of the work and its estimated end, or the reason why there is no estimate, as text."""
    pace, estimate = course["pace"], course["estimate"]
    parts = []
    if pace:
        hourly = pace["perHour"]
        parts.append(f"{hourly / 60:.1f} a minute lately" if hourly >= 60 else f"{hourly:.1f} an hour lately")
    if estimate:
        parts.append(f"about {length(estimate['fromSeconds'])} to {length(estimate['toSeconds'])} left")
    else:
        parts.append(f"no estimate: {course['noEstimate']}")
    return " · ".join(parts)


def body(frame: Frame, width: int, chosen: str = "") -> list[Line]:
    """Return all lines below the head. The *chosen* agent is marked."""
    if width < _TWO_COLUMNS:
        return [
            *_waiting(frame, width, 1),
            *_failed(frame, width, 1),
            *_agents(frame, width, chosen),
            *_tasks(frame, width),
            *_messages(frame, width),
        ]
    left_width = (width - 3) * 11 // 20  # three characters separate the columns
    right_width = width - 3 - left_width
    left = [*_agents(frame, left_width, chosen), *_tasks(frame, left_width)]
    right = [
        *_waiting(frame, right_width, _MOST_LINES),
        *_failed(frame, right_width, _MOST_LINES),
        *_messages(frame, right_width),
    ]
    lines = []
    for left_line, right_line in zip_longest(left, right):
        line = left_line or Text()
        line.append(" " * (left_width - line.cell_len) + " │ ", style="dim")
        lines.append(line.append_text(right_line or Text()))
    return lines


def _waiting(frame: Frame, width: int, most_lines: int) -> list[Line]:
    rows = frame["waiting"]
    if not rows:
        return []
    lines = [Text(f"Waits for you ({len(rows)})", style="bold magenta")]
    id_width = max(len(row["id"]) for row in rows[:_MOST_WAITING])
    for row in rows[:_MOST_WAITING]:
        verb = "asked, but no longer waits:" if row.get("leftAlone") else _VERBS[row["kind"]]
        text = f"{row['from']} {verb} {_flat(row['text'])}"
        lines += _indented(Text(f"{row['id']:<{id_width}}  "), text, width, most_lines)
    return [*lines, *_more(rows, _MOST_WAITING)]


def _failed(frame: Frame, width: int, most_lines: int) -> list[Line]:
    rows = frame["failed"]
    if not rows:
        return []
    lines = [Text(f"Failed ({len(rows)})", style="bold red")]
    for row in rows[:_MOST_FAILED]:
        status = "cancelled" if row["status"] == "cancelled" else "failed"
        held = f", holds up {row['waiting']}" if row["waiting"] else ""
        text = f"{status}{held}: {_flat(row['reason'])}"
        lines += _indented(Text(f"{row['id']:<8} ", style="red"), text, width, most_lines, "red")
    return [*lines, *_more(rows, _MOST_FAILED)]


def _more(rows: list[Any], shown: int) -> list[Line]:
    return [Text(f"  and {len(rows) - shown} more", style="dim")] if len(rows) > shown else []


def _agents(frame: Frame, width: int, chosen: str) -> list[Line]:
    rows = frame["agents"]
    lines = [Text(f"Agents ({len(rows)})" if rows else "Agents: none", style="bold")]
    name_width = min(_WIDEST_NAME, max((cell_len(row["name"]) for row in rows), default=0))
    state_width = max((len(agent_state(row)) for row in rows), default=0)
    for row in rows:
        is_chosen = row["name"] == chosen
        line = Text("> " if is_chosen else "  ", style="bold cyan")
        line.append_text(_padded(safe(row["name"]), name_width, "reverse" if is_chosen else "default"))
        style = _STATES.get(row["trouble"] or row["state"], "default")
        line.append("  ").append_text(_padded(agent_state(row), state_width, style))
        line.append(f"  {row['queueDepth']:>3} unread  " if row["queueDepth"] else " " * 13, style="dim")
        line.append(
            safe(_flat(row["why"] or row["status"] or "")),
            style="red" if row["trouble"] in ("failed", "lost", "silent") else "default",
        )
        lines.append(_cut(line, width))
    return lines


def _tasks(frame: Frame, width: int) -> list[Line]:
    rows = frame["tasks"]
    heading = Text("Tasks" if rows else "Tasks: none yet (teams create-task TITLE)", style="bold")
    if path := frame["course"]["criticalPath"]:
        heading.append(f"  longest chain ahead: {' → '.join(path)}", style="not bold dim")
    lines = [_cut(heading, width)]
    id_width = max((len(row["id"]) for row in rows), default=0)
    owner_width = min(_WIDEST_NAME, max((cell_len(row.get("owner") or "-") for row in rows), default=0))
    marks = {row["id"]: "high  " if row["priority"] == "high" and row["status"] not in FINISHED else "" for row in rows}
    mark_width = max(map(len, marks.values()), default=0)
    for row in rows:
        status = _status(row)
        line = Text(f"  {row['id']:<{id_width}}  ", style="dim")
        line.append_text(_padded(status, 11, _STATES.get(status, "default")))
        line.append("  ").append_text(_padded(safe(row.get("owner") or "-"), owner_width, "default"))
        line.append(f"  {marks[row['id']]:<{mark_width}}", style="yellow")
        line.append(safe(_flat(row["title"])), style="default")
        if row["openBlockers"]:
            line.append(f"  waits for {', '.join(row['openBlockers'])}", style="dim")
        elif status == "completed" and row.get("completedAt"):
            line.append(f"  {local_time(row['completedAt'])} {safe(_flat(row.get('result') or ''))}", style="dim")
        elif status == "in_review" and row.get("reviewBy"):
            line.append(f"  waits for the review of {safe(row['reviewBy'])}", style="dim")
        lines.append(_cut(line, width))
    return lines


def _status(row: dict[str, Any]) -> str:
    """Return the status of a task. Instead of `pending` this is `ready` or `blocked`."""
    if row["status"] == "pending":
        return "blocked" if row["blocked"] else "ready"
    return str(row["status"])


def _messages(frame: Frame, width: int) -> list[Line]:
    rows = frame["messages"]
    lines = [Text("Messages" if rows else "Messages: none yet", style="bold")]
    for row in rows:
        from_and_to = safe(f"{row['from']} → {row['to']}{reach_in_short(row)}: ")
        time_of_day = Text(f"  {local_time(row['timestamp'])}  ", style="dim")
        start = time_of_day.cell_len
        wrapped = _indented(time_of_day, f"{from_and_to}{_flat(row['message'])}", width, _MOST_LINES)
        wrapped[0].stylize("cyan", start, start + len(from_and_to))
        lines += wrapped
    return lines


def _indented(head: Line, text: str, width: int, most_lines: int, style: str = "default") -> list[Line]:
    """Return *head* with the text behind it, on at most *most_lines* lines. Later lines are indented to where the text
    begins.
    """
    room = max(20, width - head.cell_len)
    parts = textwrap.wrap(safe(text), room, break_on_hyphens=False) if most_lines > 1 else [safe(text)]
    if len(parts) > most_lines:
        parts[most_lines - 1 :] = [" ".join(parts[most_lines - 1 :])]  # this last line is cut below
    first, *others = parts or [""]
    lines = [head.append(first, style=style), *(Text(" " * (width - room) + part, style=style) for part in others)]
    return [_cut(line, width) for line in lines]


def entry_text(entry: dict[str, Any]) -> str:
    """Return an entry of the history as text, with its time of day."""
    _actor, _, change = history.line(entry).partition(": ")
    return f"{local_time(entry['at'])}  {change}"


def local_time(timestamp: str) -> str:
    """Return the time of day of a timestamp, in the time zone of this machine."""
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).astimezone().strftime("%H:%M")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _padded(text: str, width: int, style: str) -> Line:
    """Return the text, padded or cut to the width of its column."""
    cell = Text(text, style=style)
    cell.truncate(width, overflow="ellipsis")
    return cell.append(" " * (width - cell.cell_len))


def _cut(line: Line, width: int) -> Line:
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line
