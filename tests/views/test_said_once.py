"""Answers that save commands: a thing is said once, and a step is offered only where it brings something."""

from __future__ import annotations

import pytest

from tests.support.cli import Cli, add_tasks

LEASE = "renewed by any `teams` command"
FAILS = "(if it fails, the task stays yours)"
COMPLETE = "next: teams update-task task-1 --status completed --result RESULT --next --wait 540"


@pytest.mark.parametrize(
    ("sender", "body", "is_expected"),
    [
        ("mia", "tokens are tuples", False),
        ("mia", "which tokens?", True),
        ("mia", "which tokens? no answer needed", False),
        ("mia", "Please rename parse", True),
        ("mia", "If you are at work on it, tell me now", True),
        ("lea", "use tabs", True),
        ("human", "use tabs", True),
    ],
)
def test_a_reply_is_offered_where_an_answer_is_expected(cli: Cli, sender: str, body: str, is_expected: bool) -> None:
    """It is offered for questions, requests and orders. After other mail the answer names the work that follows."""
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("send-message", "bob", body, agent=sender)
    assert ("(teams reply msg-1 TEXT)" in cli("get-tasks", agent="bob").stderr) == is_expected
    cli.ok("send-message", "bob", f"{body}\nso", agent=sender)
    answer = cli("read-messages", agent="bob").stdout.splitlines()
    expected = "next: teams reply msg-2 TEXT" if is_expected else COMPLETE
    assert [line for line in answer if line.startswith("next: ")] == [expected]
    assert (cli.ok("brief", agent="bob")["unhandled"] == ["msg-1", "msg-2"]) == is_expected


def test_nobody_is_told_that_a_sender_is_blocked_which_asked_nothing(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("send-message", "mia", "the parser is done", agent="bob")
    cli("wait", "--timeout", "0.1", agent="bob")
    assert [one["id"] for one in cli.ok("read-messages", agent="mia")] == ["msg-1"]
    cli.ok("send-message", "mia", "is the printer done?", agent="bob")
    cli("wait", "--timeout", "0.1", agent="bob")
    told = cli("wait", "--timeout", "0", agent="mia").stdout
    assert "bob is BLOCKED waiting for your answer to msg-2" in told
    assert told.count("next: teams reply msg-2 TEXT") == 1


def test_a_plan_is_offered_with_all_ways_to_decide_it(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("propose-plan", "so", "--task", "1", agent="bob")
    ways = (
        "next: teams approve-plan plan-1, or teams approve-plan plan-1 --note TEXT, "
        "or teams reject-plan plan-1 --feedback WHY\n"
    )
    assert cli("show-plan", "1", agent="lea").stdout.endswith(ways)
    assert "next:" not in cli("show-plan", "1", agent="mia").stdout
    assert cli("wait", "--timeout", "0", agent="lea").stdout.endswith(ways)
    assert "next: teams approve-plan" not in cli("show-plan", "1", agent="bob").stdout


def test_the_rules_of_leases_and_checks_are_explained_once(cli: Cli) -> None:
    """They are explained again to an agent that joins again, and when the length of leases has changed."""
    add_tasks(cli, "one", "two", "three", "four", check="true")

    def claimed(number: str) -> tuple[bool, bool]:
        said = cli("claim-task", number, agent="bob").stdout
        assert "true" in said
        return LEASE in said, FAILS in said

    assert claimed("1") == (True, True)
    assert claimed("2") == (False, False)
    cli.ok("set", "staleAfterSeconds", "300", agent="lea")
    assert claimed("3") == (True, False)
    cli.ok("join-team", agent="bob")
    assert claimed("4") == (True, True)
    assert "left" not in cli("brief", agent="bob").stdout


def test_who_comes_back_is_shown_its_task_once(cli: Cli) -> None:
    """With its whole text and the results of its blockers: with the claim, or in the brief after joining again."""
    add_tasks(cli, "one")
    result, text = "parser.py\n" + "x" * 200, "All of it.\nTwice."
    add_tasks(cli, "two", description=text, blocked_by=["task-1"])
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("update-task", "1", "--status", "completed", "--result", result, agent="mia")
    whole = "x" * 200
    assert "  All of it.\n  Twice.\n" in (said := cli("claim-task", "--next", agent="bob").stdout)
    assert said.count(whole) == 1
    assert whole not in (said := cli("brief", agent="bob").stdout) and "Twice." not in said
    cli.ok("join-team", agent="bob")
    said = cli("brief", agent="bob").stdout
    assert said.count("  All of it.\n  Twice.\n") == said.count(whole) == 1
    said = cli("join-team", "--claim", agent="bob").stdout
    assert said.count("  All of it.\n  Twice.\n") == said.count(whole) == 1
    assert "Twice." not in cli("brief", agent="bob").stdout


def test_a_task_is_shown_with_what_it_blocks_and_what_blocked_it(cli: Cli) -> None:
    add_tasks(cli, "one")
    add_tasks(cli, "two", "three", blocked_by=["task-1"])
    said = cli("show-task", "1").stdout
    assert "blocks: task-2, task-3\n" in said
    assert cli.ok("show-task", "1")["blocks"] == ["task-2", "task-3"]
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("update-task", "1", "--status", "completed", "--result", "parser.py", agent="mia")
    assert "parser.py" not in cli("show-task", "2").stdout
    cli.ok("claim-task", "2", agent="bob")
    assert cli("show-task", "2").stdout.count("result of task-1 (mia): parser.py") == 1


def test_a_plan_for_a_task_that_nobody_has_is_followed_by_the_claim(cli: Cli) -> None:
    add_tasks(cli, "one", plan_required=True)
    cli.ok("propose-plan", "so", "--task", "1", agent="bob")
    cli.ok("approve-plan", "1", agent="lea")
    assert cli("wait", "--timeout", "0", agent="bob").stdout.splitlines()[3:4] == ["next: teams claim-task task-1"]
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("release-task", "1", agent="bob")


def test_a_ready_task_is_claimed_with_the_news_of_a_question(cli: Cli) -> None:
    """Both are told in one answer: the question, that its sender waits, and the task."""
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("send-message", "bob", "which?", agent="mia")
    cli("wait", "--timeout", "0.1", agent="mia")
    said = cli("wait", "--claim", "--timeout", "0", agent="bob").stdout
    assert "BLOCKED" in said and said.count("next: teams reply msg-1 TEXT") == 1
    assert "task-2: in_progress by bob: two\n" in said


def test_an_agent_that_names_the_task_to_claim_is_shown_its_text(cli: Cli) -> None:
    """It may have met no more than the id, in a refusal; whoever wrote the text knows it."""
    cli.ok("create-task", "one", "--description", "as in the paper", agent="lea")
    assert "as in the paper" in cli("claim-task", "1", agent="bob").stdout
    cli.ok("create-task", "two", "--description", "as in the book", agent="lea")
    assert "as in the book" not in cli("claim-task", "2", agent="lea").stdout


def test_an_owner_is_told_to_do_first_what_its_other_task_waits_for(cli: Cli) -> None:
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("claim-task", "2", agent="bob")
    cli.ok("update-task", "1", "--blocked-by", "2", agent="lea")
    assert "next: teams update-task task-2 --status completed" in cli("brief", agent="bob").stdout
    assert "blocks: task-1" in cli("show-task", "2", agent="bob").stdout
