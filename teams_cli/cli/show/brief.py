"""The brief in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import ago, length_of
from teams_cli.tasks import overviews
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.tables import Table

    Parts = list[str | Table]


def who(found: dict[str, Any]) -> Parts:
    if found["agentId"] is None:
        return ["unknown: name yourself with --as AGENT or TEAMS_AGENT_ID"]
    role = found["role"] or ("no member" if found["team"] else "in no team")
    team = f" of team {found['team']}" if found["team"] else ""
    about = text.quoted(found.get("about"))
    return [f"{found['agentId']}: {role}{team}", *about, f"root: {found['root']} ({found['sources']['root']})"]


def brief(found: dict[str, Any]) -> Parts:
    """Show where an agent is in at most 1,500 characters: what is least needed gives way."""
    if "members" not in found:
        return [*_outside(found), f"next: {found['next']}"]
    lines = [*_mine(found), *_waiting(found), *_others(found)]
    last = f"next: {found['next']}" if found["next"] else overviews.DONE
    head = (
        f"{found['agent']}: {found['role'] or 'no member'} of team {found['team']}"
        f" (leader {found['leader']}, {text.counted(found['members'], 'member')})"
    )
    while lines and len(head) + len(last) + sum(len(line) + 1 for line, _ in lines) + 2 > _MOST:
        lines.remove(max(lines, key=lambda pair: (pair[1], len(pair[0]))))
    return [head, *(line for line, _ in lines), *last.split("\n")]  # a command of several lines is pasted as it is


_MOST = 1500
_SEEN, _NEEDED, _USEFUL, _EXTRA = range(4)
"""What gives way last: it counts as read, or is shown once."""
if TYPE_CHECKING:
    Lines = list[tuple[str, int]]


def _outside(found: dict[str, Any]) -> list[str]:
    if found["team"]:
        return [f"{found['agent']}: team {found['team']} does not exist yet"]
    known = f"; teams: {', '.join(found['teams'][:20])}" if found["teams"] else ""
    return [f"{found['agent']}: in no team{known}"]


def _mine(found: dict[str, Any]) -> Lines:
    lines: Lines = []
    if "closed" in found:
        by = f" by {found['closedBy']}" if found.get("closedBy") else ""
        when = ago(found["closed"]["at"])
        lines.append((f"the team was closed{by} {when}: you are done", _NEEDED))
    lines += [(line, _NEEDED) for line in text.quoted(found.get("about"))]
    lines += [(line, _SEEN) for line in text.quoted(found.get("rules"), "| ")]
    for task in found["myTasks"]:
        lines.append((f"yours: {task['id']} {task['title']}{_state(task)}", _NEEDED))
        lines += [(f"  {done['id']} ({done['owner']}): {done['result']}", _USEFUL) for done in task["results"]]
    if found["myTaskCount"] > len(found["myTasks"]):
        lines.append((f"your tasks: {found['myTaskCount']}: teams get-tasks --owner {found['agent']}", _NEEDED))
    lines += [(f"{page['text']} ({steps.read_page(page['key'])})", _NEEDED) for page in found.get("pages", ())]
    if found.get("morePages"):
        lines.append((f"{found['morePages']} more pages changed: teams shared", _NEEDED))
    return lines + [(line, _SEEN) for line in found["news"]]


def _state(task: dict[str, Any]) -> str:
    """What has to be known of one's task: how long the claim lasts, what it waits for, how it stands with its plan."""
    soon = ": any `teams` command renews it" if task.get("leaseEndsSoon") else ""
    said = [f"{length_of(task['leaseSeconds'])} left{soon}"] if task["leaseSeconds"] is not None else []
    if task["waitsFor"]:
        said.append(f"waits for {', '.join(task['waitsFor'])}")
    if task["plan"]:
        said.append(f"plan {task['plan']}" if task["planId"] is None else f"{task['planId']} {task['plan']}")
    return f" ({'; '.join(said)})" if said else ""


def _waiting(found: dict[str, Any]) -> Lines:
    lines: list[str | None] = [
        f"asked to shut down: {found['shutdown']}" if found["shutdown"] else None,
        f"unread: {'at least ' if found.get('moreUnread') else ''}{found['unread']} ({', '.join(found['unreadFrom'])})"
        if found["unread"]
        else None,
        _first("read, still open", found["unhandled"], found["unhandledCount"], "teams read-messages --peek"),
        *(f"overdue: {late['id']} is not acknowledged by {', '.join(late['waitsFor'])}" for late in found["overdue"]),
        _first("questions to you", found["questions"], found["questionCount"], "teams get-questions"),
        _first("plans waiting for you", found["plans"], found["planCount"], "teams get-plans --open"),
        *(f"  {plan['id']} of {plan['from']}: {plan['plan']}" for plan in found["proposed"]),
    ]
    return [(line, _NEEDED) for line in lines if line]


def _first(what: str, named: list[str], count: int, rest: str) -> str | None:
    """The first of what waits, and how many more with the command that lists them; None if there is nothing."""
    more = f" and {count - len(named)} more: {rest}" if count > len(named) else ""
    return f"{what}: {', '.join(named)}{more}" if named else None


def _others(found: dict[str, Any]) -> Lines:
    lines: Lines = []
    for status in ("completed", "failed"):
        ended = [_end(each, found["leads"]) for each in found["finished"] if each["status"] == status]
        if ended:
            lines.append((f"{status}: {_named(ended)}", _NEEDED))
    if found["stale"] and found["leads"]:
        lines.append((f"checked on commits that did not land: {', '.join(found['stale'][:_MOST_STALE])}", _NEEDED))
    if found["stuck"]:
        lines.append((f"blocked by failed tasks: {', '.join(found['stuck'][:5])}", _USEFUL))
    if found["moreChanges"]:
        lines.append((f"{found['moreChanges']} other changes: teams history --since {found['since']}", _EXTRA))
    counts = ", ".join(f"{count} {status}" for status, count in found["tasks"].items()) or "none"
    return [*lines, (f"tasks: {counts}; ready: {found['ready']}", _USEFUL)]


def _end(task: dict[str, Any], leads: bool) -> str:
    """A task that ended, by whom; for who leads also whether it was checked, and who accepted it."""
    said = [task["by"]]
    if leads:
        said += ["checked"] if task.get("checked") else []
        said += [f"accepted by {task['acceptedBy']}"] if "acceptedBy" in task else []
    return f"{task['id']} ({', '.join(said)})"


def _named(ended: list[str]) -> str:
    """All of them; where they are many, by their numbers alone, or how many."""
    if len(whole := ", ".join(ended)) <= _SHORT:
        return whole
    numbers = ", ".join(each.partition(" ")[0].removeprefix("task-") for each in ended)
    return numbers if len(numbers) <= 2 * _SHORT else f"{len(ended)} tasks: teams get-tasks"


_SHORT = 300
_MOST_STALE = 10
