"""Runs of workflows: what workers do, what is reported, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.cli import TIMEOUT, Cli, tree
from tests.support.waits import until
from tests.support.workflow_runs import results, run, statuses, write_workflow


def test_a_run_hands_results_on_and_reports(cli: Cli, tmp_path: Path) -> None:
    front = """
agents: [{type: quick}, {name: other, role: task-manager}]
variables: {who: world}
tasks:
  - {id: greet, title: "Greet {{who}}", priority: high, run: 'echo "hello $who"'}
  - {id: each, title: "Look at {{item}}", each: [a b, c], require: [quick], run: 'echo "$item"'}
  - {id: join, title: Join, description: "After {{result.greet}}", blockedBy: [greet, each],
     run: 'cd "$TEAMS_RESULTS" && cat greet.txt each-1.txt each-2.txt'}
synthesize: {run: 'echo "## All"; cat "$TEAMS_RESULTS/join.txt"'}"""
    path = write_workflow(tmp_path, front)
    found = run(cli, path, "--var", "who=you", directory=tmp_path)
    assert sorted(found) == ["agents", "report", "run", "status", "tasks", "team", "text", "workflow"]
    assert (found["team"], found["status"], found["run"]) == ("small-1", "completed", "run-1")
    assert found["agents"] == [
        {"name": "quick", "role": "team-member", "type": "quick"},
        {"name": "other", "role": "task-manager"},
    ]
    assert found["report"] == str(cli.root / "runs/small-1/report.md")
    assert Path(found["report"]).read_text() == found["text"]
    assert results(found) == {"greet": "hello you\n", "each-1": "a b\n", "each-2": "c\n", "join": "hello you\na b\nc\n"}
    assert [task["title"] for task in found["tasks"]] == ["Greet you", "Look at a b", "Look at c", "Join"]
    assert found["tasks"][3]["description"] == "After hello you\n"
    assert found["tasks"][3]["blockedBy"] == ["task-1", "task-2", "task-3"]
    assert {task["owner"] for task in found["tasks"][1:3]} == {"quick"}
    assert "## All\nhello you\na b\nc\n" in found["text"]
    told = cli.ok("read-messages", agent="leader", team="small-1")
    assert sorted(message["message"].split(" ")[0] for message in told) == ["task-1", "task-2", "task-3", "task-4"]
    assert cli.ok("show-team", "small-1")["leader"] == "leader"


def test_the_answer_for_people_is_the_report_and_progress_is_beside_it(cli: Cli, tmp_path: Path) -> None:
    path = write_workflow(tmp_path, "tasks: [{id: a, title: A, run: 'printf \"\\033[31mred\"'}]")
    report = tmp_path / "my report.md"
    answer = cli("run", str(path), "--report", str(report), "--team", "mine")
    assert answer.status == 0
    assert answer.stdout.startswith("  # Report: small\n") and "\\u001b[31mred" in answer.stdout
    assert answer.stdout.endswith(f"status: completed; team: mine; report: {report}\n")
    assert "\x1b" not in answer.stdout + report.read_text()
    said = answer.stderr.splitlines()
    assert said[0] == "team mine: 1 task for worker" and said[-1] == "[1/1] a: completed by worker: A"


def test_commands_get_their_own_identity_and_nobody_elses(cli: Cli, tmp_path: Path) -> None:
    path = write_workflow(tmp_path, "variables: {v: 1}\ntasks: [{id: env, title: E, run: env}]")
    strange = {"TEAMS_TOKEN": "secret", "OPENCODE_SESSION": "secret", "CLAUDECODE": "secret", "GIT_DIR": "secret"}
    answer = cli("run", str(path), "--json", agent="lea", ANTHROPIC_API_KEY="kept", **strange)
    found = json.loads(answer.stdout)
    said = dict(line.split("=", 1) for line in results(found)["env"].splitlines() if "=" in line)
    assert "secret" not in said.values() and said["ANTHROPIC_API_KEY"] == "kept"
    assert said["TEAMS_HOME"] == str(cli.root) and said["v"] == "1"
    for prefix in ("TEAMS_AGENT", "OPENCODE_AGENT"):
        names = [said[f"{prefix}_{what}"] for what in ("ID", "NAME", "TYPE")]
        assert names == ["worker", "worker", "team-member"]
    assert said["TEAMS_TEAM"] == said["OPENCODE_TEAM_NAME"] == found["team"]
    assert said["TEAMS_RUN_ID"].endswith(".worker")


def test_a_variable_is_a_word_and_never_a_command(cli: Cli, tmp_path: Path) -> None:
    value = "$(touch pwned)`touch pwned`'; touch pwned; '\"; touch pwned; \"a\nb"
    front = """
variables: {v: null}
tasks:
  - {id: one, title: "Say {{v}}", run: 'printf %s "$v"'}
  - {id: two, title: "{{item}}", each: ["{{v}}"], run: 'printf %s "$item"'}"""
    path = write_workflow(tmp_path, front)
    found = run(cli, path, "--var", f"v={value}", directory=tmp_path)
    assert results(found) == {"one": value, "two-1": value}
    assert not list(tmp_path.rglob("pwned"))
    assert Path(found["report"]).parent == cli.root / "runs/small-1"


def test_the_repository_is_not_searched_for_modules(cli: Cli, tmp_path: Path) -> None:
    path = write_workflow(tmp_path / "w", "tasks: [{id: a, title: A, run: 'echo done'}]")
    foreign = tmp_path / "foreign"
    (foreign / "teams_cli").mkdir(parents=True)
    for name in ("teams_cli/__init__.py", "json.py", "yaml.py"):
        (foreign / name).write_text("raise SystemExit('pwned')\n")
    assert results(run(cli, path, "--var", f"repo={foreign}"))["a"] == "done\n"


def test_what_a_command_leaves_running_ends_with_it(cli: Cli, tmp_path: Path) -> None:
    path = write_workflow(tmp_path, "tasks: [{id: a, title: A, run: 'sleep 300 & setsid sleep 300 & echo done'}]")
    assert results(run(cli, path)) == {"a": "done\n"}


@pytest.mark.slow
def test_a_task_is_renewed_while_its_command_runs(cli: Cli, tmp_path: Path) -> None:
    cli.root.mkdir(0o700)
    (cli.root / "config.json").write_text('{"settings": {"staleAfterSeconds": 12}}')
    script = f"until test -e {tmp_path}/go; do sleep 0.05; done"
    path = write_workflow(tmp_path, f"tasks: [{{id: a, title: A, run: '{script}'}}]")

    def lease() -> float:
        shown = cli("show-task", "1", "--json", team="small-1")
        return 0.0 if shown.status else float(shown.json.get("leaseUntil", 0))

    process = cli.start("run", str(path))
    try:
        first = until(lease)
        until(lambda: lease() > first)
    finally:
        (tmp_path / "go").touch()
        process.communicate(timeout=TIMEOUT)
    task = cli.ok("show-task", "1", team="small-1")
    assert (task["status"], task["claim"]) == ("completed", 1)


@pytest.mark.slow
def test_variables_and_agents_are_checked_before_anything_is_made(cli: Cli, tmp_path: Path) -> None:
    front = """
variables: {must: null}
agents: [{type: one}, {type: two}]
tasks: [{id: a, title: A, require: [two], run: 'true'}]"""
    path = write_workflow(tmp_path, front)
    for words in [
        (),
        ("--var", "must"),
        ("--var", "other=1"),
        ("--var", "must=1", "--agents", "1"),
        ("--var", "must=1", "--harness", "other"),
        ("--var", "must=1", "--report", f"{tmp_path}/none/report.md"),
        ("--var", "must=1", "--var", f"repo={tmp_path}/none"),
    ]:
        assert cli.refused("run", str(path), *words) == (2, "invalid_value"), words
    assert tree(cli.root) is None


def test_a_check_has_the_variables_and_the_directory_of_its_task(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "repo" / "sub").mkdir(parents=True)
    front = """
variables: {v: one}
tasks:
- {id: a, title: A, each: [x, y], run: 'true', checkIn: sub, check: 'test "$v $item" = "one $item" && cd ../sub'}
- {id: b, title: B, run: 'true', check: 'echo {{.Names}}; test "$v" = one && test -n "$PYTHON$TEAMS_TASK_ID"'}"""
    path = write_workflow(tmp_path, front)
    found = run(cli, path, "--var", f"repo={tmp_path}/repo", directory=tmp_path)
    assert set(statuses(found).values()) == {"completed"}, found


def test_a_task_that_can_not_be_completed_fails_and_its_worker_goes_on(cli: Cli, tmp_path: Path) -> None:
    front = """
tasks:
- {id: planned, title: Planned, run: 'touch ran', planRequired: true}
- {id: nowhere, title: Nowhere, run: 'true', checkIn: none, check: 'true'}
- {id: good, title: Good, run: 'true'}"""
    found = run(cli, write_workflow(tmp_path, front), status=1, directory=tmp_path)
    assert statuses(found) == {"planned": "failed", "nowhere": "failed", "good": "completed"}
    reasons = [task["notes"][-1]["reason"] for task in found["tasks"][:2]]
    assert "needs an approved plan" in reasons[0] and "does not exist" in reasons[1]
    assert not (tmp_path / "ran").exists() and "died" not in found["text"]


def test_items_that_are_too_many_to_keep_are_refused(cli: Cli, tmp_path: Path) -> None:
    """A run whose items are cut off would report that it is complete."""
    each = "for i in $(seq 20); do head -c 60000 /dev/zero | tr '\\0' a; echo $i; done"
    front = f"tasks:\n- id: a\n  title: A\n  each:\n    run: |\n      {each}\n  run: 'true'"
    answer = cli("run", str(write_workflow(tmp_path, front)))
    assert answer.status == 2 and "the `each` command of a printed more than the" in answer.stderr, answer
    assert tree(cli.root) is None


def test_a_failing_task_fails_the_run_and_what_waits_for_it_is_not_run(cli: Cli, tmp_path: Path) -> None:
    front = """
agents: 2
tasks:
  - {id: good, title: Good, run: 'echo fine'}
  - {id: bad, title: Bad, run: 'echo some; echo "it broke" >&2; exit 7'}
  - {id: after, title: After, blockedBy: [bad], run: 'touch after'}
  - {id: later, title: Later, blockedBy: [after], run: 'touch later'}"""
    path = write_workflow(tmp_path, front)
    found = run(cli, path, status=1, directory=tmp_path)
    assert found["status"] == "failed"
    assert statuses(found) == {"good": "completed", "bad": "failed", "after": "pending", "later": "pending"}
    bad = found["tasks"][1]
    assert bad["result"] == "some\n\n[exit status 7: it broke]\n"
    assert bad["notes"][-1]["reason"] == "exit status 7: it broke"
    text = found["text"]
    assert "## Good\n" in text and "fine" in text and "[exit status 7: it broke]" in text
    assert "* After: waits for bad (FAILED)" in text and "* Later: waits for after (not run)" in text
    assert not (tmp_path / "after").exists()


@pytest.mark.slow
def test_workers_that_may_not_work_end_the_run(cli: Cli, tmp_path: Path) -> None:
    cli.root.mkdir(0o700)
    (cli.root / "config.json").write_text('{"permission": {"tool": {"claim-task": {"*": "deny"}}}}')
    path = write_workflow(tmp_path, "agents: 2\ntasks: [{id: a, title: A, run: 'true'}]")
    found = run(cli, path, status=1)
    assert found["status"] == "incomplete"
    died = r"worker-(\d) died \(exit status 13: worker-\1 is a team-member, which may not claim-task"
    assert {*re.findall(died, found["text"])} == {"1", "2"}  # also the worker that ended second
    assert "* A: no worker was left to do it" in found["text"]


@pytest.mark.slow
def test_a_run_waits_for_a_review(cli: Cli, tmp_path: Path) -> None:
    """A rejected task is done again by its worker, and the run ends with the acceptance."""
    script = f"echo done >> {tmp_path}/log; grep -c . {tmp_path}/log"
    path = write_workflow(tmp_path, f"tasks: [{{id: a, title: A, run: '{script}', reviewBy: human}}]")
    process = cli.start("run", str(path), "--json")
    try:
        for claim, verdict in ((1, ("--reject", "once more")), (2, ("--accept",))):
            until(lambda claim=claim: _is_in_review(cli, claim))
            cli.ok("review-task", "1", *verdict, agent="human", team="small-1")
    finally:
        out, _ = process.communicate(timeout=TIMEOUT)
    document = json.loads(out)
    assert (document["status"], results(document)) == ("completed", {"a": "2\n"})


def _is_in_review(cli: Cli, claim: int) -> bool:
    shown = cli("show-task", "1", "--json", team="small-1")
    return shown.status == 0 and (shown.json["status"], shown.json["claim"]) == ("in_review", claim)


@pytest.mark.slow
def test_a_run_ends_if_nobody_is_left_to_review(cli: Cli, tmp_path: Path) -> None:
    front = """
agents: [{name: one}, {name: two}]
tasks:
  - {id: a, title: A, run: 'echo a', reviewBy: task-manager}
  - {id: b, title: B, run: 'echo b', blockedBy: [a]}"""
    path = write_workflow(tmp_path, front)
    found = run(cli, path, status=1)
    assert found["status"] == "incomplete" and "no worker was left" not in found["text"]
    accept = "review-task task-1 --accept --as human --team small-1"
    assert f"* A: task-1 waits for the review by task-manager; a person accepts it by: teams {accept}" in found["text"]
    assert "To do the rest: `teams run --resume --team small-1`" in found["text"]
    assert cli(*accept.split()).status == 0
    assert run(cli, "--resume", "--team", "small-1")["status"] == "completed"


@pytest.mark.slow
def test_a_synthesis_that_fails_is_told(cli: Cli, tmp_path: Path) -> None:
    front = "tasks: [{id: a, title: A, run: 'echo hi'}]\nsynthesize: {run: 'echo no >&2; exit 1'}"
    found = run(cli, write_workflow(tmp_path, front), status=1)
    assert statuses(found) == {"a": "completed"} and found["status"] == "failed"
    assert "The synthesis failed: exit status 1: no" in found["text"] and "hi" in found["text"]


def test_a_worker_without_a_model_works_where_the_workflow_says(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "workspace1").mkdir()
    front = "agents: [{name: a, cwd: workspace1}]\ntasks: [{id: place, title: Where, run: pwd}]"
    found = run(cli, write_workflow(tmp_path, front), directory=tmp_path)
    assert results(found) == {"place": f"{tmp_path}/workspace1\n"}
