"""What an agent is told that waited in vain: how the work stands, what it waited for, or that all is done."""

from __future__ import annotations

import re

import pytest

from teams_cli.clock import later, rfc3339
from teams_cli.store.contract import update
from teams_cli.tasks import tasks
from teams_cli.teams import presence
from teams_cli.teams.teams import TEAM, Team
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, complete, in_progress
from tests.support.shop import CHECK, Shop, shop
from tests.support.waits import until


def test_an_agent_that_waited_in_vain_hears_what_is_in_progress(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("create-task", "two", "--blocked-by", "1", agent="lea")
    said = cli("wait", "--timeout", "0", agent="lea").stderr
    standstill = r"\n  Nobody has a task: 1 ready, 1 blocked; last seen: \w+, .* ago\. Keep waiting: "
    assert re.search(f"{standstill}teams wait --timeout 540\n", said)
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("create-task", "three", agent="lea")
    cli("wait", "--timeout", "0", agent="lea")
    then = rfc3339(later(cli.store().now(), -200))
    update(cli.store(), ALPHA, tasks.TASK, "task-1", lambda task: task.having(claimed_at=then))
    update(cli.store(), ALPHA, presence.AGENT, "bob", lambda agent: agent.having(last_seen=then))
    said = cli("wait", "--timeout", "0.1", agent="lea").stderr
    in_work = "In progress: task-1 (bob, 3 min, silent for 3 min, 1 blocked by it); 1 ready; idle: mia. Keep waiting: "
    assert "within 0.1 s" in said and said.endswith(f"\n  {in_work}teams wait --timeout 540\n") and len(said) < 190
    cli.ok("send-message", "lea", "which?", agent="bob")
    said = cli("wait", "--claim", "--needed", "--timeout", "0", agent="bob").stderr
    assert said.endswith("\n  Keep waiting: teams wait --claim --timeout 540 --needed\n")
    cli.ok("leave-team", agent="mia")
    cli("wait", "--timeout", "0", agent="lea")
    said = cli("wait", "--timeout", "0", agent="lea").stderr
    assert "1 blocked by it); 1 ready; bob is the only member. Keep waiting: " in said


def test_a_wait_in_vain_says_when_files_of_a_silent_owner_changed(shop: Shop) -> None:
    shop.create("one", "--touches", "src/")
    shop.ok("bob", "claim-task", "1")
    then = rfc3339(later(shop.cli.store().now(), -200))
    update(shop.cli.store(), ALPHA, tasks.TASK, "task-1", lambda task: task.having(claimed_at=then))
    update(shop.cli.store(), ALPHA, presence.AGENT, "bob", lambda agent: agent.having(last_seen=then))
    (shop.trees["bob"] / "src").mkdir()
    (shop.trees["bob"] / "src/new").write_text("1")
    said = shop.cli("wait", "--timeout", "0", agent="lea").stderr
    assert re.search(r"task-1 \(bob, 3 min, silent for 3 min, files changed [\d.]+ s ago\)", said), said


def test_what_a_member_tells_several_others_does_not_end_the_leaders_wait(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    cli.ok("send-message", "lea,mia", "parser.py is on main: whoever uses it, please merge", agent="bob")
    assert cli("wait", "--needed", "--timeout", "0", agent="lea").status == 14
    cli.ok("send-message", "lea,mia", "may I rename it?", agent="bob")
    said = cli("wait", "--needed", "--timeout", "60", agent="lea").stdout
    assert "parser.py is on main" in said and "may I rename it?" in said


def in_vain(cli: Cli, *words: str, agent: str = "lea") -> str:
    """What a wait in vain says about how things stand, with each time replaced by T."""
    answer = cli("wait", *words, "--timeout", "0", agent=agent)
    assert answer.status == 14
    said = re.fullmatch(r"teams: timed out .*\n  (.*)Wait longer, or look: teams brief\n", answer.stderr)
    assert said, answer.stderr
    return re.sub(r"[\d.]+ (m?s|min)\b", "T", said[1])


def test_who_waited_for_one_thing_in_vain_hears_how_it_stands(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("create-task", "two", "--blocked-by", "1", agent="lea")
    assert in_vain(cli, "--task", "1") == "task-1 is ready, and nobody has claimed it. "
    assert in_vain(cli, "--task", "2") == "task-2 is blocked by task-1 (pending). "
    assert in_vain(cli, "--message", agent="bob") == ""
    cli.ok("update-task", "1", "--owner", "mia", agent="lea")
    assert in_vain(cli, "--task", "1") == "task-1 is ready, assigned to mia. "
    assert "Nobody has a task: 1 ready (task-1 for mia), 1 blocked; " in in_vain(cli, "--all-tasks")
    cli.ok("claim-task", "1", agent="mia")
    assert in_vain(cli, "--task", "1") == "In progress: task-1 (mia, T). "
    assert in_vain(cli, "--task", "2") == "task-2 is blocked by task-1 (mia, T). "
    assert in_vain(cli, "--agent", "mia") == "In progress: task-1 (mia, T). "
    assert in_vain(cli, "--all-tasks") == "In progress: task-1 (mia, T, 1 blocked by it); idle: bob. "
    assert in_vain(cli, "--ready", agent="bob") == "In progress: task-1 (mia, T, 1 blocked by it). "
    cli.ok("propose-plan", "so", "--task", "1", agent="mia")
    assert in_vain(cli, "--plan", "1", agent="mia") == "plan-1 has waited T for lea, last heard of T ago. "
    cli.ok("update-task", "1", "--review-by", "bob", agent="lea")
    cli.ok("update-task", "1", "--status", "completed", agent="mia")
    both = "task-1 waits for bob's review. plan-1 has waited T for lea, last heard of T ago. "
    assert in_vain(cli, "--task", "1", "--plan", "1") == both


def test_a_leader_that_was_not_needed_hears_what_was_completed(cli: Cli) -> None:
    add_tasks(cli, "zero")
    complete(cli, "bob", "1", "--result", "all of it")
    add_tasks(cli, "half")
    assert cli("wait", "--needed", "--timeout", "0", agent="lea").status == 14
    said = cli("wait", "--completed", "2", "--timeout", "0.3", agent="lea")
    assert re.fullmatch(
        "the wait timed out after 0.3 s, 2 short of the number of completed tasks that you waited for. Meanwhile:\\n"
        'msg-1\\n\\[From agent "system"\\]:\\n\\| task-1 \\(zero\\) completed by bob: all of it\\n'
        r"Nobody has a task: 1 ready; last seen: bob, [\d.]+ (m?s|min) ago\n"
        r"next: teams wait --needed --timeout 540 --completed 2\n",
        said.stdout,
    ), said
    assert said.status == 0 and cli("wait", "--needed", "--timeout", "0.1", agent="lea").status == 14


__all__ = ["shop"]


DONE = "all tasks are settled: you are done\n"


def test_every_wait_ends_once_all_tasks_are_settled(cli: Cli) -> None:
    """The waits of leader and members end, whatever they wait for, and no later answer says to wait."""
    cli.ok("join-team", agent="tom")
    in_progress(cli, "bob", "one")
    kinds = {"mia": ("--claim",), "tom": ("--ready",), "lea": ("--needed",)}
    waits = [cli.start("wait", *how, "--timeout", "60", agent=name, text=True) for name, how in kinds.items()]
    until(lambda: presence.load(cli.store(), ALPHA, "mia").waiting)
    said = cli("update-task", "1", "--status", "completed", "--next", "--wait", "60", agent="bob").stdout
    assert said == f"task-1: completed by bob: one\n{DONE}"
    mia, tom, lea = [process.communicate(timeout=TIMEOUT)[0] for process in waits]
    assert (mia, tom) == (DONE, DONE)
    assert "\nall tasks are settled: 1 completed\n" in lea and lea.endswith("next: teams close-team\n")
    said = cli("send-message", "mia", "thanks", agent="lea").stdout
    assert said.endswith("\nmia: was notified that all work is done, and may not read it\n")
    for words in (("reply", "2", "so it is"), ("brief",), ("claim-task", "--next"), ("wait", "--timeout", "0")):
        answer = cli(*words, agent="mia")
        assert "teams wait" not in answer.stdout + answer.stderr and "you are done" in answer.stdout + answer.stderr
    for words in (("brief",), ("read-messages",), ("wait", "--timeout", "0")):
        answer = cli(*words, agent="lea")
        assert "teams wait" not in answer.stdout + answer.stderr, answer
    said = cli("create-task", "two", agent="lea").stdout
    assert said == (
        "task-2: pending: two\n"
        "notified that all work is done, and may have ended: bob, mia, tom. To ask: teams send-message NAME TEXT; "
        "without an answer: teams run-agent PROMPT --detach, or teams close-team\n"
    )
    assert cli("create-task", "three", agent="lea").stdout == "task-3: pending: three\n"
    said = cli("create-task", "--from", "-", agent="lea", stdin=b"[{title: four, for: bob}]").stdout
    assert "\nnotified that all work is done, and may have ended: bob. To ask: " in said and "\nnotified: " not in said
    cli.ok("join-team", "--role", "task-manager", agent="max")  # who may neither start agents nor close the team
    said = cli("create-task", "five", "--for", "bob", agent="max").stdout
    assert said.endswith(" To ask: teams send-message NAME TEXT; without an answer: teams send-message leader TEXT\n")
    cli.ok("leave-team", agent="max")
    rows = cli("list-agents", "--json", agent="lea").json["agents"]
    assert [row["name"] for row in rows if row.get("mayHaveEnded")] == ["bob", "mia", "tom"]
    assert cli("list-agents", agent="lea").stdout.count("may have ended") == 3
    assert "mayHaveEnded" not in rows[0]


def test_the_leader_is_told_that_nobody_may_be_left_for_a_late_task(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    complete(cli, "bob", "1")
    for name in ("bob", "mia"):
        assert DONE in cli("wait", "--timeout", "0", agent=name).stdout
    cli.ok("create-task", "two", "--for", "bob", agent="lea")
    assert cli("wait", "--needed", "--timeout", "0", agent="lea").status == 14  # bob may still claim it
    then = rfc3339(later(cli.store().now(), -61))
    update(cli.store(), ALPHA, tasks.TASK, "task-2", lambda task: task.having(created_at=then))
    said = cli("wait", "--needed", "--timeout", "60", agent="lea").stdout
    assert said.endswith(
        "\nperhaps nobody is left for task-2; notified that all work is done: bob\n"
        "next: teams run-agent PROMPT --detach, or teams close-team\n"
    )
    assert cli("wait", "--needed", "--timeout", "0", agent="lea").status == 14  # it is said once
    refused = cli("update-task", "2", "--owner", "lea", agent="lea")
    assert refused.stderr.endswith("\n  Choose one of bob, mia.\n")
    refused = cli("update-task", "2", "--status", "cancelled", agent="lea")
    assert refused.stderr.endswith("A team can be closed with open tasks, too: teams close-team\n")


def test_the_leader_is_told_that_all_members_have_left(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("create-task", "two", "--review-by", "mia", agent="lea")
    cli.ok("claim-task", "2", agent="bob")
    cli.ok("update-task", "2", "--status", "completed", agent="bob")
    for name in ("bob", "mia"):
        cli.ok("leave-team", agent=name)
    for _ in range(2):  # the task waits for the leader now, also once its message was read
        review = "teams review-task task-2 --accept --wait 540, or teams review-task task-2 --reject WHY --wait 540"
        assert cli.ok("brief", agent="lea")["next"] in (review, "teams read-messages")
        cli.ok("read-messages", agent="lea")
    assert cli.ok("brief", agent="lea")["next"] == review
    cli.ok("review-task", "2", "--accept", agent="lea")
    then = rfc3339(later(cli.store().now(), -61))
    update(cli.store(), ALPHA, tasks.TASK, "task-1", lambda task: task.having(created_at=then))
    answer = cli("wait", "--needed", "--timeout", "0", agent="lea")
    assert answer.status == 14 and "no member is left (start one: teams run-agent PROMPT --detach; " in answer.stderr

    def left_before(team: Team) -> Team:
        members = [member.having(left_at=then) if member.left_at else member for member in team.members]
        return team.having(members=members)

    update(cli.store(), ALPHA, TEAM, ALPHA, left_before)
    assert cli("wait", "--needed", "--timeout", "60", agent="lea").stdout.endswith(
        "nobody is left for task-1: all members have left or were shut down\n"
        "next: teams run-agent PROMPT --detach, or teams close-team\n"
    )
    cli.ok("close-team", agent="lea")
    for words in (("wait", "--message"), ("read-messages",)):
        assert cli(*words, agent="bob").stderr.endswith("\n  The team is closed: you are done.\n")


def test_at_the_end_only_what_was_asked_needs_an_answer(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    cli.ok("send-message", "mia", "thanks for all", agent="lea")
    cli.ok("send-message", "mia", "which one was it?", agent="lea")
    complete(cli, "bob", "1")
    answer = cli("wait", "--timeout", "0", agent="mia").stdout
    assert "thanks for all" in answer and answer.endswith(DONE)
    assert [line for line in answer.splitlines() if line.startswith("next:")] == ["next: teams reply msg-2 TEXT"]


def test_tasks_that_can_be_unblocked_are_not_the_end(cli: Cli) -> None:
    """While a task is blocked by a failed one, members wait on and the leader is shown the blocked task."""
    add_tasks(cli, "one")
    add_tasks(cli, "two", blocked_by=["task-1"])
    cli.ok("claim-task", "1", agent="bob")
    said = cli("update-task", "1", "--status", "failed", "--reason", "why", agent="bob").stdout
    assert said.endswith("next: teams wait --claim --timeout 540\n")
    assert cli("wait", "--timeout", "0", agent="lea").stdout == (
        'msg-1\n[From agent "system"]:\n| task-1 (one), which blocks task-2, failed by bob: why\n'
        "all tasks are settled: 1 pending, 1 failed; task-2 waits in vain for ended tasks\n"
        "next: teams update-task task-2 --unblock task-1, or teams close-team\n"
    )
    cli.ok("update-task", "2", "--status", "cancelled", "--reason", "why", agent="human")
    assert cli("wait", "--timeout", "0", agent="bob").stdout == DONE


def test_an_owner_whose_task_waits_in_vain_hears_of_it(cli: Cli) -> None:
    """Also if the task that it waits for is pending, and waits for a failed one itself."""
    in_progress(cli, "bob", "one")
    add_tasks(cli, "two", "three")
    cli.ok("claim-task", "3", agent="mia")
    cli.ok("update-task", "2", "--blocked-by", "3", agent="lea")
    cli.ok("update-task", "1", "--blocked-by", "2", agent="lea")
    cli.ok("update-task", "3", "--status", "failed", agent="mia")
    cli.ok("read-messages", agent="bob")
    assert cli("wait", "--claim", "--timeout", "0", agent="bob").stdout == (
        "task-1 is yours, and waits in vain for task-2 (pending): one (all of it: teams show-task task-1)\n"
        "next: teams update-task task-1 --unblock task-2\n"
    )
    said = cli("wait", "--claim", "--timeout", "0", agent="bob").stderr
    assert "task-1 is yours, and waits in vain for task-2 (pending): teams update-task task-1 --unblock task-2." in said
    cli.ok("update-task", "1", "--unblock", "2", agent="bob")
    assert "nothing blocks it" in cli("wait", "--claim", "--timeout", "0", agent="bob").stdout


def test_who_can_not_go_on_yet_is_not_asked_to(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    add_tasks(cli, "two", "three")
    cli.ok("propose-plan", "so", "--task", "1", agent="bob")
    cli.ok("update-task", "1", "--blocked-by", "2", agent="lea")
    cli.ok("approve-plan", "plan-1", agent="lea")
    assert cli("read-messages", agent="bob").stdout.endswith("\nnext: teams wait --task task-2\n")
    cli.ok("claim-task", "3", agent="bob")
    cli.ok("update-task", "3", "--review-by", "mia", agent="lea")
    cli.ok("update-task", "3", "--status", "completed", agent="bob")
    assert cli.ok("brief", agent="mia")["toReview"] == ["task-3"]
    cli.ok("update-task", "3", "--after", "2", agent="lea")
    assert cli.ok("brief", agent="mia")["toReview"] == []
    cli.ok("update-task", "2", "--status", "cancelled", agent="human")
    assert cli.ok("brief", agent="mia")["toReview"] == ["task-3"]  # a refusal then says whom to ask


def test_a_claim_says_which_task_is_waited_for_in_vain(cli: Cli) -> None:
    add_tasks(cli, "one")
    add_tasks(cli, "two", after=["task-1"])
    cli.ok("update-task", "1", "--status", "cancelled", agent="human")
    said = cli("claim-task", "2", agent="bob").stdout
    step = "teams update-task task-2 --unblock task-1"
    assert f"\ncompletes after: task-1 (cancelled); to wait no longer for task-1: {step}\n" in said


def test_who_is_waited_for_hears_of_it_again_after_a_wait_in_vain(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    cli.ok("update-task", "1", "--review-by", "mia", agent="lea")
    cli.ok("update-task", "1", "--status", "completed", agent="bob")
    cli.ok("propose-plan", "so", agent="bob")
    cli.ok("request-shutdown", "bob", agent="lea")
    steps = {
        "mia": "teams review-task task-1 --accept --next --wait 540, or teams review-task task-1 --reject WHY --next",
        "lea": "teams approve-plan plan-1, or",
        "human": "teams approve-plan plan-1, or",
        "bob": "teams approve-shutdown shutdown-1, or",
    }
    for name, step in steps.items():
        assert step in cli("wait", "--timeout", "0", agent=name).stdout
        said = cli("wait", "--timeout", "0", agent=name).stderr
        assert f"  Somebody waits for you: {step}" in said and ". Keep waiting: teams wait" in said


def test_the_next_step_is_what_somebody_else_waits_for(cli: Cli) -> None:
    add_tasks(cli, "one")
    for name in ("bob", "mia"):
        cli.ok("propose-plan", "so", agent=name)
    decide = "next: teams approve-plan plan-{0}, or teams approve-plan plan-{0} --note TEXT, or teams reject-plan"
    assert decide.format(2) in cli("approve-plan", "plan-1", agent="lea").stdout
    assert cli("approve-plan", "plan-2", agent="lea").stdout.endswith("\nnext: teams wait --needed --timeout 540\n")
    cli.ok("request-shutdown", "bob", agent="lea")
    assert "next: teams approve-shutdown shutdown-1, or" in cli("read-messages", agent="bob").stdout
    cli.ok("claim-task", "1", agent="bob")
    assert "next: teams approve-shutdown shutdown-1, or" in cli("release-task", "1", agent="bob").stdout


def test_nobody_is_left_waiting_by_a_command_that_waits_itself(cli: Cli) -> None:
    add_tasks(cli, "one", "two", "three")
    for name, task in (("bob", "1"), ("mia", "2")):
        cli.ok("claim-task", task, agent=name)
    cli.ok("update-task", "2", "--review-by", "bob", agent="lea")
    cli.ok("update-task", "2", "--status", "completed", agent="mia")
    cli.ok("read-messages", agent="bob")
    cli.ok("claim-task", "3", agent="mia")
    answer = cli("update-task", "1", "--status", "completed", "--next", "--wait", "60", agent="bob")
    assert answer.stdout.endswith(
        "\nnext: teams review-task task-2 --accept --next --wait 540, or teams review-task task-2 --reject WHY --next "
        "--wait 540\n"
    )
    refusal = cli("claim-task", "--next", agent="bob").stderr
    assert "no task is ready for bob" in refusal and "  Somebody waits for you: teams review-task task-2" in refusal


def test_who_has_left_gets_no_answer(cli: Cli) -> None:
    cli.ok("send-message", "mia", "which?", agent="bob")
    cli.ok("leave-team", agent="bob")
    assert "next: teams reply" not in cli("wait", "--timeout", "0", agent="mia").stdout
    assert cli.ok("brief", agent="mia")["unhandled"] == []


@pytest.mark.slow
def test_a_landing_that_is_queued_is_not_waited_for(shop: Shop) -> None:
    shop.create("one", "--check", CHECK)
    shop.cli.ok("set", "landing", "completed", agent="lea")
    shop.ok("bob", "claim-task", "1")
    shop.write(shop.trees["bob"], "one", "1")
    said = shop.ok("bob", "update-task", "1", "--status", "completed", "--next", "--wait", "60")
    assert said.endswith(DONE) and shop.task()["landing"] == "landing-1"
