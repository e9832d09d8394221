"""Waits that their callers end, as tools of agents do after some minutes, say how to go on."""

from __future__ import annotations

import re
import signal
import sys
from typing import Any

import pytest

from tests.support.cli import Cli, add_tasks, in_progress
from tests.support.waits import until_asleep

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc who catches which signal")


def terminated(process: Any) -> tuple[str, str]:
    """End the process while it sleeps, and return its standard output and standard error."""
    until_asleep(process)
    process.terminate()
    out, err = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM
    return out, err


def test_a_wait_that_is_ended_says_how_to_go_on(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    said = terminated(cli.start("wait", "--needed", agent="lea", text=True))
    how = r"teams: .* was interrupted\n  In progress: task-1 \(bob, .*\); idle: mia\. Keep waiting: "
    how += "teams wait --needed --timeout 540\n"
    assert said[0] == "" and re.fullmatch(how, said[1])


def test_what_was_done_before_the_wait_was_said(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("create-task", "not for bob", "--require", "rust", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    end = ("update-task", "1", "--status", "completed", "--next", "--wait", "600")
    assert terminated(cli.start(*end, agent="bob", text=True)) == (
        "task-1: completed by bob: one\n",
        "teams: the wait was interrupted\n  Keep waiting: teams wait --claim --timeout 540\n",
    )
    add_tasks(cli, "two")
    assert cli.ok("wait", "--claim", agent="bob")["claimed"]["id"] == "task-3"
