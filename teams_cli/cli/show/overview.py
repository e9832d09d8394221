"""Where an agent is, in words."""

from __future__ import annotations

from teams_cli.cli.show import present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.output import Table

    Parts = list[str | Table]


def _who(found: dict[str, Any]) -> Parts:
    if found["agentId"] is None:
        return ["nobody: say who you are with --as AGENT or TEAMS_AGENT_ID"]
    role = found["role"] or ("no member" if found["team"] else "in no team")
    team = f" of team {found['team']}" if found["team"] else ""
    return [f"{found['agentId']}: {role}{team}", f"root: {found['root']} ({found['sources']['root']})"]


def _brief(found: dict[str, Any]) -> Parts:
    counts = ", ".join(f"{count} {status}" for status, count in found["tasks"].items()) or "none"
    mine = [f"  {task['id']}: {task['title']}" for task in found["myTasks"]]
    return present(
        f"{found['agent']}: {found['role'] or 'no member'} of team {found['team']}"
        f" (leader {found['leader']}, {found['members']} members)",
        f"tasks: {counts}; ready: {found['ready']}",
        "yours:" if mine else None,
        *mine,
        f"unread messages: {found['unread']}" if found["unread"] else None,
        f"read, not answered: {', '.join(found['unhandled'])}" if found["unhandled"] else None,
        f"questions to you: {', '.join(found['questions'])}" if found["questions"] else None,
        f"plans waiting for you: {', '.join(found['plans'])}" if found["plans"] else None,
        f"asked to shut down: {found['shutdown']}" if found["shutdown"] else None,
        "since you last looked:" if found["changes"] else None,
        *(f"  {line}" for line in found["changes"]),
        f"next: {found['next']}",
    )


SHOW = {"whoami": _who, "brief": _brief}
