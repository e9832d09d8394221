"""An agent that waits for a task is told once of the task that it has, if nothing holds that task up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli, add_tasks

GO_ON = "teams update-task task-1 --status completed --result RESULT --next --wait 540"


@pytest.fixture
def cli(cli: Cli) -> Cli:
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    return cli


def for_work(cli: Cli, agent: str = "bob") -> dict[str, Any]:
    """The answer to a wait for a task, or nothing if the wait is in vain."""
    answer = cli("wait", "--claim", "--timeout", "0", "--json", agent=agent)
    assert answer.status in (0, 14)
    found: dict[str, Any] = answer.json if answer.status == 0 else {}
    return found


def told(cli: Cli) -> list[str]:
    found = for_work(cli)
    return [each["what"] for each in found.get("happened", ())] + ["mail"] * len(found.get("messages", ()))


def test_who_lost_the_answer_to_its_claim_hears_that_it_has_the_task(cli: Cli) -> None:
    found = for_work(cli)
    held = "task-1 is yours, and nothing blocks it: one (all of it: teams show-task task-1)"
    assert found["happened"] == [{"what": "held", "id": "task-1", "text": held, "next": GO_ON}]
    assert (found["next"], "claimed" in found) == (GO_ON, False)
    assert told(cli) == []
    in_vain = cli("wait", "--timeout", "0", agent="bob")
    can = f"\n  task-1 is yours, and nothing blocks it: {GO_ON}. Keep waiting: teams wait --timeout 540\n"
    assert in_vain.status == 14 and in_vain.stderr.endswith(can)
    assert told(cli) == []
    cli.ok("release-task", "1", agent="bob")
    assert for_work(cli)["claimed"]["id"] == "task-1"
    assert told(cli) == ["held"]


def test_an_agent_that_asked_something_waits_for_the_answer(cli: Cli) -> None:
    cli.ok("send-message", "lea", "which?", agent="bob")
    assert told(cli) == []
    cli.ok("send-message", "mia", "look at this", "--fyi", agent="bob")
    cli.ok("reply", "1", "the second", agent="lea")
    assert told(cli) == ["mail"]
    assert told(cli) == ["held"]


def test_a_task_is_held_up_until_its_plan_is_decided(cli: Cli) -> None:
    cli.ok("propose-plan", "so", "--task", "1", agent="bob")
    assert told(cli) == []
    cli.ok("approve-plan", "1", agent="lea")
    assert "plan-1 was approved by lea" in cli("brief", agent="bob").stdout
    (held,) = for_work(cli)["happened"]
    assert held["text"].startswith("task-1 is yours, plan-1 is approved, and nothing blocks it: one")
    assert (held["next"], told(cli)) == (GO_ON, [])


def test_what_cannot_be_noted_is_told_with_a_warning_and_told_again(cli: Cli, tmp_path: Path) -> None:
    temporary = tmp_path / "root/tmp"
    temporary.rename(tmp_path / "kept")
    temporary.write_text("nothing can be written here")
    answer = cli("wait", "--claim", "--timeout", "0", agent="bob")
    assert answer.status == 0 and "task-1 is yours" in answer.stdout and "be marked as shown" in answer.stderr
    temporary.unlink()
    (tmp_path / "kept").rename(temporary)
    assert told(cli) == ["held"]
    assert told(cli) == []
