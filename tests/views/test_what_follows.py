"""The line `next:` in answers: by following it alone, a team does all of its work."""

from __future__ import annotations

import re

from tests.support.cli import ALPHA, Cli, complete
from tests.support.waits import begin, ended, until


def test_who_joins_a_closed_team_hears_who_closed_it_and_what_it_came_to(cli: Cli) -> None:
    cli.ok("create-task", "one", agent="lea")
    cli.ok("close-team", agent="lea")
    answer = cli("join-team", agent="new")
    assert answer.status == 11
    assert answer.stderr == (
        f"teams: team {ALPHA} is closed, by lea (0 of 1 tasks completed)\n"
        f"  You are done. Only if it must go on (leader or human): teams restore-team {ALPHA}\n"
    )
    assert f"team {ALPHA} is closed, by lea" in cli("claim-task", "1", agent="bob").stderr


def test_a_wait_in_a_closed_team_names_the_messages_that_say_why(cli: Cli) -> None:
    cli.ok("send-message", "lea,bob", "we stop here for today", agent="human")
    cli.ok("close-team", agent="human")
    refused = cli("wait", "--needed", agent="lea")
    assert refused.status == 11
    assert "  Read 1 message first: teams read-messages. You are done. Only if it must go on" in refused.stderr
    assert "we stop here for today" in cli("read-messages", agent="lea").stdout
    assert "read-messages" not in cli("wait", agent="lea").stderr


def test_who_waits_for_the_next_task_hears_of_the_end_of_the_team_in_its_answer(cli: Cli) -> None:
    """A completion that waits for the next task succeeds, and its answer says that the team was closed."""
    cli.ok("create-task", "one", agent="lea")
    cli.ok("create-task", "not for bob", "--require", "rust", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    ending = ("update-task", "1", "--status", "completed", "--next", "--wait")
    waiting = cli.start(*ending, "60", agent="bob")
    until(lambda: cli.ok("show-task", "1")["status"] == "completed")
    cli.ok("close-team", agent="lea")
    out, err = waiting.communicate()
    closed = rf"team {ALPHA} is closed(, by lea)? \(1 of 2 tasks completed\)\. You are done\.\n"
    assert re.fullmatch(rf"task-1: completed by bob: one\n{closed}", out.decode()) and not err
    assert cli(*ending, "0", "--json", agent="bob").status == 11


def test_who_proposes_a_plan_may_wait_for_the_decision_with_it(cli: Cli) -> None:
    """If no decision comes in time, the plan is proposed nevertheless, and `next:` says to wait."""
    cli.ok("create-task", "one", "--plan-required", agent="lea")
    said = cli("claim-task", "1", agent="bob").stdout
    assert said.endswith("\nnext: teams propose-plan TEXT --task task-1 --wait 540\n")
    late = cli("propose-plan", "so", "--task", "1", "--wait", "0", agent="bob")
    assert late.stdout == "plan-1: proposed, from bob for task-1\nnext: teams wait --timeout 540\n"
    waiting = begin(cli, "bob", "propose-plan", "thus", "--task", "1", "--wait", "60")
    until(lambda: "plan-2" in cli("get-plans", "--open").stdout)
    cli.ok("reject-plan", "2", "why so?", agent="lea")
    found = ended(waiting)
    assert (found["id"], found["messages"][0]["message"]) == ("plan-2", "plan-2 was rejected by lea: why so?")
    revising = "propose-plan", "better", "--task", "1", "--revises", "2", "--wait", "60"
    cli.ok("create-task", "two", "--for", "bob", "--review-by", "lea", agent="lea")
    cli.ok("release-task", "1", agent="bob")
    complete(cli, "bob", "2")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("read-messages", agent="bob")
    cli.ok("create-task", "three", "--for", "bob", agent="lea")
    cli.ok("read-messages", agent="bob")
    waiting = cli.start(*revising, agent="bob")
    until(lambda: "plan-3" in cli("get-plans", "--open").stdout)
    cli.ok("review-task", "2", "--accept", agent="lea")  # neither the review nor the edit of another task ends the wait
    cli.ok("update-task", "3", "--append", "more", agent="lea")
    cli.ok("approve-plan", "3", agent="lea")
    assert waiting.communicate()[0].decode().splitlines() == [
        "plan-3: proposed, from bob for task-1",
        "msg-8",
        '[From agent "system"]:',
        "| lea accepted task-2 (two)",
        "msg-9",
        '[From agent "system"]:',
        "| lea edited task-3 (three): added: more",
        "msg-10",
        '[From agent "system"]:',
        "| plan-3 was approved by lea",
        "next: teams update-task task-1 --status completed --result RESULT --next --wait 540",
    ]


def test_a_plan_that_is_approved_is_followed_by_the_claim_unless_its_task_is_blocked(cli: Cli) -> None:
    cli.ok("create-task", "one", agent="lea")
    cli.ok("create-task", "two", "--blocked-by", "1", "--plan-required", "--for", "bob", agent="lea")
    assert "you can propose before: teams propose-plan TEXT --task ID" in cli("read-messages", agent="bob").stdout
    shown = cli("show-task", "2", agent="bob").stdout
    assert "plan: required (teams propose-plan TEXT --task task-2)" in shown
    cli.ok("propose-plan", "so", "--task", "2", agent="bob")
    cli.ok("approve-plan", "1", agent="lea")
    assert cli("read-messages", agent="bob").stdout.endswith("\nnext: teams wait --claim --timeout 540\n")
    refused = cli("claim-task", "2", agent="bob").stderr
    assert refused.endswith("\n  Wait for it, or claim another: teams wait --claim --timeout 540\n")
    after = cli("update-task", "1", "--after", "2", agent="lea")
    assert after.status == 11  # task-1 would wait for itself
    cli.ok("create-task", "three", "--plan-required", agent="lea")
    assert "completes after task-1" in cli("update-task", "3", "--after", "1", agent="lea").stdout
    cli.ok("propose-plan", "so", "--task", "3", agent="mia")
    cli.ok("approve-plan", "2", agent="lea")
    assert "\nnext: teams claim-task task-3\n" in cli("wait", "--timeout", "0", agent="mia").stdout


def test_the_note_of_an_approval_is_shown_whole_and_names_no_step_once_the_task_is_completed(cli: Cli) -> None:
    cli.ok("create-task", "one", agent="lea")
    cli.ok("create-task", "two", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    for number in ("1", "2"):
        cli.ok("propose-plan", f"plan {number}", "--task", "1", agent="bob")
    cli.ok("approve-plan", "1", "--note", "mind the gap " * 20 + "END", agent="lea")
    assert "mind the gap END (teams update-task task-1" in cli("whoami", agent="bob").stderr
    cli.ok("update-task", "1", "--status", "completed", agent="bob")
    cli.ok("approve-plan", "2", agent="lea")
    assert cli("read-messages", agent="bob").stdout.endswith("\nnext: teams wait --claim --timeout 540\n")
    cli.ok("create-task", "three", "--for", "bob", agent="lea")
    cli.ok("create-task", "four", "--for", "bob", agent="lea")
    assert cli.ok("wait", "--claim", agent="bob")["messages"] == []  # the other task is claimed next


def test_an_approved_plan_holds_for_who_takes_the_task_over(cli: Cli) -> None:
    """A new owner is shown the plan and the note of its approval; its author is only reminded of it."""
    cli.ok("create-task", "one", "--plan-required", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("propose-plan", "first this\nthen that", "--task", "1", agent="bob")
    cli.ok("approve-plan", "1", "--feedback", "mind the dates", agent="lea")
    cli.ok("release-task", "1", agent="bob")
    lines = cli("claim-task", "--next", agent="mia").stdout.splitlines()
    where = lines.index("plan-1 of bob is approved: go on with it, with the note: mind the dates")
    assert lines[where + 1 : where + 3] == ["  first this", "  then that"]
    complete = "next: teams update-task task-1 --status completed --result RESULT --next --wait 540"
    assert lines[-1] == complete and "needs a plan" not in "".join(lines)
    assert cli.ok("brief", agent="mia")["next"] == complete.removeprefix("next: ")
    assert cli.ok("claim-task", "1", agent="mia")["approvedPlan"]["id"] == "plan-1"
    cli.ok("release-task", "1", "--force", agent="lea")
    said = cli("claim-task", "1", agent="bob").stdout
    assert "\nyour plan-1 is approved: go on with it (teams show-plan plan-1)\n" in said
    assert said.endswith(f"{complete}\n") and "first this" not in said
    cli.ok("update-task", "1", "--status", "completed", agent="bob")
