"""Completed work that lands is answered for, though what lands it cannot be read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import TIMEOUT, add_tasks, make_team

NOTHING_READ = """
import errno, os, sys
done = []

def break_off(event, arguments):
    if event == "os.rename" and "/tasks/alpha/task-" in str(arguments[1]):
        done.append(1)
    if done and event == "open" and str(arguments[0]).endswith("/team.json"):
        raise OSError(errno.EIO, os.strerror(errno.EIO), arguments[0])

sys.addaudithook(break_off)
from teams_cli.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", ["update-task 1 --status completed --result done", "review-task 1 --accept"])
def test_what_is_done_is_answered_for_though_nothing_more_can_be_read(tmp_path: Path, words: str) -> None:
    """What follows a change, the team's settings and the next step, is no part of it."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    cli.ok("set", "landing", "completed", agent="lea")
    if "review" in words:
        cli.ok("create-task", "t", "--review-by", "mia", agent="lea")
        cli.ok("claim-task", "1", agent="bob")
        cli.ok("update-task", "1", "--status", "completed", agent="bob")
    else:
        add_tasks(cli, "t")
        cli.ok("claim-task", "1", agent="bob")
    agent = "mia" if "review" in words else "bob"
    command = [sys.executable, "-c", NOTHING_READ, *words.split(), "--json"]
    done = subprocess.run(command, env=cli.environ(agent), capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 0 and json.loads(done.stdout)["status"] == "completed", done
    assert b"input/output" in done.stderr.lower(), done
