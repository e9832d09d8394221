"""A task waits for its blockers, whatever state these are in: one that can't be read, or is gone, blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, make_team


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """task-2 is blocked by task-1, and task-3 for nothing."""
    made = make_team(tmp_path / "root", "bob")
    made.ok("create-task", "first", agent="lea")
    made.ok("create-task", "second", "--blocked-by", "1", "--priority", "high", agent="lea")
    made.ok("create-task", "third", agent="lea")
    return made


def test_an_unreadable_blocker_blocks_its_task_and_no_other(cli: Cli) -> None:
    """What is free is claimed; what waits for the damaged task is shown as blocked, everywhere alike."""
    (cli.root / "tasks/alpha/task-1.json").write_text("{")
    assert cli("claim-task", "--next", "--json", agent="bob").json["id"] == "task-3"
    refused = cli("claim-task", "2", "--json", agent="bob")
    assert refused.status == 11
    assert "task-1 (unreadable)" in refused.error["message"]
    listed = cli("get-tasks", "--json", agent="bob").json
    assert {row["id"]: row["openBlockers"] for row in listed}["task-2"] == ["task-1"]
    assert [row["id"] for row in cli("get-tasks", "--ready", "--json", agent="bob").json] == []
    assert cli("brief", "--json", agent="bob").json["next"] != "teams claim-task --next"


def test_the_report_of_damage_goes_beside_the_answer(cli: Cli) -> None:
    """Who claims is not kept from it, and hears of the damage from whoever lists the tasks."""
    (cli.root / "tasks/alpha/task-1.json").write_text("{")
    answer = cli("get-tasks", "--json", agent="bob")
    assert answer.status == 0 and "task-1" in answer.stderr
