"""Who waits for an answer in the middle of its work is not waited out: whose answer it is hears of that."""

from __future__ import annotations

from pathlib import Path

from teams_cli.messages.messages import MESSAGE
from tests.support.cli import add_tasks, make_team
from tests.support.waits import begin, ended, until


def test_whose_answer_is_waited_for_hears_that_the_other_is_blocked(tmp_path: Path) -> None:
    """Once, and no more once it is answered; of a question, with that."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("send-message", "mia", "which port?", agent="bob")
    cli.ok("read-messages", agent="mia")
    waiting = begin(cli, "bob")
    found = cli.ok("wait", "--timeout", "60", agent="mia")
    assert found["messages"][0]["message"] == "bob is BLOCKED waiting for your answer to msg-1"
    assert found["next"] == "teams reply msg-1 TEXT"
    cli.ok("reply", "1", "8080", agent="mia")
    assert ended(waiting)["messages"][0]["message"] == "8080"
    cli.ok("send-message", "mia", "and which host?", agent="bob")
    waiting = begin(cli, "bob", "wait", "--message", "--timeout", "60")
    until(lambda: cli.store().last("alpha", MESSAGE) == 5)
    cli.ok("reply", "4", "this one", agent="mia")
    assert cli("wait", "--timeout", "0", agent="mia").status == 14
    ended(waiting)
    cli.ok("set", "broadcast", "agents", agent="lea")
    asking = cli.start("ask-others", "which?", "--to", "mia", agent="bob")
    assert "(bob is BLOCKED waiting for your answer. Answer within " in cli("wait", "--message", agent="mia").stdout
    cli.ok("answer", "1", "the second", agent="mia")
    asking.communicate(timeout=60)
