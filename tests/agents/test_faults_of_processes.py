"""Processes of agents that are left behind, killed half-way, or stopped."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest

from teams_cli.agents import background, sessions
from teams_cli.agents.sessions import SESSION
from teams_cli.errors import Busy
from teams_cli.membership import joining
from teams_cli.store.contract import update
from teams_cli.store.files.engine import FileStore
from teams_cli.teams import teams
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import TEAM
from tests.faults.lab import Fault, command, warm
from tests.faults.scenes import idle, working
from tests.support.agents import (
    BUSY,
    NEEDS_PROC,
    agent_row,
    at_work,
    ended,
    keepers,
    lines,
    marked,
    outputs_to,
    place,
    run_agent,
    session,
    statuses,
)
from tests.support.cli import ALPHA, Cli, program
from tests.support.waits import until
from tests.support.workflow_runs import make_repository

pytestmark = NEEDS_PROC


def stopped_without_a_lock(pid: int) -> bool:
    """Stop the process; if it holds a lock that others need, let it run on and return False."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: "(stopped)" in Path(f"/proc/{pid}/status").read_text())
    if f" {pid} " not in Path("/proc/locks").read_text():
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def test_a_process_without_its_environment_is_ended_too(cli: Cli) -> None:
    word = str(40_000_000 + os.getpid())
    began = f"until tr '\\0' ' ' </proc/$!/cmdline | grep -q '^sleep {word}'; do sleep 0.02; done"
    assert cli("run-agent", f"env -i setsid sleep {word} & {began}; echo done", agent="lea").status == 0
    until(lambda: subprocess.run(["pgrep", "-f", f"^sleep {word}"]).returncode == 1, "the end of what was left behind")


def test_mail_of_a_turn_that_was_killed_is_given_again(cli: Cli) -> None:
    note = 'jq -r ".[].message" "$TEAMS_MESSAGES_FILE" >>$D/got; while ! [ -e $D/go ]; do sleep 0.05; done'
    run_agent(cli, f'if [ -n "$TEAMS_RESUME" ]; then {note}; fi; echo ok', "--agent-id", "ann")
    cli.ok("send-message", "ann", "one", agent="lea")
    until(lambda: lines(cli, "got"))
    os.kill(session(cli, "ann").keeper_pid or 0, signal.SIGKILL)
    assert ended(cli, "ann", 2).outcome == "lost"
    (place(cli) / "go").touch()
    cli.ok("send-message", "ann", "two", agent="lea")
    until(lambda: "two" in lines(cli, "got"))
    assert lines(cli, "got") == ["one", "one", "two"]


def test_an_agent_that_is_being_started_is_kept_while_its_launcher_lives(cli: Cli, tmp_path: Path) -> None:
    """When the launcher is killed, the name of its agent can be used again at once."""
    repository = make_repository(tmp_path / "repository", {"file": "x"})
    waiting = f"touch '{tmp_path}/waits'; while ! [ -e '{tmp_path}/go' ]; do sleep 0.05; done"
    program(repository / ".git/hooks/post-checkout", waiting)
    words = ("run-agent", "echo hi", "--agent-id", "slow", "--worktree", "--cwd", str(repository))
    with cli.start(*words, "--detach", agent="lea", start_new_session=True) as launcher:
        until(lambda: (tmp_path / "waits").exists())
        run_agent(cli, "echo other", "--agent-id", "other")
        assert "slow" in [row["name"] for row in cli.ok("list-agents", agent="lea")["agents"]]
        os.killpg(launcher.pid, signal.SIGKILL)
    assert run_agent(cli, "echo again", "--agent-id", "slow")["agent"] == "slow"
    (tmp_path / "go").touch()


@pytest.mark.slow
def test_a_keeper_that_stands_still_is_named_and_can_be_ended(cli: Cli) -> None:
    cli.ok("run-agent", "sleep 60", "--agent-id", "ann", "--detach", agent="lea")
    until(lambda: session(cli, "ann").turns)
    pid = session(cli, "ann").keeper_pid or 0
    until(lambda: stopped_without_a_lock(pid))
    assert f"kill -CONT {pid}" in cli("doctor").stdout
    cli.ok("stop-agent", "ann", agent="lea")
    assert ended(cli, "ann").outcome == "stopped"


@pytest.mark.slow
def test_an_agent_that_can_not_be_looked_at_is_not_lost(cli: Cli) -> None:
    warm()
    working(cli.store())
    looked = command(cli.root, "lea", ["list-agents"], about="/proc").calls
    assert looked
    for nth in range(1, len(looked) + 1):
        command(cli.root, "lea", ["list-agents"], Fault("errors", nth), about="/proc")
        assert session(cli, "kid").state == "running", f"errors from look {nth} on"


def test_a_keeper_that_is_being_started_is_waited_for(cli: Cli) -> None:
    idle(cli.store())
    with subprocess.Popen(["true"]) as launcher:
        launcher.wait()
    starting = {"state": "starting", "outcome": None, "turns": 0}
    update(cli.store(), ALPHA, SESSION, "kid", lambda s: s.kept_by(launcher.pid).having(**starting))
    sessions.note_started_here(cli.store(), ALPHA, session(cli, "kid"))
    with open(cli.root / f"teams/{ALPHA}/sessions/.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy):
            hasty = FileStore(str(cli.root), lock_timeout=0.1)
            background.start_keeper(hasty, ALPHA, session(cli, "kid"), None, {"PATH": os.environ["PATH"]})
        keeper = until(lambda: keepers(cli.root))[0]
        os.kill(keeper, signal.SIGSTOP)
    cli.ok("list-agents", agent="lea")
    assert session(cli, "kid").state == "starting"
    os.kill(keeper, signal.SIGCONT)
    assert ended(cli, "kid").outcome == "completed"


def test_a_keeper_that_is_killed(cli: Cli) -> None:
    """When a keeper is killed, its agent and all that the agent started end, and the caller is told once."""
    at_work(cli, "zoe", f"echo 'so far' >&2; setsid sleep 100 & {BUSY}")
    until(lambda: session(cli, "zoe").turns)  # a turn that the keeper has not noted would be run again
    found = session(cli, "zoe")
    os.kill(found.keeper_pid, signal.SIGKILL)
    until(lambda: not found.keeper_lives)
    lookers = [cli.start("list-agents") for _ in range(4)]
    assert statuses(lookers) == [0] * 4
    assert (session(cli, "zoe").state, session(cli, "zoe").outcome) == ("done", "lost")
    assert marked(cli.root) == {}
    assert outputs_to(cli, "lea") == [("zoe", "Agent zoe failed: the process that ran it was killed: so far")]
    cli.ok("send-message", "zoe", "again", agent="bob")  # a lost agent is resumed like any other
    until(lambda: session(cli, "zoe").generation == 2 and session(cli, "zoe").turns == 2, lambda: session(cli, "zoe"))


def test_a_launcher_that_is_killed(cli: Cli) -> None:
    """If its launcher was killed, an agent with a session is lost, and one without is no member."""
    store = cli.store()
    joining.join(store, ALPHA, Caller("zoe"), started_by="lea")
    now = teams.now(store)
    about = {"run": "r", "harness": "shell", "prompt": "x", "description": "x", "directory": "/", "session_id": "s"}
    draft = sessions.Session(agent="zoe", caller="lea", created_at=now, started_at=now, **about)
    dead = subprocess.Popen(["true"])
    held = draft.kept_by(dead.pid)
    dead.wait()
    store.create(ALPHA, SESSION, "zoe", held)
    assert agent_row(cli, "zoe")["session"]["outcome"] == "lost"
    assert outputs_to(cli, "lea") == [("zoe", "Agent zoe failed: the process that ran it was killed")]
    stray, _ = joining.join(store, ALPHA, Caller("yan"), started_by="lea")
    assert agent_row(cli, "yan")["state"] == "idle"  # the agent may yet be started
    early = stray.having(joined_at="2020-01-01T00:00:00Z")
    update(store, ALPHA, TEAM, ALPHA, lambda team: team.with_member(early))
    assert "yan" not in [row["name"] for row in cli.ok("list-agents")["agents"]]
