"""Waiting for a task that is kept for one: what is told of it, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, add_tasks, make_team
from tests.support.waits import begin, ended, nothing


@pytest.fixture
def cli(tmp_path: Path, each_engine: str) -> Cli:
    return make_team(tmp_path / "root", "bob", "mia")


def test_a_task_that_is_kept_is_told_once(cli: Cli) -> None:
    waiting = begin(cli, "bob")
    cli.ok("create-task", "one", "--for", "bob", agent="lea")
    found = ended(waiting)
    assert ([each["text"] for each in found["happened"]], found["messages"]) == (
        ["task-1, assigned to you, is ready: one"],
        [],
    )
    nothing(cli, "bob")


def test_a_task_that_is_kept_and_waits_asks_for_nothing_yet(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("create-task", "two", "--for", "bob", "--blocked-by", "1", agent="lea")
    (kept,) = ended(begin(cli, "bob"))["messages"]
    assert ("you will be notified when it is ready" in kept["message"], kept["next"]) == (True, None)


def test_an_edit_of_a_task_that_is_kept_and_waits_is_told_with_the_task(cli: Cli) -> None:
    """It ends no wait, and stands at the end of no answer: what the task says is shown to who takes it."""
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("create-task", "two", "--for", "bob", "--blocked-by", "1", agent="lea")
    ended(begin(cli, "bob"))
    cli.ok("update-task", "2", "--append", "\nand faster", agent="lea")
    nothing(cli, "bob")
    assert cli("heartbeat", agent="bob").stderr == ""
    waiting = begin(cli, "bob", "wait", "--claim", "--timeout", "60")
    cli.ok("update-task", "1", "--status", "completed", agent="mia")
    found = ended(waiting)
    assert (found["messages"], found["happened"], found["claimed"]["id"]) == ([], [], "task-2")
    assert found["claimed"]["description"] == "and faster"
    nothing(cli, "bob")


def test_an_edit_of_a_task_that_is_kept_and_ready_ends_the_wait(cli: Cli) -> None:
    cli.ok("create-task", "one", "--for", "bob", agent="lea")
    ended(begin(cli, "bob"))
    cli.ok("update-task", "1", "--append", "and faster", agent="lea")
    assert [each["message"] for each in ended(begin(cli, "bob"))["messages"]] == [
        "lea edited task-1 (one): added: and faster"
    ]


def test_who_claims_a_task_that_was_edited_is_shown_what_it_says(cli: Cli) -> None:
    """Who names a task has read it, but not what was edited since; so the notice of that is not told again."""
    for title in ("one", "two"):
        cli.ok("create-task", title, "--for", "bob", "--description", "slowly", agent="lea")
    ended(begin(cli, "bob"))
    assert "slowly" not in cli("claim-task", "1", agent="bob").stdout
    cli.ok("update-task", "2", "--description", "fast", agent="lea")
    claimed = cli("claim-task", "2", agent="bob")
    assert "\n  fast\n" in claimed.stdout and claimed.stderr == ""
    nothing(cli, "bob")
