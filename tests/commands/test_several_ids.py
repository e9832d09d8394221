"""Wherever an id can stand, several can, with commas or blanks between them."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import add_tasks, make_team


def test_several_ids_stand_wherever_one_can(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one", "two", "three", "four")
    cli.ok("update-task", "4", "--blocked-by", "1,2", "--blocked-by", "3", agent="lea")
    assert cli.ok("update-task", "4", "--unblock", "1", "task-2", agent="lea")["blockedBy"] == ["task-3"]
    cli.ok("create-task", "five", "--blocked-by", "1, 2", agent="lea")
    assert cli.ok("show-task", "5")["blockedBy"] == ["task-1", "task-2"]
    assert [task["id"] for task in cli.ok("show-task", "1", "#2")] == ["task-1", "task-2"]
    assert cli("claim-task", "1,2", agent="bob").stdout.count("in_progress by bob") == 2
    assert [task["status"] for task in cli.ok("release-task", "1 2", agent="bob")] == ["pending", "pending"]
    cli.ok("note", "1,2", "as said", agent="bob")
    assert cli.ok("show-task", "2")["notes"][-1]["added"] == "as said"
    refused = cli("release-task", "3,4", agent="bob")
    assert refused.status != 0 and "done)" not in refused.stderr
    for _ in range(2):
        cli.ok("send-message", "bob", "how?", agent="lea")
    cli.ok("ack", "1,2", agent="bob")


def test_a_mistake_is_answered_with_the_command_as_it_should_be(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    said = cli("update-task", "7", "--comment", "the parser", agent="bob").stderr
    assert said.endswith("Write: teams update-task 7 --result 'the parser'\n")
