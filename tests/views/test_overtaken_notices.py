"""Notices that something is to be done are not shown after it was done, or after the task went to another."""

from __future__ import annotations

from tests.support.cli import Cli, complete, in_progress


def shown(cli: Cli, agent: str) -> str:
    """Return all that the agent is shown by its next wait and its next brief."""
    answers = [cli("wait", "--timeout", "0.1", agent=agent), cli("brief", agent=agent)]
    return "".join(answer.stdout + answer.stderr for answer in answers)


def test_a_review_that_another_has_ended_is_not_asked_for(cli: Cli) -> None:
    cli.ok("create-task", "one", "--review-by", "mia", agent="lea")
    complete(cli, "bob", "1")
    cli.ok("review-task", "1", "--accept", agent="lea")
    assert "waits for your review" not in shown(cli, "mia")


def test_a_task_that_was_returned_to_a_member_that_left_is_not_its_task(cli: Cli) -> None:
    cli.ok("create-task", "one", "--review-by", "lea", agent="lea")
    complete(cli, "bob", "1")
    cli.ok("review-task", "1", "--reject", "no tests", agent="lea")
    assert cli.ok("leave-team", agent="bob")["releasedTasks"] == ["task-1"]
    joined = cli("join-team", agent="bob")
    assert "is yours again" not in joined.stdout + joined.stderr + shown(cli, "bob")


def test_the_author_of_a_plan_is_not_told_to_claim_what_it_may_not_claim(cli: Cli) -> None:
    for number, agent in (("1", "bob"), ("2", "mia")):
        cli.ok("create-task", "one", agent="lea")
        cli.ok("propose-plan", "a test", "--task", number, agent=agent)
        cli.ok("read-messages", agent=agent)
    cli.ok("hand-over", "mia", agent="lea")
    cli.ok("update-task", "1", "--owner", "lea", agent="mia")
    for number, agent in (("1", "bob"), ("2", "mia")):
        cli.ok("approve-plan", number, agent="human")
        told = cli("get-plans", agent=agent).stderr
        assert f"plan-{number} was approved by human" in told and "claim-task task-" not in told


def test_a_plan_that_another_has_decided_is_not_proposed_to_the_leader(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    cli.ok("propose-plan", "a test", "--task", "1", agent="bob")
    cli.ok("approve-plan", "1", agent="human")
    assert "proposes plan-1" not in shown(cli, "lea")
