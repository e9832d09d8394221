"""Reminders: the line on standard error, after an answer, of what its caller has not been told."""

from __future__ import annotations

import shlex
import subprocess

from tests.support.cli import COMMAND, TIMEOUT, Cli


def test_mail_is_told_once_behind_whatever_is_answered(cli: Cli) -> None:
    cli.ok("send-message", "bob", "one line\nand another", agent="lea")
    assert cli("announce", "at work", agent="bob").stderr == (
        "\nmsg-1 from lea begins: one line\n  1 unread: teams read-messages\n"
    )
    assert cli("announce", "at work still", agent="bob").stderr == ""
    cli.ok("send-message", "bob", "and this", "--fyi", agent="mia")
    assert cli("get-tasks", agent="bob").stderr == "\nmsg-2 from mia: and this\n  1 unread: teams read-messages\n"
    assert cli("get-tasks", agent="bob").stderr == ""
    assert [message["id"] for message in cli.ok("read-messages", agent="bob")] == ["msg-1"]


def test_a_short_message_is_read_with_its_reminder_unless_that_is_thrown_away(cli: Cli) -> None:
    """The reminder says how to answer, and the message stays open until it is answered."""
    cli.ok("send-message", "bob", "Which way?", agent="lea")
    silenced = f"{shlex.join(COMMAND)} get-tasks 2>/dev/null"
    subprocess.run(silenced, shell=True, env=cli.environ("bob"), check=True, timeout=TIMEOUT)
    assert cli("get-tasks", agent="bob").stderr == "\nmsg-1 from lea: Which way? (teams reply msg-1 TEXT)\n"
    assert cli("read-messages", agent="bob").stdout.startswith("no new messages\nstill open")
    cli.ok("reply", "msg-1", "left", agent="bob")
    both = cli.start("heartbeat", agent="lea", stderr=subprocess.STDOUT, text=True).communicate(timeout=TIMEOUT)[0]
    assert both.endswith("has no task\nmsg-2 from bob: left\n"), both  # one stream needs no empty line
    assert cli.ok("read-messages", agent="lea") == []
    cli.ok("reply", "msg-2", "thanks", agent="lea")


def test_programs_others_and_those_who_read_a_message_are_not_reminded(cli: Cli) -> None:
    cli.ok("send-message", "bob", "hello", agent="lea")
    assert cli("get-tasks", "--json", agent="bob").stderr == ""
    assert cli("get-tasks", agent="mia").stderr == cli("get-tasks", agent="eve").stderr == ""
    assert cli("read-messages", agent="bob").stderr == ""
    assert cli("get-tasks", agent="bob").stderr == ""
    cli.ok("send-message", "bob", "again", agent="lea")
    cli("wait", agent="bob")
    assert cli("get-tasks", agent="bob").stderr == ""
