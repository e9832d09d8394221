"""What an agent sees of the others, and they of it."""

from __future__ import annotations

from typing import Any

import pytest

from teams_cli.agents.waking import HINT
from tests.support.agents import (
    BUSY,
    NEEDS_PROC,
    agent_row,
    detach,
    ended,
    go,
    is_busy,
    lines,
    outputs_to,
    place,
    unread,
)
from tests.support.cli import Cli

pytestmark = [
    NEEDS_PROC,
    pytest.mark.usefixtures("each_engine"),
]


def test_the_attention_payload(cli: Cli) -> None:
    """The whole of it: others with their history, mail until it is handled, the hint until announced."""
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
    cli.ok("announce", "thinking", agent="bob")
    del output["hint"]
    assert cli.ok("attend", agent="bob") == {"tool": "broadcast", "state": state}  # … and not being handled
    cli.ok("reply", "1", "hi", agent="bob")
    output["messages"], state["title"] = [], "2 agent(s), 0 message(s)"
    assert cli.ok("attend", agent="bob") == {"tool": "broadcast", "state": state}


def test_a_first_broadcast_is_a_status_too(cli: Cli) -> None:
    cli.ok("broadcast-message", "I take the parser", agent="bob")
    assert "hint" not in cli.ok("attend", agent="bob")["state"]["output"]
    shown = cli.ok("attend", agent="mia")["state"]["output"]
    assert shown["messages"] == [{"id": 1, "from": "bob", "content": "I take the parser"}]
    assert {
        "name": "bob",
        "status": "I take the parser",
        "idle": True,
        "statusHistory": ["I take the parser"],
    } in shown["agents"]


def test_attention_says_who_works(cli: Cli) -> None:
    detach(cli, "zoe", BUSY)
    is_busy(cli)
    before = {row["name"]: row["idle"] for row in cli.ok("attend", agent="bob")["state"]["output"]["agents"]}
    go(cli)
    ended(cli, "zoe")
    after = {row["name"]: row["idle"] for row in cli.ok("attend", agent="bob")["state"]["output"]["agents"]}
    assert (before, after) == ({"lea": True, "mia": True, "zoe": False}, {"lea": True, "mia": True, "zoe": True})


def test_mail_that_was_read_neither_wakes_nor_holds(cli: Cli) -> None:
    """The agent sees it with `attend`, does not handle it, may finish, and is not resumed with it."""
    detach(cli, "zoe", f"{BUSY} $T attend >$D/seen; $T before-complete && echo fine; echo $TEAMS_RESUME >>$D/turns")
    is_busy(cli)
    cli.ok("send-message", "zoe", "for your information", agent="bob")
    assert agent_row(cli, "zoe")["queueDepth"] == 1
    go(cli)
    assert ended(cli, "zoe").turns == 1
    assert lines(cli, "turns") == [""] and "for your information" in (place(cli) / "seen").read_text()
    assert outputs_to(cli, "lea") == [("zoe", "zoe: may finish\nfine\n")]
