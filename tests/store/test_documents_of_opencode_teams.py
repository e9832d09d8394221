"""The files of a team and of a task as the OpenCode Teams document prints them. Another program may have made them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Cli

NAME = "review-pr-456"
TEAM = """{
  "name": "review-pr-456",
  "leader": "agent-1",
  "members": [
    {"agentId": "agent-2", "agentName": "Security Specialist", "agentType": "security"},
    {"agentId": "agent-3", "agentName": "Perf Specialist", "agentType": "performance"}
  ],
  "createdAt": "2026-01-25T23:00:00Z"
}"""
TASK = """{
  "id": "task-abc123",
  "teamName": "review-pr-456",
  "title": "Security Review",
  "status": "in_progress",
  "owner": "agent-2",
  "createdAt": "2026-01-25T23:00:00Z",
  "claimedAt": "2026-01-25T23:01:00Z"
}"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    root = tmp_path / "root"
    for path, text in (f"teams/{NAME}/team.json", TEAM), (f"tasks/{NAME}/task-abc123.json", TASK):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
    root.chmod(0o700)
    return Cli(root, "agent-2", NAME)


def test_members_without_a_role_are_members(cli: Cli) -> None:
    assert "Security Specialist" in cli("show-team").stdout
    shown = cli.ok("show-team")
    assert [member["role"] for member in shown["members"]] == ["team-leader", "team-member", "team-member"]
    cli.ok("hand-over", "agent-3", agent="agent-1")
    assert cli.ok("whoami")["role"] == "team-member" and cli("show-team").status == 0


def test_a_task_with_a_name_is_read_and_worked_on(cli: Cli) -> None:
    """It can be changed together with numbered tasks."""
    assert cli.ok("show-task", "task-abc123")["title"] == "Security Review"
    assert cli.ok("create-task", "Fix it", "--blocked-by", "task-abc123", agent="agent-1")["id"] == "task-1"
    assert "task-abc123" in cli("get-tasks").stdout
    assert cli.ok("claim-task", "--next")["id"] == "task-abc123"
    assert [task["priority"] for task in cli.ok("update-task", "1,task-abc123", "--priority", "high", agent="agent-1")]
    done = cli.ok("update-task", "task-abc123", "--status", "completed", "--result", "none found", "--next")
    assert (done["status"], done["claimed"]["id"]) == ("completed", "task-1")
    assert json.loads((cli.root / f"tasks/{NAME}/task-abc123.json").read_text())["result"] == "none found"
    assert cli("doctor").stdout.rstrip().endswith("healthy")
