"""Files that versions 0.1 and 0.2 wrote, in `tests/fixtures`. They are read and changed for ever."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.cli import Cli

OLD = Path(__file__).parents[1] / "fixtures" / "0.1"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    shutil.copytree(OLD, tmp_path / "root")
    (tmp_path / "root").chmod(0o700)
    return Cli(tmp_path / "root", "bob", "atlas")


def test_they_tell_what_they_told(cli: Cli) -> None:
    """Nothing in them is damaged, and a team with tokens asks for them."""
    assert len(cli("history", "--json").json) == 37
    tasks = {row["id"]: row for row in cli("get-tasks", "--json").json}
    assert [tasks[f"task-{n}"]["status"] for n in (1, 3, 4, 5, 6)] == [
        "completed", "pending", "pending", "cancelled", "failed",
    ]  # fmt: skip
    assert tasks["task-2"]["blockedBy"] == ["task-1"] and tasks["task-4"]["planRequired"] is True
    assert cli("show-task", "1", "--json").json["result"] == "src/parser.py, 214 lines"
    team = cli("show-team", "atlas", "--json").json
    assert {member["agentId"]: member["role"] for member in team["members"]} == {
        "lead": "team-leader", "bob": "team-member", "eve": "team-member", "max": "task-manager",
        "rex": "reviewer", "builder": "team-member",
    }  # fmt: skip
    assert [row["name"] for row in cli("discover-teams", "--json").json] == ["atlas", "run-small", "vault"]
    stale = [row["value"] for row in cli("settings", "--json").json["settings"] if row["key"] == "staleAfterSeconds"]
    assert stale == [900]
    found = cli("doctor", "--json")
    assert found.status in (0, 1) and "damaged" not in found.stdout + found.stderr, found
    assert cli("create-task", "x", team="vault", agent="ann").status == 13


def test_messages_plans_questions_and_outputs_are_there(cli: Cli) -> None:
    read = cli("read-messages", "--all", "--peek", "--json").json
    assert [(m["id"], m["from"]) for m in read] == [("msg-3", "eve"), ("msg-4", "lead")]
    assert [p["status"] for p in cli("get-plans", "--json").json] == ["rejected", "proposed"]
    assert [q["status"] for q in cli("get-questions", "--json").json] == ["complete", "timeout"]
    assert "the build is green" in cli("recall", "builder", "--output").stdout
    assert cli("brief", "--json", agent="human").status == 0


@pytest.mark.slow
def test_work_goes_on_in_them(cli: Cli) -> None:
    for word in ("3", "task-3"):
        assert cli("release-task", word, agent="human").status in (0, 11)
    assert cli("approve-plan", "2", agent="lead").status == 0
    assert cli("claim-task", "4", agent="eve").status == 0
    assert "timeout" in cli("answer", "2", "MIT", agent="human").stdout
    assert cli("reply", "3", "Seen").status == 0
    assert cli("update-task", "6", "--status", "pending", "--reason", "linker is there", agent="human").status == 0
    assert cli("restore-team", "past", agent="ann").status == 0
    assert cli("doctor").status in (0, 1)
    again = cli("show-task", "4", "--json").json
    assert (again["status"], again["owner"], again["title"]) == ("in_progress", "eve", "Move the data")


def test_what_a_newer_version_added_stays(cli: Cli) -> None:
    """An unknown field is written back, also in a file of the first version."""
    path = cli.root / "tasks" / "atlas" / "task-3.json"
    path.write_text(path.read_text().replace('"title"', '"ofTheFuture": {"a": [1]}, "title"'))
    assert cli("update-task", "3", "--priority", "high", agent="lead").status == 0
    assert '"ofTheFuture"' in path.read_text()


def test_what_version_0_2_packed_and_marked_by_the_thousand_is_read_and_changed(tmp_path: Path) -> None:
    """Messages of a closed team are packed, and marks of tasks from 1000 on are in directories of their own."""
    shutil.copytree(OLD.parent / "0.2", tmp_path / "root")
    (tmp_path / "root").chmod(0o700)
    cli = Cli(tmp_path / "root", "bob", "atlas")
    assert wrong(cli) == []
    sent = cli("read-messages", "--all", "--peek", "--json").json
    assert [(m["id"], m["message"]) for m in sent] == [
        *((f"msg-{n}", f"number {n}") for n in (1, 2, 3)),
        ("msg-4", "to everybody"),
        ("msg-1000", "thousandth"),
    ]
    cli.ok("restore-team", "atlas", agent="lea")
    assert cli.ok("send-message", "bob", "next", agent="lea")["id"] == "msg-1002"
    assert cli.ok("claim-task", "--next", agent="mia")["title"] == "below"
    assert cli("claim-task", "1001", "--json").json["owner"] == "bob"
    assert cli.ok("update-task", "1001", "--status", "completed")["status"] == "completed"
    assert cli.ok("claim-task", "--next")["title"] == "thousandth"
    assert wrong(cli) == []


def wrong(cli: Cli) -> list[str]:
    """Return the findings of the doctor, without that of the expired claim."""
    found = [finding["what"] for finding in cli("doctor", "--json").json["findings"]]
    return [what for what in found if "claim" not in what]
