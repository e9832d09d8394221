"""`teams watch`: the team at a glance, once, as lines that are added, and as one picture on a terminal."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.support.agents import end_all, team_of_agents
from tests.support.cli import COMMAND, TIMEOUT, Cli, add_tasks, make_team

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
    lines = cli("watch", "--once").stdout.splitlines()
    assert lines[:2] == [
        "team alpha (leader lea)",
        "0 %: 0 of 2 done, 1 in progress, 0 ready, 1 blocked, 0 failed; "
        "no estimate: fewer than 3 tasks were completed lately",
    ]
    assert lines[7:12] == [
        "longest chain of tasks: task-1, task-2",
        "TASK    STATUS       PRIORITY  OWNER  TITLE",
        "task-1  in_progress  normal    bob    first",
        "task-2  blocked      normal    -      second",
        "messages:",
    ]
    assert re.fullmatch(r"msg-1 +[0-9:]+  lea   bob  hello there", lines[13])
    frame = cli.ok("watch", "--once")
    shown = ["course", "waiting", "failed", "agents", "taskCounts", "tasks", "messages"]
    assert list(frame) == ["team", "state", "leader", *shown]
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


def shown(terminal: int, wanted: str) -> str:
    """What the terminal is given until *wanted* is in it."""
    text, give_up = "", time.monotonic() + TIMEOUT
    while wanted not in text:
        assert time.monotonic() < give_up, text
        if select.select([terminal], [], [], 0.5)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text


def trouble(cli: Cli) -> None:
    """The first task fails, and a letter, a plan, a question and a review wait for the person."""
    cli.ok("update-task", "1", "--status", "failed", "--result", "the disk is full", agent="bob")
    cli.ok("send-message", "human", "Which disk?", agent="bob")
    cli.ok("propose-plan", "Buy a disk.", agent="bob")
    cli.ok("ask-others", "May I?", "--human", "--no-wait", agent="bob")
    cli.ok("create-task", "third", "--review-by", "human", agent="lea")
    cli.ok("claim-task", "3", agent="bob")
    cli.ok("update-task", "3", "--status", "completed", "--result", "see it", agent="bob")


def on_terminal(cli: Cli, columns: int, lines: int) -> tuple[subprocess.Popen[bytes], int]:
    """`teams watch` on a terminal of that size."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environ = cli.environ(TERM="xterm-256color", COLUMNS="", LINES="", NO_COLOR="")
    process = subprocess.Popen([*COMMAND, "watch"], env=environ, stdin=child, stdout=child, stderr=child)
    os.close(child)
    return process, parent


def plain(text: str) -> str:
    """What is printed, without what steers the terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


def test_names_and_states_are_whole_on_a_small_terminal(cli: Cli) -> None:
    trouble(cli)
    process, terminal = on_terminal(cli, 80, 24)
    text = plain(shown(terminal, "Tab next agent"))
    for whole in (
        "alpha led by lea",
        "0/3 · 0 in work · 1 in review · 0 ready · 1 blocked",
        "1 failed, holding up 1",
        "Waits for you (4)",
    ):
        assert whole in text
    for whole in (
        "bob writes: Which disk?",
        "task-3  bob asks to review: third",
        "task-1   failed, holds up 1: the disk is full",
        "lea  idle",
        "bob  waiting",
    ):
        assert whole in text
    assert max(len(line) for line in text.splitlines()) <= 80
    os.write(terminal, b"q")
    assert "\x1b[?1049l" in shown(terminal, "\x1b[?1049l")
    assert process.wait(TIMEOUT) == 0
    os.close(terminal)


@pytest.mark.slow
def test_one_scrolls_and_looks_at_what_an_agent_prints(tmp_path: Path) -> None:
    cli = team_of_agents(tmp_path, "bob")
    try:
        cli("run-agent", "seq 1 300; echo the last line", "--agent-id", "kim", "--cwd", str(tmp_path), agent="lea")
        add_tasks(cli, *(f"Task number {n}" for n in range(1, 41)))
        process, terminal = on_terminal(cli, 80, 24)
        assert "more below" in plain(shown(terminal, "Tab next agent"))
        os.write(terminal, b"G")
        assert "Messages" in plain(shown(terminal, "Messages"))
        os.write(terminal, b"g\t")
        shown(terminal, "> ")
        os.write(terminal, b"\t\t")
        shown(terminal, "> ")
        os.write(terminal, b"\r")
        assert "300" in plain(shown(terminal, "the last line"))
        os.write(terminal, b"g")
        assert "Output of kim" in plain(shown(terminal, "Output of kim"))
        os.write(terminal, b"q")
        shown(terminal, "Agents (3)")
        os.write(terminal, b"\t\r")
        shown(terminal, "task created task-40")
        os.write(terminal, b"q")
        shown(terminal, "Agents (3)")
        os.write(terminal, b"q")
        assert process.wait(TIMEOUT) == 0
        os.close(terminal)
    finally:
        end_all(cli.root)
