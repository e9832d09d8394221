"""The tokens that agents use, and what happens when a budget is used up."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.support.agents import NEEDS_PROC, place, session
from tests.support.cli import Cli, program
from tests.support.waits import until

pytestmark = [pytest.mark.slow, NEEDS_PROC]
_ONE = {"from": "lines", "match": {"type": "done"}, "input": ["in", "hit"], "cached": ["hit"], "output": ["out"]}
_EACH = {"from": "json", "each": "by", "input": ["in"], "output": ["out"], "grows": True}


def harness(cli: Cli, usage: dict[str, Any] | None) -> None:
    """Configure a client that runs the file `turn`, or else its prompt, and declares its *usage* so."""
    words = ["sh", "-c", 'test -e $D/turn && exec sh $D/turn; eval "$0"', "{prompt}"]
    client: dict[str, Any] = {"start": words, "resume": words, "model": ["{model}"]}
    if usage:
        client["usage"] = usage
    (cli.root / "config.json").write_text(json.dumps({"harness": {"own": client}}))


def run(cli: Cli, prompt: str, *more: str, agent: str = "ann") -> Any:
    return cli("run-agent", prompt, "--harness", "own", "--agent-id", agent, *more, agent="lea")


def usage(cli: Cli, by: str = "agent") -> Any:
    return cli.ok("usage", "--by", by, agent="lea")


def test_turns_are_counted_by_agent_task_and_model(cli: Cli) -> None:
    harness(cli, _ONE)
    for title in ("one", "two"):
        cli.ok("create-task", title, agent="lea")
    work = "$T claim-task 1 && $T update-task 1 --status completed --result r && $T claim-task 2; "
    said = 'echo \'{"type":"done","in":60,"hit":40,"out":10}\'; '
    assert run(cli, work + said + said).status == 0
    found = usage(cli)
    (row,) = found["rows"]
    assert row["agent"] == "ann" and row["turns"] == 1 and row["seconds"] >= 0
    assert (row["input"], row["cached"], row["output"], row["total"]) == (200, 80, 20, 220)
    assert found["coordination"] == 0
    halves = usage(cli, "task")["rows"]
    assert [(row["task"], row["input"]) for row in halves] == [("task-1", 100), ("task-2", 100)]
    (place(cli) / "turn").write_text(said)
    cli.ok("release-task", "2", agent="ann")
    cli.ok("send-message", "ann", "hello", agent="lea")
    until(lambda: usage(cli)["total"]["turns"] == 2)
    assert usage(cli)["coordination"] == round(110 / 330, 3)
    assert [row["task"] for row in usage(cli, "task")["rows"]][-1] == "task-2"
    assert [row["model"] for row in usage(cli, "model")["rows"]] == ["unknown"]
    assert "coordination (turns that only handled messages): 33% of the tokens" in cli("usage", agent="lea").stdout


def test_a_client_that_counts_from_its_beginning_is_counted_by_turns(cli: Cli) -> None:
    harness(cli, _EACH)
    run(cli, 'echo \'{"by": {"big": {"in": 100, "out": 5}, "small": {"in": 7, "out": 1}}}\'')
    (place(cli) / "turn").write_text('echo \'{"by": {"big": {"in": 250, "out": 9}, "small": {"in": 7, "out": 1}}}\'')
    cli.ok("send-message", "ann", "hello", agent="lea")
    until(lambda: usage(cli)["total"]["turns"] == 2)
    rows = usage(cli, "model")["rows"]
    assert [(row["model"], row["input"], row["output"]) for row in rows] == [("big", 250, 9), ("small", 7, 1)]


@pytest.mark.parametrize("is_whole_session", [False, True], ids=["2.1.197", "2.1.332"])
def test_turns_of_claude_are_counted_once_whatever_its_version_counts(cli: Cli, is_whole_session: bool) -> None:
    turns, said = [(100, 10), (300, 30), (50, 5)], [0, 0]
    program(place(cli) / "claude", f"exec sh {place(cli)}/turn\n")
    cli.more["PATH"] = f"{place(cli)}:{os.environ['PATH']}"
    for count, (input, output) in enumerate(turns, 1):
        said = [said[0] + input, said[1] + output] if is_whole_session else [input, output]
        model = {"inputTokens": said[0], "outputTokens": said[1], "cacheReadInputTokens": 0, "costUSD": 0.001}
        usage_of_turn = {"input_tokens": input, "cache_read_input_tokens": 0, "output_tokens": output}
        document = {"type": "result", "is_error": False, "result": "done", "usage": usage_of_turn}
        printed = json.dumps({**document, "modelUsage": {"claude-opus-5-5": model}})
        (place(cli) / "turn").write_text(f"echo '{printed}'")
        if count == 1:
            assert cli("run-agent", "go", "--harness", "claude", "--agent-id", "ann", agent="lea").status == 0
        else:
            cli.ok("send-message", "ann", "go on", agent="lea")
        until(lambda turns=count: usage(cli)["total"]["turns"] == turns)
    total = usage(cli)["total"]
    assert (total["input"], total["output"]) == (450, 45)


def test_usage_that_a_client_does_not_report_is_unknown_and_not_zero(cli: Cli) -> None:
    harness(cli, None)
    run(cli, "true")
    (row,) = usage(cli)["rows"]
    assert (row["turns"], row["uncounted"], row["input"], row["total"]) == (1, 1, None, None)
    cli.ok("set", "budget", "100", agent="lea")
    assert "0 of 100 tokens (0%); the tokens of 1 turns are unknown" in cli("usage", agent="lea").stdout


def test_a_budget_is_warned_of_and_holds_until_it_is_raised(cli: Cli) -> None:
    harness(cli, _ONE)
    cli.ok("set", "budget", "100", agent="lea")
    (place(cli) / "turn").write_text('echo \'{"type":"done","in":45,"out":0}\'')
    for agent in ("ann", "ben"):
        assert run(cli, "true", agent=agent).status == 0
    assert told(cli) == ["the budget of the team: 90 of 100 tokens are used; at the limit no turn begins"]
    cli.ok("send-message", "ann", "more", agent="lea")
    until(lambda: usage(cli)["total"]["total"] == 135)
    step = "no new turn begins; raise it: teams set budget TOKENS"
    assert told(cli)[1:] == [f"the budget of the team: 135 of 100 tokens are used; {step}"]
    until(lambda: session(cli, "ann").ended)
    cli.ok("send-message", "ann", "still more", agent="lea")
    refused = run(cli, "true", agent="cyd")
    assert refused.status == 11 and "Raise it: teams set budget TOKENS" in refused.stderr
    assert (session(cli, "ann").turns, len(told(cli))) == (2, 2)
    assert cli("usage", agent="lea").stdout.rstrip().endswith("budget of the team: 135 of 100 tokens (135%)")
    cli.ok("set", "budget", "1000", agent="lea")
    until(lambda: usage(cli)["total"]["turns"] == 4)
    assert run(cli, "true", agent="cyd").status == 0


def told(cli: Cli) -> list[str]:
    """What the person was told of budgets; the leader must have been told the same."""
    mail = [cli.ok("read-messages", "--all", agent=who) for who in ("human", "lea")]
    person, leader = ([m["message"] for m in each if "budget" in m["message"]] for each in mail)
    assert person == leader
    return person


def test_a_count_that_is_no_list_of_paths_is_refused_with_its_field(cli: Cli) -> None:
    for paths in ("in", [1], {"in": 1}):
        harness(cli, {**_ONE, "output": paths})
        done = run(cli, "true")
        assert done.status == 15 and "harness.own: usage.output is not a list of paths" in done.stderr, paths


def test_an_agent_that_may_begin_no_turn_is_not_called_restarted(cli: Cli) -> None:
    harness(cli, _ONE)
    assert run(cli, 'echo \'{"type":"done","in":60,"hit":0,"out":0}\'').status == 0
    cli.ok("set", "budget", "10", "--for", "ann", agent="lea")
    why = "the budget of ann: 60 of 10 tokens are used; raise it: teams set budget TOKENS --for ann"
    for words, done in [
        (("send-message", "ann", "hello"), "sent to ann\n"),
        (("interject", "ann", "stop"), "sent to ann\n"),
        (("restart-agent", "ann"), "ann: to be restarted, "),
    ]:
        said = cli(*words, agent="lea").stdout
        assert done in said and f"ann begins no turn now: {why}\n" in said, said
        assert cli.ok(*words, agent="lea")["readLater"] == {"ann": why}
    assert session(cli, "ann").turns == 1
    cli.ok("set", "budget", "1000", "--for", "ann", agent="lea")
    until(lambda: session(cli, "ann").turns == 2)
    assert "readLater" not in cli.ok("interject", "ann", "go on", agent="lea")
