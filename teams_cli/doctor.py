"""Looking for what is wrong with the teams, and mending what can be mended without losing anything."""

from __future__ import annotations

from teams_cli import (
    agents,
    conditions,
    inboxes,
    leases,
    messages,
    outputs,
    plans,
    sessions,
    shutdowns,
    tasks,
    teams,
)
from teams_cli.errors import TeamsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.store.contract import Finding, Kind, Store
    from teams_cli.tasks import Task
    from teams_cli.teams import Team

KINDS: tuple[Kind[Any], ...] = (
    teams.TEAM,
    agents.AGENT,
    inboxes.INBOX,
    tasks.TASK,
    messages.MESSAGE,
    plans.PLAN,
    shutdowns.SHUTDOWN,
    sessions.SESSION,
    outputs.OUTPUT,
)


def examine(store: Store, fix: bool = False) -> list[Finding]:
    """Look through all teams; with *fix*, mend what can be mended.

    Each finding has a level (`problem`, `warning`, `fixed`), where, what, and what to do about it.
    """
    found = list(store.examine(KINDS, fix))
    for name in store.teams():
        try:
            team = teams.load(store, name)
        except TeamsError:
            continue  # the store has said so
        found += _team(store, team, fix)
    return found


def _team(store: Store, team: Team, fix: bool) -> Iterator[Finding]:
    known = {task.id: task for task in tasks.everything(store, team.name, [])}
    yield from _blockers(team.name, known)
    yield from _claims(store, team, known, fix)
    for row in agents.listing(store, team, set(), []):
        if row["state"] == "stale":
            what = f"{row['name']} was not heard of since {row['lastSeen']}, or its process is gone"
            yield _finding(team.name, "warning", what, "If it is gone for good, let it leave: teams leave-team")


def _blockers(team: str, known: dict[str, Task]) -> Iterator[Finding]:
    for task in known.values():
        if missing := [key for key in task.blocked_by if key not in known]:
            remedy = f"teams update-task {task.id} --unblock {missing[0]}"
            yield _finding(team, "problem", f"{task.id} waits for {', '.join(missing)}, which there is not", remedy)
    for key in sorted(_in_circles(known)):
        yield _finding(
            team, "problem", f"{key} waits for itself through others", f"teams update-task {key} --unblock …"
        )
    for key in sorted(conditions.stuck_tasks(list(known.values()))):
        what = f"{key} waits for a task that failed or was cancelled"
        yield _finding(team, "warning", what, "Open that one again, or drop the blocker with --unblock.")


def _in_circles(known: dict[str, Task]) -> set[str]:
    """The tasks that come back to themselves along their blockers."""
    circles = set()
    for start in known:
        ahead, seen = list(known[start].blocked_by), set[str]()
        while ahead:
            key = ahead.pop()
            if key == start:
                circles.add(start)
                break
            if key not in seen and key in known:
                seen.add(key)
                ahead += known[key].blocked_by
    return circles


def _claims(store: Store, team: Team, known: dict[str, Task], fix: bool) -> Iterator[Finding]:
    for task in known.values():
        reason = leases.over(store, team, task)
        if reason:
            if fix:
                leases.release_if_over(store, team, task.id)
            level = "fixed" if fix else "warning"
            yield _finding(team.name, level, f"the claim on {task.id} is over: {reason}", "The next look releases it.")


def _finding(team: str, level: str, what: str, remedy: str) -> Finding:
    return {"level": level, "where": f"team {team}", "what": what, "remedy": remedy}
