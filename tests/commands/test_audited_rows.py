"""What an audit of the documents' rows found wrong, each rule once, by the commands that show it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import add_tasks, make_team
from tests.support.waits import begin, ended, until


def test_the_human_is_asked_in_the_only_team_though_nobody_named_it(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one")
    rules = {"permission": {"tool": {"claim-task": {"team-member": "ask"}}}}
    (tmp_path / "root" / "config.json").write_text(json.dumps(rules))
    cli.team = ""
    claiming = begin(cli, "bob", "claim-task", "1")
    until(lambda: cli.ok("get-questions", agent="human"))
    cli.ok("answer", "ask-1", "yes", agent="human")
    assert ended(claiming)["owner"] == "bob"


def test_of_several_teams_the_commands_that_follow_say_which(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("spawn-team", "beta", agent="lea")
    cli.ok("join-team", "beta", agent="bob")
    add_tasks(cli, "one")
    cli.team = ""
    for command in ("whoami", "brief"):
        assert "a member of alpha, beta; choose with --team NAME or TEAMS_TEAM" in cli(command, agent="bob").stdout
    assert cli("brief", agent="bob", team="").stdout.endswith("next: teams brief --team NAME --as bob\n")
    assert cli("brief", agent="human").stdout.endswith("next: teams brief --team NAME --as human\n")
    assert "next: teams claim-task --team alpha --next" in cli("brief", "--team", "alpha", agent="bob").stdout
    assert cli("wait", "--team", "beta", "--timeout", "0", agent="bob").stderr.endswith("teams wait --team beta\n")


def test_who_lost_its_role_may_still_look_and_leave(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    config = tmp_path / "root" / "config.json"
    config.write_text('{"agent": {"scout": {"extends": "team-member"}}}')
    cli.ok("join-team", "--role", "scout", agent="bob")
    config.write_text("{}")
    assert cli.ok("brief", agent="bob")["role"] == "scout"
    assert cli.refused("note", "1", "x", agent="bob") == (13, "not_allowed")
    assert cli.ok("leave-team", agent="bob")["left"]


def test_a_stranger_does_not_wait_for_a_closed_team(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    cli.ok("close-team", agent="lea")
    waited = cli("wait", "--timeout", "0", agent="new")
    assert waited.status != 0 and "is closed" in waited.stderr
