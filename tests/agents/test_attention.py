"""What an agent sees of the others, and the others of it."""

from __future__ import annotations

from typing import Any

import pytest

from teams_cli.agents.attention import HINT
from tests.support.agents import (
    BUSY,
    NEEDS_PROC,
    agent_row,
    at_work,
    ended,
    go,
    lines,
    outputs_to,
    place,
    unread,
)
from tests.support.cli import Cli

pytestmark = NEEDS_PROC


def test_the_attention_payload(cli: Cli) -> None:
    cli.ok("announce", "reading", agent="mia")
    cli.ok("announce", "writing", agent="mia")
    cli.ok("send-message", "bob", "hello\nthere", agent="mia")
    others = [
        {"name": "lea", "status": None, "idle": True, "statusHistory": []},
        {"name": "mia", "status": "writing", "idle": True, "statusHistory": ["reading", "writing"]},
    ]
    message = {"id": 1, "from": "mia", "content": "hello\nthere"}
    output: dict[str, Any] = {"hint": HINT, "you_are": "bob", "agents": others, "messages": [message]}
    state = {"status": "completed", "input": {"synthetic": True}, "output": output}
    state["title"] = "2 agent(s), 1 message(s)"
    assert cli.ok("attend", agent="bob") == {"tool": "broadcast", "state": state}
    assert unread(cli, "bob") == []  # being shown is being read …
    cli.ok("broadcast-message", "thinking", agent="bob")
    del output["hint"]
    assert cli.ok("attend", agent="bob") == {"tool": "broadcast", "state": state}  # … and not being handled
    cli.ok("reply", "1", "hi", agent="bob")
    output["messages"], state["title"] = [], "2 agent(s), 0 message(s)"
    assert cli.ok("attend", agent="bob") == {"tool": "broadcast", "state": state}
    shown = cli.ok("attend", agent="mia")["state"]["output"]
    bob = {"name": "bob", "status": "thinking", "idle": True, "statusHistory": ["thinking"]}
    assert bob in shown["agents"] and shown["messages"][0]["content"] == "thinking"


@pytest.mark.slow
def test_mail_that_was_read_neither_wakes_nor_holds(cli: Cli) -> None:
    at_work(cli, "zoe", f"{BUSY} $T attend >$D/seen; $T before-complete && echo fine; echo $TEAMS_RESUME >>$D/turns")
    *_, zoe = cli.ok("attend", agent="bob")["state"]["output"]["agents"]
    assert (zoe["name"], zoe["idle"]) == ("zoe", False)
    cli.ok("send-message", "zoe", "for your information", agent="bob")
    assert agent_row(cli, "zoe")["queueDepth"] == 1
    go(cli)
    assert ended(cli, "zoe").turns == 1
    assert lines(cli, "turns") == [""] and "for your information" in (place(cli) / "seen").read_text()
    assert outputs_to(cli, "lea") == [("zoe", "zoe: may finish\nfine\n")]
