"""`teams watch`: the team at a glance, once, as lines that are added, and as one picture on a terminal."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli import COMMAND, TIMEOUT, Cli, add_tasks, make_team

pty = pytest.importorskip("pty")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A team with a member, two tasks, the second waiting for the first, and a message."""
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "first")
    add_tasks(cli, "second", blocked_by=["task-1"])
    cli.ok("send-message", "bob", "hello\nthere", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    return cli


def test_once(cli: Cli) -> None:
    """One frame, in lines or as one document, and the end."""
    answer = cli("watch", "--once")
    lines = answer.stdout.splitlines()
    assert (lines[0], lines[3]) == ("team alpha (leader lea)", "tasks: 1 pending, 1 in_progress")
    assert lines[4:7] == [
        "task-1  in_progress  normal  bob  first",
        "task-2  blocked      normal  -    second",
        "messages:",
    ]
    assert lines[7].startswith("msg-1  ") and lines[7].endswith("  lea  bob  hello there")
    frame = cli.ok("watch", "--once")
    assert list(frame) == ["team", "state", "leader", "agents", "taskCounts", "tasks", "messages"]
    assert [row["name"] for row in frame["agents"]] == ["lea", "bob"]
    assert [task["id"] for task in frame["tasks"]] == ["task-1", "task-2"]


def read_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout
    assert select.select([process.stdout], [], [], TIMEOUT)[0]
    return process.stdout.readline().decode()


def test_lines_are_added_where_there_is_no_terminal(cli: Cli) -> None:
    """The frame first, then a line for each change; Ctrl-C ends it with 130."""
    with cli.start("watch", bufsize=0) as process:
        while "hello there" not in read_line(process):
            pass
        cli.ok("announce", "on it", agent="bob")
        assert read_line(process).endswith("  bob: status announced on it\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, err) == (130, b"", b"\nteams: interrupted\n")


def test_frames_for_a_script(cli: Cli) -> None:
    with cli.start("watch", "--json", bufsize=0) as process:
        first: dict[str, Any] = json.loads(read_line(process))
        cli.ok("send-message", "lea", "done", agent="bob")
        second = json.loads(read_line(process))
        process.kill()
        process.communicate(timeout=TIMEOUT)
    assert "changes" not in first and len(first["messages"]) == 1
    assert [entry["what"] for entry in second["changes"]] == ["message sent"]
    assert second["messages"][-1]["message"] == "done"


def test_a_picture_on_a_terminal(cli: Cli) -> None:
    """Drawn anew when something changes, and taken away again by Ctrl-C."""
    parent, child = pty.openpty()
    environ = cli.environ(TERM="xterm-256color", COLUMNS="100", LINES="30", NO_COLOR="")
    with subprocess.Popen([*COMMAND, "watch"], env=environ, stdin=child, stdout=child, stderr=child) as process:
        os.close(child)
        assert "second" in shown(parent, "hello there")
        cli.ok("announce", "\x1b[31mred [bold]", agent="bob")
        assert "\\u001b[31mred [bold]" in shown(parent, "red [bold]")
        process.send_signal(signal.SIGINT)
        assert "\x1b[?1049l" in shown(parent, "interrupted")
        assert process.wait(TIMEOUT) == 130
    os.close(parent)


def shown(terminal: int, wanted: str) -> str:
    """What the terminal is given until *wanted* is in it."""
    text, give_up = "", time.monotonic() + 20
    while wanted not in text:
        assert time.monotonic() < give_up, text
        if select.select([terminal], [], [], 0.5)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text


def test_a_team_that_is_not_there(tmp_path: Path) -> None:
    assert Cli(tmp_path / "root", team="none").refused("watch") == (10, "team_not_found")
