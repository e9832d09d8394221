"""The line on standard error with which an answer ends when something waits that its caller was not told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, add_tasks, make_team


@pytest.fixture
def cli(tmp_path: Path, each_engine: str) -> Cli:
    return make_team(tmp_path / "root", "bob", "mia")


def test_mail_is_told_once_behind_whatever_is_answered(cli: Cli) -> None:
    cli.ok("send-message", "bob", "hello", agent="lea")
    assert cli("announce", "at work", agent="bob").stderr == "1 unread (msg-1 from lea)\n"
    assert cli("announce", "at work still", agent="bob").stderr == ""
    cli.ok("send-message", "bob", "and this", agent="mia")
    assert cli("get-tasks", agent="bob").stderr == "2 unread (msg-1 from lea, msg-2 from mia)\n"
    assert cli("get-tasks", agent="bob").stderr == ""


def test_what_the_system_says_is_told_in_its_words(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("update-task", "1", "--status", "completed", "--result", "it works", agent="bob")
    assert cli("get-tasks", agent="lea").stderr == "task-1 (one) completed by bob: it works\n"
    assert cli("get-tasks", agent="lea").stderr == ""


def test_who_read_it_and_programs_and_others_are_told_nothing(cli: Cli) -> None:
    cli.ok("send-message", "bob", "hello", agent="lea")
    assert cli("get-tasks", "--json", agent="bob").stderr == ""
    assert cli("get-tasks", agent="mia").stderr == cli("get-tasks", agent="eve").stderr == ""
    assert cli("read-messages", agent="bob").stderr == ""
    assert cli("get-tasks", agent="bob").stderr == ""
    cli.ok("send-message", "bob", "again", agent="lea")
    cli("wait", agent="bob")
    assert cli("get-tasks", agent="bob").stderr == ""
