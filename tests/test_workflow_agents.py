"""The shipped workflows carried out by agents with a harness instead of workers: the same files, the same ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import workflow_agent
from tests.cli import Cli
from tests.workflow_runs import commit, make_repository, results, run, statuses, write_workflow

CLIENT = [sys.executable, workflow_agent.__file__]
HARNESS = {
    "start": [*CLIENT, "start"],
    "resume": [*CLIENT, "resume"],
    "input": "prompt",
    "output": {"from": "lines", "match": {"type": "answer"}, "path": "text"},
    "interrupt": [["INT", 1], ["KILL", 1]],
}

pytestmark = pytest.mark.usefixtures("each_engine_in_time")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    root = tmp_path / "root"
    root.mkdir(mode=0o700)
    (root / "config.json").write_text(json.dumps({"harness": {"scripted": HARNESS}}))
    return Cli(root)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "repo", {"a.py": "x = 1  \n", "b c.py": "y = 2  \n", "README.md": "# r\n"})
    commit(made, {"a.py": "x = 2  \n# TODO: more\n"})
    return made


@pytest.mark.parametrize("name", ["code-review", "parallel-refactor", "feature-factory", "council"])
def test_a_shipped_workflow(cli: Cli, repository: Path, name: str) -> None:
    document = run(cli, name, "--harness", "scripted", "--var", f"repo={repository}")
    assert document["status"] == "completed"
    assert set(statuses(document).values()) == {"completed"}
    assert Path(document["report"]).read_text(encoding="utf-8")


def test_an_idle_agent_is_called_when_there_is_more(cli: Cli, tmp_path: Path) -> None:
    """The second agent has nothing to do until the first is done with what only that one can do."""
    front = """
roles:
  first: {extends: team-member, skill: [one]}
  second: {extends: team-member, skill: [two]}
agents: [{role: first}, {role: second}]
tasks:
- {id: a, title: A, require: [one], run: "sleep 2; echo a"}
- {id: b, title: B, require: [two], blockedBy: [a], run: "cat $TEAMS_RESULTS/a.txt; echo b"}
"""
    document = run(cli, write_workflow(tmp_path / "w", front), "--harness", "scripted")
    assert results(document) == {"a": "a\n", "b": "a\nb\n"}


def test_a_failing_task(cli: Cli, tmp_path: Path) -> None:
    front = "agents: 2\ntasks:\n- {id: a, title: A, run: exit 3}\n- {id: b, title: B, blockedBy: [a], run: echo b}\n"
    document = run(cli, write_workflow(tmp_path / "w", front), "--harness", "scripted", status=1)
    assert statuses(document) == {"a": "failed", "b": "pending"}


def test_an_unknown_harness_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    path = write_workflow(tmp_path / "w", "tasks:\n- {id: a, title: A, run: echo a}\n")
    assert cli.refused("run", str(path), "--harness", "nosuch") == (2, "invalid_value")
