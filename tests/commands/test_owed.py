"""Notices are owed in the commit of their change: no kill or error after the commit loses one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from teams_cli.teams import presence
from tests.support.cli import TIMEOUT, Cli, add_tasks, in_progress, lapse
from tests.support.waits import until

# Runs a command that is killed, or finds the disk full, when it stores the notice that follows its change.
BROKEN = """
import errno, os, signal, sys
how = sys.argv.pop(1)

def break_off(event, arguments):
    if event == "open" and "/messages/.lock" in str(arguments[0]):
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), arguments[0])

sys.addaudithook(break_off)
from teams_cli.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def a_task_in_progress(cli: Cli) -> None:
    in_progress(cli, "bob", "t")


def a_lease_that_is_over(cli: Cli) -> None:
    a_task_in_progress(cli)
    lapse(cli.store())


def a_plan(cli: Cli) -> None:
    cli.ok("propose-plan", "p", agent="bob")
    cli.ok("read-messages", agent="lea")


def a_shutdown(cli: Cli) -> None:
    cli.ok("request-shutdown", "bob", agent="lea")
    cli.ok("read-messages", agent="bob")


CHANGES = {
    "failed": (a_task_in_progress, "bob", "update-task 1 --status failed", "lea", "task-1 (t) failed by bob"),
    "expired, claimed": (a_lease_that_is_over, "mia", "claim-task 1", "lea", "task-1 (t) is free again"),
    "approved": (a_plan, "lea", "approve-plan 1 --note go", "bob", "plan-1 was approved by lea: go"),
    "shutdown approved": (a_shutdown, "bob", "approve-shutdown 1", "lea", "bob approved shutdown-1"),
}


def broken(cli: Cli, how: str, agent: str, words: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command so that it breaks off after its commit."""
    command = [sys.executable, "-c", BROKEN, how, *words.split(), "--json"]
    return subprocess.run(command, env=cli.environ(agent), capture_output=True, timeout=TIMEOUT)


def told(cli: Cli, agent: str, begin: str) -> list[str]:
    """The messages to the agent so far that begin with *begin*."""
    found = cli.ok("read-messages", "--all", "--limit", "100", agent=agent)
    return [message["message"] for message in found if message["message"].startswith(begin)]


FOLLOWING = ("doctor", "get-tasks", "whoami", "whoami")


@pytest.mark.parametrize(("event", "following"), list(zip(CHANGES, FOLLOWING, strict=True)))
def test_a_kill_behind_the_commit_loses_no_notice(cli: Cli, event: str, following: str) -> None:
    """The next command, whichever it is, sends the notice. The killed command can be repeated."""
    prepare, agent, words, recipient, begin = CHANGES[event]
    prepare(cli)
    assert broken(cli, "kill", agent, words).returncode == -9
    assert cli(following).status in (0, 1)
    assert begin in "".join(path.read_text("utf-8") for path in cli.root.glob("teams/alpha/messages/*/*.json"))
    assert len(told(cli, recipient, begin)) == 1
    cli.ok(*words.split(), agent=agent)
    assert len(told(cli, recipient, begin)) == 1


def test_the_leader_hears_the_last_result_with_the_end_of_all_tasks(cli: Cli) -> None:
    a_task_in_progress(cli)
    with cli.start("wait", "--timeout", "60", "--json", agent="lea") as waiting:
        until(lambda: presence.load(cli.store(), "alpha", "lea").last_seen)
        assert broken(cli, "kill", "bob", "update-task 1 --status completed --result done").returncode == -9
        found = json.loads(waiting.communicate(timeout=TIMEOUT)[0])
    assert [each["what"] for each in found["happened"]] == ["settled"]
    assert [each["message"] for each in found["messages"]] == ["task-1 (t) completed by bob: done"]


@pytest.mark.parametrize("event", ["failed", "approved"])
def test_after_the_commit_nothing_refuses(cli: Cli, event: str) -> None:
    """If the disk is full after the commit, the command succeeds and its notice is sent later."""
    prepare, agent, words, recipient, begin = CHANGES[event]
    prepare(cli)
    done = broken(cli, "full disk", agent, words)
    assert done.returncode == 0, done
    cli.ok(*words.split(), agent=agent)
    assert len(told(cli, recipient, begin)) == 1


def test_what_can_not_be_read_holds_up_nothing_that_others_owe(cli: Cli) -> None:
    """A mark whose change was never made is removed; a damaged record keeps its mark."""
    add_tasks(cli, "t", "damaged")
    cli.ok("claim-task", "1", agent="bob")
    owed = cli.root / "teams/alpha/owed"
    owed.mkdir()
    for name in ("task~task-7", "task~task-2", "agent~mia", "unheard-of~1"):
        (owed / name).touch()
    (cli.root / "tasks/alpha/task-2.json").write_text("{")
    assert broken(cli, "kill", "bob", "update-task 1 --status failed").returncode == -9
    cli.ok("whoami", agent="mia")
    assert len(told(cli, "lea", "task-1 (t) failed by bob")) == 1
    assert sorted(path.name for path in owed.iterdir()) == ["task~task-2", "unheard-of~1"]
