"""Rules that an audit of the documentation found broken, each with the commands that show it."""

from __future__ import annotations

import json
from pathlib import Path

from teams_cli.tasks.tasks import TASK
from tests.support.cli import ALPHA, Cli, add_tasks, make_team
from tests.support.waits import begin, ended, until

WORKFLOW = "---\nname: w\ndescription: d\ntasks:\n  - {id: t, title: T, run: pwd}\n"


def test_the_human_is_asked_in_the_only_team_though_nobody_named_it(cli: Cli, tmp_path: Path) -> None:
    add_tasks(cli, "one")
    rules = {"permission": {"tool": {"claim-task": {"team-member": "ask"}}}}
    (tmp_path / "root" / "config.json").write_text(json.dumps(rules))
    cli.team = ""
    claiming = begin(cli, "bob", "claim-task", "1")
    until(lambda: cli.ok("get-questions", agent="human"))
    cli.ok("answer", "ask-1", "yes", agent="human")
    assert ended(claiming)["owner"] == "bob"


def test_of_several_teams_the_commands_that_follow_say_which(cli: Cli) -> None:
    cli.ok("spawn-team", "beta", agent="lea")
    cli.ok("join-team", "beta", agent="bob")
    add_tasks(cli, "one")
    cli.team = ""
    for command in ("whoami", "brief"):
        assert "a member of alpha, beta; choose with --team NAME or TEAMS_TEAM" in cli(command, agent="bob").stdout
    assert cli("brief", agent="bob", team="").stdout.endswith("next: teams brief --team NAME --as bob\n")
    assert cli("brief", agent="human").stdout.endswith("next: teams brief --team NAME --as human\n")
    assert "next: teams claim-task --team alpha --next" in cli("brief", "--team", "alpha", agent="bob").stdout
    assert cli("wait", "--team", "beta", "--timeout", "0", agent="bob").stderr.endswith(
        "teams wait --team beta --timeout 540\n"
    )


def test_a_role_follows_only_a_workflow_that_is_there(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    assert cli.refused("define-role", "r", "--workflow", "no-such", agent="lea") == (10, "workflow_not_found")
    config = tmp_path / "root" / "config.json"
    config.write_text('{"agent": {"bad": {"extends": "team-member", "workflow": "no-such"}}}')
    assert "there is no workflow 'no-such', which the role bad is to follow" in cli("doctor").stdout
    (tmp_path / "w.md").write_text(WORKFLOW + "roles:\n  sec: {extends: team-member, workflow: no-such}\n---\n")
    assert "roles.sec.workflow: there is no workflow" in cli("check-workflow", str(tmp_path / "w.md")).stderr


def test_agents_of_a_workflow_work_below_the_repository(tmp_path: Path) -> None:
    for place in ("../out", "/tmp", "a/../.."):
        (tmp_path / "w.md").write_text(WORKFLOW + f"agents:\n  - {{name: a, cwd: {place}}}\n---\n")
        checked = Cli(tmp_path / "root")("check-workflow", str(tmp_path / "w.md"))
        assert "must be a directory below the repository" in checked.stderr


def test_what_run_refuses_of_its_workers_is_not_valid(tmp_path: Path) -> None:
    cli, file = Cli(tmp_path / "root"), tmp_path / "w.md"
    for key in ("model: m", "permissions: edit", "worktree: true", "cwd: nowhere", "harness: nobody"):
        file.write_text(WORKFLOW + f"agents:\n  - {{name: a, {key}}}\n---\n")
        checked, ran = (cli(command, str(file)) for command in ("check-workflow", "run"))
        assert checked.status == ran.status == 2 and checked.stderr == ran.stderr, key
        assert key[:2] not in ("mo", "pe", "wo") or f"`{key.split(':')[0]}` changes nothing" in ran.stderr
    file.write_text(WORKFLOW + "agents:\n  - {name: a, model: m}\n---\n")
    assert cli.ok("check-workflow", str(file), "--harness", "claude")["valid"]


def test_the_keys_of_massgen_are_told_by_run_and_by_up(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(
        "agents:\n- {id: a, backend: {type: x}}\norchestrator: {coordination: {enable_planning_mode: on}}\n"
    )
    for words in (("run", str(file)), ("up", "--file", str(file), "--as", "lea")):
        told = Cli(tmp_path / "root")(*words).stderr
        assert "enable_planning_mode: write `planRequired: true` at the tasks" in told


def test_a_wrong_rule_is_told_with_the_words_that_are_allowed(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    (tmp_path / "root" / "config.json").write_text('{"permission": {"tool": {"get-tasks": "maybe"}}}')
    assert "permission.tool.get-tasks: Input should be 'allow', 'ask' or 'deny'" in cli("doctor").stderr


def test_a_claim_without_a_lease_ends_for_that_reason(cli: Cli) -> None:
    add_tasks(cli, "one")
    store = cli.store()
    task, revision = store.get(ALPHA, TASK, "task-1")
    store.replace(ALPHA, TASK, "task-1", task.having(status="in_progress", owner="bob"), revision)
    assert "the claim of bob had no lease" in cli("show-task", "1").stdout


def test_a_member_whose_role_is_gone_may_still_look_and_leave(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    config = tmp_path / "root" / "config.json"
    config.write_text('{"agent": {"scout": {"extends": "team-member"}}}')
    cli.ok("join-team", "--role", "scout", agent="bob")
    config.write_text("{}")
    assert cli.ok("brief", agent="bob")["role"] == "scout"
    assert cli.refused("note", "1", "x", agent="bob") == (13, "not_allowed")
    assert cli.ok("leave-team", agent="bob")["left"]


def test_the_team_that_nobody_named_has_a_source(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    cli.ok("set", "max_depth", "5", agent="lea")
    cli.team = ""
    assert cli.ok("whoami", agent="lea")["sources"]["team"] == "only"
    settings = cli.ok("settings")
    assert settings["call"]["team"] == {"value": ALPHA, "source": "only"}
    (depth,) = [row for row in settings["settings"] if row["key"] == "max_depth"]
    assert (depth["value"], depth["source"]) == (5, "team")


def test_a_stranger_does_not_wait_for_a_closed_team(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    cli.ok("close-team", agent="lea")
    waited = cli("wait", "--timeout", "0", agent="new")
    assert waited.status != 0 and "is closed" in waited.stderr
