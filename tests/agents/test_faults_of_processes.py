"""Agents as processes, when something goes wrong: what is left behind, killed half-way, or stands still."""

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
from teams_cli.store.files.engine import FileStore
from teams_cli.store.retrying import update
from tests.faults.lab import Fault, command, warm
from tests.faults.scenes import idle, working
from tests.support.agents import (
    BUSY,
    NEEDS_PROC,
    detach,
    ended,
    go,
    is_busy,
    keepers,
    lines,
    place,
    run_agent,
    session,
)
from tests.support.cli import ALPHA, Cli
from tests.support.waits import until

pytestmark = NEEDS_PROC


def stopped_without_a_lock(pid: int) -> bool:
    """Stop the process; but let it go on if it has just locked something, for which all others would wait."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: "(stopped)" in Path(f"/proc/{pid}/status").read_text())
    if f" {pid} " not in Path("/proc/locks").read_text():
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def slow_checkout(directory: Path) -> Path:
    """A repository that waits, before a worktree of it is there, until a file `go` is."""
    repository = directory / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    who = ["-c", "user.email=a@b", "-c", "user.name=a"]
    subprocess.run(["git", "-C", str(repository), *who, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch '{directory}/waits'\nwhile ! [ -e '{directory}/go' ]; do sleep 0.05; done\n")
    hook.chmod(0o755)
    return repository


def test_what_clears_its_environment_is_ended_too(cli: Cli) -> None:
    """A daemon without our variable, in a session of its own, whose parents have ended."""
    word = str(40_000_000 + os.getpid())
    began = f"until tr '\\0' ' ' </proc/$!/cmdline | grep -q '^sleep {word}'; do sleep 0.02; done"
    assert cli("run-agent", f"env -i setsid sleep {word} & {began}; echo done", agent="lea").status == 0
    until(lambda: subprocess.run(["pgrep", "-f", f"^sleep {word}"]).returncode == 1, "the end of what was left behind")


def test_mail_of_a_turn_that_was_killed_is_given_again(cli: Cli) -> None:
    """With the next mail: what killed the turn may have been what it was given."""
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


def test_one_that_is_being_started_is_known_by_its_launcher(cli: Cli, tmp_path: Path) -> None:
    """As long as that lives, nobody takes its agent away; once it was killed, the name can be used again at once."""
    words = ("run-agent", "echo hi", "--agent-id", "slow", "--worktree", "--cwd", str(slow_checkout(tmp_path)))
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
    """As where no more files can be opened at that moment: it may well be at work."""
    warm()
    working(cli.store())
    looked = command(cli.root, "lea", ["list-agents"], about="/proc").calls
    assert looked
    for nth in range(1, len(looked) + 1):
        command(cli.root, "lea", ["list-agents"], Fault("errors", nth), about="/proc")
        assert session(cli, "kid").state == "running", f"errors from look {nth} on"


def test_a_keeper_on_its_way_is_waited_for(cli: Cli) -> None:
    """Who started it was killed before saying so, and it is slow."""
    idle(cli.store())
    with subprocess.Popen(["true"]) as launcher:
        launcher.wait()
    update(
        cli.store(),
        ALPHA,
        SESSION,
        "kid",
        lambda s: s.kept_by(launcher.pid).having(state="starting", outcome=None, turns=0),
    )
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


@pytest.mark.slow
def test_an_agent_waits_for_a_lock_longer_than_a_command(cli: Cli) -> None:
    """A process that holds it stands still, or the machine is busy: what the agent did is not lost by that."""
    detach(cli, "zoe", f"{BUSY} echo done")
    is_busy(cli)
    until(lambda: session(cli, "zoe").turns)
    with open(cli.root / f"teams/{ALPHA}/sessions/.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        go(cli)
        assert cli("pause-agent", "zoe", agent="lea").status == 12
    assert ended(cli, "zoe").outcome == "completed"
