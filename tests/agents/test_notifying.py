"""The commands that tell the person of events: what they are given, how often, and who may set them."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from teams_cli.agents import notifying
from tests.support.cli import ALPHA, Cli
from tests.support.waits import until


def told(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def events(path: Path) -> list[str]:
    return [event["id"] for call in told(path) for event in call["events"]]


@pytest.mark.slow
def test_what_waits_what_failed_and_the_end_are_told_once(cli: Cli, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    assert cli("set", "notify", f"cat >>{heard}", agent="human").status == 0
    for title in ("One", "Two"):
        cli("create-task", title, agent="lea")
    for number, status in (("1", "failed"), ("2", "completed")):
        cli("claim-task", number, agent="bob")
        cli("update-task", number, "--status", status, "--result", "no disk", agent="bob")
    cli("send-message", "human", "May I buy one?", agent="bob")
    until(lambda: {"task-1", cli.team, "msg-2"} <= set(events(heard)) or len(events(heard)) >= 3)
    cli("get-tasks", agent="bob")
    cli("update-task", "1", "--status", "pending", "--reason", "a disk is there", agent="human")
    cli("claim-task", "1", agent="mia")
    cli("update-task", "1", "--status", "failed", "--reason", "no power", agent="mia")
    until(lambda: events(heard).count("task-1") == 2)
    texts = [event["text"] for call in told(heard) for event in call["events"]]
    assert [sum(why in text for text in texts) for why in ("no disk", "no power")] == [1, 1]
    assert sum("May I buy one?" in text for text in texts) == 1
    assert all(set(call) == {"team", "at", "text", "events"} for call in told(heard))
    assert cli("close-team", "--force", agent="lea").status == 0


def test_a_command_may_leave_a_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in the background, such as a player of sounds, is no reason to call the command slow."""
    monkeypatch.setattr(notifying, "LONGEST", 2.0)
    events = {"team": ALPHA, "events": []}
    assert notifying.run("sleep 4 & exit 0", events, os.environ) == ""
    assert notifying.run("sleep 4 & echo no bus >&2; exit 3", events, os.environ) == "exit status 3: no bus"


@pytest.mark.slow
def test_a_command_that_fails_is_told_to_the_person(cli: Cli) -> None:
    assert cli("set", "notify", "echo no bus >&2; exit 3", agent="human").status == 0
    cli("send-message", "human", "Hello", agent="bob")

    def is_told() -> bool:
        told = cli("read-messages", "--all", agent="human").stdout + cli("brief", agent="human").stdout
        return "exit status 3: no bus" in told

    until(is_told)
    assert cli("set", "notify", "off", agent="human").status == 0


def test_only_the_person_may_set_notify(cli: Cli) -> None:
    refused = cli("set", "notify", "true", "--json", agent="lea")
    assert refused.status == 13 and "--as human" in refused.error["hint"]
    assert "teams set notify off" in cli("set", "notify", " ", "--json", agent="human").error["hint"]
    held = cli("set", "notify", "true", "--json", agent="human", TEAMS_PERMISSIONS="edit")
    assert held.status == 13


@pytest.mark.slow
def test_a_script_waits_for_an_event(cli: Cli, tmp_path: Path) -> None:
    waiting = cli.start("on", "failed", "--run", f"cat >{tmp_path}/heard", "--once", "--json", agent="human")
    cli("create-task", "One", agent="lea")

    def has_heard() -> bool:
        """Fail the task, and let it stay so for a moment, as the script looks later. It may not have begun to look."""
        cli("claim-task", "1", agent="bob")
        cli("update-task", "1", "--status", "failed", "--result", "no disk", agent="bob")
        with suppress(subprocess.TimeoutExpired):
            return waiting.wait(3) == 0
        cli("update-task", "1", "--status", "pending", "--reason", "again", agent="human")
        return False

    until(has_heard)
    said, problems = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, problems
    assert json.loads(said)["events"][0]["id"] == "task-1"
    assert json.loads((tmp_path / "heard").read_text())["events"][0]["event"] == "failed"
