"""What needs no answer does not stay open: it is closed by reading, or once it was carried out."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import add_tasks, make_team


def test_what_needs_no_answer_does_not_stay_open(tmp_path: Path) -> None:
    """What all were told, orders that were carried out, and what is about a task that is over; a request stays."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("broadcast-message", "commit often", agent="lea")
    cli.ok("send-message", "bob", "take port 80, please", agent="lea")
    cli.ok("send-message", "bob", "who has the key?", agent="mia")
    cli.ok("send-message", "mia", "task-1 is nearly done: wait for it", agent="bob")
    assert "reply msg-1" not in cli("read-messages", agent="bob").stdout
    cli.ok("read-messages", agent="mia")
    assert [m["id"] for m in cli.ok("read-messages", agent="bob")] == ["msg-2", "msg-3"]
    assert [m["id"] for m in cli.ok("read-messages", agent="mia")] == ["msg-4"]
    cli.ok("update-task", "1", "--status", "completed", "--result", "on port 80", agent="bob")
    assert [m["id"] for m in cli.ok("read-messages", agent="bob")] == ["msg-3"]
    assert cli.ok("brief", agent="mia")["unhandled"] == []
    cli.ok("send-message", "mia", "was task-1 hard?", agent="lea")
    assert "next: teams reply msg-6 TEXT" in cli("wait", "--timeout", "0", agent="mia").stdout
