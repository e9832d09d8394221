"""Reviews: somebody else ends them, and only what was reviewed lands."""

from __future__ import annotations

import pytest

from tests.support.shop import Shop, git

pytestmark = pytest.mark.slow


def test_what_was_reviewed_lands_and_no_more(shop: Shop) -> None:
    """Commits after the reviewed one do not land, but another commit with the reviewed content does."""
    for key, agent in (("1", "bob"), ("2", "mia")):
        shop.begin(agent, "--review-by", {"bob": "mia", "mia": "bob"}[agent], key=key, file=f"seen{key}")
        shop.complete(agent, key)
        handed_in = git(shop.trees[agent], "rev-parse", "HEAD")
        assert f"commit {handed_in[:10]}" in shop.ok("mia", "show-task", key)
        shop.write(shop.trees[agent], f"unseen{key}", key)
    shop.ok("mia", "review-task", "1", "--accept")
    shop.ok("bob", "review-task", "2", "--accept")
    assert shop.landed("bob", "1")["state"] == "landed"
    assert (shop.main / "seen1").exists() and not (shop.main / "unseen1").exists()
    git(shop.trees["mia"], "reset", "-q", "--soft", "HEAD~2")
    git(shop.trees["mia"], "commit", "-q", "-m", "seen and unseen")
    refused = shop.at("mia", "land", "2")
    assert refused.returncode == 11 and "was reviewed at" in refused.stderr and "--status pending" in refused.stderr
    git(shop.trees["mia"], "rm", "-q", "unseen2")
    git(shop.trees["mia"], "commit", "-q", "--amend", "-m", "seen")
    assert shop.landed("mia", "2")["state"] == "landed" and (shop.main / "seen2").exists()


def test_another_ends_a_review(shop: Shop) -> None:
    """Only the reviewer ends a review; a rejected task is in progress again, with the reason."""
    shop.claimed("bob", "--review-by", "mia")
    shop.create("after", "--blocked-by", "1")
    assert "in_review" in shop.complete("bob")
    assert shop.at("bob", "review-task", "1", "--accept").returncode == 13
    assert "review-task task-1" in shop.ok("mia", "wait", "--timeout", "60")
    shop.ok("mia", "review-task", "1", "--reject", "no tests")
    task = shop.task()
    assert (task["status"], task["owner"], task["claim"]) == ("in_progress", "bob", 2)
    assert "no tests" in shop.ok("bob", "wait", "--timeout", "60")
    shop.complete("bob")
    shop.ok("mia", "review-task", "1", "--accept")
    assert shop.task()["status"] == "completed" and not shop.task("2")["blocked"]
    shop.ok("mia", "review-task", "1", "--accept")  # repeated, as after a lost answer


def test_newer_work_is_handed_in_during_the_review(shop: Shop) -> None:
    """The check runs again on newer work, and a reviewer who does not know that work is refused once."""
    shop.begin("bob", "--review-by", "mia", "--check", "! test -e broken", file="first")
    shop.complete("bob")
    shop.ok("mia", "read-messages")
    shop.write(shop.trees["bob"], "broken", "1")
    failed = shop.at("bob", "update-task", "1", "--status", "completed")
    assert failed.returncode == 11 and "exit status 1" in failed.stderr
    assert (shop.task()["status"], shop.task()["checked"]["status"]) == ("in_review", 0)
    git(shop.trees["bob"], "rm", "-q", "broken")
    git(shop.trees["bob"], "commit", "-q", "-m", "repaired")
    shop.write(shop.trees["bob"], "second", "2")
    head = git(shop.trees["bob"], "rev-parse", "HEAD")
    assert "in_review" in shop.ok("bob", "update-task", "1", "--status", "completed", "--result", "with second")
    assert (shop.task()["submitted"], shop.task()["checked"]["commit"]) == (head, head)

    refused = shop.at("mia", "review-task", "1", "--accept")
    assert refused.returncode == 11 and f"newer work on task-1 (t), commit {head[:10]}" in refused.stderr
    assert "with second" in refused.stderr and shop.task()["status"] == "in_review"
    shop.complete("bob")  # without newer work nobody is notified
    shop.ok("mia", "review-task", "1", "--accept")
    assert shop.landed("bob", "1")["state"] == "landed" and (shop.main / "second").exists()


def test_a_reviewer_may_have_yet_to_join(shop: Shop) -> None:
    made = shop.cli("create-task", "t", "--review-by", "zoe", agent="lea")
    assert made.stdout.count("review by zoe") == 1 and "(review by zoe, who has yet to join)" in made.stdout
    listed = shop.cli("create-task", "--from", "[{title: u, reviewBy: zoe}]", agent="lea")
    assert "(review by zoe, who has yet to join)" in listed.stdout
    assert shop.cli("show-task", "1", agent="").stderr == ""
    shop.ok("bob", "claim-task", "1")
    shop.cli.ok("join-team", agent="zoe")
    shop.complete("bob")
    assert "waits for your review" in str(shop.cli.ok("read-messages", agent="zoe"))


def test_a_reviewer_is_asked_with_the_task_and_goes_on_to_its_own_next_task(shop: Shop) -> None:
    shop.begin("bob", "--review-by", "mia", "--description", "Count the words.", file="first")
    shop.create("u", "--for", "mia")
    shop.ok("bob", "update-task", "1", "--status", "completed", "--result", "done")
    commit = git(shop.trees["bob"], "rev-parse", "HEAD")[:10]
    request = f"task-1 (t) by bob waits for your review, commit {commit}\ntask: Count the words.\nresult: done"
    assert request in [message["message"] for message in shop.cli.ok("read-messages", agent="mia")]
    answer = shop.ok("mia", "review-task", "1", "--accept", "--next", "--wait", "540").splitlines()
    assert answer[:2] == ["task-1: completed by bob: t", "task-2: in_progress by mia: u"]


def test_a_leader_waits_with_its_review_for_the_next_thing_that_needs_it(shop: Shop) -> None:
    def lea(*words: str) -> str:
        return shop.cli(*words, agent="lea").stdout

    for owner in ("bob", "mia"):
        shop.create("t", "--for", owner, "--review-by", "lea")
        shop.ok(owner, "claim-task", "--next")
        shop.ok(owner, "update-task", "1" if owner == "bob" else "2", "--status", "completed")
    assert "next: teams review-task task-1 --accept --wait 540, or" in lea("wait", "--needed")
    answer = lea("review-task", "1", "--accept", "--wait", "0")
    assert answer.startswith("task-1: completed by bob: t\n")
    assert answer.endswith(
        "next: teams review-task task-2 --accept --wait 540, or teams review-task task-2 --reject WHY --wait 540\n"
    )
    answer = lea("review-task", "2", "--accept", "--wait", "540")
    assert "\nall tasks are settled: 2 completed" in answer and answer.endswith("\nnext: teams close-team\n")


def test_another_reviewer_is_asked_in_place_of_the_former_one(shop: Shop) -> None:
    shop.cli.ok("join-team", agent="ann")
    shop.claimed("bob", "--review-by", "mia")
    shop.ok("bob", "update-task", "1", "--status", "completed", "--result", "done")
    shop.cli.ok("update-task", "1", "--review-by", "ann", agent="lea")
    asked = shop.cli("read-messages", agent="ann").stdout
    assert "task-1 (t) by bob waits for your review, commit " in asked
    assert "next: teams review-task task-1 --accept" in asked
    assert "next: teams review-task task-1 --accept" in shop.cli("ack", agent="ann").stdout
    news = shop.cli.ok("wait", "--timeout", "0", agent="mia")
    (told,) = news["messages"]
    assert (told["message"], told["next"]) == ("task-1 (t) no longer waits for your review: lea chose ann", None)
    assert shop.cli.ok("read-messages", agent="bob")[-1]["message"] == "lea edited task-1 (t): review_by: ann"


def test_an_edit_during_the_review_is_for_its_owner_and_its_reviewer(shop: Shop) -> None:
    shop.begin("bob", "--review-by", "mia", file="first")
    shop.ok("bob", "update-task", "1", "--status", "completed", "--result", "a long result " * 60)
    then = " --next --wait 540"
    steps = f"next: teams review-task task-1 --accept{then}, or teams review-task task-1 --reject WHY{then}"
    assert f"(teams show-message msg-1) ({steps.removeprefix('next: ')})" in shop.at("mia", "whoami").stderr
    assert steps in shop.ok("mia", "show-task", "1") and steps not in shop.ok("bob", "show-task", "1")
    edited = shop.cli("update-task", "1", "--append", "Count from 1.", agent="lea")
    assert "description changed (bob, mia are notified)" in edited.stdout
    again = "task-1 (t): added: Count from 1. If your work lacks it, change it, then: teams update-task task-1"
    assert f"lea edited {again}" in shop.at("bob", "whoami").stderr
    assert "Count from 1.; you review it" in shop.ok("mia", "read-messages")
    shop.write(shop.trees["bob"], "second", "1")
    handed_in = shop.complete("bob")
    assert "newer work handed in (mia is notified)" in handed_in
