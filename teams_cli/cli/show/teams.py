"""Teams and members in words."""

from __future__ import annotations

from teams_cli.cli.output import Table
from teams_cli.cli.show import present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def _created(team: dict[str, Any]) -> Parts:
    return present(
        f"{team['name']}: created; its leader is {team['leader']}",
        f"token of {team['leader']}: {team['token']}" if "token" in team else None,
        f"token of human: {team['humanToken']}" if "humanToken" in team else None,
    )


def _teams(rows: list[dict[str, Any]]) -> Parts:
    table = [
        [
            row["name"],
            row["leader"],
            str(row["memberCount"]),
            _counts(row["taskCounts"]),
            row["createdAt"],
            row["state"],
        ]
        for row in rows
    ]
    return [Table(["team", "leader", "members", "tasks", "created", "state"], table, "no teams")]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "no tasks"


def _team(team: dict[str, Any]) -> Parts:
    rows = [
        [
            member["agentId"],
            member["role"],
            member.get("agentType", ""),
            member.get("agentName", ""),
            "stopped" if "stoppedBy" in member else "left" if "leftAt" in member else "member",
        ]
        for member in team["members"]
    ]
    head = f"{team['name']} ({team['state']}), led by {team['leader']}, created {team['createdAt']}"
    roles = [f"role {name} extends {role['extends']}" for name, role in team["roles"].items()]
    members = Table(["agent", "role", "type", "name", "state"], rows, "no members")
    return [*present(head, team.get("description")), members, *roles]


def _joined(member: dict[str, Any]) -> Parts:
    return present(
        f"{member['agentId']}: in team {member['team']} as {member['role']}",
        f"token: {member['token']}" if "token" in member else None,
    )


def _left(done: dict[str, Any]) -> Parts:
    freed = done["releasedTasks"]
    return present(f"{done['agentId']}: left team {done['team']}", f"free again: {', '.join(freed)}" if freed else None)


def _role(role: dict[str, Any]) -> Parts:
    return [f"{role['name']}: extends {role['extends']}"]


def _copied(done: dict[str, Any]) -> Parts:
    counts = ", ".join(f"{count} {name}" for name, count in done["copied"].items())
    return present(
        f"{done['team']}: copied to {done['to']} ({counts})",
        f"closed here; go on there: teams brief --team {done['team']} --store …",
    )


SHOW = {
    "spawn-team": _created,
    "discover-teams": _teams,
    "show-team": _team,
    "join-team": _joined,
    "leave-team": _left,
    "hand-over": lambda team: [f"{team['leader']} leads team {team['name']}"],
    "close-team": lambda team: [f"{team['name']}: closed; `teams restore-team {team['name']}` opens it again"],
    "restore-team": lambda team: [f"{team['name']}: open"],
    "copy-team": _copied,
    "define-role": _role,
    "set-up-roles": lambda done: [f"{agent}: {address}" for agent, address in done["addresses"].items()],
}
