"""Resuming agents that are done, and the guard against agents that resume each other for ever."""

from __future__ import annotations

import json

import pytest

from tests.support.agents import (
    BUSY,
    NEEDS_PROC,
    agent_row,
    at_work,
    detach,
    ended,
    go,
    keepers,
    lines,
    outputs_to,
    place,
    run_agent,
    session,
    statuses,
    unread,
)
from tests.support.cli import Cli
from tests.support.waits import until

pytestmark = NEEDS_PROC


def test_mail_at_the_last_moment_still_wakes(cli: Cli) -> None:
    at_work(cli, "zoe", f"echo turn >>$D/turns; cat >>$D/given; test $TEAMS_RESUME || {{ $T read-messages; {BUSY} }}")
    cli.ok("send-message", "zoe", "one", agent="bob")
    cli.ok("send-message", "zoe", "two", agent="mia")
    go(cli)
    assert ended(cli, "zoe").turns == 2
    given = json.loads((place(cli) / "given").read_text().removeprefix("[]"))
    assert [(m["from"], m["message"]) for m in given] == [("bob", "one"), ("mia", "two")]  # one batch, in order
    assert len(outputs_to(cli, "lea")) == 1


def test_a_later_turn_leaves_the_result(cli: Cli) -> None:
    """An output from an earlier turn is still in `recall` after later turns, and the caller is told so."""
    at_work(cli, "zoe", f"test $TEAMS_RESUME && {{ echo ok; exit; }}; {BUSY} echo the result")
    cli.ok("send-message", "zoe", "one", agent="bob")
    go(cli)
    ended(cli, "zoe")
    more = "[Its earlier turns said more: teams recall zoe --output]"
    assert outputs_to(cli, "lea") == [("zoe", f"ok\n{more}")]
    cli.ok("send-message", "zoe", "two", agent="bob")
    ended(cli, "zoe", 2)
    recalled = cli.ok("recall", "zoe", "--output")["agents"][0]
    assert (recalled["earlier"], recalled["output"]) == (["the result\n", "ok\n"], "ok\n")


def test_what_wakes_an_idle_agent(cli: Cli) -> None:
    """A message or a broadcast resumes an idle agent in its own directory; an announcement does not."""
    prompt = 'echo "$TEAMS_RESUME $(pwd) $(cmp $TEAMS_MESSAGES_FILE /dev/stdin && echo same)" >>$D/turns'
    detach(cli, "zoe", f"test $TEAMS_RESUME && {prompt} || true")
    ended(cli, "zoe")
    cli.ok("announce", "nothing to see", agent="bob")
    assert session(cli, "zoe").generation == 1 and keepers(cli.root) == []
    cli.ok("send-message", "zoe", "wake up", agent="bob")
    assert ended(cli, "zoe", 2).turns == 2
    cli.ok("broadcast-message", "all up", agent="mia")
    assert ended(cli, "zoe", 3).turns == 3
    assert lines(cli, "turns") == [f"1 {place(cli)} same"] * 2
    assert [sender for sender, _ in outputs_to(cli, "lea")] == ["zoe"]  # a turn that prints nothing tells nobody


def test_what_an_agent_is_told_wakes_it_too(cli: Cli) -> None:
    """A decision on its plan, a request to shut down or an assigned task resumes an idle agent."""
    detach(cli, "zoe", "test $TEAMS_RESUME && { cat; echo; } >>$D/mail || $T propose-plan first")
    ended(cli, "zoe")
    cli.ok("reject-plan", "1", "too short", agent="lea")
    ended(cli, "zoe", 2)
    cli.ok("request-shutdown", "zoe", agent="lea")
    ended(cli, "zoe", 3)
    cli.ok("create-task", "walk", agent="lea")
    cli.ok("update-task", "1", "--owner", "zoe", agent="human")
    ended(cli, "zoe", 4)
    told = [message["message"] for line in lines(cli, "mail") for message in json.loads(line)]
    assert ["plan-1" in told[0], "shutdown-1" in told[1], "task-1" in told[2], len(told)] == [True, True, True, 3]


@pytest.mark.slow
def test_a_session_has_one_client_at_a_time(cli: Cli) -> None:
    """An agent gets each of many messages once and in order, and no two of its turns overlap."""
    prompt = (
        "mkdir $D/lock || echo twice >>$D/bad; cat >>$D/given; echo >>$D/given; sleep 0.05; rmdir $D/lock; "
        "test $TEAMS_RESUME || until test -e $D/go; do sleep 0.02; done"
    )
    detach(cli, "zoe", prompt)
    writers = [cli.start("send-message", "zoe", f"m{n}", agent=("bob", "mia")[n % 2]) for n in range(4)]
    assert statuses(writers) == [0] * 4
    assert agent_row(cli, "zoe")["queueDepth"] == 4
    go(cli)
    writers = [cli.start("send-message", "zoe", f"m{n}", agent=("bob", "mia")[n % 2]) for n in range(4, 10)]
    assert statuses(writers) == [0] * 6
    until(lambda: unread(cli, "zoe") == [] and ended(cli, "zoe"))
    batches = [json.loads(line) for line in lines(cli, "given")]
    numbers = [message["number"] for batch in batches for message in batch]
    assert len(set(numbers)) == 10 and numbers == sorted(numbers)
    assert lines(cli, "bad") == []


@pytest.mark.slow
def test_the_loop_guard_pauses_both_and_tells_the_leader(cli: Cli) -> None:
    """The guard pauses two agents that keep answering each other; interjecting lets one of them go on."""
    cli.ok("set", "max_resumes_per_hour", "2", agent="lea")
    # A message of two lines, because the answer to a command shows a short one, which then resumes nobody.
    cli.more["P"] = 'test -e $D/quiet || printf "and\\nyou?" | $T send-message $OTHER -'
    cli.more["B"] = 'OTHER=a; export OTHER; eval "$P"'
    prompt = 'test $TEAMS_RESUME || $T spawn "$B" --agent-id b; OTHER=b; export OTHER; eval "$P"'
    done = run_agent(cli, prompt, "--agent-id", "a")
    until(lambda: {session(cli, name).state for name in "ab"} == {"paused"})
    assert {row["outcome"] for row in done["agents"]} == {"completed"}
    told = [m["message"] for m in cli.ok("read-messages", agent="lea") if m["from"] == "system"]
    assert len(told) == 1 and "no task made progress" in told[0]
    assert told[0].startswith(("a and b are paused, ", "b and a are paused, "))  # whichever is resumed too often first
    turns = session(cli, "a").turns
    cli.ok("send-message", "a", "still there?", agent="bob")
    assert session(cli, "a").state == "paused" and agent_row(cli, "a")["queueDepth"] >= 1
    (place(cli) / "quiet").touch()
    cli.ok("interject", "a", "go on, quietly", agent="lea")
    assert (ended(cli, "a", session(cli, "a").generation).turns, session(cli, "a").state) == (turns + 1, "done")
    assert unread(cli, "a") == []
