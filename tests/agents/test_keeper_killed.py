"""Keepers, launchers and runs that are killed at a bad moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from teams_cli.agents import sessions
from teams_cli.agents.sessions import SESSION
from teams_cli.membership import joining
from teams_cli.store.retrying import update
from teams_cli.teams import teams
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import TEAM
from tests.support.agents import (
    BUSY,
    NEEDS_PROC,
    agent_row,
    detach,
    is_busy,
    lines,
    marked,
    outputs_to,
    place,
    session,
    statuses,
)
from tests.support.cli import ALPHA, COMMAND, TIMEOUT, Cli
from tests.support.waits import until

pytestmark = NEEDS_PROC


def kill(cli: Cli, agent: str) -> None:
    """Kill its keeper, once that has noted the turn: else it would be begun anew. A signal need not have come yet."""
    until(lambda: session(cli, agent).turns)
    found = session(cli, agent)
    assert found.keeper_pid
    os.kill(found.keeper_pid, signal.SIGKILL)
    until(lambda: not found.keeper_lives)


def test_a_keeper_that_is_killed(cli: Cli) -> None:
    """Its agent ends with it, also what that left behind; whoever looks first tells the caller, and nobody twice."""
    detach(cli, "zoe", f"echo 'so far' >&2; setsid sleep 100 & {BUSY}")
    is_busy(cli)
    kill(cli, "zoe")
    lookers = [cli.start("list-agents") for _ in range(4)]
    assert statuses(lookers) == [0] * 4
    assert (session(cli, "zoe").state, session(cli, "zoe").outcome) == ("done", "lost")
    assert marked(cli.root) == {}
    assert outputs_to(cli, "lea") == [("zoe", "Agent zoe failed: its keeper was killed: so far")]
    cli.ok("send-message", "zoe", "again", agent="bob")  # it is resumed like any other
    until(lambda: session(cli, "zoe").generation == 2 and session(cli, "zoe").turns == 2, lambda: session(cli, "zoe"))


@pytest.mark.slow
def test_whoever_waits_for_a_keeper_that_is_killed_is_told(cli: Cli) -> None:
    waiting = cli.start("run-agent", f"{BUSY}", "--agent-id", "zoe", "--cwd", str(place(cli)), "--json", agent="lea")
    is_busy(cli)
    kill(cli, "zoe")
    out, _ = waiting.communicate(timeout=TIMEOUT)
    assert (waiting.returncode, json.loads(out)["outcome"]) == (1, "lost")
    cli.ok("spawn", "sleep 50", "--agent-id", "yan", agent="bob")
    reading = cli.start("read-messages", "--wait", "100", "--json", agent="bob")
    until(lambda: session(cli, "yan").state == "running")
    kill(cli, "yan")
    out, _ = reading.communicate(timeout=TIMEOUT)
    assert json.loads(out)[0]["message"] == "Agent yan failed: its keeper was killed"


def draft(cli: Cli) -> sessions.Session:
    """A session of zoe that is about to start."""
    now = teams.now(cli.store())
    about = {"run": "r", "harness": "shell", "prompt": "x", "description": "x", "directory": "/", "session_id": "s"}
    return sessions.Session(agent="zoe", caller="lea", created_at=now, started_at=now, **about)


def test_a_launcher_that_is_killed(cli: Cli) -> None:
    """Before it had a keeper: the session is lost at once; before there was a session: there is no such agent."""
    store = cli.store()
    joining.join(store, ALPHA, Caller("zoe"), started_by="lea")
    dead = subprocess.Popen(["true"])
    held = draft(cli).kept_by(dead.pid)
    dead.wait()
    store.create(ALPHA, SESSION, "zoe", held)
    assert agent_row(cli, "zoe")["session"]["outcome"] == "lost"
    assert outputs_to(cli, "lea") == [("zoe", "Agent zoe failed: its keeper was killed")]
    stray, _ = joining.join(store, ALPHA, Caller("yan"), started_by="lea")
    assert agent_row(cli, "yan")["state"] == "idle"  # it may yet be started
    early = stray.having(joined_at="2020-01-01T00:00:00Z")
    update(store, ALPHA, TEAM, ALPHA, lambda team: team.with_member(early))
    assert "yan" not in [row["name"] for row in cli.ok("list-agents")["agents"]]


@pytest.mark.slow
def test_an_agent_started_from_the_background_can_be_interrupted(cli: Cli) -> None:
    """A shell has what it starts with `&` ignore the signal; the client does not."""
    cli.more["P"] = "trap 'echo got >$D/int; exit' INT; touch $D/ready; while :; do sleep 0.05; done"
    script = f'{" ".join(COMMAND)} run-agent "$P" --agent-id zoe --detach &'
    subprocess.run(["sh", "-c", script], env=cli.environ("lea"), check=True, timeout=TIMEOUT, capture_output=True)
    is_busy(cli)
    cli.ok("stop-agent", "zoe", agent="lea")
    assert lines(cli, "int") == ["got"]
