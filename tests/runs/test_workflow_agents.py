"""Workflows whose tasks are done by agents with a client instead of workers."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from tests.support import workflow_agent
from tests.support.cli import Cli, program
from tests.support.waits import until
from tests.support.workflow_runs import LIMIT, commit, make_repository, run, statuses, write_workflow

CLIENT = [sys.executable, workflow_agent.__file__]
HARNESS = {
    "start": [*CLIENT, "start"],
    "resume": [*CLIENT, "resume"],
    "input": "prompt",
    "output": {"from": "lines", "match": {"type": "answer"}, "path": "text"},
    "interrupt": [["INT", 1], ["KILL", 1]],
}

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("name", ["code-review", "council"])
def test_a_shipped_workflow(cli: Cli, repository: Path, name: str) -> None:
    document = run(cli, name, "--harness", "scripted", "--var", f"repo={repository}")
    assert document["status"] == "completed"
    assert set(statuses(document).values()) == {"completed"}
    assert Path(document["report"]).read_text(encoding="utf-8")


FOREIGN = {"CLAUDE_CODE_SESSION_ID": "s1", "TEAMS_TOKEN": "t1", "OPENCODE_AGENT_NAME": "n1", "GIT_DIR": "/nowhere"}
OWN = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "SOME_API_KEY": "k", "CLAUDE_CODE_OAUTH_TOKEN": "o"}


def test_agents_inherit_the_same_from_a_run_as_from_a_person(cli: Cli, tmp_path: Path) -> None:
    """Agents inherit the keys and client settings that their profile keeps, and nobody's identity."""
    seen = tmp_path / "seen"
    keep = ["*_API_KEY", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_HOME"]
    shown = ["sh", "-c", f'env > {seen}-$TEAMS_TEAM; exec "$0" "$@"']
    harness = {
        "scripted": {**HARNESS, "start": [*shown, *CLIENT, "start"], "keep": keep},
        "once": {**HARNESS, "start": [*shown, "true"], "keep": keep},
    }
    (cli.root / "config.json").write_text(json.dumps({"harness": harness}))
    cli.more.update(FOREIGN, **OWN)
    front = 'agents: [{role: team-member}]\ntasks: [{id: a, title: A, run: "echo a"}]\n'
    run(cli, write_workflow(tmp_path / "w", front), "--harness", "scripted")
    cli.ok("spawn-team", "other", agent="lea")
    assert cli("run-agent", "hello", "--harness", "once", agent="lea", team="other").status == 0
    found = [path.read_text().splitlines() for path in tmp_path.glob("seen-*")]
    assert len(found) == 2
    for variables in found:
        assert {f"{name}={value}" for name, value in OWN.items()} <= {*variables}
        assert not {f"{name}={value}" for name, value in FOREIGN.items()} & {*variables}


def scripted(cli: Cli, name: str, script: str, **more: object) -> None:
    """Configure a harness *name* whose client is a shell script that gets the prompt on standard input."""
    path = cli.root / "config.json"
    config = json.loads(path.read_text())
    config["harness"][name] = {"start": ["sh", "-c", script], "resume": ["sh", "-c", script], "input": "prompt", **more}
    path.write_text(json.dumps(config))


TEAMS = f"{sys.executable} -P -m teams_cli"
CLAIMING = f"""
case "$TEAMS_AGENT_ID" in synthesis*) cat >/dev/null; SUM; exit;; esac
while task=$({TEAMS} claim-task --next --json); do
    id=$(printf %s "$task" | {sys.executable} -c 'import json, sys; print(json.load(sys.stdin)["id"])')
    {TEAMS} update-task "$id" --status completed --result "SERIOUS a.py:2: it calls eval"
done
"""
TWO = """
synthesize:
  run: echo nothing was found
  prompt: Make a verdict of it.
  verdict: {pattern: '(?m)^Verdict: (.*)$'}
tasks:
- {id: a, title: A, run: echo a, prompt: "Look at {{repo}}"}
- {id: b, title: B, blockedBy: [a], prompt: "Go on with {{result.a}}"}
"""


def test_a_model_sums_up_what_models_found(cli: Cli, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    answer = f"cat >{seen}; echo 'Verdict: changes are needed'; echo; echo a.py is bad"
    scripted(cli, "f", CLAIMING.replace("cat >/dev/null; SUM", answer))
    document = run(cli, write_workflow(tmp_path / "w", TWO), "--harness", "f")
    assert document["status"] == "completed" and document["verdict"] == "changes are needed"
    assert "a.py is bad" in document["text"] and "nothing was found" not in document["text"]
    shown = cli.ok("recall", "--team", document["team"], agent="leader")
    assert {row["name"] for row in shown["agents"]} == {"leader", "worker", "synthesis"}
    assert "teams show-task task-1" in document["tasks"][1]["prompt"]
    prompt = seen.read_text()
    assert "Make a verdict of it." in prompt and prompt.count("it calls eval") == 2
    assert "b (B), completed, by worker:" in prompt


def test_a_match_without_its_group_is_the_verdict(cli: Cli, tmp_path: Path) -> None:
    front = """
synthesize: {run: "echo 'Verdict: none'", verdict: {pattern: 'Verdict: (?:(good|bad)|none)'}}
tasks: [{id: a, title: A, run: echo a}]
"""
    assert run(cli, write_workflow(tmp_path / "w", front))["verdict"] == "Verdict: none"


def test_a_leader_without_a_verdict_fails_the_run(cli: Cli, tmp_path: Path) -> None:
    scripted(cli, "f", CLAIMING.replace("SUM", "echo I can not say"), failed={"status": True})
    document = run(cli, write_workflow(tmp_path / "w", TWO), "--harness", "f", status=1)
    assert document["status"] == "failed" and "verdict" not in document
    assert "The synthesis failed: the leader's answer has no verdict" in document["text"]


def test_a_task_that_is_given_back_again_and_again_fails(cli: Cli, tmp_path: Path) -> None:
    """A task that was released at each of its attempts fails with the last reason, and the run ends."""
    script = f"""
cat >/dev/null
task=$({TEAMS} claim-task --next --json) || exit 0
id=$(printf %s "$task" | {sys.executable} -c 'import json, sys; print(json.load(sys.stdin)["id"])')
while {TEAMS} release-task "$id" --reason "not for me"; do {TEAMS} claim-task "$id" || break; done
"""
    scripted(cli, "f", script)
    front = "attempts: 2\ntasks:\n- {id: a, title: A, prompt: x}\n- {id: b, title: B, blockedBy: [a], prompt: y}\n"
    document = run(cli, write_workflow(tmp_path / "w", front), "--harness", "f", status=1)
    assert statuses(document) == {"a": "failed", "b": "pending"}
    assert "claimed and released 2 times: not for me" in document["text"]


@pytest.mark.parametrize(("review", "status"), [("review-task task-1 --accept", "completed"), ("brief", "incomplete")])
def test_a_run_waits_for_the_review_of_an_agent(cli: Cli, tmp_path: Path, review: str, status: str) -> None:
    """It waits until the agent has reviewed the last task, or was called several times and has not done so."""
    script = CLAIMING.replace("synthesis*) cat >/dev/null; SUM", f"critic) cat >/dev/null; {TEAMS} {review}")
    scripted(cli, "f", script)
    front = """
agents: [{name: doer, type: doing}, {name: critic}]
tasks: [{id: a, title: A, prompt: x, require: [doing], reviewBy: critic}]
"""
    path = write_workflow(tmp_path / "w", front)
    document = run(cli, path, "--harness", "f", status=0 if status == "completed" else 1)
    assert (document["status"], document["tasks"][0]["owner"]) == (status, "doer")
    assert ("task-1 waits for the review by critic" in document["text"]) == (status == "incomplete")


def test_agents_of_an_interrupted_run_continue_with_it(cli: Cli, tmp_path: Path) -> None:
    """The run stops its agents when it is interrupted, and calls them when it is resumed. An agent that somebody else
    stopped stays stopped.
    """
    front = f"""
agents: 2
tasks:
- id: a
  title: A
  prompt: x
  run: 'touch {tmp_path}/begun; until test -e {tmp_path}/go; do sleep 0.05; done'
- {{id: b, title: B, blockedBy: [a], prompt: y, run: echo fine}}
"""
    process = cli.start("run", str(write_workflow(tmp_path / "w", front)), "--harness", "scripted")
    until((tmp_path / "begun").exists, "the task")
    owner = cli.ok("show-task", "1", team="small-1")["owner"]
    other = next(name for name in ("worker-1", "worker-2") if name != owner)
    cli.ok("stop-agent", other, team="small-1", agent="human")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=LIMIT) and process.returncode == 130
    (tmp_path / "go").touch()
    answer = cli("run", "--resume", "--team", "small-1", "--json")
    assert answer.status == 0 and statuses(json.loads(answer.stdout)) == {"a": "completed", "b": "completed"}, answer
    assert f"{other} died (human stopped it)" in json.loads(answer.stdout)["text"]
    assert f"{owner} died" not in json.loads(answer.stdout)["text"]


def test_an_agent_that_failed_is_called_again_by_resume(cli: Cli, tmp_path: Path) -> None:
    scripted(cli, "f", f"test -e {tmp_path}/mended || exit 9\n{CLAIMING.replace('SUM', 'echo fine')}")
    path = write_workflow(tmp_path / "w", "tasks: [{id: a, title: A, prompt: x}]")
    found = run(cli, path, "--harness", "f", status=1)
    assert found["status"] == "incomplete" and "worker died (exit status 9" in found["text"]
    (tmp_path / "mended").touch()
    answer = cli("run", "--resume", "--team", found["team"], "--json")
    assert answer.status == 0 and json.loads(answer.stdout)["status"] == "completed", answer


def test_a_budget_that_is_used_up_in_a_run_is_told(cli: Cli, tmp_path: Path) -> None:
    """No task fails for it, since nobody could be called to do it."""
    once = CLAIMING.replace("\ndone", '\nexec echo \'{"type": "usage", "in": 60, "out": 0}\'\ndone')
    usage = {"from": "lines", "match": {"type": "usage"}, "input": ["in"], "output": ["out"]}
    scripted(cli, "f", once, usage=usage)
    front = """
settings: {budget: 50}
tasks: [{id: a, title: A, prompt: x}, {id: b, title: B, blockedBy: [a], prompt: y}]
"""
    found = run(cli, write_workflow(tmp_path / "w", front), "--harness", "f", status=1)
    assert found["status"] == "incomplete" and statuses(found) == {"a": "completed", "b": "pending"}
    assert "worker begins no turn now (the budget of the team: 60 of 50 tokens are used; raise it:" in found["text"]
    cli.ok("set", "budget", "5000", team=found["team"], agent="leader")
    answer = cli("run", "--resume", "--team", found["team"], "--json")
    assert answer.status == 0 and json.loads(answer.stdout)["status"] == "completed", answer


def test_a_client_that_is_not_there_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    path = write_workflow(tmp_path / "w", "tasks: [{id: a, title: A, prompt: x}]")
    cli.more["PATH"] = "/usr/bin:/bin"
    answer = cli("run", str(path), "--harness", "claude")
    assert answer.status == 2 and "the program claude of the harness claude is not on PATH" in answer.stderr
    program(tmp_path / "bin/claude", "echo no libc here >&2\nexit 9\n")
    cli.more["PATH"] = f"{tmp_path}/bin:/usr/bin:/bin"
    answer = cli("run", str(path), "--harness", "claude")
    assert answer.status == 2 and "claude can't be started: no libc here" in answer.stderr
    assert cli.ok("discover-teams", "--all", agent="lea") == []


def test_several_harnesses_models_places_and_settings_in_one_run(cli: Cli, tmp_path: Path) -> None:
    """Workers do tasks with a command, agents the others, each in its directory and with its model."""
    repository = make_repository(tmp_path / "repo", {"sub/a.txt": "a\n"})
    note = f'echo "$0 $PWD" >>{tmp_path}/seen;'
    start = ["sh", "-c", note + CLAIMING.replace("SUM", "echo fine"), "{model}"]
    scripted(cli, "f", "", start=start, resume=start, model=["-m{model}"])
    scripted(cli, "g", "", start=start, resume=start, model=["-g{model}"])
    front = """
settings: {broadcast: agents, response_depth: high}
roles:
  one: {extends: team-member, skill: [one]}
  two: {extends: team-member, skill: [two]}
  three: {extends: team-member, skill: [three]}
agents:
- {name: hand, role: three}
- {name: ann, role: one, harness: f, model: big, cwd: sub}
- {name: bob, role: two, harness: g, model: small, worktree: true}
synthesize: {prompt: Say how it was.}
tasks:
- {id: a, title: A, require: [three], run: echo done by hand}
- {id: b, title: B, require: [one], prompt: x}
- {id: c, title: C, require: [two], prompt: y}
"""
    path = write_workflow(tmp_path / "w", front)
    document = run(cli, path, "--var", f"repo={repository}")
    team = document["team"]
    assert {task["step"]: task["owner"] for task in document["tasks"]} == {"a": "hand", "b": "ann", "c": "bob"}
    seen = (tmp_path / "seen").read_text().splitlines()
    assert f"-mbig {repository}/sub" in seen and f"-gsmall {cli.root}/worktrees/{team}/bob" in seen
    assert "bob (g, small)" in document["text"] and "nothing on teams/" in document["text"]
    shown = cli.ok("show-team", team, agent="lea")
    assert shown["settings"]["broadcast"] == "agents" and shown["settings"]["response_depth"] == "high"
    assert shown["state"] == "closed"
