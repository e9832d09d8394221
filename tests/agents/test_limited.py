"""Agents that are rate-limited by their provider."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pytest

from teams_cli.environment import SANDBOX
from tests.support.agents import NEEDS_PROC, agent_row, detach, ended, lines, place, session
from tests.support.cli import Cli

pytestmark = NEEDS_PROC


def limited(cli: Cli, how_long: str, **modes: Any) -> None:
    """Configure a client `first`, limited for *how_long* at its first turn, and a client `other`. *modes* has the
    permission levels of both.
    """
    said = f"test -e $D/once || {{ touch $D/once; echo Rate limit reached, try again in {how_long} >&2; exit 1; }}; "
    for name in ("first", "other"):
        (place(cli) / name).write_text((said if name == "first" else "") + f"echo {name} $1 >>$D/turns; echo done")
    harness = {
        name: {
            "start": ["sh", str(place(cli) / name)],
            "resume": ["sh", str(place(cli) / name), "resumed"],
            "modes": modes.get(name, {}),
        }
        for name in ("first", "other")
    }
    (cli.root / "config.json").write_text(json.dumps({"harness": harness}))


def run(cli: Cli) -> Any:
    return cli("run-agent", "work", "--harness", "first", "--agent-id", "ann", agent="lea")


def test_a_limited_agent_rests_and_says_until_when(cli: Cli) -> None:
    limited(cli, "2 hours")
    assert "limited by its provider until" in run(cli).stdout
    found = agent_row(cli, "ann")
    assert found["state"] == "limited" and found["limitedUntil"] > session(cli, "ann").started_at
    mail = cli.ok("read-messages", "--all", agent="lea")
    assert sum("a message after that time resumes it" in each["message"] for each in mail) == 1
    for command in (["watch", "--once"], ["list-agents"]):
        assert "limited until " in cli(*command, agent="lea").stdout
    cli.ok("send-message", "ann", "are you there?", agent="lea")
    assert (session(cli, "ann").turns, lines(cli, "turns")) == (1, [])


def test_tasks_of_a_limited_agent_are_released_if_that_is_set(cli: Cli) -> None:
    cli.ok("create-task", "one", agent="lea")
    cli.ok("set", "onLimit", "release", agent="lea")
    limited(cli, "2 hours")
    claims = f"{sys.executable} -m teams_cli claim-task 1\n"
    (place(cli) / "first").write_text(claims + (place(cli) / "first").read_text())
    run(cli)
    task = cli.ok("show-task", "1", agent="lea")
    assert task["status"] == "pending" and "limited by its provider" in json.dumps(task)


@pytest.mark.slow
def test_what_a_command_prints_is_no_limit_of_a_provider(cli: Cli) -> None:
    fails = "echo AssertionError: expected 429 Too Many Requests; exit 1"
    stream = '{"type": "item.completed", "output": "429 Too Many Requests"}\n{"type": "turn.failed", "error": "%s"}\n'
    for name, error in (("broken", "no such model"), ("full", "usage limit reached")):
        (place(cli) / name).write_text(stream % error)
    failed = {"status": True, "lines": {"type": "turn.failed"}}
    harness = {
        name: {"start": ["sh", "-c", f"cat $D/{name}; exit 1"], "resume": ["true"], "failed": failed}
        for name in ("broken", "full")
    }
    harness["bash"] = {"start": ["bash", "-lc", "{prompt}"], "resume": ["true"]}
    (cli.root / "config.json").write_text(json.dumps({"harness": harness}))
    for name, prompt, limit in (
        ("shell", fails, False),
        ("bash", fails, False),
        ("broken", "x", False),
        ("full", "x", True),
    ):
        answer = cli("run-agent", prompt, "--harness", name, agent="lea")
        assert answer.status == 1 and ("limited by its provider" in answer.stdout + answer.stderr) is limit, answer


@pytest.mark.slow
def test_a_limited_agent_waits_or_changes_its_client_as_set(cli: Cli) -> None:
    limited(cli, "2 seconds")
    cli.ok("set", "onLimit", "wait", agent="lea")
    assert run(cli).status == 0
    assert lines(cli, "turns") == ["first resumed"] and agent_row(cli, "ann")["state"] == "idle"
    limited(cli, "2 hours")
    (place(cli) / "once").unlink()
    cli.ok("set", "onLimit", "other", agent="lea")
    assert cli("run-agent", "work", "--harness", "first", "--agent-id", "ben", agent="lea").status == 0
    assert [line.strip() for line in lines(cli, "turns")] == ["first resumed", "other"]


def test_a_limited_agent_changes_its_client_once(cli: Cli) -> None:
    """The client that it changed to may be limited too, and is not begun again and again."""
    said = "echo $0 >>$D/turns; echo Rate limit reached, try again in 2 hours >&2; exit 1"
    harness = {name: {"start": ["sh", "-c", said, name], "resume": ["true"]} for name in ("first", "other")}
    (cli.root / "config.json").write_text(json.dumps({"harness": harness}))
    cli.ok("set", "onLimit", "other", agent="lea")
    assert "a message after that time resumes it" in run(cli).stdout
    assert lines(cli, "turns") == ["first", "other"] and agent_row(cli, "ann")["state"] == "limited"
    mail = cli.ok("read-messages", "--all", agent="lea")
    assert sum("it continues with other" in each["message"] for each in mail) == 1


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        ("other", "other can't be started with permissions ask: it has no person"),
        ("shell", "shell can't be held to permissions ask"),
        ("acp", "the harness acp needs the command of its client"),
        ("qwen", "qwen is not on the PATH"),
    ],
)
def test_a_client_that_can_not_go_on_for_a_limited_one_counts_as_not_set(cli: Cli, choice: str, why: str) -> None:
    """The agent keeps its own client and its permissions, and a message resumes it after the limit."""
    limited(cli, "1 second", first={"ask": []}, other={"ask": "it has no person"})
    cli.more["PATH"] = "/usr/bin:/bin"
    cli.ok("set", "onLimit", choice, agent="lea")
    answer = cli("run-agent", "work", "--harness", "first", "--permissions", "ask", "--agent-id", "ann", agent="lea")
    assert why in answer.stdout and "a message after that time resumes it" in answer.stdout
    assert (session(cli, "ann").harness, session(cli, "ann").permissions) == ("first", "ask")
    time.sleep(2.1)  # the limit ends with a whole second
    cli.ok("send-message", "ann", "go on", agent="lea")
    assert ended(cli, "ann", 2).outcome == "completed" and lines(cli, "turns") == ["first resumed"]


def test_a_client_with_a_sandbox_may_start_agents_when_it_goes_on_for_a_limited_one(cli: Cli) -> None:
    """The new client is in a sandbox, in which it can start no agent: its keeper does so."""
    limited(cli, "2 hours", first={"all": []}, other={"all": [SANDBOX]})
    command = f"{sys.executable} -m teams_cli spawn help --agent-id kim --permissions all"
    spawns = f"test $TEAMS_AGENT_ID = kim || {SANDBOX}=box {command}\n"
    (place(cli) / "other").write_text(spawns + (place(cli) / "other").read_text())
    cli.ok("set", "onLimit", "other", agent="lea")
    detach(cli, "ann", "work", "--harness", "first", "--permissions", "all")
    assert ended(cli, "kim").outcome == "completed"
