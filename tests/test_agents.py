"""Agents as processes: started, listened to, resumed, interrupted and stopped through the shipped command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from teams_cli import launching, membership, sessions, teams
from teams_cli.attention import HINT
from teams_cli.caller import Caller
from teams_cli.sessions import SESSION
from teams_cli.store.contract import update
from teams_cli.teams import TEAM
from tests.agents import (
    end_all,
    ended,
    keepers,
    lines,
    marked,
    outputs_to,
    place,
    session,
    team_of_agents,
    unread,
    until,
    with_client,
)
from tests.cli import ALPHA, COMMAND, TIMEOUT, Cli, add_tasks

pytestmark = [
    pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found through /proc"),
    pytest.mark.usefixtures("each_engine_in_time"),
]
BUSY = "touch $D/ready; until test -e $D/go; do sleep 0.02; done; "


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A team of the leader lea and the members bob and mia; afterwards nothing of it runs."""
    made = team_of_agents(tmp_path, "bob", "mia")
    yield made
    end_all(made.root)


def run_agent(cli: Cli, prompt: str, *words: str, agent: str = "lea", status: int = 0) -> dict[str, Any]:
    """Run an agent as the leader until all is done."""
    answer = cli("run-agent", prompt, "--cwd", str(place(cli)), "--json", *words, agent=agent)
    assert answer.status == status, answer
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def detach(cli: Cli, name: str, prompt: str, *words: str) -> None:
    """Start an agent as the leader, and go on."""
    told = cli.ok("run-agent", prompt, "--agent-id", name, "--cwd", str(place(cli)), "--detach", *words, agent="lea")
    assert told["state"] == "starting"


def is_busy(cli: Cli) -> None:
    """Wait until the agent that was given BUSY is at it."""
    until((place(cli) / "ready").exists)


def statuses(started: list[Any]) -> list[int]:
    """The exit statuses of commands that run side by side."""
    for process in started:
        process.communicate(timeout=TIMEOUT)
    return [process.returncode for process in started]


def go(cli: Cli) -> None:
    (place(cli) / "go").touch()


def agent_row(cli: Cli, name: str) -> dict[str, Any]:
    return next(row for row in cli.ok("list-agents")["agents"] if row["name"] == name)


# Attention


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


# Spawning


def test_spawn_returns_at_once_and_the_output_comes_as_a_message(cli: Cli) -> None:
    """It can be written to before it did anything, and what it says is numbered, and may be replied to."""
    started = time.monotonic()
    told = cli.ok("spawn", f"{BUSY} echo made $TEAMS_RESUME; cat", "--cwd", str(place(cli)), agent="bob")
    assert time.monotonic() - started < 5 and not (place(cli) / "go").exists()
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
    resumed = json.loads(first["message"].removeprefix("made 1\n"))
    assert [m["message"] for m in resumed] == ["one more thing"]  # resumed with it before it was done
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
    """The third can't start a fourth: 11, and nothing is registered."""
    third = "$T spawn 'echo four' --json 2>$D/refusal; echo $?"
    second = '$T spawn "$THIRD" --cwd $D --wait'
    cli.more["THIRD"] = third
    cli.more["SECOND"] = second
    assert run_agent(cli, '$T spawn "$SECOND" --cwd $D --wait')["output"] == "11\n"
    assert json.loads(lines(cli, "refusal")[0])["error"]["code"] == "conflict"
    assert [row["name"] for row in cli.ok("recall")["agents"]] == ["lea", "bob", "mia", "agentA", "agentB", "agentC"]
    assert [session(cli, name).depth for name in ("agentA", "agentB", "agentC")] == [1, 2, 3]


def test_a_failure_is_told_as_one(cli: Cli) -> None:
    """With the exit status and the end of what was said; also when a signal ended it."""
    detach(cli, "x", "echo out; echo 'no such key' >&2; exit 7")
    detach(cli, "y", "kill -9 $$")
    assert (ended(cli, "x").outcome, ended(cli, "y").outcome) == ("failed", "failed")
    assert dict(outputs_to(cli, "lea")) == {
        "x": "Agent x failed: exit status 7: no such key",
        "y": "Agent y failed: ended by signal 9",
    }
    done = run_agent(cli, "echo part; exit 3", status=1)
    assert (done["outcome"], done["exitStatus"], done["failure"]) == ("failed", 3, "exit status 3: part")


def test_spawn_and_wait(cli: Cli) -> None:
    """Prints the output, and leaves nothing unread."""
    answer = cli("spawn", "echo done; exit 0", "--wait", agent="bob")
    assert (answer.status, answer.stdout) == (0, "done\n")
    assert unread(cli, "bob") == [] and cli.ok("read-messages", agent="bob") == []
    failed = cli("spawn", "exit 4", "--wait", agent="bob")
    assert (failed.status, failed.stdout) == (1, "agentB: failed: exit status 4\n")


@pytest.mark.parametrize("end", ["exit 0", "exit 1", "kill -9 $$"])
def test_the_output_reaches_a_caller_that_is_gone(cli: Cli, end: str) -> None:
    """It has finished and is resumed with it, or has failed or was killed, and finds it in its inbox."""
    child = "until test -e $D/go; do sleep 0.02; done; echo late"
    cli.more["CHILD"] = child
    detach(cli, "zoe", f'cat >>$D/given; test $TEAMS_RESUME || {{ $T spawn "$CHILD" --cwd $D >&2; {end}; }}')
    until(lambda: sessions.find(cli.store(), ALPHA, "agentA"))
    until(lambda: session(cli, "zoe").state != "running")
    go(cli)
    ended(cli, "agentA")
    zoe = ended(cli, "zoe")
    assert outputs_to(cli, "zoe") == [("agentA", "late\n")]
    if end == "exit 0":
        assert zoe.turns == 2 and '"late\\n"' in lines(cli, "given")[0]
    else:
        assert zoe.outcome == "failed" and len(unread(cli, "zoe")) == 1


# Waiting for everything


def test_run_agent_waits_for_all_and_sums_up(cli: Cli) -> None:
    """A spawns B, B spawns C and writes to A when that is done: they end in the order C, B, A, main."""
    cli.more["C"] = "$T announce deepest >$D/said; sleep 0.3; echo from C"
    cli.more["B"] = 'test $TEAMS_RESUME || $T spawn "$C" --agent-id c >&2; echo from B'
    script = 'test $TEAMS_RESUME || { $T announce first >&2; $T spawn "$B" --agent-id b >&2; }; echo from A'
    answer = cli("run-agent", script, "--agent-id", "a", "--description", "the first", agent="lea")
    assert answer.status == 0
    output, summary = answer.stdout.split("\n\n")
    assert output == "from A"
    assert summary.splitlines()[:2] == ["a: completed after 2 turn(s) (the first)", "  → first"]
    assert [line.split(":")[0] for line in summary.splitlines()] == ["a", "  → first", "b", "c", "  → deepest"]
    events = [event for event in cli.ok("history") if event["what"] == "session completed"]
    assert [event["actor"] for event in events] == ["c", "b", "a"]
    assert cli.ok("read-messages", agent="lea") == [] and marked(cli.root) == {} and keepers(cli.root) == []


def test_interrupting_run_agent_leaves_the_agent_at_work(cli: Cli) -> None:
    """It is said so, with how to wait for it and how to end it."""
    waiting = cli.start("run-agent", BUSY, "--agent-id", "zoe", "--cwd", str(place(cli)), agent="lea")
    is_busy(cli)
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate(timeout=TIMEOUT)
    assert waiting.returncode == 130 and b"teams wait --agent zoe" in said and b"teams stop-agent zoe" in said
    go(cli)
    assert ended(cli, "zoe").outcome == "completed"


def test_detach_and_collect(cli: Cli) -> None:
    detach(cli, "zoe", f"{BUSY} echo result")
    is_busy(cli)
    assert cli("wait", "--agent", "zoe", "--timeout", "0.1", agent="lea").status == 14
    assert cli("before-complete", agent="lea").status == 11
    go(cli)
    found = cli.ok("wait", "--agent", "zoe", agent="lea")
    assert found == {"agent": "zoe", "outcome": "completed", "output": "result\n", "failure": None, "exitStatus": 0}
    assert unread(cli, "lea") == []
    assert cli.ok("before-complete", agent="lea") == {"agent": "lea", "mayFinish": True}


def test_before_complete_says_why_not(cli: Cli) -> None:
    cli.ok("spawn", f"{BUSY} true", "--cwd", str(place(cli)), agent="bob")
    cli.ok("send-message", "bob", "look", agent="mia")
    refused = cli("before-complete", "--json", agent="bob")
    assert (refused.status, refused.error["code"]) == (11, "not_finished")
    assert "agentA is still at work for you; unread messages: msg-1" in refused.error["message"]


# Resuming


def test_mail_at_the_last_moment_still_wakes(cli: Cli) -> None:
    """It comes after the agent last looked and before its process ends."""
    detach(cli, "zoe", f"echo turn >>$D/turns; cat >>$D/given; test $TEAMS_RESUME || {{ $T read-messages; {BUSY} }}")
    is_busy(cli)
    cli.ok("send-message", "zoe", "one", agent="bob")
    cli.ok("send-message", "zoe", "two", agent="mia")
    go(cli)
    assert ended(cli, "zoe").turns == 2
    given = json.loads((place(cli) / "given").read_text().removeprefix("[]"))
    assert [(m["from"], m["message"]) for m in given] == [("bob", "one"), ("mia", "two")]  # one batch, in order
    assert len(outputs_to(cli, "lea")) == 1


def test_what_wakes_an_idle_agent(cli: Cli) -> None:
    """A message and a broadcast do, announcing does not; it works in its own directory, told that it is resumed."""
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
    assert [sender for sender, _ in outputs_to(cli, "lea")] == ["zoe"] * 3


def test_what_an_agent_is_told_wakes_it_too(cli: Cli) -> None:
    """The decision on its plan, a request to shut down, a task that it is given; not only what others write."""
    detach(cli, "zoe", "test $TEAMS_RESUME && { cat; echo; } >>$D/mail || $T propose-plan first")
    ended(cli, "zoe")
    cli.ok("reject-plan", "1", "--feedback", "too short", agent="lea")
    ended(cli, "zoe", 2)
    cli.ok("request-shutdown", "zoe", agent="lea")
    ended(cli, "zoe", 3)
    cli.ok("create-task", "walk", agent="lea")
    cli.ok("update-task", "1", "--owner", "zoe", agent="human")
    ended(cli, "zoe", 4)
    told = [message["message"] for line in lines(cli, "mail") for message in json.loads(line)]
    assert ["plan-1" in told[0], "shutdown-1" in told[1], "task-1" in told[2], len(told)] == [True, True, True, 3]


def test_a_task_taken_in_the_name_of_an_agent_that_ended_is_kept(cli: Cli) -> None:
    """Its process is gone, but whoever acts under its name is there."""
    add_tasks(cli, "a", "b")
    detach(cli, "zoe", "true")
    ended(cli, "zoe")
    cli.ok("claim-task", "1", agent="zoe")
    assert [task["owner"] for task in cli.ok("get-tasks", "--status", "in_progress")] == ["zoe"]
    assert cli.ok("update-task", "1", "--status", "completed", agent="zoe")["status"] == "completed"


def test_a_session_has_one_client_at_a_time(cli: Cli) -> None:
    """However many write to it at once: each message is delivered once, in order, and no two turns overlap."""
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


def test_two_that_write_to_each_other_while_finishing_end(cli: Cli) -> None:
    """Each writes once more when it is resumed the first time; then both are done, and nothing is unread."""
    cli.more["P"] = "echo x >>$D/$TEAMS_AGENT_ID; test $(wc -l <$D/$TEAMS_AGENT_ID) -gt 2 || $T send-message $OTHER hi"
    cli.more["B"] = 'OTHER=a; export OTHER; eval "$P"'
    done = run_agent(
        cli, 'test $TEAMS_RESUME || $T spawn "$B" --agent-id b; OTHER=b; export OTHER; eval "$P"', "--agent-id", "a"
    )
    assert [row["outcome"] for row in done["agents"]] == ["completed"] * 2
    assert unread(cli, "a") == unread(cli, "b") == []
    assert len(lines(cli, "a")) >= 2 and len(lines(cli, "b")) >= 2 and keepers(cli.root) == []


def test_the_loop_guard_pauses_both_and_tells_the_leader(cli: Cli) -> None:
    """Two that answer each other for ever are stopped by it; interjecting lets one go on."""
    cli.ok("set", "max_resumes_per_hour", "2", agent="lea")
    cli.more["P"] = 'test -e $D/quiet || $T send-message $OTHER "and you?"'
    cli.more["B"] = 'OTHER=a; export OTHER; eval "$P"'
    done = run_agent(
        cli, 'test $TEAMS_RESUME || $T spawn "$B" --agent-id b; OTHER=b; export OTHER; eval "$P"', "--agent-id", "a"
    )
    until(lambda: {session(cli, name).state for name in "ab"} == {"paused"})
    assert {row["outcome"] for row in done["agents"]} == {"completed"}
    told = [m["message"] for m in cli.ok("read-messages", agent="lea") if m["from"] == "system"]
    assert len(told) == 1 and " are paused: " in told[0] and "no task got on" in told[0]
    turns = session(cli, "a").turns
    cli.ok("send-message", "a", "still there?", agent="bob")
    assert session(cli, "a").state == "paused" and agent_row(cli, "a")["queueDepth"] >= 1
    (place(cli) / "quiet").touch()
    cli.ok("interject", "a", "go on, quietly", agent="lea")
    assert (ended(cli, "a", session(cli, "a").generation).turns, session(cli, "a").state) == (turns + 1, "done")
    assert unread(cli, "a") == []


# Interrupting and stopping


def test_interject_ends_the_turn_and_all_it_left(cli: Cli) -> None:
    """Also a grandchild that ignores TERM and one in a session of its own; the text is the next turn."""
    leftovers = (
        "sh -c 'trap \"\" INT TERM; while :; do sleep 0.1; done' & "
        "setsid sh -c 'echo $$ >$D/own; while :; do sleep 0.1; done' & echo partial; "
    )
    detach(cli, "zoe", f"test $TEAMS_RESUME && cat >>$D/given || {{ {leftovers} {BUSY} }}")
    is_busy(cli)
    until(lambda: lines(cli, "own"))
    until(lambda: len(marked(cli.root)) > 3)
    cli.ok("interject", "zoe", "stop that", agent="lea")
    assert ended(cli, "zoe").turns == 2
    assert marked(cli.root) == {}
    assert [m["message"] for m in json.loads((place(cli) / "given").read_text())] == ["stop that"]
    assert unread(cli, "zoe") == []


def test_a_second_interjection_queues(cli: Cli) -> None:
    """While the first is under way (the client takes its time to end), the second neither gets lost nor cuts in."""
    detach(
        cli, "zoe", f"trap 'sleep 0.7; exit 130' INT; test $TEAMS_RESUME && {{ cat; echo; }} >>$D/given || {{ {BUSY} }}"
    )
    is_busy(cli)
    cli.ok("interject", "zoe", "first", agent="lea")
    cli.ok("interject", "zoe", "second", agent="human")
    ended(cli, "zoe")
    given = [m["message"] for line in lines(cli, "given") for m in json.loads(line)]
    assert given == ["first", "second"]


def test_interjecting_one_that_read_it_itself(cli: Cli) -> None:
    """It is its next turn all the same, once; and the session is not interrupted for ever after."""
    detach(cli, "zoe", f"test $TEAMS_RESUME && cat >>$D/given || {{ {BUSY} }}")
    is_busy(cli)
    update(cli.store(), ALPHA, SESSION, "zoe", lambda s: s)
    cli.ok("send-message", "zoe", "read by itself", agent="lea")
    cli.ok("attend", agent="zoe")
    update(cli.store(), ALPHA, SESSION, "zoe", lambda s: s.having(interjected=1))
    assert ended(cli, "zoe").turns == 2
    assert json.loads((place(cli) / "given").read_text())[0]["message"] == "read by itself"
    cli.ok("send-message", "zoe", "again", agent="bob")
    assert ended(cli, "zoe", 2).outcome == "completed" and session(cli, "zoe").turns == 3


def test_interjecting_an_idle_agent_resumes_it(cli: Cli) -> None:
    run_agent(cli, "cat", "--agent-id", "zoe")
    cli.ok("interject", "zoe", "one more", agent="human")
    assert ended(cli, "zoe", 2).turns == 2
    assert cli.refused("interject", "bob", "you", agent="lea") == (11, "wrong_state")


def test_stopping(cli: Cli) -> None:
    """With all that it started; its caller is told; and nothing resumes it."""
    detach(cli, "zoe", f"sleep 100 & {BUSY}")
    is_busy(cli)
    answer = cli("stop-agent", "zoe", agent="lea")
    assert (answer.status, answer.stdout) == (0, "zoe: stopped: lea stopped it\n")
    assert marked(cli.root) == {} and agent_row(cli, "zoe")["state"] == "stopped"
    assert outputs_to(cli, "lea") == [("zoe", "Agent zoe was stopped: lea stopped it")]
    cli.ok("send-message", "zoe", "hello?", agent="bob")
    assert session(cli, "zoe").generation == 1 and cli("stop-agent", "zoe", agent="lea").status == 0
    assert cli.refused("interject", "zoe", "hello?", agent="lea") == (11, "wrong_state")
    add_tasks(cli, "a")
    assert cli.refused("update-task", "1", "--owner", "zoe", agent="human") == (11, "wrong_state")
    assert cli.refused("stop-agent", "bob", agent="lea") == (10, "agent_not_found")
    assert cli.refused("stop-agent", "zoe", agent="bob") == (13, "not_allowed")


def test_pausing_an_agent_that_works(cli: Cli) -> None:
    """It rests when its turn is over; its mail waits, and is the next turn when it is resumed."""
    detach(cli, "zoe", BUSY)
    is_busy(cli)
    asked = {"agent": "zoe", "state": "running", "paused": True}
    assert cli.ok("pause-agent", "zoe", agent="lea") == asked == cli.ok("pause-agent", "zoe", agent="human")
    cli.ok("send-message", "zoe", "touch $D/later", agent="bob")
    go(cli)
    assert ended(cli, "zoe").state == "paused" and len(unread(cli, "zoe")) == 1
    cli.ok("send-message", "zoe", "and more", agent="bob")
    assert session(cli, "zoe").state == "paused" and session(cli, "zoe").turns == 1
    assert cli("resume-agent", "zoe", agent="lea").status == 0
    assert ended(cli, "zoe", 2).state == "done" and session(cli, "zoe").turns == 2 and unread(cli, "zoe") == []
    told = [entry["what"] for entry in cli.ok("history") if entry["what"].startswith("agent ")]
    assert told.count("agent paused") == told.count("agent resumed") == 1


def test_pausing_an_idle_agent(cli: Cli) -> None:
    """At once; resuming one without mail starts nothing; one that is resumed before it rested works on."""
    detach(cli, "zoe", "true")
    ended(cli, "zoe")
    assert cli("pause-agent", "zoe", agent="human").stdout == "zoe: paused\n"
    cli.ok("send-message", "zoe", "hello?", agent="bob")
    assert session(cli, "zoe").generation == 1
    cli.ok("interject", "zoe", "true", agent="lea")
    assert ended(cli, "zoe", 2).state == "done"
    assert cli("pause-agent", "zoe", agent="lea").status == cli("resume-agent", "zoe", agent="lea").status == 0
    assert (session(cli, "zoe").state, session(cli, "zoe").generation) == ("done", 2)
    detach(cli, "yan", BUSY)
    is_busy(cli)
    assert cli("pause-agent", "yan", agent="lea").stdout == "yan: will pause when its turn is over\n"
    assert cli("resume-agent", "yan", agent="lea").stdout == "yan: goes on (running)\n"
    go(cli)
    assert ended(cli, "yan").state == "done"


def test_who_may_pause_and_whom(cli: Cli) -> None:
    detach(cli, "zoe", BUSY)
    is_busy(cli)
    until(lambda: session(cli, "zoe").turns, "the keeper has noted the turn")
    for command in ("pause-agent", "resume-agent"):
        assert cli.refused(command, "zoe", agent="bob") == (13, "not_allowed")
        assert cli.refused(command, "bob", agent="lea") == (10, "agent_not_found")
    cli.ok("pause-agent", "zoe", agent="lea")
    cli("stop-agent", "zoe", agent="lea")
    for command in ("pause-agent", "resume-agent"):
        assert cli.refused(command, "zoe", agent="lea") == (11, "wrong_state")
    assert ended(cli, "zoe").outcome == "stopped"


def test_stopping_one_that_just_ended_by_itself(cli: Cli) -> None:
    """It had completed when it was asked, but does not go on any more, and is stopped when that is asked again."""
    detach(cli, "zoe", "true")
    ended(cli, "zoe")
    update(cli.store(), ALPHA, SESSION, "zoe", lambda found: found.having(stop_asked="lea"))
    cli.ok("send-message", "zoe", "hello?", agent="bob")
    assert (session(cli, "zoe").generation, session(cli, "zoe").outcome) == (1, "completed")
    cli.ok("stop-agent", "zoe", agent="lea")
    assert (session(cli, "zoe").outcome, agent_row(cli, "zoe")["state"]) == ("stopped", "stopped")


@pytest.mark.parametrize(("how", "then"), [("leave-team", "true"), ("approve-shutdown", "sleep 60")])
def test_who_leaves_or_agrees_to_shut_down_is_stopped(cli: Cli, how: str, then: str) -> None:
    """Also when its client would go on; and not before it got its answer."""
    detach(cli, "zoe", f"{BUSY} $T {how} >$D/answer; {then}")
    is_busy(cli)
    if how == "approve-shutdown":
        cli.ok("request-shutdown", "zoe", agent="lea")
    go(cli)
    done = ended(cli, "zoe")
    reason = "it left the team" if how == "leave-team" else "it was shut down (shutdown-1)"
    assert (done.outcome, done.failure) == ("stopped", reason)
    assert lines(cli, "answer") and marked(cli.root) == {}


def test_a_team_is_not_closed_while_an_agent_runs(cli: Cli) -> None:
    """Unless forced; then the agent is stopped."""
    detach(cli, "zoe", BUSY)
    is_busy(cli)
    refused = cli("close-team", "--json", agent="lea")
    assert (refused.status, refused.error["message"]) == (11, "still running: zoe")
    cli.ok("close-team", "--force", agent="lea")
    assert (ended(cli, "zoe").failure, marked(cli.root)) == ("the team was closed", {})


# What an agent is given


def test_nothing_of_another_identity_is_inherited(cli: Cli, tmp_path: Path) -> None:
    """Neither from whoever starts it nor from whoever wakes it; keys and the rest of the environment are."""
    foreign = {
        "TEAMS_AGENT_NAME": "Bob the first",
        "TEAMS_AGENT_TYPE": "leader",
        "TEAMS_TOKEN": "bobs",
        "TEAMS_RUN_ID": "bobs-run",
        "TEAMS_RESUME": "1",
        "TEAMS_MESSAGES_FILE": "/bobs",
        "OPENCODE_AGENT_ID": "bob",
        "OPENCODE_AGENT_TYPE": "leader",
        "OPENCODE_SESSION": "bobs",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "bobs",
        "CODEX_THREAD_ID": "bobs",
        "CODEX_SANDBOX": "bobs",
        "GEMINI_CLI": "1",
        "GIT_DIR": "/bobs/.git",
    }
    kept = {"ANTHROPIC_API_KEY": "key", "CODEX_API_KEY": "key", "PLAIN": "x", "PYTHONPATH": "/some/where"}
    for name in ("shell", "own"):
        config = {"own": {"start": ["sh", "-c", "{prompt}"], "resume": ["sh", "-c", "{prompt}"], "input": "messages"}}
        (cli.root / "config.json").write_text(json.dumps({"harness": config}))
        prompt = f"env -0 >$D/{name}-$TEAMS_RESUME"
        answer = cli("spawn", prompt, "--wait", "--harness", name, "--agent-id", name, agent="bob", **foreign, **kept)
        assert answer.status == 0
        assert cli("send-message", name, "hi", agent="mia", **foreign, **kept).status == 0
        ended(cli, name, 2)
        for turn in ("", "1"):
            said = (place(cli) / f"{name}-{turn}").read_bytes().split(b"\0")
            found = dict(entry.decode().split("=", 1) for entry in said if entry)
            assert {key: found.get(key) for key in kept} == kept
            assert not {value for value in found.values() if "bob" in value.lower()} - {"bob"}
            ours = {key: value for key, value in found.items() if key.startswith(("TEAMS_", "OPENCODE_"))}
            mark = ours.pop("TEAMS_RUN_ID")
            assert mark.startswith(f"{ALPHA}-") and f".{name}." in mark
            again = {"TEAMS_RESUME": "1", "TEAMS_MESSAGES_FILE": ours.get("TEAMS_MESSAGES_FILE")} if turn else {}
            assert ours == {
                **cli.store().variables,
                "TEAMS_TEAM": ALPHA,
                "TEAMS_AGENT_ID": name,
                "TEAMS_AGENT_NAME": name,
                "TEAMS_AGENT_TYPE": "team-member",
                "OPENCODE_TEAM_NAME": ALPHA,
                "OPENCODE_AGENT_ID": name,
                "OPENCODE_AGENT_NAME": name,
                "OPENCODE_AGENT_TYPE": "team-member",
                **again,
            }
            assert not [key for key in found if key.startswith(("CLAUDE", "GEMINI", "GIT_D")) or key == "CODEX_SANDBOX"]


def test_in_a_secure_team_each_agent_has_its_own_token(tmp_path: Path) -> None:
    """Also when it is resumed; no token is in a file."""
    cli = team_of_agents(tmp_path)
    answer = cli("spawn-team", "safe", "--secure", "--json", agent="boss", team="safe").json
    prompt = "$T announce here >&2 && echo $TEAMS_TOKEN >>$D/tokens"
    words = ("run-agent", prompt, "--agent-id", "zoe", "--json")
    done = cli(*words, agent="boss", team="safe", TEAMS_TOKEN=answer["token"])
    assert done.status == 0, done
    sent = cli("send-message", "zoe", "hi", agent="boss", team="safe", TEAMS_TOKEN=answer["token"])
    assert sent.status == 0
    store = cli.store()
    until(lambda: len(lines(cli, "tokens")) == 2 and sessions.find(store, "safe", "zoe").ended)  # type: ignore[union-attr]
    tokens = lines(cli, "tokens")
    assert len({*tokens, answer["token"]}) == 3
    kept = "".join(path.read_text(errors="replace") for path in cli.root.rglob("*") if path.is_file())
    assert not [token for token in (*tokens, answer["token"]) if token in kept]
    end_all(cli.root)


def test_a_type_that_is_a_role_is_one(cli: Cli) -> None:
    run_agent(cli, "true", "--type", "task-manager", "--agent-id", "tom")
    run_agent(cli, "true", "--type", "security-review", "--agent-id", "sue")
    rows = {row["name"]: (row["role"], row["agentType"]) for row in cli.ok("list-agents")["agents"]}
    assert rows["tom"] == ("task-manager", None) and rows["sue"] == ("team-member", "security-review")


# Worktrees


@pytest.fixture
def checkout(cli: Cli) -> Path:
    """A repository with one commit, in the directory of the agents."""
    top = place(cli)
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(top), *words], check=True, timeout=TIMEOUT)
    return top


def test_a_worktree_of_ones_own(cli: Cli, checkout: Path) -> None:
    """On its own branch, shown to others, kept at the end; and one from another time is left alone."""
    done = run_agent(cli, "pwd; git rev-parse --abbrev-ref HEAD; echo work >file", "--worktree")
    path = f"{cli.root}/worktrees/{ALPHA}/agentA"
    assert done["output"] == f"{path}\nteams/{ALPHA}/agentA\n"
    assert Path(path, "file").read_text() == "work\n" and not (checkout / "file").exists()
    assert agent_row(cli, "agentA")["session"]["worktree"] == path
    assert cli.ok("attend", agent="bob")["state"]["output"]["agents"][-1]["worktree"] == path
    shutil.rmtree(path)
    os.makedirs(f"{cli.root}/worktrees/{ALPHA}/agentB")
    words = ("run-agent", "true", "--worktree", "--cwd", str(checkout))
    assert cli.refused(*words, agent="lea") == (11, "already_exists")
    os.rmdir(f"{cli.root}/worktrees/{ALPHA}/agentB")
    subprocess.run(["git", "-C", str(checkout), "branch", f"teams/{ALPHA}/agentB"], check=True, timeout=TIMEOUT)
    assert cli.refused(*words, agent="lea") == (11, "already_exists")


def test_no_worktree_outside_a_repository(cli: Cli) -> None:
    words = ("run-agent", "true", "--worktree", "--cwd", str(place(cli)))
    assert cli.refused(*words, agent="lea") == (2, "invalid_value")
    subprocess.run(["git", "-C", str(place(cli)), "init", "-q"], check=True, timeout=TIMEOUT)
    assert cli.refused(*words, agent="lea") == (2, "invalid_value")  # nothing was committed yet


# Recalling


def test_recalling_agents_of_earlier_runs(cli: Cli) -> None:
    run_agent(cli, "$T announce one >&2; $T announce two >&2; echo out", "--agent-id", "zoe")
    run_agent(cli, "exit 2", "--agent-id", "yan", status=1)
    rows = {row["name"]: row for row in cli.ok("recall")["agents"]}
    assert [entry["status"] for entry in rows["zoe"]["statusHistory"]] == ["one", "two"]
    assert (rows["zoe"]["state"], rows["yan"]["state"], rows["bob"]["state"]) == ("completed", "failed", None)
    assert "output" not in rows["zoe"]
    [zoe] = cli.ok("recall", "zoe", "--output")["agents"]
    [yan] = cli.ok("recall", "yan", "--output")["agents"]
    assert (zoe["output"], yan["output"], yan["failure"]) == ("out\n", None, "exit status 2")
    assert cli.refused("recall", "nobody") == (10, "agent_not_found")


# A client that is no shell


def test_a_client_with_json_lines_and_its_own_session_id(cli: Cli) -> None:
    """Declared in the user's configuration; resumed by the id that it printed, the batch quoted as its next turn."""
    with_client(cli)
    prompt = (
        "say first\nrun $T send-message lea hello\nsay 'odd' \"chars\" $HOME `x` \\ {prompt} {agent} ümläut \U0001f600"
    )
    done = run_agent(cli, prompt, "--harness", "scripted", "--agent-id", "zoe")
    assert done["output"] == prompt.splitlines()[2].removeprefix("say ")
    assert [m["from"] for m in cli.ok("read-messages", agent="lea")] == ["zoe"]
    cli.ok("send-message", "zoe", "say more\nsleep 0", agent="bob")
    zoe = ended(cli, "zoe", 2)
    assert zoe.session_id.startswith("made-") and outputs_to(cli, "lea")[1:] == [("zoe", "more")]
    turns = [json.loads(line) for line in lines(cli, zoe.session_id)]
    assert turns == [prompt, '[From agent "bob"]:\n| say more\n| sleep 0\n(answer with: teams reply msg-3 TEXT)']
    detach(cli, "yan", "fail the model is gone", "--harness", "scripted")
    assert ended(cli, "yan").outcome == "failed"


def test_a_client_that_may_have_no_hooks_is_told_in_its_first_prompt_who_it_is(cli: Cli) -> None:
    with_client(cli)
    config = json.loads((cli.root / "config.json").read_text())
    config["harness"]["scripted"]["introduced"] = True
    (cli.root / "config.json").write_text(json.dumps(config))
    cli.ok("announce", "the parser", agent="bob")
    run_agent(cli, "say first", "--harness", "scripted", "--agent-id", "zoe")
    cli.ok("send-message", "zoe", "say more", agent="bob")
    first, second = (json.loads(line) for line in lines(cli, ended(cli, "zoe", 2).session_id))
    prompt, who, *others = first.splitlines()[:1] + first.splitlines()[2:]
    assert (prompt, "You are zoe in team alpha" in who) == ("say first", True)
    assert "- bob: the parser (idle)" in others and "teams announce" in others[-1]
    assert "You are zoe" not in second


def test_a_client_says_several_megabytes(cli: Cli) -> None:
    """Its session id, at the beginning, and its answer, at the end, are found; a long answer keeps its end."""
    with_client(cli)
    done = run_agent(cli, "chat 3000000\nsay the end\nchat 3000000", "--harness", "scripted", "--agent-id", "zoe")
    assert done["output"] == "the end" and session(cli, "zoe").session_known
    done = run_agent(cli, "yes 0123456789 | head -c 5000000; echo; echo the end", "--agent-id", "yan")
    assert len(done["output"].encode()) <= 1024 * 1024 and done["output"].endswith("\nthe end\n")
    assert done["output"].startswith("[the beginning of 5000009 bytes is in ")
    detach(cli, "xan", "yes 0123456789 | head -c 200000")
    ended(cli, "xan")
    [(_, message)] = outputs_to(cli, "lea")[2:]
    assert len(message) < 65536 and message.endswith("more characters: teams recall xan --output]")
    assert len(cli.ok("recall", "xan", "--output")["agents"][0]["output"]) == 200000


def test_a_client_that_was_killed_before_it_said_its_id_starts_over(cli: Cli) -> None:
    """With the prompt, and what came meanwhile behind it."""
    with_client(cli)
    detach(cli, "zoe", "say one", "--harness", "scripted")
    known = ended(cli, "zoe").session_id
    update(cli.store(), ALPHA, SESSION, "zoe", lambda s: s.having(session_id="lost", session_known=None))
    cli.ok("send-message", "zoe", "say two", agent="bob")
    assert ended(cli, "zoe", 2).session_id == known  # it was in the log of its last turn
    (cli.root / "logs" / ALPHA / "zoe.2.out").unlink()
    update(cli.store(), ALPHA, SESSION, "zoe", lambda s: s.having(session_id="lost", session_known=None))
    cli.ok("send-message", "zoe", "say three", agent="bob")
    again = ended(cli, "zoe", 3).session_id
    assert again not in (known, "lost") and outputs_to(cli, "lea")[-1] == ("zoe", "three")
    assert json.loads(lines(cli, again)[0]).startswith("say one\n\n[From agent")


def test_what_can_not_be_started_is_told(cli: Cli) -> None:
    """A program that is not there, a directory that is gone by now, a prompt longer than a command line may be."""
    config = {"harness": {"absent": {"start": ["no-such-program"], "resume": ["no-such-program"]}}}
    (cli.root / "config.json").write_text(json.dumps(config))
    done = run_agent(cli, "x", "--harness", "absent", status=1)
    said = f"no-such-program can't be started in {place(cli)}: there is no program no-such-program on the PATH"
    assert (done["outcome"], done["failure"]) == ("failed", said)
    long = cli("run-agent", "-", "--json", agent="lea", stdin=b"true " + b"#" * 300_000)
    assert (long.status, "Argument list too long" in json.loads(long.stdout)["failure"]) == (1, True)
    away = place(cli) / "away"
    away.mkdir()
    assert cli("run-agent", "cat", "--agent-id", "zoe", "--cwd", str(away), agent="lea").status == 0
    away.rmdir()
    cli.ok("send-message", "zoe", "hi", agent="bob")
    assert ended(cli, "zoe", 2).failure == f"sh can't be started in {away}: No such file or directory"


# Crashes


def kill(pid: int | None) -> None:
    assert pid
    os.kill(pid, signal.SIGKILL)


def test_a_keeper_that_is_killed(cli: Cli) -> None:
    """Its agent ends with it, also what that left behind; whoever looks first tells the caller, and nobody twice."""
    detach(cli, "zoe", f"echo 'so far' >&2; setsid sleep 100 & {BUSY}")
    is_busy(cli)
    kill(session(cli, "zoe").keeper_pid)
    lookers = [cli.start("list-agents") for _ in range(4)]
    assert statuses(lookers) == [0] * 4
    assert (session(cli, "zoe").state, session(cli, "zoe").outcome) == ("done", "lost")
    assert marked(cli.root) == {}
    assert outputs_to(cli, "lea") == [("zoe", "Agent zoe failed: its keeper was killed: so far")]
    cli.ok("send-message", "zoe", "again", agent="bob")  # it is resumed like any other
    until(lambda: session(cli, "zoe").generation == 2 and session(cli, "zoe").turns == 2)


def test_whoever_waits_for_a_keeper_that_is_killed_is_told(cli: Cli) -> None:
    waiting = cli.start("run-agent", f"{BUSY}", "--agent-id", "zoe", "--cwd", str(place(cli)), "--json", agent="lea")
    is_busy(cli)
    kill(session(cli, "zoe").keeper_pid)
    out, _ = waiting.communicate(timeout=TIMEOUT)
    assert (waiting.returncode, json.loads(out)["outcome"]) == (1, "lost")
    cli.ok("spawn", "sleep 50", "--agent-id", "yan", agent="bob")
    reading = cli.start("read-messages", "--wait", "20", "--json", agent="bob")
    until(lambda: session(cli, "yan").state == "running")
    kill(session(cli, "yan").keeper_pid)
    out, _ = reading.communicate(timeout=TIMEOUT)
    assert json.loads(out)[0]["message"] == "Agent yan failed: its keeper was killed"


def test_a_keeper_that_is_killed_after_the_output_was_written_down(cli: Cli) -> None:
    """Between writing down and telling: it is told as what it was."""
    detach(cli, "zoe", BUSY)
    is_busy(cli)
    update(cli.store(), ALPHA, SESSION, "zoe", lambda s: s.having(outcome="completed"))
    kill(session(cli, "zoe").keeper_pid)
    assert agent_row(cli, "zoe")["session"]["outcome"] == "completed"
    assert outputs_to(cli, "lea") == [("zoe", "Agent zoe completed.")]


def draft(cli: Cli) -> sessions.Session:
    """A session of zoe that is about to start."""
    now = teams.now(cli.store())
    about = {"run": "r", "harness": "shell", "prompt": "x", "description": "x", "directory": "/", "session_id": "s"}
    return sessions.Session(agent="zoe", caller="lea", created_at=now, started_at=now, **about)


def test_a_run_lasts_until_its_keepers_are_gone(cli: Cli) -> None:
    """The last that a keeper does, with its own session done, is to resume others, or itself."""
    store = cli.store()
    found: list[sessions.Session] = []
    with subprocess.Popen(["sleep", "60"]) as keeper:
        done = draft(cli).kept_by(keeper.pid).having(state="done", outcome="completed")
        store.create(ALPHA, SESSION, "zoe", done)
        waiting = Thread(target=lambda: found.extend(launching.wait_for_run(store, ALPHA, "r", lambda _: None)))
        waiting.start()
        time.sleep(0.2)
        update(store, ALPHA, SESSION, "zoe", lambda s: s.having(state="running", generation=2))
        time.sleep(0.2)
        assert waiting.is_alive()
        update(store, ALPHA, SESSION, "zoe", lambda s: s.having(state="done"))
        keeper.kill()
    waiting.join(TIMEOUT)
    assert [session.generation for session in found] == [2]


def test_a_launcher_that_is_killed(cli: Cli) -> None:
    """Before it had a keeper: the session is lost at once; before there was a session: there is no such agent."""
    store = cli.store()
    membership.join(store, ALPHA, Caller("zoe"), started_by="lea")
    dead = subprocess.Popen(["true"])
    held = draft(cli).kept_by(dead.pid)
    dead.wait()
    store.create(ALPHA, SESSION, "zoe", held)
    assert agent_row(cli, "zoe")["session"]["outcome"] == "lost"
    assert outputs_to(cli, "lea") == [("zoe", "Agent zoe failed: its keeper was killed")]
    stray, _ = membership.join(store, ALPHA, Caller("yan"), started_by="lea")
    assert agent_row(cli, "yan")["state"] == "idle"  # it may yet be started
    early = stray.having(joined_at="2020-01-01T00:00:00Z")
    update(store, ALPHA, TEAM, ALPHA, lambda team: team.with_member(early))
    assert "yan" not in [row["name"] for row in cli.ok("list-agents")["agents"]]


def test_a_name_as_long_as_names_may_be(cli: Cli) -> None:
    name = "a" * 64
    run_agent(cli, "exit 1", "--agent-id", name, status=1)
    assert len(outputs_to(cli, "lea")) == 1


def test_an_agent_started_from_the_background_can_be_interrupted(cli: Cli) -> None:
    """A shell has what it starts with `&` ignore the signal; the client does not."""
    cli.more["P"] = "trap 'echo got >$D/int; exit' INT; touch $D/ready; while :; do sleep 0.05; done"
    script = f'{" ".join(COMMAND)} run-agent "$P" --agent-id zoe --detach &'
    subprocess.run(["sh", "-c", script], env=cli.environ("lea"), check=True, timeout=TIMEOUT, capture_output=True)
    is_busy(cli)
    cli.ok("stop-agent", "zoe", agent="lea")
    assert lines(cli, "int") == ["got"]
