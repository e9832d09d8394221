"""The lines of a watched team on a terminal, cut to its width, in one column or two."""

from __future__ import annotations

import textwrap
from datetime import datetime

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
_NAME = 20
_LINES = 3
"""The most lines of a text in a wide terminal."""
_SAYS = {"question": "asks:", "plan": "proposes:", "message": "writes:", "review": "asks"}
"""The verb before the text of somebody who waits for the person."""
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
    """Return the lines with the team, its leader and the progress of its work."""
    course = frame["course"]
    title = Text(f"{safe(frame['team'])} ", style="bold")
    title.append(f"led by {safe(frame['leader'] or 'nobody')}", style="dim")
    if frame["state"] != "active":
        title.append(f", {frame['state']}", style="yellow")
    where, end = _progress(course, width), Text(outlook(course), style="dim")
    if failed := _failures(course):
        fits = where.cell_len + 3 + len(failed) <= width
        parts = (where, Text(failed, style="bold red")) if fits else (Text(failed, style="bold red"), end)
        joined = Text(" · ").join(parts)
        where, end = (joined, end) if fits else (where, joined)
    return [_cut(line, width) for line in (title, where, end)]


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


def _failures(course: dict[str, Any]) -> str:
    """Return the number of failed tasks and of tasks that they block, as text; "" if there are none."""
    held = f", holding up {course['heldUp']}" if course["heldUp"] else ""
    return f"{course['failed']} failed{held}" if course["failed"] or held else ""


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
        parts = (_waiting, _failed, _agents, _tasks, _messages)
        return [line for part in parts for line in part(frame, width, chosen, 1)]
    left = (width - 3) * 11 // 20
    right = width - 3 - left
    one = [line for part in (_agents, _tasks) for line in part(frame, left, chosen, _LINES)]
    other = [line for part in (_waiting, _failed, _messages) for line in part(frame, right, chosen, _LINES)]
    return _beside(one, other, left)


def _beside(one: list[Line], other: list[Line], width: int) -> list[Line]:
    lines = []
    for place in range(max(len(one), len(other))):
        line = one[place].copy() if place < len(one) else Text()
        line.append(" " * (width - line.cell_len) + " │ ", style="dim")
        lines.append(line.append_text(other[place]) if place < len(other) else line)
    return lines


def _waiting(frame: Frame, width: int, _: str, most: int) -> list[Line]:
    rows = frame["waiting"]
    if not rows:
        return []
    lines = [Text(f"Waits for you ({len(rows)})", style="bold magenta")]
    ids = max(len(row["id"]) for row in rows[:8])
    for row in rows[:8]:
        verb = "asked, but no longer waits:" if row.get("leftAlone") else _SAYS[row["kind"]]
        text = f"{row['from']} {verb} {_flat(row['text'])}"
        lines += _hung(Text(f"{row['id']:<{ids}}  "), text, width, most)
    return [*lines, *_more(rows, 8)]


def _failed(frame: Frame, width: int, _: str, most: int) -> list[Line]:
    rows = frame["failed"]
    if not rows:
        return []
    lines = [Text(f"Failed ({len(rows)})", style="bold red")]
    for row in rows[:6]:
        what = "cancelled" if row["status"] == "cancelled" else "failed"
        held = f", holds up {row['waiting']}" if row["waiting"] else ""
        text = f"{what}{held}: {_flat(row['reason'])}"
        lines += _hung(Text(f"{row['id']:<8} ", style="red"), text, width, most, "red")
    return [*lines, *_more(rows, 6)]


def _more(rows: list[Any], shown: int) -> list[Line]:
    return [Text(f"  and {len(rows) - shown} more", style="dim")] if len(rows) > shown else []


def _agents(frame: Frame, width: int, chosen: str, most: int) -> list[Line]:
    rows = frame["agents"]
    lines = [Text(f"Agents ({len(rows)})" if rows else "Agents: none", style="bold")]
    names = min(_NAME, max((cell_len(row["name"]) for row in rows), default=0))
    states = max((len(agent_state(row)) for row in rows), default=0)
    for row in rows:
        line = Text("> " if row["name"] == chosen else "  ", style="bold cyan")
        line.append_text(_padded(safe(row["name"]), names, "reverse" if row["name"] == chosen else "default"))
        style = _STATES.get(row["trouble"] or row["state"], "default")
        line.append("  ").append_text(_padded(agent_state(row), states, style))
        line.append(f"  {row['queueDepth']:>3} unread  " if row["queueDepth"] else " " * 13, style="dim")
        line.append(
            safe(_flat(row["why"] or row["status"] or "")),
            style="red" if row["trouble"] in ("failed", "lost", "silent") else "default",
        )
        lines.append(_cut(line, width))
    return lines


def _tasks(frame: Frame, width: int, _: str, most: int) -> list[Line]:
    rows = frame["tasks"]
    heading = Text("Tasks" if rows else "Tasks: none yet (teams create-task TITLE)", style="bold")
    if path := frame["course"]["criticalPath"]:
        heading.append(f"  longest chain ahead: {' → '.join(path)}", style="not bold dim")
    lines = [_cut(heading, width)]
    ids = max((len(row["id"]) for row in rows), default=0)
    owners = min(_NAME, max((cell_len(row.get("owner") or "-") for row in rows), default=0))
    marks = {row["id"]: "high  " if row["priority"] == "high" and row["status"] not in FINISHED else "" for row in rows}
    marked = max(map(len, marks.values()), default=0)
    for row in rows:
        status = _status(row)
        line = Text(f"  {row['id']:<{ids}}  ", style="dim")
        line.append_text(_padded(status, 11, _STATES.get(status, "default")))
        line.append("  ").append_text(_padded(safe(row.get("owner") or "-"), owners, "default"))
        line.append(f"  {marks[row['id']]:<{marked}}", style="yellow")
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
    """Return the status of a task; that of a pending task is `ready` or `blocked`."""
    if row["status"] == "pending":
        return "blocked" if row["blocked"] else "ready"
    return str(row["status"])


def _messages(frame: Frame, width: int, _: str, most: int) -> list[Line]:
    rows = frame["messages"]
    lines = [Text("Messages" if rows else "Messages: none yet", style="bold")]
    for row in rows:
        whom = safe(f"{row['from']} → {row['to']}{reach_in_short(row)}: ")
        head = Text(f"  {local_time(row['timestamp'])}  ", style="dim")
        wrapped = _hung(head, f"{whom}{_flat(row['message'])}", width, _LINES)
        wrapped[0].stylize("cyan", head.cell_len, head.cell_len + len(whom))
        lines += wrapped
    return lines


def _hung(head: Line, text: str, width: int, most: int, style: str = "default") -> list[Line]:
    """Return the text behind its head, on at most *most* lines, all indented like the first."""
    room = max(20, width - head.cell_len)
    parts = textwrap.wrap(safe(text), room, break_on_hyphens=False) if most > 1 else [safe(text)]
    if len(parts) > most:
        parts[most - 1 :] = [" ".join(parts[most - 1 :])]
    first, *rest = parts or [""]
    lines = [head.append(first, style=style), *(Text(" " * (width - room) + part, style=style) for part in rest)]
    return [_cut(line, width) for line in lines]


def entry(found: dict[str, Any]) -> str:
    """Return an entry of the history as text, with its time of day."""
    return f"{local_time(found['at'])}  {' '.join(history.line(found).split(': ', 1)[1:])}"


def local_time(at: str) -> str:
    """Return the time of day of a timestamp, in the time zone of this machine."""
    return datetime.fromisoformat(at.replace("Z", "+00:00")).astimezone().strftime("%H:%M")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _padded(word: str, width: int, style: str) -> Line:
    """Return the word, padded or cut to the width of its column."""
    cell = Text(word, style=style)
    cell.truncate(width, overflow="ellipsis")
    return cell.append(" " * (width - cell.cell_len))


def _cut(line: Line, width: int) -> Line:
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line
