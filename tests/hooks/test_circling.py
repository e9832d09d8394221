"""Agents that loop: the leader hears of it once, and never of an agent that makes progress."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.support.cli import Cli, in_progress
from tests.support.workflow_runs import make_repository

LONG_AGO = 1_000_000_000
ROUNDS = 4


@pytest.fixture
def cli(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A team in which bob has a task, in a checkout whose only commit is old."""
    for who in ("COMMITTER", "AUTHOR"):
        monkeypatch.setenv(f"GIT_{who}_DATE", f"{LONG_AGO} +0000")
    monkeypatch.chdir(make_repository(tmp_path / "work", {"file": "x"}))
    in_progress(cli, "bob", "One")
    cli.ok("set", "circlingAfter", "0.001", agent="lea")
    return cli


def call(cli: Cli, *commands: str) -> None:
    """Report tool calls of bob's client whose results differ each time."""
    for number in range(ROUNDS):
        tools = [
            {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": {"stdout": f"{place} {number}"}}
            for place, command in enumerate(commands)
        ]
        event = {"hook_event_name": "PostToolBatch", "session_id": "s", "tool_calls": tools}
        answer = cli("hook", "claude", agent="bob", stdin=json.dumps(event).encode())
        assert (answer.status, answer.stderr) == (0, ""), answer


def told(cli: Cli) -> list[str]:
    found = [one["message"] for one in cli.ok("read-messages", "--peek", agent="lea")]
    return [said for said in found if "seems to loop" in said]


def test_the_leader_hears_of_a_loop_once(cli: Cli) -> None:
    call(cli, *["make", "ls"] * 12)
    (said,) = told(cli)
    assert "bob seems to loop on task-1 (One)" in said


def test_the_leader_does_not_hear_of_an_agent_that_makes_progress(cli: Cli, tmp_path: Path) -> None:
    call(cli, *(f"cat {number}" for number in range(24)))
    call(cli, *["teams wait"] * 24)
    draft = tmp_path / "work/draft"
    draft.write_text("new")
    later = time.time() + 1000
    os.utime(draft, (later, later))
    call(cli, *["make"] * 24)
    assert told(cli) == []
    draft.unlink()
    call(cli, *["make"] * 24)
    assert len(told(cli)) == 1
