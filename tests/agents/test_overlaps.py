"""Overlaps: authors of conflicting branches are told once, and writers of a file that others work on, too."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from teams_cli.agents import overlaps, sessions
from teams_cli.tasks import touching
from teams_cli.tasks.tasks import TASK
from tests.support.cli import ALPHA, Cli
from tests.support.waits import until
from tests.support.workflow_runs import make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository", {f"f{number}.py": "one\n" for number in range(8)})


def start(cli: Cli, repository: Path, name: str, script: str) -> None:
    words = ["run-agent", script, "--worktree", "--agent-id", name, "--detach", "--cwd", str(repository)]
    assert cli(*words, agent="lea", HOME=str(repository.parent)).status == 0


COMMIT = "git -c user.name=x -c user.email=x@y commit --quiet -am change"


def told(cli: Cli, agent: str) -> list[str]:
    found = cli.ok("read-messages", "--all", "--peek", agent=agent)
    return [message["message"] for message in found if "conflicts with" in message["message"]]


@pytest.mark.slow
def test_both_are_told_once_that_their_branches_conflict(cli: Cli, repository: Path) -> None:
    """An agent that has ended is told, too, but not an agent that changed other files."""
    start(cli, repository, "ann", f"echo ann > f0.py; echo ann > f1.py; {COMMIT}")
    start(cli, repository, "eve", f"echo eve > f2.py; {COMMIT}")
    for name in ("ann", "eve"):
        cli.ok("wait", "--agent", name, agent="lea")
    assert cli("overlaps", "--json").json == []
    assert "not compared: bob, mia" in cli("overlaps").stdout
    undone = "echo ben > f2.py; git checkout -q f2.py"
    start(cli, repository, "ben", f"echo ben > f0.py; {COMMIT}; echo more > f3.py; {COMMIT}; {undone}")
    cli.ok("wait", "--agent", "ben", agent="lea")
    (found,) = cli.ok("overlaps")
    assert found["agents"] == ["ann", "ben"] and found["branches"] == ["teams/alpha/ann", "teams/alpha/ben"]
    assert found["files"] == ["f0.py"]
    until(lambda: told(cli, "ben"))
    assert len(told(cli, "ann")) == len(told(cli, "ben")) == 1 and told(cli, "eve") == []
    assert "in f0.py (your line 1, theirs line 1). You are expected to land first" in told(cli, "ann")[0]
    store = cli.store()
    for session in ("ann", "ben"):
        overlaps.ConflictWatch(store, ALPHA, sessions.get(store, ALPHA, session)).notify_of_conflicts()
    assert len(told(cli, "ann")) == len(told(cli, "ben")) == 1
    assert cli("overlaps").stdout.splitlines()[-1].endswith("f0.py")


def hook(cli: Cli, agent: str, path: Path, tool: str = "Edit", client: str = "claude", **more: Any) -> dict[str, Any]:
    event = {"hook_event_name": "PreToolUse", "tool_name": tool, "cwd": str(path.parent)}
    event |= {"tool_input": {"file_path": str(path)}, **more}
    answer = cli("hook", client, agent=agent, stdin=json.dumps(event).encode())
    assert answer.status == 0 and answer.stderr == "", answer
    return dict(json.loads(answer.stdout or "{}").get("hookSpecificOutput", {}))


def test_who_writes_a_file_that_anothers_task_touches_is_told(cli: Cli, repository: Path) -> None:
    assert cli.ok("create-task", "t", "--touches", "f*.py", "--touches", "docs/**", agent="lea")["touches"]
    path = repository / "f7.py"
    assert hook(cli, "mia", path) == {}
    cli.ok("claim-task", "1", agent="bob")
    assert hook(cli, "bob", path) == {}
    assert "task-1 of bob touches f7.py: t" in hook(cli, "mia", path)["additionalContext"]
    assert "docs/a/b.md" in hook(cli, "mia", repository / "docs/a/b.md", "Write")["additionalContext"]
    assert hook(cli, "mia", repository / "docs", "Write") == {}
    cli.ok("set", "overlaps", "deny", agent="lea")
    for _ in range(2):
        assert hook(cli, "mia", path)["permissionDecision"] == "deny"
    cli.ok("update-task", "1", "--status", "completed", agent="bob")
    assert hook(cli, "mia", path) == {}


def test_in_a_shared_checkout_only_files_that_the_task_touches_are_signs_of_life(
    cli: Cli, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    cli.ok("create-task", "t", "--touches", "f*.py", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    task = cli.store().get(ALPHA, TASK, "task-1")[0]
    for name, is_sign in (("new.md", False), ("f0.py", True)):
        (repository / name).write_text("changed")
        os.utime(repository / name, (time.time() + 1000,) * 2)
        assert (touching.seconds_since_work(cli.store(), ALPHA, task) is not None) is is_sign
