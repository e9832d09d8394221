"""`teams update-task 7,8`: one change of several tasks, all or none; and a completion that an edit came before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, add_tasks, make_team


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, *"abcd")
    return cli


def test_a_change_of_several(cli: Cli) -> None:
    found = cli.ok("update-task", "1,#2,task-3,1", "--append", "With separators", "--priority", "high", agent="lea")
    assert [(each["id"], each["description"], each["priority"]) for each in found] == [
        (f"task-{n}", "With separators", "high") for n in (1, 2, 3)
    ]
    assert cli.ok("update-task", "1,", "--priority", "low", agent="lea")["priority"] == "low"
    assert cli("update-task", "2,3", "--blocked-by", "4", agent="lea").stdout == (
        "task-2: pending, waits for task-4: b\ntask-3: pending, waits for task-4: c\n"
    )
    freed = cli.ok("update-task", "2,3", "--unblock", "4", agent="lea")
    assert [each["openBlockers"] for each in freed] == [[], []]
    cli.ok("update-task", "2,3", "--owner", "bob", agent="lea")
    assert [cli.ok("show-task", n)["assignee"] for n in "23"] == ["bob", "bob"]


REFUSED = [
    (("1,9", "--append", "x"), (10, "task_not_found")),
    (("1,x", "--append", "x"), (2, "invalid_value")),
    (("1,2", "--unblock", "4"), (11, "wrong_state")),
    (("1,4", "--blocked-by", "4"), (11, "dependency_cycle")),
    (("1,2", "--owner", "nobody"), (10, "agent_not_found")),
    (("1,2",), (2, "wrong_usage")),
    (("1,2", "--title", "one"), (2, "wrong_usage")),
    (("1,2", "--status", "completed"), (2, "wrong_usage")),
    (("1,2", "--claim", "1", "--append", "x"), (2, "wrong_usage")),
    (("1,2", "--evidence", __file__, "--append", "x"), (2, "wrong_usage")),
]


def test_what_one_refuses_none_has(cli: Cli) -> None:
    cli.ok("update-task", "1", "--blocked-by", "4", agent="lea")
    for words, refused in REFUSED:
        assert cli.refused("update-task", *words, agent="lea") == refused, words


def test_each_owner_hears_of_a_change_of_several(cli: Cli) -> None:
    for who, task in (("bob", "1"), ("mia", "2")):
        cli.ok("claim-task", task, agent=who)
    cli.ok("update-task", "1,2", "--append", "With separators", agent="lea")
    for who, task in (("bob", "task-1 (a)"), ("mia", "task-2 (b)")):
        assert f"lea edited {task}: added: With separators" in cli("heartbeat", agent=who).stderr


def test_an_edit_that_its_owner_had_not_seen_when_it_completed_the_task(cli: Cli) -> None:
    """It is refused once, with the change; who was shown the task has seen it."""
    for task in ("1", "2"):
        cli.ok("claim-task", task, agent="bob")
    cli.ok("update-task", "1,2", "--append", "With separators", agent="lea")
    end = ("update-task", "1", "--status", "completed", "--result", "r")
    refused = cli(*end, agent="bob")
    assert refused.status == 11 and refused.stderr.startswith(
        "teams: you have not seen this change: lea edited task-1 (a): added: With separators\n"
        "  If your work has it, complete the task again.\n"
    )
    assert cli(*end, agent="bob").stdout.startswith("task-1: completed by bob: a\n")
    cli.ok("show-task", "2", agent="bob")
    assert cli("update-task", "2", "--status", "completed", agent="bob").status == 0


def test_what_came_behind_an_edit_that_was_seen_hides_none_and_is_none(cli: Cli) -> None:
    """A note of another is no edit; an edit by the owner itself does not make up for one that it has not seen."""
    for task in ("1", "2"):
        cli.ok("claim-task", task, agent="bob")
    cli.ok("update-task", "1", "--append", "With separators", agent="lea")
    assert "lea edited task-1" in cli("heartbeat", agent="bob").stderr
    cli.ok("note", "1", "Seen", agent="mia")
    assert "unseenEditBy" not in cli.ok("update-task", "1", "--status", "completed", agent="bob")
    cli.ok("update-task", "2", "--append", "With separators", agent="lea")
    end = ("update-task", "2", "--title", "two", "--status", "completed")
    assert cli(*end, agent="bob").status == 11
    cli.ok(*end, agent="bob")
