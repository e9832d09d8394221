"""`update-task 7,8` changes all of several tasks or none; `agree` is for the owners of tasks that meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, add_tasks, make_team


@pytest.fixture
def cli(cli: Cli) -> Cli:
    add_tasks(cli, *"abcd")
    return cli


def test_a_change_of_several(cli: Cli) -> None:
    found = cli.ok("update-task", "1,#2,task-3,1", "--append", "With separators", "--priority", "high", agent="lea")
    assert [(each["id"], each["description"], each["priority"]) for each in found] == [
        (f"task-{n}", "With separators", "high") for n in (1, 2, 3)
    ]
    assert cli.ok("update-task", "1,", "--priority", "low", agent="lea")["priority"] == "low"
    assert cli("update-task", "2,3", "--blocked-by", "4", agent="lea").stdout == (
        "task-2: pending, blocked by task-4: b\ntask-3: pending, blocked by task-4: c\n"
    )
    freed = cli.ok("update-task", "2,3", "--unblock", "4", agent="lea")
    assert [each["openBlockers"] for each in freed] == [[], []]
    cli.ok("update-task", "2,3", "--owner", "bob", agent="lea")
    assert [cli.ok("show-task", n)["assignee"] for n in "23"] == ["bob", "bob"]


REFUSED = [
    (("1,9", "--append", "x"), (10, "task_not_found")),
    (("1,x", "--append", "x"), (2, "invalid_value")),
    (("1,2", "--unblock", "4"), (11, "wrong_state")),
    (("1,4", "--blocked-by", "4"), (11, "dependency_cycle")),
    (("1,2", "--owner", "nobody"), (10, "agent_not_found")),
    (("1,2",), (2, "wrong_usage")),
    (("1,2", "--title", "one"), (2, "wrong_usage")),
    (("1,2", "--status", "completed"), (2, "wrong_usage")),
    (("1,2", "--claim", "1", "--append", "x"), (2, "wrong_usage")),
    (("1,2", "--evidence", __file__, "--append", "x"), (2, "wrong_usage")),
]


def test_a_change_that_one_task_refuses_is_made_to_none(cli: Cli) -> None:
    cli.ok("update-task", "1", "--blocked-by", "4", agent="lea")
    for words, refused in REFUSED:
        assert cli.refused("update-task", *words, agent="lea") == refused, words


def test_a_refusal_for_one_of_several_says_what_was_done_before(cli: Cli) -> None:
    cli.ok("claim-task", "1", agent="bob")
    for words in (("heartbeat", "--task", "1,2"), ("release-task", "1,2")):
        first_line = cli(*words, agent="bob").stderr.splitlines()[0]
        assert first_line.startswith("teams: task-2 is ") and first_line.endswith(" (1: done)")
    assert "(1: done)" not in cli("show-task", "1,9", agent="bob").stderr  # only shown


def test_a_completion_with_an_unseen_edit_is_refused_once(cli: Cli) -> None:
    for task in ("1", "2"):
        cli.ok("claim-task", task, agent="bob")
    cli.ok("update-task", "1,2", "--append", "With separators", agent="lea")
    end = ("update-task", "1", "--status", "completed")
    refused = cli(*end, "--result", "r", agent="bob")
    assert refused.status == 11 and refused.stderr.startswith(
        "teams: you have not seen this change: lea edited task-1 (a): added: With separators\n"
        "  If your work lacks it, add it first; then: teams update-task task-1 --status completed "
        "(your result is kept; --result TEXT replaces it)\n"
    )
    assert cli.ok(*end, agent="bob")["result"] == "r"
    cli.ok("show-task", "2", agent="bob")
    assert cli("update-task", "2", "--status", "completed", agent="bob").status == 0


def test_a_refused_completion_names_the_wait_for_a_task_that_the_change_names(cli: Cli) -> None:
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("update-task", "1", "--append", "After task-1, finish after task-3, and after task-99.", agent="lea")
    hint = cli("update-task", "1", "--status", "completed", agent="bob").stderr.splitlines()[1]
    assert hint.startswith("  Not finished: task-3. To wait: teams wait --task task-3. If your work ")


def test_two_owners_agree_with_a_command_each(tmp_path: Path) -> None:
    """The other owner is asked, with the command that confirms; a new text must be confirmed again."""
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
    assert "confirmed by mia" not in cli("update-task", "2", "--status", "completed", agent="mia").stderr
    assert cli("show-task", "2", "--json", agent="mia").json["status"] == "in_progress"
    page = cli("agree", "1,2", "--version", "2", "--json", agent="bob").json
    assert page["author"] == "mia" and page["agreed"] == ["bob"] and page["version"] == 2
    assert "bob agrees to agree-1-2, version 2" in cli("read-messages", agent="mia").stdout
    assert cli("update-task", "2", "--status", "completed", "--json", agent="mia").json["status"] == "completed"
    assert "agree-1-2" in cli("shared", agent="tom").stdout


def test_only_the_version_that_stands_is_the_next_to_confirm(tmp_path: Path) -> None:
    """A proposal that was replaced, or confirmed already, is no next step; its command would be refused."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("claim-task", "2", agent="mia")
    for proposal in ("first", "second"):
        cli("agree", "1,2", "--text", proposal, agent="bob")
    assert cli("read-messages", agent="mia").stdout.endswith("\nnext: teams agree 1,2 --version 2\n")
    cli("agree", "1,2", "--text", "third", agent="bob")
    cli("agree", "1,2", "--version", "3", agent="mia")
    assert "next: teams agree" not in cli("read-messages", agent="mia").stdout
    cli("agree", "1,2", "--text", "fourth", agent="bob")
    cli("agree", "1,2", "--text", "fifth", agent="mia")
    assert "next: teams agree" not in cli("read-messages", agent="mia").stdout


def test_each_refusal_for_want_of_an_agreement_leads_to_the_next_step(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob", "mia", "tom")
    add_tasks(cli, "one", "two")
    cli.ok("create-task", "three", "--agree-with", "1,2", agent="lea")
    for agent, task in (("bob", "1"), ("mia", "2"), ("tom", "3")):
        cli.ok("claim-task", task, agent=agent)

    def hint() -> str:
        refused = cli("update-task", "3", "--status", "completed", agent="tom")
        assert refused.status == 11
        return refused.stderr.splitlines()[1].strip()

    assert hint() == "Propose who changes what: teams agree 1,3 --text TEXT"
    cli.ok("agree", "1,3", "--text", "bob: all of it", agent="bob")
    assert hint() == "Read it: teams shared agree-1-3. To confirm it: teams agree 1,3 --version 1"
    cli.ok("agree", "1,3", "--version", "1", agent="tom")
    assert hint() == "Propose who changes what: teams agree 2,3 --text TEXT"
    cli.ok("agree", "2,3", "--text", "tom: all of it", agent="tom")
    assert hint() == "Wait for it (teams wait), or ask: teams send-message mia TEXT"
    cli.ok("update-task", "2", "--status", "completed", agent="mia")
    cli.ok("leave-team", agent="mia")  # nobody can wait for its confirmation any more
    assert cli.ok("update-task", "3", "--status", "completed", agent="tom")["status"] == "completed"


def test_who_claims_a_task_sees_what_was_agreed(tmp_path: Path) -> None:
    cli: Cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    cli("agree", "1,2", "--text", "bob: Editor.edit", agent="bob")
    said = cli("claim-task", "2", agent="mia").stdout
    assert "page agree-1-2 (version 1 by bob): bob: Editor.edit: teams shared agree-1-2" in said
