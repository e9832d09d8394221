"""Signs of life keep an agent's tasks; whoever loses a task or takes it over is told so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from teams_cli import processes
from teams_cli.clock import later, rfc3339
from teams_cli.store.pace import Alarm
from teams_cli.tasks import claims
from teams_cli.tasks.tasks import TASK
from teams_cli.teams import presence, teams
from teams_cli.teams.presence import AGENT
from tests.support.cli import TIMEOUT, Cli, add_tasks, lapse
from tests.support.waits import until
from tests.support.workflow_runs import git, make_repository


def lease(cli: Cli) -> Any:
    return cli.store().get("alpha", TASK, "task-1")[0].lease_until


@pytest.fixture
def cli(cli: Cli) -> Cli:
    add_tasks(cli, "t")
    return cli


@pytest.mark.slow
def test_waiting_inside_the_tool_renews(cli: Cli) -> None:
    cli.ok("set", "staleAfterSeconds", "12", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    waiting: subprocess.Popen[bytes] = cli.start("read-messages", "--wait", "600", agent="bob")
    before = lease(cli)
    until(lambda: lease(cli) > before)
    assert cli.ok("show-task", "1")["owner"] == "bob"
    cli.ok("send-message", "bob", "wake up", agent="lea")
    assert b"wake up" in waiting.communicate(timeout=TIMEOUT)[0]


def test_who_lost_a_task_and_who_takes_it_over_are_told(cli: Cli) -> None:
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("announce", "half way through the parser", agent="bob")
    lapse(cli.store())
    taken = cli.ok("claim-task", "1", agent="mia")
    assert taken["takenOver"]["from"] == "bob" and taken["takenOver"]["status"] == "half way through the parser"
    assert taken["takenOver"]["lastHeard"] and taken["takenOver"]["reason"]
    ended = next(note["reason"] for note in taken["notes"] if note["what"] == "expired")
    assert ended.startswith("the lease of bob ended ") and "last heard of" in ended
    shown = cli("claim-task", "1", agent="mia").stdout
    assert "it was bob's" in shown and "half way through the parser" in shown and "uncommitted" in shown
    (said,) = [m["message"] for m in cli.ok("read-messages", agent="bob") if "task-1" in m["message"]]
    assert said.startswith("task-1 (t) is no longer yours: ") and said.endswith("; mia has it now.")
    (heard,) = [m["message"] for m in cli.ok("read-messages", agent="lea") if "free again" in m["message"]]
    assert "mia has it now" in heard


LONG_AGO = "2020-01-01T00:00:00.000Z"


def silent(cli: Cli, left: float = -1.0, since: str = LONG_AGO, key: str = "task-1") -> None:
    """Let bob have been silent since then, and the lease of his task end in *left* seconds."""
    store = cli.store()
    task, revision = store.get("alpha", TASK, key)
    until = round(store.steady()[1] + left, 3)
    store.replace("alpha", TASK, key, task.having(lease_until=until, claimed_at=LONG_AGO), revision)
    agent, revision = store.get("alpha", AGENT, "bob")
    store.replace("alpha", AGENT, "bob", agent.having(last_seen=since, renewed_at=since), revision)


def test_help_and_mistakes_renew_too(cli: Cli) -> None:
    cli.ok("claim-task", "1", agent="bob")
    for words in (("help",), ("help", "claim-task"), ("get-taks",), ("update-task", "1", "--stats", "done")):
        silent(cli, left=60)
        before = lease(cli)
        cli(*words, agent="bob")
        assert lease(cli) > before + 800, words


def test_what_expired_is_offered_last_to_others(cli: Cli) -> None:
    add_tasks(cli, "low", priority="low")
    for _ in range(2):
        cli.ok("claim-task", "1", agent="bob")
        lapse(cli.store())
        assert cli.ok("show-task", "1", agent="lea")["status"] == "pending"
    assert cli.ok("wait", "--claim", "--timeout", "0", agent="mia")["claimed"]["title"] == "low"
    assert cli.ok("claim-task", "--next", agent="bob")["title"] == "t"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    main, own = make_repository(tmp_path / "main", {"file": "x"}), tmp_path / "own"
    git(main, "worktree", "add", "-q", str(own))
    return own


def test_a_file_that_changes_in_its_worktree_is_a_sign_of_life(
    cli: Cli, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed file renews a lease that has ended; the next owner is shown uncommitted files."""
    monkeypatch.chdir(tree)
    cli.ok("claim-task", "1", agent="bob")
    now = rfc3339(cli.store().now())
    silent(cli, since=now)
    assert cli("claim-task", "1", agent="mia").status == 11
    assert cli.store().get("alpha", TASK, "task-1")[0].in_grace
    silent(cli, since=now)
    (tree / "half.py").write_text("x = 1\n")
    os.utime(tree / "half.py", (time.time() + 1,) * 2)
    assert cli("claim-task", "1", agent="mia").stderr.startswith("teams: task-1 is claimed by bob\n")
    task = cli.store().get("alpha", TASK, "task-1")[0]
    assert not task.in_grace and task.lease_until - cli.store().steady()[1] > 800
    again = cli("claim-task", "1", agent="bob").stdout
    assert f"uncommitted: {tree}/half.py, changed " in again and "\nyou claimed it " in again
    lapse(cli.store())
    taken = cli.ok("claim-task", "1", agent="mia")["uncommitted"]
    assert [(file["path"], file["by"]) for file in taken] == [(str(tree / "half.py"), "bob")]


@pytest.mark.parametrize(("directory", "check_in"), [("main", ()), (".", ("--check-in", "main"))])
def test_a_file_that_a_task_touches_is_a_sign_of_life_wherever_its_owner_runs_commands(
    directory: str, check_in: Sequence[str], cli: Cli, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's worktree is found by the repository of the check; worktrees of other agents do not count."""
    monkeypatch.chdir(tmp_path / directory)
    cli.ok("create-task", "two", "--touches", "half.py", "--check", "true", *check_in, agent="lea")
    monkeypatch.chdir(tmp_path)
    assert "and by changes of its files" in cli("claim-task", "2", agent="bob").stdout
    now = rfc3339(cli.store().now())
    (tree / "half.py").write_text("x = 1\n")
    os.utime(tree / "half.py", (time.time() + 1,) * 2)
    silent(cli, since=now, key="task-2")
    assert cli("claim-task", "2", agent="mia").stderr.startswith("teams: task-2 is claimed by bob\n")
    assert not cli.store().get("alpha", TASK, "task-2")[0].in_grace
    monkeypatch.chdir(tree)
    cli.ok("heartbeat", agent="mia")
    silent(cli, since=now, key="task-2")
    assert cli("claim-task", "2", agent="mia").status == 11
    assert cli.store().get("alpha", TASK, "task-2")[0].in_grace


def test_a_turn_that_runs_is_a_sign_of_life_as_long_as_its_process_is_there(cli: Cli) -> None:
    cli.ok("claim-task", "1", agent="bob")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as client:
        presence.register_process(cli.store(), "alpha", "bob", client.pid)
        presence.note_facts(cli.store(), "alpha", "bob", in_turn=True)
        silent(cli, since=rfc3339(later(cli.store().now(), -3000)))
        assert cli("claim-task", "1", agent="mia").status == 11
        assert not cli.store().get("alpha", TASK, "task-1")[0].in_grace
        client.kill()
    assert cli.ok("claim-task", "1", agent="mia")["owner"] == "mia"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="programs are found through /proc")
@pytest.mark.parametrize(
    ("words", "other_variables", "is_sign"),
    [
        (["sleep", "60"], {}, True),
        (["sleep", "60"], {"TEAMS_AGENT_ID": "mia"}, False),
        (["sleep", "60"], {"TEAMS_HOME": "/elsewhere"}, False),
        (["setsid", "sh", "-c", "sleep 60 & exit"], {}, False),  # it outlives the shell that started it
    ],
)
def test_a_program_that_an_agent_runs_is_a_sign_of_life(
    words: list[str], other_variables: dict[str, str], is_sign: bool, cli: Cli
) -> None:
    cli.ok("claim-task", "1", agent="bob")
    silent(cli, since=rfc3339(later(cli.store().now(), -1200)))
    of_bob = {"TEAMS_HOME": str(cli.root), "TEAMS_TEAM": "alpha", "TEAMS_AGENT_ID": "bob"}
    mark = {"MARK": str(cli.root)}
    program = subprocess.Popen(words, env={**os.environ, **of_bob, **other_variables, **mark})
    try:
        if words[0] == "setsid":
            assert program.wait(TIMEOUT) == 0
        assert cli("claim-task", "1", agent="mia").status == 11
        assert bool(cli.store().get("alpha", TASK, "task-1")[0].in_grace) is not is_sign
    finally:
        processes.end_tagged(str(cli.root), [("KILL", 1.0)], "MARK")
        program.wait(TIMEOUT)


def test_an_announced_silence_ends_no_claim(cli: Cli) -> None:
    """Other signs of life do not shorten an announced silence, until whose end the agent is active."""
    cli.ok("claim-task", "1", agent="bob")
    shown = cli("heartbeat", "--for", "2h", agent="bob").stdout
    assert "task-1: 2 h left, until " in shown or "task-1: 1 h left, until " in shown
    before = lease(cli)
    cli.ok("heartbeat", agent="bob")
    cli.ok("note", "1", "half way", agent="bob")
    assert lease(cli) == before
    silent(cli, left=6000, since=LONG_AGO)
    states = {row["name"]: row["state"] for row in cli.ok("get-agents", agent="lea")["agents"]}
    assert states["bob"] == "active"
    assert cli("wait", "--needed", "--timeout", "0", agent="lea").stdout == ""
    assert cli("heartbeat", "--for", "2d", agent="bob").status == 2


def test_who_is_at_work_on_a_task_keeps_those_that_are_assigned_to_it(cli: Cli) -> None:
    """Bob is silent, but holds a lease, which its files may have renewed. Without a task, bob counts as lost."""
    cli.ok("create-task", "two", "--for", "bob", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    store = cli.store()
    task, revision = store.get("alpha", TASK, "task-2")
    store.replace("alpha", TASK, "task-2", task.having(updated_at=LONG_AGO), revision)
    silent(cli, left=600.0)
    assert cli("claim-task", "2", agent="mia").status == 11
    assert cli("claim-task", "--next", agent="mia").status == 10
    alarm = Alarm()
    claims.release_lost(store, teams.get(store, "alpha"), alarm)
    assert alarm.moment - time.monotonic() > 100  # a wait need not look at it again and again
    cli.ok("release-task", "1", "--force", agent="lea")
    cli.ok("claim-task", "2", agent="mia")
