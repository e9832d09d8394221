"""Each client, pinned and newest, starts in a team, gets mail, uses its tools, and ends with its answer."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import CLIENTS, NEWEST, Office
from tests.e2e.model import Run, Say

EVERY = [f"{client}{which}" for client in CLIENTS for which in ("", NEWEST)]


@pytest.mark.parametrize("office", EVERY, indirect=True)
def test_start_mail_tool_and_end(office: Office) -> None:
    office.say("create-task", "count the files")
    office.model.script(
        "[ann]",
        Run("teams wait --message --timeout 60"),
        Run("teams claim-task 1"),
        Run("teams update-task 1 --status completed --result 'seven files'"),
        Say("all is done"),
    )
    process = office.start("[ann] work")
    office.model.wait_for("[ann]", 1)
    office.say("send-message", "ann", "the build is red")
    done = office.end(process)
    assert (done["outcome"], done["output"]) == ("completed", "all is done")
    first, *_, last = office.model.requests["[ann]"]
    assert "You are ann in team alpha" in first.text
    assert last.text.count("| the build is red") == 1
    task = office.cli.ok("show-task", "1", agent="lea")
    assert (task["status"], task["owner"], task["result"]) == ("completed", "ann", "seven files")


@pytest.mark.parametrize("office", ["copilot"], indirect=True)
def test_one_without_hooks_gets_its_mail_in_the_next_turn(office: Office) -> None:
    """Copilot CLI goes on with its session, and may run only the commands of `teams`."""
    office.say("create-task", "count the files")
    office.model.script("[ann]", Run("teams claim-task 1"), Run("touch made"), Say("begun"), Say("goes on"))
    assert office.run("[ann] work")["output"] == "begun"
    office.say("send-message", "ann", "the build is red")
    office.say("wait", "--agent", "ann", "--timeout", "150")
    first, *_, last = office.model.requests["[ann]"]
    assert "You are ann in team alpha" in first.text and any("claim_task" in name for name in first.tools)
    assert "task-1: in_progress by ann" in last.text and "begun" in last.text and "| the build is red" in last.text
    assert not (office.work / "made").exists() and "Permission denied" in last.text
