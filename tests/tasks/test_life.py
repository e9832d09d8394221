"""Signs of life: whatever an agent does keeps its tasks, and who loses one is told, as is who takes it over."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from teams_cli.tasks.tasks import TASK
from teams_cli.teams.presence import AGENT, Agent
from tests.support.cli import TIMEOUT, Cli, add_tasks, lapse, make_team
from tests.support.waits import until


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A team, with a task."""
    cli = make_team(tmp_path / "root", "bob", "ann")
    add_tasks(cli, "t")
    return cli


def lease(cli: Cli) -> Any:
    return cli.store().get("alpha", TASK, "task-1")[0].lease_until


READS = """
import os, sys
from teams_cli.__main__ import main

opened, file = [], "agents/bob.json"
sys.addaudithook(lambda event, given: event == "open" and str(given[0]).endswith(file) and opened.append(1))
leave = os._exit
def count(status):
    sys.stderr.write(f"{len(opened)} reads")
    sys.stderr.flush()
    leave(status)
os._exit = count
try:
    main()
except SystemExit:
    count(0)
"""


def test_a_sign_of_life_reads_of_the_agent_what_it_needs(tmp_path: Path) -> None:
    """Whoever waits gives one a minute, ten on each machine of a fleet: once to know whether it is due, then to change
    it, under the lock to see that nobody else did, and for what it was told of; not for what it has just written.
    """
    cli = make_team(tmp_path / "root", "bob")
    long_ago = Agent(agent="bob", last_seen="2020-01-01T00:00:00.000Z", renewed_at="2020-01-01T00:00:00.000Z")
    cli.store().create("alpha", AGENT, "bob", long_ago)
    words = [sys.executable, "-c", READS, "send-message", "lea", "hello"]
    done = subprocess.run(words, env=cli.environ("bob"), cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stderr.endswith("4 reads"), done.stderr


@pytest.mark.slow
def test_waiting_inside_the_tool_renews(cli: Cli) -> None:
    """Without another command of its owner."""
    cli.ok("set", "staleAfterSeconds", "12", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    waiting: subprocess.Popen[bytes] = cli.start("read-messages", "--wait", "600", agent="bob")
    before = lease(cli)
    until(lambda: lease(cli) > before)
    assert cli.ok("show-task", "1")["owner"] == "bob"
    cli.ok("send-message", "bob", "wake up", agent="lea")
    assert b"wake up" in waiting.communicate(timeout=TIMEOUT)[0]


def test_who_lost_a_task_and_who_takes_it_over_are_told(cli: Cli) -> None:
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("announce", "half way through the parser", agent="bob")
    lapse(cli.store())
    taken = cli.ok("claim-task", "1", agent="ann")
    assert taken["takenOver"]["from"] == "bob" and taken["takenOver"]["status"] == "half way through the parser"
    assert taken["takenOver"]["lastHeard"] and taken["takenOver"]["reason"]
    ended = next(note["reason"] for note in taken["notes"] if note["what"] == "expired")
    assert ended.startswith("the lease of bob ended ") and "last heard of" in ended
    shown = cli("claim-task", "1", agent="ann").stdout
    assert "it was bob's" in shown and "half way through the parser" in shown and "uncommitted" in shown
    (said,) = [m["message"] for m in cli.ok("read-messages", agent="bob") if "task-1" in m["message"]]
    assert said.startswith("task-1 (t) is no longer yours: ") and said.endswith("; ann has it now.")
    (heard,) = [m["message"] for m in cli.ok("read-messages", agent="lea") if "free again" in m["message"]]
    assert "ann has it now" in heard


@pytest.mark.slow
def test_a_command_that_is_refused_renews_too(cli: Cli) -> None:
    """It is a sign of life; and nothing is written as long as the lease is nearly whole."""
    cli.ok("set", "staleAfterSeconds", "8", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    before = lease(cli)
    assert cli("show-plan", "9", agent="bob").status == 10
    assert lease(cli) == before
    time.sleep(2.5)
    assert cli("claim-task", "99", agent="bob").status == 10
    assert lease(cli) > before
