"""`teams up` and `teams down`: making, resuming and ending the team that a repository describes."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli
from tests.support.waits import until
from tests.support.workflow_runs import make_repository

ROSTER = """
name: web
members:
  - {name: ann, role: team-leader}
  - name: bob
    role: reviewer
    harness: shell
    worktree: true
    prompt: 'test "$TEAMS_RESUME" || { touch $TEAMS_HOME/began; sleep 600; }; echo again'
  - {name: mia, role: task-manager}
rules: [Be kind, Test first]
pages: {api: GET /users}
tasks:
  - {id: one, title: First, touches: [a.py]}
  - {title: Second, blockedBy: [one], check: test -e done, checkIn: below, reviewBy: bob, for: eve}
"""


class Checkout:
    """A repository with a roster, and an empty data directory."""

    def __init__(self, top: Path) -> None:
        self.cli = Cli(top / "root", team="web")
        self.path = top / "repository"
        files = {
            ".claude/agents/reviewer.md": "---\nname: reviewer\ndescription: Finds holes\n---\nx\n",
            ".claude/agents/mia.md": "---\nname: mia\ndescription: Knows the users\n---\nx\n",
            "teams.yaml": ROSTER,
        }
        make_repository(self.path, files)
        (self.path / "below").mkdir()

    def run(self, *words: str, agent: str = "") -> tuple[int, Any]:
        """Run a command below the top of the repository; its status, and its document or refusal."""
        with contextlib.chdir(self.path / "below"):
            done = self.cli(*words, "--json", agent=agent, team="")
        return done.status, json.loads(done.stdout or done.stderr.splitlines()[-1])


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def states(document: dict[str, Any]) -> dict[str, str]:
    return {member["name"]: member["state"] for member in document["members"]}


@pytest.mark.slow
def test_a_team_is_made_resumed_and_ended(checkout: Checkout) -> None:
    """A repeated `teams up` adds nothing, and keeps what the members have changed since."""
    cli = checkout.cli
    status, made = checkout.run("up")
    assert status == 0 and (made["team"], made["leader"], made["created"]) == ("web", "ann", True)
    assert states(made) == {"ann": "leads", "bob": "started", "mia": "expected"}
    assert (made["pages"], made["tasks"]) == (["api"], ["task-1", "task-2"])
    cli.ok("share", "api", "GET /people", agent="mia")
    assert [one["message"] for one in cli.ok("read-messages", agent="mia")] == ["Your purpose: Knows the users"]
    cli.ok("claim-task", "1", agent="mia")
    status, again = checkout.run("up", agent="human")
    assert status == 0 and states(again) == {"ann": "leads", "bob": "running", "mia": "here"}
    assert (again["created"], again["pages"], again["tasks"]) == (False, [], [])
    assert cli.ok("shared", "api")["text"] == "GET /people"
    assert [(task["id"], task["blockedBy"]) for task in cli.ok("get-tasks")] == [("task-1", []), ("task-2", ["task-1"])]
    second = cli.ok("show-task", "2")
    assert (second["check"], second["reviewBy"], second["assignee"]) == ("test -e done", "bob", "eve")
    assert second["checkIn"] == str(checkout.path / "below")
    team = cli.ok("show-team", "web")
    assert team["settings"]["rules"] == "- Be kind\n- Test first"
    assert team["roles"]["reviewer"]["description"] == "Finds holes"
    assert {m["agentId"]: m["role"] for m in team["members"]}["bob"] == "reviewer"
    assert checkout.run("up", agent="mia")[0] == checkout.run("down", agent="mia")[0] == 13
    until((cli.root / "began").exists)  # bob, stopped before its first turn, would later begin with that
    assert checkout.run("down") == (0, {"team": "web", "state": "closed", "stopped": ["bob"]})
    assert checkout.run("down") == (0, {"team": "web", "state": "closed", "stopped": []})
    longer = ROSTER.replace("pages: {", "pages: {new: x, ") + "  - {title: Third, blockedBy: [task-1]}\n"
    (checkout.path / "teams.yaml").write_text(longer)
    status, back = checkout.run("up")
    assert status == 0 and states(back)["bob"] == "resumed"
    assert (back["pages"], back["tasks"]) == (["new"], ["task-3"])
    cli.ok("wait", "--agent", "bob", agent="ann")
    assert "again" in cli("recall", "bob", "--output", agent="ann").stdout
    assert checkout.run("down")[0] == 0


def test_a_resumed_agent_gets_the_model_of_the_roster(each_engine: str, checkout: Checkout) -> None:
    """Also where several machines use the store, and each records how it started its agents."""
    cli, start = checkout.cli, ["sh", "-c", 'echo "$0"; test "$0" = big || sleep 600', "{model}"]
    cli.root.mkdir(0o700)
    harness = {"own": {"start": start, "resume": start, "model": ["{model}"]}}
    (cli.root / "config.json").write_text(json.dumps({"harness": harness}))
    bob = "{name: bob, harness: own, model: MODEL, prompt: x}"
    roster = f"name: web\nmembers: [{{name: ann, role: team-leader}}, {bob}]\n"
    for model, state in [("small", "started"), ("big", "resumed")]:
        (checkout.path / "teams.yaml").write_text(roster.replace("MODEL", model))
        status, made = checkout.run("up")
        assert status == 0 and states(made)["bob"] == state, made
        if state == "started":
            assert checkout.run("down")[0] == 0
    cli.ok("wait", "--agent", "bob", agent="ann")
    assert cli.ok("recall", "bob", "--output", agent="ann")["agents"][0]["output"].strip() == "big"


def test_two_at_once_make_one_team(checkout: Checkout) -> None:
    small = "name: web\nmembers: [{name: ann, role: team-leader}, {name: mia}]\ntasks: [{id: one, title: First}]\n"
    (checkout.path / "teams.yaml").write_text(small)
    with contextlib.chdir(checkout.path), ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda _: checkout.cli.ok("up", agent="human", team="")["tasks"], range(2)))
    assert sorted(made) == [[], ["task-1"]]


def test_a_workflow_may_say_the_tasks(checkout: Checkout) -> None:
    """The next `teams up` creates a task that was added to the workflow, with its blockers."""
    workflow = checkout.path / "release.md"
    (checkout.path / "teams.yaml").write_text("name: web\nworkflow: release.md\n")
    workflow.write_text("---\nname: r\ntasks:\n- {id: a, title: A, run: 'true'}\n---\n")
    assert checkout.run("up", agent="lea")[1]["tasks"] == ["task-1"]
    text = workflow.read_text().replace("\n---\n", "\n- {id: b, title: B, prompt: b, blockedBy: [a]}\n---\n")
    workflow.write_text(text)
    assert checkout.run("up", agent="lea")[1]["tasks"] == ["task-2"]
    assert checkout.cli.ok("show-task", "2")["blockedBy"] == ["task-1"]
    assert checkout.cli.ok("show-team", "web")["leader"] == "lea"


def test_all_faults_are_named_before_anything_is_made(checkout: Checkout) -> None:
    wrong = """name: web
members:
  - {name: ann, harness: shell, prompt: sleep 600}
  - {name: Ann}
  - {name: LEAD, role: nope}
  - {name: bob, harness: nope, prompt: x}
  - {name: eve, harness: shell, prompt: x, model: big, permissions: ask}
  - {nme: mia}
pages: {a: "", "b c": x, D: x, d: x}
rules: " "
tasks:
  - {id: a, title: x, blockedBy: [zz], for: lead, touches: [/etc]}
  - {id: b, title: y, blockedBy: [c]}
  - {id: c, title: z, after: [b]}
  - {id: c, title: z}
surprise: 1
"""
    (checkout.path / "teams.yaml").write_text(wrong)
    status, refusal = checkout.run("up", agent="human")
    assert status == 2
    named = [line.split(":", 2)[1:] for line in refusal["error"]["message"].splitlines()[1:]]
    assert [(int(line), what.split(":")[0].strip()) for line, what in named] == [
        (4, "members.1.name"),
        (5, "members.2.name"),
        (5, "members.2.role"),
        (6, "members.3.harness"),
        (7, "members.4.model"),
        (7, "members.4.permissions"),
        (8, "members.5.name"),
        (8, "members.5.nme"),
        (9, "pages.a"),
        (9, "pages.b c"),
        (9, "pages.d"),
        (10, "rules"),
        (12, "tasks.0.blockedBy.0"),
        (12, "tasks.0.for"),
        (12, "tasks.0.touches"),
        (13, "tasks.1.blockedBy"),
        (15, "tasks.3.id"),
        (16, "surprise"),
    ]
    assert checkout.cli.store().teams() == []


@pytest.mark.parametrize("operation", ["up", "set", "share", "create-task", "run-agent"])
def test_a_denied_operation_leaves_no_team(checkout: Checkout, operation: str) -> None:
    rules = {"permission": {"tool": {operation: {"team-leader": "deny"}}}}
    checkout.cli.root.mkdir(exist_ok=True)
    (checkout.cli.root / "config.json").write_text(json.dumps(rules))
    assert checkout.run("up")[0] == 13
    assert checkout.cli.store().teams() == []


@pytest.mark.slow
def test_what_makes_no_sense_is_refused_before_anything_is_made(checkout: Checkout) -> None:
    for text, said in [
        ("name: web\nmembers: [{name: a, role: team-leader}, {name: b, role: leader}]", "b can't lead it too"),
        ("name: web\ntasks: [{id: a, title: A}]\nworkflow: x.md", "go against each other"),
        ("name: web\nrules: \x01", "not valid YAML"),
        ("name: web\nmembers: [{name: b}]\ntasks: [{title: A, for: B}]", "tasks.0.for: B differs only in case from b"),
        ("name: web\nmembers: [{name: b}]\ntasks: [{title: A, reviewBy: B}]", "B differs only in case from b"),
        ("name: web\nx: &x [*x, *x]", "100000 values"),
    ]:
        (checkout.path / "teams.yaml").write_text(text)
        status, refusal = checkout.run("up")
        assert status == 2 and said in refusal["error"]["message"] and refusal["error"]["hint"]
        assert checkout.cli.store().teams() == []


def test_a_team_that_was_copied_is_not_brought_up_beside_its_copy(checkout: Checkout, tmp_path: Path) -> None:
    cli = checkout.cli
    (checkout.path / "teams.yaml").write_text("name: web\nmembers: [{name: mia}]\n")
    assert checkout.run("up", agent="ann")[0] == 0
    cli.ok("copy-team", "--to", str(tmp_path / "there"), agent="ann")
    status, refused = checkout.run("up", agent="ann")
    assert (status, refused["error"]["code"]) == (11, "wrong_state")
    assert "restore-team web" in refused["error"]["hint"] and cli.ok("show-team")["state"] == "closed"
    assert cli("restore-team", agent="ann").status == checkout.run("up", agent="ann")[0] == 0
