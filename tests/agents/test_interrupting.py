"""Interrupting, pausing and stopping agents."""

from __future__ import annotations

import json
import os
import re

import pytest

from teams_cli.agents.sessions import BEGIN_AGAIN, SESSION
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import update
from tests.support.agents import (
    BUSY,
    NEEDS_PROC,
    agent_row,
    at_work,
    detach,
    ended,
    go,
    lines,
    marked,
    outputs_to,
    place,
    run_agent,
    session,
    unread,
    with_client,
)
from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.waits import until

pytestmark = NEEDS_PROC


@pytest.mark.slow
def test_interject_ends_the_turn_and_all_it_left(cli: Cli) -> None:
    """Interjecting ends processes of the turn that ignore TERM or have a session of their own."""
    leftovers = (
        "sh -c 'trap \"\" INT TERM; while :; do sleep 0.1; done' & "
        "setsid sh -c 'echo $$ >$D/own; while :; do sleep 0.1; done' & echo partial; "
    )
    at_work(cli, "zoe", f"test $TEAMS_RESUME && cat >>$D/given || {{ {leftovers} {BUSY} }}")
    until(lambda: lines(cli, "own"))
    until(lambda: len(marked(cli.root)) > 3)
    cli.ok("interject", "zoe", "stop that", agent="lea")
    assert ended(cli, "zoe").turns == 2
    assert marked(cli.root) == {}
    assert [m["message"] for m in json.loads((place(cli) / "given").read_text())] == ["stop that"]
    assert unread(cli, "zoe") == []


@pytest.mark.slow
def test_a_second_interjection_is_given_after_the_first(cli: Cli) -> None:
    slow = "trap 'sleep 0.7; exit 130' INT"
    at_work(cli, "zoe", f"{slow}; test $TEAMS_RESUME && {{ cat; echo; }} >>$D/given || {{ {BUSY} }}")
    cli.ok("interject", "zoe", "first", agent="lea")
    cli.ok("interject", "zoe", "second", agent="human")
    ended(cli, "zoe")
    given = [m["message"] for line in lines(cli, "given") for m in json.loads(line)]
    assert given == ["first", "second"]


def test_interjecting_an_idle_agent_resumes_it(cli: Cli) -> None:
    run_agent(cli, "cat", "--agent-id", "zoe")
    cli.ok("interject", "zoe", "one more", agent="human")
    assert ended(cli, "zoe", 2).turns == 2
    assert cli.refused("interject", "bob", "you", agent="lea") == (11, "wrong_state")


def test_stopping(cli: Cli) -> None:
    at_work(cli, "zoe", f"sleep 100 & {BUSY}")
    answer = cli("stop-agent", "zoe", agent="lea")
    assert (answer.status, answer.stdout) == (0, "zoe: stopped: lea stopped it\n")
    assert marked(cli.root) == {} and agent_row(cli, "zoe")["state"] == "stopped"
    assert outputs_to(cli, "lea") == [("zoe", "Agent zoe was stopped: lea stopped it")]
    cli.ok("send-message", "zoe", "hello?", agent="bob")
    assert ended(cli, "zoe").generation == 1 and cli("stop-agent", "zoe", agent="lea").status == 0
    assert cli.refused("interject", "zoe", "hello?", agent="lea") == (11, "wrong_state")
    add_tasks(cli, "a")
    assert cli.refused("update-task", "1", "--owner", "zoe", agent="human") == (11, "wrong_state")
    assert cli.refused("stop-agent", "bob", agent="lea") == (10, "agent_not_found")
    assert cli("stop-agent", "bob", "--json", agent="lea").error["hint"].endswith(": teams request-shutdown bob")
    hint = cli("stop-agent", "lea", "--json", agent="human").error["hint"]  # who leads can't be asked to shut down
    assert hint.endswith(": teams send-message lea TEXT")
    assert cli.refused("request-shutdown", "zoe", agent="lea") == (11, "wrong_state")
    assert cli.refused("stop-agent", "zoe", agent="bob") == (13, "not_allowed")


def test_pausing_an_agent_that_works(cli: Cli) -> None:
    """A paused agent ends its turn and then rests; when it is resumed, its next turn has the mail that came
    meanwhile.
    """
    at_work(cli, "zoe", BUSY)
    asked = {"agent": "zoe", "state": "running", "paused": True}
    assert cli.ok("pause-agent", "zoe", agent="lea") == asked == cli.ok("pause-agent", "zoe", agent="human")
    cli.ok("send-message", "zoe", "touch $D/later", agent="bob")
    go(cli)
    assert ended(cli, "zoe").state == "paused" and len(unread(cli, "zoe")) == 1
    cli.ok("send-message", "zoe", "and more", agent="bob")
    assert session(cli, "zoe").state == "paused" and session(cli, "zoe").turns == 1
    assert re.search(r"^zoe +team-member +paused +2 ", cli("list-agents", agent="lea").stdout, re.MULTILINE)
    assert cli("resume-agent", "zoe", agent="lea").status == 0
    assert ended(cli, "zoe", 2).state == "done" and session(cli, "zoe").turns == 2 and unread(cli, "zoe") == []
    told = [entry["what"] for entry in cli.ok("history") if entry["what"].startswith("agent ")]
    assert told.count("agent paused") == told.count("agent resumed") == 1


def test_a_team_is_not_closed_while_an_agent_runs(cli: Cli) -> None:
    at_work(cli, "zoe", BUSY)
    refused = cli("close-team", "--json", agent="lea")
    assert (refused.status, refused.error["message"]) == (11, "still running: zoe")
    cli.ok("close-team", "--force", agent="lea")
    assert (ended(cli, "zoe").failure, marked(cli.root)) == ("the team was closed", {})


@pytest.mark.slow
def test_a_restarted_agent_has_its_prompt_and_tasks_in_a_new_session(cli: Cli) -> None:
    with_client(cli)
    add_tasks(cli, "one")
    prompt = "run $T claim-task 1\nsay done"
    run_agent(cli, prompt, "--harness", "scripted", "--agent-id", "ann", agent="lea")
    before = session(cli, "ann")
    cli.ok("share", "api", "GET /things", agent="lea")
    cli.ok("restart-agent", "ann", "--fresh", agent="lea")
    after = until(lambda: (s := session(cli, "ann")).turns == 2 and s.ended and s)
    assert after.session_id != before.session_id
    given = (place(cli) / after.session_id).read_text()
    for part in ("claim-task 1", "restarted you in a new session", "task-1: one", "Pages: api", "teams brief"):
        assert part in given
    asked = cli.ok("restart-agent", "ann", "--uid", "again", agent="lea")
    last = until(lambda: (s := session(cli, "ann")).turns == 3 and s.ended and s)
    assert last.session_id == after.session_id
    assert cli.ok("restart-agent", "ann", "--uid", "again", agent="lea") == asked
    assert session(cli, "ann") == last, "it began again twice"
    cli.ok("stop-agent", "ann", agent="lea")
    assert cli.refused("restart-agent", "ann", agent="lea") == (11, "wrong_state")


def test_an_agent_is_restarted_once(cli: Cli) -> None:
    """A restart happens even if the command that asked for it was killed; asking twice is as asking once."""
    detach(cli, "zoe", "cat >>$D/given; echo >>$D/given")
    ended(cli, "zoe")
    owed = Owed(to="zoe", message="anew", uid="zoe~begin-again-1-1", by="lea", about=BEGIN_AGAIN)
    update(cli.store(), ALPHA, SESSION, "zoe", lambda s: owing(s, owed))
    cli.ok("whoami", agent="bob")
    assert ended(cli, "zoe", 2).turns == 2 and json.loads(lines(cli, "given")[-1])[0]["message"] == "anew"
    here = os.getpid(), cli.store().host
    update(cli.store(), ALPHA, SESSION, "zoe", lambda s: s.kept_by(*here).having(state="running", outcome=None))
    first, again = (cli.ok("restart-agent", "zoe", *words, agent="lea") for words in ([], ["--fresh"]))
    assert first == again and session(cli, "zoe").fresh and session(cli, "zoe").interjected == first["number"]
