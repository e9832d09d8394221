"""Agreements: the owners of tasks that meet write down who changes what, and tasks can require it."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import Cli, add_tasks, make_team


def test_two_owners_agree_with_a_command_each(tmp_path: Path) -> None:
    """The other is asked, with the command to confirm; another text is a new version, which takes a new word."""
    cli = make_team(tmp_path / "root", "bob", "mia", "tom")
    add_tasks(cli, "one")
    cli.ok("create-task", "two", "--agree-with", "1", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("claim-task", "2", agent="mia")
    assert cli.refused("update-task", "2", "--status", "completed", agent="mia")[1] == "conflict"
    assert cli.refused("agree", "1,2", agent="mia") == (10, "page_not_found")
    assert cli.refused("agree", "1,2", "--text", "mine", agent="tom") == (13, "not_allowed")
    assert cli.refused("agree", "1", "--text", "mine", agent="bob")[0] == 2
    cli("agree", "1,2", "--text", "bob: Editor.edit", agent="bob")
    asked = cli("read-messages", agent="mia").stdout
    assert "| bob proposes for task-1 and task-2: bob: Editor.edit" in asked
    assert "next: teams agree 1,2 --version 1" in asked
    cli("agree", "2,1", "--text", "bob: Editor.edit; mia: main", agent="mia")
    assert cli.refused("agree", "1,2", "--version", "1", agent="bob") == (11, "stale_version")
    assert "mia has not confirmed" not in cli("update-task", "2", "--status", "completed", agent="mia").stderr
    assert cli("show-task", "2", "--json", agent="mia").json["status"] == "in_progress"
    page = cli("agree", "1,2", "--version", "2", "--json", agent="bob").json
    assert page["author"] == "mia" and page["agreed"] == ["bob"] and page["version"] == 2
    assert "bob agrees to agree-1-2, version 2" in cli("read-messages", agent="mia").stdout
    assert cli("update-task", "2", "--status", "completed", "--json", agent="mia").json["status"] == "completed"
    assert "agree-1-2" in cli("shared", agent="tom").stdout


def test_who_claims_a_task_sees_what_was_agreed(tmp_path: Path) -> None:
    cli: Cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    cli("agree", "1,2", "--text", "bob: Editor.edit", agent="bob")
    said = cli("claim-task", "2", agent="mia").stdout
    assert "page agree-1-2 (version 1 by bob): bob: Editor.edit: teams shared agree-1-2" in said
