"""Answers that save commands: a thing is said once, and a next step is offered only if it is of use."""

from __future__ import annotations

import pytest

from tests.support.cli import Cli, add_tasks, complete, in_progress

LEASE = "renewed by any `teams` command"
FAILS = "(if it fails, the task stays yours)"
COMPLETE = "next: teams update-task task-1 --status completed --result RESULT --next --wait 540"


@pytest.mark.parametrize(
    ("sender", "body", "is_expected"),
    [
        ("mia", "tokens are tuples", False),
        ("mia", "which tokens?", True),
        ("mia", "which tokens? no answer needed", False),
        ("mia", "tabs or blanks? I take tabs unless you object", False),
        ("mia", "I can't go on unless you push: please do", True),
        ("mia", "Please rename parse", True),
        ("mia", "If you are at work on it, tell me now", True),
        ("lea", "use tabs", True),
        ("human", "use tabs", True),
    ],
)
def test_a_reply_is_offered_where_an_answer_is_expected(cli: Cli, sender: str, body: str, is_expected: bool) -> None:
    """After mail that expects no answer, `next:` names the work that follows."""
    in_progress(cli, "bob", "one")
    cli.ok("send-message", "bob", body, agent=sender)
    assert ("(teams reply msg-1 TEXT)" in cli("get-tasks", agent="bob").stderr) == is_expected
    cli.ok("send-message", "bob", f"{body}\nso", agent=sender)
    answer = cli("read-messages", agent="bob").stdout.splitlines()
    expected = "next: teams reply msg-2 TEXT" if is_expected else COMPLETE
    assert [line for line in answer if line.startswith("next: ")] == [expected]
    assert (cli.ok("brief", agent="bob")["unhandled"] == ["msg-1", "msg-2"]) == is_expected


def test_the_rules_of_leases_and_checks_are_explained_once(cli: Cli) -> None:
    """An agent that joins again gets both explanations again; a new length of leases is explained, too."""
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


def test_a_claim_says_how_far_the_tasks_are_that_the_text_mentions(cli: Cli) -> None:
    """Tasks on which it depends have lines of their own; what is no task is left out. The texts are shown once."""
    add_tasks(cli, "one")
    add_tasks(cli, "two", description="All work is in src.\nUse tabs.")
    text = "As in task-1, tasks 2 and 99; like task 3. Use 4 threads.\nAll work is in src."
    cli.ok("create-task", "three", "--description", text, "--blocked-by", "1", agent="lea")
    complete(cli, "mia", "1", "--result", "parser.py")
    cli.ok("claim-task", "2", agent="mia")
    said = cli("claim-task", "3", agent="bob").stdout
    assert "mentions: task-2 (in_progress by mia)\ntext of task-2:\n  Use tabs.\n" in said
    cli.ok("create-task", "four", "--description", "like task 2", agent="lea")
    said = cli("claim-task", "4", agent="bob").stdout
    assert "mentions: task-2 (in_progress by mia)\n" in said and "Use tabs." not in said
    cli.ok("update-task", "2", "--description", "x" * 8000, agent="lea")
    cli.ok("create-task", "five", "--after", "2", agent="lea")
    said = cli("claim-task", "5", agent="bob").stdout
    assert "x" * 6999 in said and "x" * 7000 not in said and "… (all of it: teams show-task task-2)\n" in said


def test_a_claim_brings_texts_and_results_of_the_tasks_after_which_it_completes(cli: Cli) -> None:
    """Those that are completed are shown once, and not named as tasks to wait for."""
    for number in "123":
        cli.ok("create-task", f"t{number}", "--description", f"Write part {number}.", agent="lea")
    complete(cli, "mia", "1", "--result", "part 1 is in a.py")
    for title in ("try all", "try all again"):
        cli.ok("create-task", title, "--after", "1,2,3", agent="lea")
    claimed = cli("claim-task", "4", agent="bob").stdout
    texts = "".join(f"text of task-{number}:\n  Write part {number}.\n" for number in "123")
    assert texts in claimed and "\nresult of task-1 (mia): part 1 is in a.py\n" in claimed
    assert "\ncompletes after: task-2 (pending), task-3 (pending); " in claimed
    claimed = cli("claim-task", "5", agent="bob").stdout
    assert "Write part" not in claimed and "task-1" not in claimed


def test_a_claim_names_the_open_tasks_that_join_the_same_work(cli: Cli) -> None:
    add_tasks(cli, "one", "two")
    for title in ("try it", "write about it"):
        cli.ok("create-task", title, "--blocked-by", "1,2", agent="lea")
    cli.ok("create-task", "go on with one", "--blocked-by", "1", agent="lea")
    for task in "12":
        complete(cli, "mia", task)
    assert "\nbeside yours: task-4 (pending: write about it)\n" in cli("claim-task", "3", agent="bob").stdout
    assert "\nbeside yours: task-3 (bob: try it)\n" in cli("claim-task", "4", agent="mia").stdout
    assert "beside" not in cli("claim-task", "5", agent="bob").stdout


def test_a_result_is_shown_with_the_first_task_that_builds_on_it(cli: Cli) -> None:
    """A result that changed, because its task was done again, is shown once more."""
    add_tasks(cli, "one")
    for title in ("two", "three", "four"):
        cli.ok("create-task", title, "--blocked-by", "1", agent="lea")
    complete(cli, "mia", "1", "--result", "parser.py")
    assert "result of task-1 (mia): parser.py" in cli("claim-task", "2", agent="bob").stdout
    assert "result of task-1: you have seen it (teams show-task task-1)" in cli("claim-task", "3", agent="bob").stdout
    cli.ok("update-task", "1", "--status", "pending", "--reason", "too slow", agent="mia")
    complete(cli, "mia", "1", "--result", "lexer.py")
    assert "result of task-1 (mia): lexer.py" in cli("claim-task", "4", agent="bob").stdout


def test_results_that_were_shown_share_one_line(cli: Cli) -> None:
    rule = "All tasks: merge what you have done to main, and only after your tests passed."
    for number in "12345":
        cli.ok("create-task", f"t{number}", "--description", f"Write part {number}.\n{rule}", agent="lea")
    for blockers in ("1", "1,2", "1,2,3,4,5"):
        cli.ok("create-task", "more", "--blocked-by", blockers, agent="lea")
    for key in "12345":
        complete(cli, "mia", key, "--result", f"part {key}")
    claimed = cli("claim-task", "6", agent="bob").stdout
    assert "\nresult of task-1 (mia): part 1\n" in claimed and "Write part 1" not in claimed
    claimed = cli("claim-task", "7", agent="bob").stdout
    assert "\nresult of task-1: you have seen it (" in claimed and "\ntext of task-2:\n  Write part 2.\n" in claimed
    claimed = cli("claim-task", "8", agent="bob").stdout
    assert (
        f"\ntext of task-3:\n  Write part 3.\n  {rule}\ntext of task-4:\n  Write part 4.\ntext of task-5:\n" in claimed
    )
    assert "\nresults of task-1, task-2: you have seen them (teams show-task task-1,task-2)\n" in claimed


def test_rules_that_stand_in_the_last_task_too_are_not_shown_again(cli: Cli) -> None:
    rules = "Rules:\n" + "".join(f"- rule {number} of the team is long enough\n" for number in range(6))
    for number in range(5):
        cli.ok("create-task", f"t{number}", "--description", f"Part {number}.\n\n{rules}", agent="lea")
    assert "- rule 5" in cli("claim-task", "1", agent="bob").stdout
    ending = ("update-task", "--status", "completed", "--next")
    begin = "Rules: - rule 0 of the team is long enough - rule 1 of the …"
    left_out = f"\n  Part 1.\n(8 lines as in task-1: {begin}; all: teams show-task task-2)\n"
    answer = cli(*ending, "1", agent="bob").stdout
    assert left_out in answer and "- rule 5" not in answer
    assert "- rule 5" in cli("show-task", "2", agent="bob").stdout
    assert "- rule 5" in cli("claim-task", "2", agent="bob").stdout  # the agent may have forgotten it
    assert cli.ok(*ending, "2", agent="bob")["claimed"]["description"].startswith("Part 2.\n\nRules:\n- rule 0")
    cli.ok("join-team", agent="bob")
    assert "- rule 5" in cli(*ending, "3", agent="bob").stdout


def test_an_agent_that_joins_again_is_shown_its_task_once(cli: Cli) -> None:
    """The task's whole text and the results of its blockers come with the claim, or in the first brief after
    joining.
    """
    add_tasks(cli, "one")
    result, text = "parser.py\n" + "x" * 200, "All of it.\nTwice."
    add_tasks(cli, "two", description=text, blocked_by=["task-1"])
    complete(cli, "mia", "1", "--result", result)
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


def test_a_task_is_shown_with_its_text_what_it_blocks_and_what_blocked_it(cli: Cli) -> None:
    """An agent that claims a task by its id is shown its text, and later the results of its blockers."""
    add_tasks(cli, "one")
    add_tasks(cli, "two", "three", blocked_by=["task-1"])
    assert "blocks: task-2, task-3\n" in cli("show-task", "1").stdout
    assert cli.ok("show-task", "1")["blocks"] == ["task-2", "task-3"]
    complete(cli, "mia", "1", "--result", "parser.py")
    assert "parser.py" not in cli("show-task", "2").stdout
    cli.ok("update-task", "2", "--description", "as in the paper", agent="lea")
    assert "as in the paper" in cli("claim-task", "2", agent="bob").stdout
    assert cli("show-task", "2").stdout.count("result of task-1 (mia): parser.py") == 1
    cli.ok("create-task", "four", "--description", "as in the book", agent="lea")
    assert "as in the book" not in cli("claim-task", "4", agent="lea").stdout
    cli.ok("claim-task", "3", agent="bob")
    cli.ok("update-task", "2", "--blocked-by", "3", agent="lea")
    assert "next: teams update-task task-3 --status completed" in cli("brief", agent="bob").stdout
    assert "blocks: task-2" in cli("show-task", "3", agent="bob").stdout


def test_texts_of_earlier_tasks_are_shown_as_far_as_there_is_room(cli: Cli) -> None:
    for number in "123":
        text = "\n".join(f"line {line} of part {number}" for line in range(250))
        cli.ok("create-task", f"t{number}", "--description", text, agent="lea")
        complete(cli, "mia", number, "--result", "done")
    cli.ok("create-task", "all of it", "--blocked-by", "1,2,3", agent="lea")
    claimed = cli("claim-task", "4", agent="bob").stdout
    assert "line 249 of part 1" in claimed and "(all of it: teams show-task task-2)\n" in claimed
    assert "\ntexts of task-3: teams show-task task-3\n" in claimed and "of part 3" not in claimed
