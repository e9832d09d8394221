"""Runs that are interrupted, or whose processes are killed, leave nothing behind and can be resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import COMMAND, Cli
from tests.support.waits import until
from tests.support.workflow_runs import LIMIT, left_running, nothing_left, processes_of, results, run, write_workflow

SLOW = """
agents: 2
tasks:
  - {id: first, title: First, run: 'echo one; echo run >>"$TEAMS_WORK/first.runs"'}
  - id: slow
    title: Slow
    blockedBy: [first]
    run: |
      echo "$$" >>"$TEAMS_WORK/slow.runs"
      [ -e "$TEAMS_WORK/go" ] || { (setsid sleep 300 &); sleep 300; }
      echo two
  - {id: last, title: Last, blockedBy: [slow], run: 'cat "$TEAMS_RESULTS/slow.txt"'}
"""
CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
"""The beginning of a command that sees no processes but its own."""


class Started:
    """A run of the slow workflow that has reached its slow task."""

    def __init__(self, cli: Cli, tmp_path: Path) -> None:
        self.cli = cli
        self.work = cli.root / "runs" / "small-1" / "work"
        path = write_workflow(tmp_path / "workflows", SLOW)
        self.process = cli.start("run", str(path), start_new_session=True)
        until((self.work / "slow.runs").exists, "the slow task")

    def let_go(self) -> None:
        (self.work / "go").touch()

    def task(self, step: str) -> dict[str, Any]:
        rows = self.cli.ok("get-tasks", team="small-1")
        return next(row for row in rows if row["step"] == step)

    def pid_of(self, agent: str) -> int:
        place = self.cli.root / "teams/small-1/agents" / f"{agent}.json"
        until(place.exists, f"{agent}'s joining")
        return int(json.loads(place.read_text())["pid"])

    def end(self) -> tuple[int, str]:
        """Wait for the run to end, and return its exit status and its standard error."""
        _, err = self.process.communicate(timeout=LIMIT)
        assert b"Traceback" not in err, err.decode()
        return self.process.returncode, err.decode()


def resume(cli: Cli, *words: str, status: int = 0) -> dict[str, Any]:
    answer = cli("run", "--resume", "--json", *words)
    assert answer.status == status and answer.stderr == "", answer
    nothing_left(cli.root)
    return json.loads(answer.stdout)


@pytest.mark.slow
def test_what_failed_is_tried_again_by_resume(cli: Cli, tmp_path: Path) -> None:
    front = """
tasks:
  - {id: good, title: Good, run: 'echo run >>"$TEAMS_WORK/good"'}
  - {id: bad, title: Bad, run: '[ -e fixed ] && echo mended'}
  - {id: after, title: After, blockedBy: [bad], run: 'cat "$TEAMS_RESULTS/bad.txt"'}"""
    path = write_workflow(tmp_path, front)
    failed = run(cli, path, status=1, directory=tmp_path)
    (tmp_path / "fixed").touch()
    path.unlink()  # a run is resumed as it was begun, without its file
    found = resume(cli)
    assert found["team"] == failed["team"] and found["status"] == "completed"
    assert results(found)["after"] == "mended\n"
    assert (cli.root / "runs/small-1/work/good").read_text() == "run\n"
    assert cli.refused("run", "--resume") == (10, "not_found")


@pytest.mark.slow
def test_an_interrupted_run_ends_its_workers_and_is_resumed(cli: Cli, tmp_path: Path) -> None:
    started = Started(cli, tmp_path)
    started.process.send_signal(signal.SIGINT)
    status, said = started.end()
    assert status == 130 and "to continue: teams run --resume --team small-1" in said
    nothing_left(cli.root)
    assert started.task("slow")["status"] == "pending" and started.task("first")["status"] == "completed"
    started.let_go()
    found = resume(cli, "--team", "small-1")
    assert found["status"] == "completed" and results(found)["last"] == "two\n"
    assert (started.work / "first.runs").read_text() == "run\n"
    assert len((started.work / "slow.runs").read_text().split()) == 2


@pytest.mark.slow
def test_a_killed_worker_is_noticed_and_its_task_taken_by_another(cli: Cli, tmp_path: Path) -> None:
    started = Started(cli, tmp_path)
    owner = started.task("slow")["owner"]
    started.let_go()
    os.kill(started.pid_of(owner), signal.SIGKILL)
    status, said = started.end()
    assert status == 0 and f"{owner} died (ended by signal 9)" in said
    nothing_left(cli.root)
    slow = started.task("slow")
    assert slow["status"] == "completed" and slow["owner"] != owner and slow["claim"] == 2
    assert f"{owner} died" in (cli.root / "runs/small-1/report.md").read_text()


@pytest.mark.slow
def test_a_killed_run_leaves_no_worker_and_is_resumed(cli: Cli, tmp_path: Path) -> None:
    started = Started(cli, tmp_path)
    assert cli("run", "--resume", "--team", "small-1").status == 11
    assert cli.refused("run", "--resume") == (11, "wrong_state")
    started.process.kill()
    started.end()
    nothing_left(cli.root)
    assert json.loads((cli.root / "teams/small-1/runs/run-1.json").read_text())["status"] == "running"
    started.let_go()
    found = resume(cli)
    assert found["status"] == "completed" and results(found)["last"] == "two\n"
    assert (started.work / "first.runs").read_text() == "run\n"


@pytest.mark.skipif(subprocess.run([*CONTAINER, "true"], capture_output=True).returncode != 0, reason="needs unshare")
def test_a_run_is_not_taken_over_from_another_container(cli: Cli, tmp_path: Path) -> None:
    """In a container, the process that leads the run can't be seen, but the leader is not silent."""
    started = Started(cli, tmp_path)
    words = [*CONTAINER, *COMMAND, "run", "--resume", "--team", "small-1"]
    refused = subprocess.run(words, env=cli.environ(), stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
    assert refused.returncode == 11 and b"the run of team small-1 still runs" in refused.stderr, refused
    started.process.send_signal(signal.SIGINT)
    assert started.end()[0] == 130 and len((started.work / "slow.runs").read_text().split()) == 1


@pytest.mark.slow
def test_a_run_whose_processes_were_all_killed_is_cleaned_up_by_resume(cli: Cli, tmp_path: Path) -> None:
    started = Started(cli, tmp_path)
    workers = {started.pid_of("worker-1"), started.pid_of("worker-2")}
    started.process.send_signal(signal.SIGSTOP)  # so that no process sees another one end
    for pid in (*workers, started.process.pid):
        os.kill(pid, signal.SIGKILL)
    started.end()
    until(lambda: not workers & set(processes_of(cli.root)), "their end")
    assert left_running(cli.root) != []
    started.let_go()
    assert resume(cli)["status"] == "completed"


@pytest.mark.slow
def test_only_an_allowed_caller_resumes_a_run(cli: Cli, tmp_path: Path) -> None:
    path = write_workflow(tmp_path, "tasks: [{id: a, title: A, run: 'false'}]")
    run(cli, path, status=1)
    assert cli.refused("run", "--resume", agent="stranger") == (13, "not_allowed")
    cli.ok("spawn-team", "plain", agent="lea")
    assert cli.refused("run", "--resume", "--team", "plain") == (10, "not_found")
    run(cli, path, status=1)
    assert cli.refused("run", "--resume") == (2, "no_team")


def test_what_a_resumed_run_would_not_heed_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = write_workflow(tmp_path, "tasks: [{id: a, title: A, run: 'test -e done'}]")
    other = write_workflow(tmp_path, "tasks: [{id: a, title: A, run: 'true'}]", "other")
    run(cli, path, status=1, directory=tmp_path)
    for option, value in {"--harness": "claude", "--model": "m", "--permissions": "all", "--agents": "2"}.items():
        refused = cli("run", "--resume", option, value)
        assert (refused.status, "keeps its" in refused.stderr) == (2, True) and option in refused.stderr
    (tmp_path / "done").touch()
    refused = cli("run", str(other), "--resume", "--team", "small-1")
    assert refused.status == 2 and "teams run --resume --team small-1" in refused.stderr
    assert resume(cli, str(path), "--team", "small-1")["status"] == "completed"


def test_a_run_that_was_copied_is_not_resumed_beside_its_copy(cli: Cli, tmp_path: Path) -> None:
    run(cli, write_workflow(tmp_path, "tasks: [{id: a, title: A, run: 'false'}]"), status=1)
    cli.ok("copy-team", "--to", str(tmp_path / "there"), agent="human")
    assert cli.refused("run", "--resume") == (11, "wrong_state")


def test_a_completed_run_is_answered_with_its_report(cli: Cli, tmp_path: Path) -> None:
    """Its summary is not made again, unless somebody reopens a task."""
    front = """
tasks: [{id: a, title: A, run: 'echo done'}]
synthesize: {run: 'echo made >>"$TEAMS_WORK/made"; echo The summary.'}"""
    first = run(cli, write_workflow(tmp_path, front))
    made = cli.root / "runs/small-1/work/made"
    copy = tmp_path / "copy.md"
    assert resume(cli, "--team", "small-1") == first
    assert resume(cli, "--team", "small-1", "--report", str(copy)) == {**first, "report": str(copy)}
    assert copy.read_text() == first["text"] and "The summary." in first["text"] and made.read_text() == "made\n"
    cli.ok("restore-team", team="small-1", agent="human")
    cli.ok("update-task", "1", "--status", "pending", "--reason", "again", team="small-1", agent="human")
    assert resume(cli, "--team", "small-1")["status"] == "completed" and made.read_text() == "made\nmade\n"
