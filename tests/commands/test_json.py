"""The `--json` documents of commands, compared whole: scripts rely on the keys and their order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.support.cli import ALPHA, Cli, make_team

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
T, E, S = "<time>", "<epoch>", 0.0
_VARYING = {"leaseEpoch": E, "leaseUntil": S}


def normal(value: Any) -> Any:
    """The document with all times alike, and without what differs with each start of the machine."""
    if isinstance(value, dict):
        return {key: _VARYING.get(key, normal(item)) for key, item in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    return T if isinstance(value, str) and TIME.fullmatch(value) else value


def same(found: Any, expected: Any) -> None:
    """Check that both documents are equal as text, so that even their keys are in the same order."""
    assert json.dumps(normal(found), indent=1) == json.dumps(expected, indent=1)


def task(number: int, title: str, **changes: Any) -> dict[str, Any]:
    """The document of a pending task; a change to None leaves the key out."""
    whole = {
        "id": f"task-{number}",
        "teamName": "alpha",
        "title": title,
        "description": None,
        "status": "pending",
        "priority": "normal",
        "owner": None,
        "createdBy": "lea",
        "createdAt": T,
        "updatedAt": T,
        "claimedAt": None,
        "completedAt": None,
        "blockedBy": [],
        "require": [],
        "run": None,
        "planRequired": None,
        "result": None,
        "claim": 0,
        "leaseExpiresAt": None,
        "leaseEpoch": None,
        "leaseUntil": None,
        "notes": [],
        "blocked": False,
        "openBlockers": [],
    } | changes
    return {key: value for key, value in whole.items() if value is not None}


def claimed(by: str, number: int = 1) -> dict[str, Any]:
    return {"at": T, "by": by, "what": "claimed", "claim": number}


IN_PROGRESS = {
    "status": "in_progress",
    "owner": "bob",
    "claimedAt": T,
    "claim": 1,
    "leaseExpiresAt": T,
    "leaseEpoch": E,
    "leaseUntil": S,
    "notes": [claimed("bob")],
}


def member(name: str, role: str = "team-member", **more: Any) -> dict[str, Any]:
    return {"agentId": name, "role": role, "joinedAt": T, **more}


def team(*members: dict[str, Any], leader: str = "lea", **changes: Any) -> dict[str, Any]:
    whole = {
        "name": "alpha",
        "description": None,
        "leader": leader,
        "members": list(members),
        "createdAt": T,
        "state": "active",
        "closedAt": None,
        "aliasCount": 0,
        "settings": {},
        "roles": {},
        "grants": [],
    } | changes
    return {key: value for key, value in whole.items() if value is not None}


def message(number: int, sender: str, to: str, text: str, **more: Any) -> dict[str, Any]:
    head = {"id": f"msg-{number}", "number": number, "from": sender, "to": to, "message": text, "timestamp": T}
    return {**head, "type": "plain", **more}


def test_teams(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", team=ALPHA)
    lea = member("lea", "team-leader")
    same(cli.ok("discover-teams"), [])
    same(cli.ok("spawn-team", ALPHA, "--description", "what for", agent="lea"), team(lea, description="what for"))
    joined = cli.ok("join-team", "--type", "rust", "--name", "Bob B.", "--answer", "echo yes", agent="bob")
    bob = {"agentId": "bob", "agentName": "Bob B.", "agentType": "rust", "role": "team-member", "joinedAt": T}
    bob["answer"] = "echo yes"
    same(joined, {"team": "alpha", **bob})
    same(cli.ok("join-team"), {"team": "alpha", **member("agentA")})
    same(
        cli.ok("leave-team", agent="agentA"), {"team": "alpha", "agentId": "agentA", "left": True, "releasedTasks": []}
    )
    gone = {"agentId": "agentA", "role": "team-member", "joinedAt": T, "leftAt": T}
    known = {"description": "what for", "aliasCount": 1}
    same(cli.ok("show-team"), team(lea, bob, gone, **known))
    row = {"name": "alpha", "leader": "lea", "memberCount": 2, "createdAt": T, "state": "active"}
    row["description"] = "what for"
    row["taskCounts"] = {"pending": 0, "in_progress": 0, "completed": 0, "failed": 0, "cancelled": 0}
    same(cli.ok("discover-teams"), [row])
    role = {"extends": "team-member", "skill": ["audit"], "allow": ["create-task"], "deny": []}
    words = ["define-role", "auditor", "--skill", "audit", "--allow", "create-task"]
    same(cli.ok(*words, agent="lea"), {"name": "auditor", **role})
    known["roles"] = {"auditor": role}
    lea, bob = {**lea, "role": "team-member"}, {**bob, "role": "team-leader"}
    same(cli.ok("hand-over", "bob", agent="lea"), team(lea, bob, gone, leader="bob", **known))
    closed = {**known, "leader": "bob", "state": "closed", "closedAt": T}
    same(cli.ok("close-team", agent="bob"), team(lea, bob, gone, **closed))
    same(cli.ok("restore-team", ALPHA, agent="bob"), team(lea, bob, gone, leader="bob", **known))


def test_tasks(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob", "mia", roles={"mia": "task-manager"})
    words = ["create-task", "one", "--description", "all of it", "--priority", "high", "--run", "true"]
    said = {"description": "all of it", "priority": "high", "run": "true"}
    same(cli.ok(*words, agent="lea"), task(1, "one", **said))
    waits = {"blockedBy": ["task-1"], "blocked": True, "openBlockers": ["task-1"]}
    made = cli.ok("create-task", "two", "--blocked-by", "#1", "--plan-required", "--require", "audit", agent="lea")
    two = task(2, "two", **waits, require=["audit"], planRequired=True)
    same(made, two)
    one = task(1, "one", **said, **IN_PROGRESS)
    same(cli.ok("claim-task", "1", agent="bob"), {**one, "explain": ["lease"]})
    same(cli.ok("claim-task", "task-1", agent="bob"), one)
    same(cli.ok("get-tasks"), [one, two])
    same(cli.ok("get-tasks", "--blocked"), [two])
    same(cli.ok("get-tasks", "--ready"), [])
    same(cli.ok("get-tasks", "--owner", "bob", "--status", "in_progress", "--limit", "1"), [one])
    same(cli.ok("show-task", "#1"), {**one, "blocks": ["task-2"]})
    beat = {"agent": "bob", "lastSeen": T, "tasks": [{"id": "task-1", "claim": 1, "leaseExpiresAt": T}]}
    same(cli.ok("heartbeat", "--note", "at it", agent="bob"), beat)
    notes = [claimed("bob"), {"at": T, "by": "bob", "what": "released", "claim": 1, "reason": "lunch"}]
    free = task(1, "one", **said, claim=1, notes=notes)
    same(cli.ok("release-task", "1", "--reason", "lunch", agent="bob"), free)
    notes = [*notes, claimed("bob", 2)]
    taken = {**IN_PROGRESS, "claim": 2, "notes": notes}
    same(cli.ok("claim-task", "--next", agent="bob"), task(1, "one", **said, **taken))
    notes = [*notes, {"at": T, "by": "bob", "what": "completed", "claim": 2}]
    done = {"status": "completed", "owner": "bob", "claimedAt": T, "completedAt": T, "result": "42", "claim": 2}
    words = ["update-task", "1", "--status", "completed", "--result", "42", "--claim", "2"]
    for _ in range(2):
        same(cli.ok(*words, agent="bob"), task(1, "one", **said, **done, notes=notes))
    notes = [*notes, {"at": T, "by": "mia", "what": "reopened", "claim": 2, "reason": "wrong"}]
    words = ["update-task", "1", "--status", "pending", "--reason", "wrong"]
    same(cli.ok(*words, agent="mia"), task(1, "one", **said, claim=2, result="42", notes=notes))
    notes = [{"at": T, "by": "lea", "what": "edited", "changed": ["title", "description", "priority", "blockedBy"]}]
    edited = task(2, "three", description="", priority="low", require=["audit"], planRequired=True, notes=notes)
    words = ["update-task", "2", "--title", "three", "--description=", "--priority", "low", "--unblock", "1"]
    same(cli.ok(*words, agent="lea"), edited)


def test_messages(cli: Cli) -> None:
    hello = message(1, "lea", "bob", "h\u00e4llo \u2713")
    for _ in range(2):
        same(cli.ok("send-message", "bob", "h\u00e4llo \u2713", "--uid", "u1", agent="lea"), hello)
    all_ = message(2, "bob", "all", "-v", type="broadcast", recipients=["lea", "mia"])
    same(cli("broadcast-message", "--json", "--", "-v", agent="bob").json, all_)
    same(cli.ok("read-messages", "--peek", agent="bob"), [hello])
    read = {**hello, "readAt": T}
    same(cli.ok("read-messages", agent="bob"), [read])
    answer = message(3, "bob", "lea", "hi", type="reply", replyTo="msg-1")
    same(cli.ok("reply", "1", "hi", agent="bob"), {**answer, "repliedTo": hello})
    same(cli.ok("read-messages", agent="bob"), [])
    same(cli.ok("read-messages", "--all", agent="bob"), [{**read, "handledAt": T}])
    same(
        cli.ok("read-messages", "--from", "bob", "--since", "2", "--limit", "1", agent="lea"),
        [{**answer, "readAt": T, "handledAt": T}],
    )
    same(cli.ok("ack", "2", "#3", agent="lea"), {"handled": ["msg-2", "msg-3"]})
    said = [{"status": "-v", "at": T}, {"status": "testing", "at": T}]  # a first broadcast is also a first status
    status = {"name": "bob", "status": "testing", "statusHistory": said}
    same(cli.ok("announce", "testing", agent="bob"), status)
    rows = [
        agent_row("lea", role="team-leader"),
        agent_row("bob", status="testing", statusHistory=said),
        agent_row("mia", queueDepth=1),
    ]
    same(cli.ok("list-agents", agent="mia"), {"self": "mia", "agents": rows})
    same(cli.ok("list-agents"), {"self": None, "agents": rows})


def agent_row(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "displayName": None,
        "role": "team-member",
        "agentType": None,
        "status": None,
        "statusHistory": [],
        "state": "idle",
        "queueDepth": 0,
        "lastSeen": T,
    } | changes
