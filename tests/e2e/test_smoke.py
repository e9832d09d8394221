"""Each client once, pinned and newest: it starts in a team, gets mail, uses its tools, and ends with its answer."""

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
