"""Workflow files: what is refused, how they are listed, and each shipped one on a small repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli, tree
from tests.support.workflow_runs import commit, git, make_repository, put, results, run, statuses, write_workflow

SHIPPED = ["code-review", "council", "feature-factory", "parallel-refactor"]
ODD = {
    "na me.py": "x = 1\n",
    "q'u\"o.py": "y = 2\n",
    "ü$(touch pwned).md": "text\n",
    "new\nline.txt": "text\n",
    "d/-x": "text\n",
    "`touch pwned`;.sh": "echo\n",
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "root")


def review(cli: Cli, word: str, repository: Path, *words: str, status: int = 0) -> dict[str, Any]:
    return run(cli, word, "--var", f"repo={repository}", *words, status=status)


@pytest.mark.slow
def test_the_shipped_workflows_are_listed_and_valid(cli: Cli) -> None:
    rows = {row["name"]: row for row in cli.ok("list-workflows")}
    assert sorted(rows) == SHIPPED
    for name, row in rows.items():
        assert sorted(row) == ["description", "name", "path", "pattern"]
        assert cli.ok("check-workflow", name)["path"] == row["path"]
        assert cli.ok("check-workflow", row["path"])["valid"] is True
    assert {row["pattern"] for row in rows.values()} == {"leader", "council", "pipeline", "swarm"}


def test_everything_wrong_is_named_at_once_with_its_line(cli: Cli, tmp_path: Path) -> None:
    front = """name: bad
description: Bad.
colour: red
variables: {PATH: x, ok: 1}
roles:
  reader: {extends: reviewer}
agents: [{type: one}, {role: nobody}]
tasks:
  - {id: a, title: "Say {{nothing}}", run: "echo {{ok}}"}
  - {id: a, title: Again, blockedBy: [z], run: "true"}
  - {id: c, title: C, blockedBy: [d], run: "true", retries: 3}
  - {id: d, title: D, blockedBy: [c], run: "true"}
  - {id: e, title: 5, run: "true"}
  - {id: f, title: F}
  - {id: f, title: F, id: g, run: "true"}"""
    path = write_workflow(tmp_path, front, "bad")
    answer = cli("check-workflow", str(path), "--json")
    assert answer.status == 2 and answer.error["code"] == "invalid_value"
    said = answer.error["message"]
    for line, what in [
        (4, "colour: is not a key here"),
        (5, "variables.PATH"),
        (7, "roles.reader.extends: must come down to"),
        (8, "agents.1.role: there is no role 'nobody'"),
        (10, "tasks.0.title: nothing fills `{{nothing}}`"),
        (10, "tasks.0.run: holds `{{`"),
        (11, "tasks.1.id: 'a' is the id of an earlier task"),
        (11, "tasks.1.blockedBy.0: there is no task 'z'"),
        (12, "tasks.2.retries: is not a key here"),
        (12, "tasks.2.blockedBy: it would wait for itself: c waits for d waits for c"),
        (14, "tasks.4.title: "),
        (15, "tasks.5: has neither `run` nor `prompt`"),
        (16, "tasks.6.id: is given twice"),
    ]:
        assert f"bad.md:{line}: {what}" in said, said
    assert tree(cli.root) is None


@pytest.mark.slow
def test_a_wrong_workflow_is_refused(cli: Cli, tmp_path: Path) -> None:
    for front, what in [
        ("tasks: [{id: a, title: A, require: [law], run: x}]", "no agent has law"),
        ("tasks: [{id: a, title: A, prompt: '{{result.b}}'}, {id: b, title: B, run: x}]", "is not there"),
        ("tasks: []", "tasks: list should have at least 1 item"),
        ("settings: {broadcast: some}\ntasks: [{id: a, title: A, run: x}]", "is not a valid value of broadcast"),
        ("tasks: [{id: a, title: A, run: x, touches: [/etc/passwd]}]", "is outside the repository"),
        ("tasks: [{id: a, title: A, run: x, each: [z]}, {id: a-1, title: B, run: x}]", "is what `each` makes of 'a'"),
        ("tasks: [{id: a, title: A, run: x, checkIn: '{{none}}'}]", "checkIn: nothing fills"),
        ("tasks: [{id: a, title: A, run: x, check: 'ls {{repo}}'}]", "check: holds `{{repo}}`"),
        ("agents: [{role: team-leader}]\ntasks: [{id: a, title: A, run: x}]", "a worker can't lead"),
        ("tasks: [{id: a, title: A, run: x, reviewBy: Human}]", "'Human' is reserved"),
        ("tasks: !!python/object/apply:os.system [exit]", "is not valid YAML"),
    ]:
        path = write_workflow(tmp_path, front)
        answer = cli("check-workflow", str(path), "--json")
        assert (answer.status, answer.error["code"]) == (2, "invalid_value"), front
        assert what.lower() in answer.error["message"].lower(), front
    assert cli.refused("run", str(path)) == (2, "invalid_value")
    path.write_text("---\n- a list\n---\n")
    assert "must be a dictionary" in cli("check-workflow", str(path)).stderr.lower()


def test_a_configuration_of_massgen_is_told_our_words(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "test_broadcast_agents.yaml"
    path.write_text("""agents:
  - id: agent_a
    backend: {type: openai, cwd: workspace1}
orchestrator:
  snapshot_storage: snapshots
""")
    answer = cli("run", str(path), "--json")
    assert answer.status == 2 and "docs/workflow-files.md" in answer.error["hint"]
    said = answer.error["message"].splitlines()
    assert said[0].endswith("is a configuration of MassGen:")
    for line, what in [
        (2, "agents.0.id: write `name: agent_a`"),
        (3, "agents.0.backend.type: write `harness: codex` at the agent"),
        (3, "agents.0.backend.cwd: write `cwd: workspace1` at the agent"),
        (5, "orchestrator.snapshot_storage: write `worktree: true` at an agent"),
    ]:
        assert f"{path}:{line}: {what}" in answer.error["message"], said


def test_a_short_file_that_stands_for_millions_of_values_is_refused(cli: Cli, tmp_path: Path) -> None:
    lists = [f"x{n}: &x{n} [{f'*x{n - 1},' * 6}]" for n in range(1, 12)]
    merges = [f"x{n}: &x{n} {{<<: [{f'*x{n - 1},' * 4}]}}" for n in range(1, 12)]
    for lines in (["x1: &x1 [*x0, *x1]"], lists, merges):
        path = tmp_path / "bomb.md"
        path.write_text("\n".join(["---", "x0: &x0 {a: 1}", *lines, "---", ""]))
        answer = cli("check-workflow", str(path), "--json")
        assert answer.status == 2 and "100000 values" in answer.error["message"]


def test_what_is_no_regular_file_is_no_workflow(cli: Cli, tmp_path: Path) -> None:
    """Reading a pipe that nobody writes to would never end."""
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "device.md").symlink_to("/dev/zero")
    for name in ("pipe.md", "device.md"):
        answer = cli("check-workflow", str(tmp_path / name), "--json")
        assert answer.status == 2 and "not a regular file" in answer.error["message"]


@pytest.mark.slow
def test_code_review_with_a_base_that_is_no_revision(cli: Cli, tmp_path: Path) -> None:
    """A base that is no revision fails its task, and is never run as a command or an option."""
    repository = make_repository(tmp_path / "repo", {"a.txt": "one\n"})
    before = tree(repository)
    for base in ["--output=pwned", "HEAD; touch pwned"]:
        found = review(cli, "code-review", repository, "--var", f"base={base}", status=1)
        assert statuses(found).pop("change") == "failed" and "there is no revision" in found["text"]
        assert tree(repository) == before and not (tmp_path / "pwned").exists()


@pytest.mark.slow
def test_parallel_refactor_makes_a_patch_and_changes_no_file(cli: Cli, tmp_path: Path) -> None:
    files = {name: text.replace("\n", " \t\n") for name, text in ODD.items()}
    more = {"clean.txt": "x\n", "binary": b"a \n\0", "crlf": "a \nb\r\n"}
    repository = make_repository(tmp_path / "repo", {**files, **more})
    before = tree(repository)
    found = review(cli, "parallel-refactor", repository)
    assert tree(repository) == before
    assert {task["item"] for task in found["tasks"]} == {*ODD, "crlf"}
    patch = next((cli.root / "runs" / found["team"] / "work").glob("*.patch"))
    git(repository, "apply", str(patch))
    for name, text in ODD.items():
        assert (repository / name).read_text() == text
    assert (repository / "crlf").read_bytes() == b"a\nb\r\n"
    assert not (tmp_path / "pwned").exists() and not (repository / "pwned").exists()


@pytest.mark.slow
def test_feature_factory_delivers_a_patch_that_works(cli: Cli, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", {"a.txt": "x\n"})
    before = tree(repository)
    words = ("feature=shout", "expression=text.upper() + '!'", "examples='hi' => 'HI!'", "directory=src/lib")
    found = review(cli, "feature-factory", repository, *(part for word in words for part in ("--var", word)))
    assert tree(repository) == before
    assert list(statuses(found)) == ["spec", "design", "implement", "test", "docs", "package"]
    assert "Ran 1 test" in results(found)["test"]
    patch = results(found)["package"].splitlines()[-1]
    git(repository, "apply", patch)
    assert sorted(path.name for path in (repository / "src/lib").iterdir()) == ["shout.md", "shout.py", "test_shout.py"]


@pytest.mark.slow
def test_council_asks_all_and_ranks_their_replies(cli: Cli, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", {**ODD, "core.py": "# TODO\n" * 30, "small.py": "x\n"})
    commit(repository, {"core.py": "# FIXME\n" * 40})
    found = review(cli, "council", repository, "--var", "question=What first, $(touch pwned)?")
    assert "## What first, $(touch pwned)?" in found["text"] and "**core.py**" in found["text"]
    assert "4 members replied" in found["text"]
    inbox = cli.ok("read-messages", "--all", agent="leader", team=found["team"])
    replies = {message["from"]: message for message in inbox if message["type"] == "reply"}
    assert sorted(replies) == ["churn", "size", "tests", "todo"]
    assert {reply["replyTo"] for reply in replies.values()} == {"msg-1"}
    assert not (repository / "pwned").exists()


def test_what_workers_cannot_do_is_refused_before_anything_is_made(cli: Cli, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", {"index.js": "x\n"})
    answer = cli("run", "feature-factory", "--var", f"repo={repository}")
    assert answer.status == 2 and "this repository has no Python" in answer.stderr and "--harness" in answer.stderr
    put(repository, {"a.py": "x = 1\n"})
    git(repository, "add", "a.py")
    answer = cli("run", "feature-factory", "--var", f"repo={repository}", "--var", "feature=shout")
    assert answer.status == 2 and "nobody can think of how shout works" in answer.stderr
    assert cli.ok("discover-teams", "--all", agent="lea") == []
