"""Starting agents, waiting for them and for those that they started, and recalling their output."""

from __future__ import annotations

import json
import signal

import pytest

from tests.support.agents import (
    BUSY,
    NEEDS_PROC,
    agent_row,
    at_work,
    detach,
    ended,
    go,
    is_busy,
    keepers,
    lines,
    marked,
    outputs_to,
    place,
    run_agent,
    session,
    unread,
)
from tests.support.cli import TIMEOUT, Cli
from tests.support.waits import until

pytestmark = NEEDS_PROC


def test_spawn_returns_at_once_and_the_output_comes_as_a_message(cli: Cli) -> None:
    """A new agent can be written to before it has done anything, and its output can be replied to."""
    told = cli.ok("spawn", f"{BUSY} echo made $TEAMS_RESUME; cat", "--cwd", str(place(cli)), agent="bob")
    assert not (place(cli) / "go").exists()
    about = f"{BUSY} echo"[:50]
    assert told == {
        "agent": "agentA",
        "caller": "bob",
        "depth": 2,
        "harness": "shell",
        "description": about,
        "directory": str(place(cli)),
        "state": "starting",
    }
    assert agent_row(cli, "agentA")["role"] == "team-member"
    cli.ok("send-message", "agentA", "one more thing", agent="mia")
    go(cli)
    [first] = cli.ok("read-messages", "--wait", "20", agent="bob")
    resumed = json.loads(first["message"].removeprefix("made 1\n").partition("\n")[0])
    assert [m["message"] for m in resumed] == ["one more thing"]  # the agent got it in a turn before it was done
    assert (first["id"], first["from"], first["type"]) == ("msg-2", "agentA", "output")
    ended(cli, "agentA")
    cli.ok("reply", "msg-2", "thanks", agent="bob")
    second = until(lambda: outputs_to(cli, "bob")[1:])
    assert json.loads(second[0][1].removeprefix("made 1\n"))[0]["replyTo"] == "msg-2"


def test_who_may_not_spawn(cli: Cli) -> None:
    for words, agent, status, code in (
        (["spawn", "true"], "lea", 13, "not_allowed"),
        (["spawn", "true"], "human", 13, "not_allowed"),
        (["run-agent", "true"], "bob", 13, "not_allowed"),
        (["spawn", "  \n "], "bob", 2, "invalid_value"),
        (["spawn", "true", "--harness", "none"], "bob", 2, "invalid_value"),
        (["spawn", "true", "--cwd", "/nowhere/at/all"], "bob", 2, "invalid_value"),
        (["spawn", "true", "--agent-id", "mia"], "bob", 11, "already_exists"),
        (["spawn", "true", "--agent-id", "../x"], "bob", 2, "invalid_value"),
    ):
        assert cli.refused(*words, agent=agent) == (status, code), words
    for agent in ("lea", "human"):
        assert "run-agent" in cli("spawn", "true", "--json", agent=agent).error["hint"]
    assert keepers(cli.root) == []


def test_agents_are_three_deep_at_most(cli: Cli) -> None:
    cli.more["THIRD"] = "$T spawn 'echo four' --json 2>$D/refusal; echo $?"
    cli.more["SECOND"] = '$T spawn "$THIRD" --cwd $D --wait'
    first = run_agent(cli, '$T spawn "$SECOND" --cwd $D --wait')
    assert first["output"] == "agentB: completed\n  agentC: completed\n    11\n"
    assert json.loads(lines(cli, "refusal")[0])["error"]["code"] == "conflict"
    assert [row["name"] for row in cli.ok("recall")["agents"]] == ["lea", "bob", "mia", "agentA", "agentB", "agentC"]
    assert [session(cli, name).depth for name in ("agentA", "agentB", "agentC")] == [1, 2, 3]


def test_a_failure_is_told_as_one(cli: Cli) -> None:
    detach(cli, "x", "echo out; echo 'no such key' >&2; exit 7")
    detach(cli, "y", "kill -9 $$")
    assert (ended(cli, "x").outcome, ended(cli, "y").outcome) == ("failed", "failed")
    assert dict(outputs_to(cli, "lea")) == {
        "x": "Agent x failed: exit status 7: no such key",
        "y": "Agent y failed: ended by signal 9",
    }
    done = run_agent(cli, "echo part; exit 3", status=1)
    assert (done["outcome"], done["exitStatus"], done["failure"]) == ("failed", 3, "exit status 3: part")


@pytest.mark.slow
def test_run_agent_waits_for_all_and_sums_up(cli: Cli) -> None:
    cli.more["C"] = "$T announce deepest >$D/said; sleep 0.3; echo from C"
    cli.more["B"] = 'test $TEAMS_RESUME || $T spawn "$C" --agent-id c >&2; echo from B'
    script = 'test $TEAMS_RESUME || { $T announce first >&2; $T spawn "$B" --agent-id b >&2; }; echo from A'
    answer = cli("run-agent", script, "--agent-id", "a", "--description", "the first", agent="lea")
    assert answer.status == 0
    output, summary = answer.stdout.split("\n\n")
    assert output == "a: completed\n  from A"
    assert summary.splitlines()[:2] == ["a: completed after 2 turn(s) (the first)", "  → first"]
    assert [line.split(":")[0] for line in summary.splitlines()] == ["a", "  → first", "b", "c", "  → deepest"]
    events = [event for event in cli.ok("history") if event["what"] == "session completed"]
    assert [event["actor"] for event in events] == ["c", "b", "a"]
    assert cli.ok("read-messages", agent="lea") == [] and marked(cli.root) == {} and keepers(cli.root) == []


@pytest.mark.slow
def test_interrupting_run_agent_leaves_the_agent_at_work(cli: Cli) -> None:
    waiting = cli.start("run-agent", BUSY, "--agent-id", "zoe", "--cwd", str(place(cli)), agent="lea")
    is_busy(cli)
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate(timeout=TIMEOUT)
    assert waiting.returncode == 130 and b"teams wait --agent zoe" in said and b"teams stop-agent zoe" in said
    go(cli)
    assert ended(cli, "zoe").outcome == "completed"


def test_detach_and_collect(cli: Cli) -> None:
    at_work(cli, "zoe", f"{BUSY} echo result")
    assert cli("wait", "--agent", "zoe", "--timeout", "0.1", agent="lea").status == 14
    assert cli("before-complete", agent="lea").status == 11
    go(cli)
    found = cli.ok("wait", "--agent", "zoe", agent="lea")
    assert found == {"agent": "zoe", "outcome": "completed", "output": "result\n", "failure": None, "exitStatus": 0}
    assert unread(cli, "lea") == []
    assert cli.ok("before-complete", agent="lea") == {"agent": "lea", "mayFinish": True}
