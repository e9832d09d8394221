"""Teams and members in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import ago, present, tasks
from teams_cli.cli.tables import Table
from teams_cli.names import HUMAN
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def created(team: dict[str, Any]) -> Parts:
    return present(
        f"{team['name']}: created; its leader is {team['leader']}",
        f"token of {team['leader']}: {team['token']}" if "token" in team else None,
        f"token of human: {team['humanToken']}" if "humanToken" in team else None,
        steps.LEADING if team["leader"] != HUMAN else None,
    )


def teams(rows: list[dict[str, Any]]) -> Parts:
    table = [
        [
            row["name"],
            row["leader"],
            str(row["memberCount"]),
            _counts(row["taskCounts"]),
            ago(row["createdAt"]),
            row["state"],
        ]
        for row in rows
    ]
    return [Table(["team", "leader", "members", "tasks", "created", "state"], table, "no teams")]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "no tasks"


def team(team: dict[str, Any]) -> Parts:
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
    head = f"{team['name']} ({team['state']}), led by {team['leader']}, created {ago(team['createdAt'])}"
    roles = [f"role {name} extends {role['extends']}" for name, role in team["roles"].items()]
    members = Table(["agent", "role", "type", "name", "state"], rows, "no members")
    return [*present(head, *text.quoted(team.get("description"))), members, *roles]


def joined(member: dict[str, Any]) -> Parts:
    return present(
        f"{member['agentId']}: in team {member['team']} as {member['role']}",
        f"token: {member['token']}" if "token" in member else None,
        "rules of the team:" if "rules" in member else None,
        *text.quoted(member.get("rules"), "| "),
        *(tasks.claimed(member["claimed"]) if "claimed" in member else ()),
    )


def left(done: dict[str, Any]) -> Parts:
    freed = done["releasedTasks"]
    return present(f"{done['agentId']}: left team {done['team']}", f"released: {', '.join(freed)}" if freed else None)


def role(role: dict[str, Any]) -> Parts:
    return [f"{role['name']}: extends {role['extends']}"]


def copied(done: dict[str, Any]) -> Parts:
    counts = ", ".join(f"{count} {name}" for name, count in done["copied"].items())
    return present(
        f"{done['team']}: copied to {done['to']} ({counts or 'it was there already'})",
        f"closed here; go on there: teams brief --team {done['team']} --store …",
    )


def led(team: dict[str, Any]) -> Parts:
    return [f"{team['leader']} leads team {team['name']}"]


_END = {"work": "merge", "empty": "remove"}


def closed(team: dict[str, Any]) -> Parts:
    left = [f"{tree['agent']} left {tree['path']}: {_remedy(team, tree)}" for tree in team.get("worktrees", ())]
    ended = [f"{name}: its detached client was ended" for name in team.get("endedClients", ())]
    watched = [client_left(team["name"], name) for name in team.get("leftClients", ())]
    return [f"{team['name']}: closed; to reopen it: teams restore-team {team['name']}", *ended, *watched, *left]


def client_left(team: str, name: str) -> str:
    """What is said of a detached client that somebody looks at."""
    return f"{name}: somebody watches its client, which goes on; to end it: teams stop-agent {name} --team {team}"


def _remedy(team: dict[str, Any], tree: dict[str, Any]) -> str:
    return f"teams worktree {_END.get(tree['state'], 'diff')} {tree['agent']} --team {team['name']}"


def restored(team: dict[str, Any]) -> Parts:
    return [f"{team['name']}: open"]


def addresses(done: dict[str, Any]) -> Parts:
    return [f"{agent}: {address}" for agent, address in done["addresses"].items()]
