"""`teams watch`: the team once, as added lines in a pipe, and as a picture on a terminal."""

from __future__ import annotations

import re
import select
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.agents import end_all, team_of_agents
from tests.support.cli import TIMEOUT, Cli, add_tasks
from tests.support.terminal import Terminal


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """A team with two tasks, of which the second waits for the first, and a message."""
    add_tasks(cli, "first")
    add_tasks(cli, "second", blocked_by=["task-1"])
    cli.ok("send-message", "bob", "hello\nthere", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    return cli


def test_once(cli: Cli) -> None:
    assert "0 of 2 done, 1 in progress, 0 ready, 1 blocked, 0 failed" in cli("watch", "--once").stdout
    frame = cli.ok("watch", "--once")
    assert [row["name"] for row in frame["agents"]] == ["lea", "bob", "mia"]
    assert [task["id"] for task in frame["tasks"]] == ["task-1", "task-2"]


def read_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout
    assert select.select([process.stdout], [], [], TIMEOUT)[0]
    return process.stdout.readline().decode()


def test_lines_are_added_where_there_is_no_terminal(cli: Cli) -> None:
    """In a pipe the picture comes first, then a line for each change; Ctrl-C exits with 130."""
    with cli.start("watch", bufsize=0) as process:
        while "hello there" not in read_line(process):
            pass
        cli.ok("announce", "on it", agent="bob")
        assert read_line(process).endswith("  bob: status announced on it\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, err) == (130, b"", b"\nteams: interrupted\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


def watching(cli: Cli) -> Terminal:
    return Terminal(cli, "watch", agent="", TERM="xterm-256color", COLUMNS="80", LINES="24", NO_COLOR="")


def test_names_and_states_are_whole_on_a_small_terminal(cli: Cli) -> None:
    cli.ok("update-task", "1", "--status", "failed", "--result", "the disk is full", agent="bob")
    cli.ok("send-message", "human", "Which disk?", agent="bob")
    terminal = watching(cli)
    text = plain(terminal.sees("Tab next agent"))
    for whole in (
        "alpha led by lea",
        "1 failed, holding up 1",
        "Waits for you (1)",
        "bob writes: Which disk?",
        "task-1   failed, holds up 1: the disk is full",
        "lea  idle",
        "bob  idle",
    ):
        assert whole in text
    assert max(len(line) for line in text.splitlines()) <= 80
    terminal.type("q")
    assert terminal.end() == 0 and "\x1b[?1049l" in terminal.text


@pytest.mark.slow
def test_watch_scrolls_and_shows_what_an_agent_prints(tmp_path: Path) -> None:
    cli = team_of_agents(tmp_path, "bob")
    try:
        cli("run-agent", "seq 1 300; echo the last line", "--agent-id", "kim", "--cwd", str(tmp_path), agent="lea")
        add_tasks(cli, *(f"Task number {n}" for n in range(1, 41)))
        terminal = watching(cli)
        assert "more below" in plain(terminal.sees("Tab next agent"))
        for keys, seen in (("G", "Messages"), ("g\t", "> "), ("\t\t", "> ")):
            terminal.type(keys)
            terminal.sees(seen)
        terminal.type("\r")
        assert "300" in plain(terminal.sees("the last line"))
        terminal.type("q")
        terminal.sees("Agents (3)")
        terminal.type("q")
        assert terminal.end() == 0
    finally:
        end_all(cli.root)


def answering(cli: Cli) -> Terminal:
    """Ask the person a question, and return a terminal at which the person is about to type the answer."""
    cli.ok("ask-others", "Which disk?", "--human", "--no-wait", agent="bob")
    terminal = watching(cli)
    terminal.until("Tab next agent")
    terminal.type("a")
    terminal.until("Enter sends")
    return terminal


def sends(cli: Cli, terminal: Terminal, answer: str) -> None:
    """Send what was typed, and end the view. The question must have got this *answer*."""
    terminal.type("\r")
    terminal.until("answered")
    terminal.type("q")
    assert terminal.end() == 0
    assert cli.ok("get-questions", agent="bob")[0]["answers"][0]["content"] == answer


def test_an_answer_has_what_was_typed_and_no_more(cli: Cli) -> None:
    """Neither letters of the arrow keys, nor halves of a character at the end of a part of a pasted text."""
    terminal = answering(cli)
    terminal.type("\x1b[A\x1b[B\x1b[D\x1b[3~\x1bOC")
    terminal.type("x" + "ж" * 200)
    terminal.until("жжж█")
    sends(cli, terminal, "x" + "ж" * 200)


def test_a_pasted_text_is_one_answer(cli: Cli) -> None:
    """Its line breaks send nothing, and its letters are no keys. Of a paste that the terminal does not mark, the first
    line is the answer.
    """
    for number in range(1, 4):
        cli.ok("ask-others", f"Question {number}?", "--human", "--no-wait", agent="bob")
    terminal = watching(cli)
    terminal.until("Tab next agent")
    assert "\x1b[?2004h" in terminal.text
    terminal.type("a")
    terminal.until("ask-1 (Enter sends")
    terminal.type("\x1b[200~first\r\tand last\r\x1b[201~")
    terminal.until("last")
    terminal.type("\r")
    terminal.until("ask-1: answered")
    terminal.until("Waits for you (2)")
    terminal.type("a")
    terminal.until("ask-2 (Enter sends")
    terminal.type("second\rand quit\r")
    terminal.until("ask-2: answered")
    terminal.type("\x1b[200~aq\r\x1b[201~")
    terminal.until("Waits for you (1)")
    terminal.type("q")
    assert terminal.end() == 0 and "\x1b[?2004l" in terminal.text
    answers = [question["answers"] for question in cli.ok("get-questions", agent="bob")]
    assert [[answer["content"] for answer in each] for each in answers] == [["first\n\tand last"], ["second"], []]


def test_what_was_typed_stays_if_the_answer_is_refused(cli: Cli) -> None:
    terminal = answering(cli)
    terminal.type("the large one")
    terminal.until("one█")
    record = next((cli.root / "teams/alpha").rglob("ask-1.json"))
    hidden = record.rename(cli.root / "ask-1.json")
    terminal.type("\r")
    terminal.until("has no question ask-1")
    hidden.rename(record)
    terminal.type("a")
    terminal.until("one█")
    sends(cli, terminal, "the large one")
