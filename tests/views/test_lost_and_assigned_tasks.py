"""Members hear once that they lost a task and who has it, and that a task assigned to them is ready."""

from __future__ import annotations

import re

from tests.support.cli import TIMEOUT, Cli, add_tasks, in_progress, lapse
from tests.support.waits import begin, ended, nothing


def test_the_leader_takes_a_task_from_an_owner_at_work_only_by_force(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    for words in (("release-task", "1"), ("update-task", "1", "--owner", "mia")):
        assert cli.refused(*words, agent="lea") == (11, "conflict")
        refused = cli(*words, agent="lea").stderr
        assert re.match(
            r"teams: bob is at work on task-1: last seen [\d.]+ (s|min) ago; nothing was changed\n", refused
        )
        assert refused.endswith(f"teams {' '.join(words)} --force\n".replace(" 1", " task-1"))
    more = (("release-task", "1", "--reason", "too slow"), ("update-task", "1", "--owner", "mia", "--append", "more"))
    for words in more:  # a command without the other options would lose them
        assert cli(*words, agent="lea").stderr.endswith(", and notify bob: repeat the command with --force\n")
    waiting = begin(cli, "bob")
    handed = cli.ok("update-task", "1", "--owner", "mia", "--force", agent="lea")
    assert (handed["owner"], handed["claim"]) == ("mia", 2)
    said = "task-1 (one) is no longer yours: lea gave it away; mia has it now."
    assert ended(waiting)["messages"][-1]["message"] == said


def test_an_agent_that_claims_its_lost_task_again_is_told_so_in_one_line(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    lapse(cli.store())
    said = cli("wait", "--claim", agent="bob").stdout.splitlines()
    assert said[0] == "task-1: in_progress by bob: one"
    assert re.match(r"1\d min left, renewed by any `teams` command; ", said[2])
    assert re.fullmatch(r"it was yours before, until the lease of bob ended [\d:]+ UTC", said[1])
    assert said[3].startswith("next: teams update-task task-1 ") and len(said) == 4
    assert "no longer yours" not in cli("brief", agent="bob").stdout


def test_a_late_result_counts_if_nobody_has_taken_the_task_since(cli: Cli) -> None:
    add_tasks(cli, "one", "two")
    for number in ("1", "2"):
        cli.ok("claim-task", number, agent="bob")
        lapse(cli.store(), f"task-{number}")
    assert {task["status"] for task in cli.ok("get-tasks", agent="mia")} == {"pending"}
    assert cli.refused("update-task", "1", "--status", "completed", "--claim", "7", agent="bob") == (11, "stale_claim")
    done = cli("update-task", "1", "--status", "completed", "--result", "all of it", agent="bob")
    assert "task-1: completed by bob: one" in done.stdout.splitlines()
    assert "task-1 (one) is no longer yours" not in done.stdout + done.stderr
    cli.ok("claim-task", "2", agent="mia")
    assert cli.refused("update-task", "2", "--status", "completed", agent="bob") == (11, "stale_claim")
    cli.ok("release-task", "2", agent="mia")
    assert cli.refused("update-task", "2", "--status", "completed", agent="bob") == (11, "stale_claim")


def test_the_leader_hears_whose_task_it_released_and_the_late_owner_what_to_do(cli: Cli) -> None:
    in_progress(cli, "mia", "one")
    said = cli("release-task", "1", "--reason", "bob is silent", "--force", agent="lea").stdout
    assert said.startswith("task-1: pending, taken from mia: one\n")
    refused = cli("update-task", "1", "--status", "completed", agent="mia")
    assert refused.status == 11
    assert "Keep your result: teams claim-task task-1, and complete it again" in refused.stderr
    cli.ok("claim-task", "1", agent="bob")
    refused = cli("update-task", "1", "--status", "completed", agent="mia")
    note = (
        "Keep your result: teams note task-1 TEXT. bob has the task now: leave its files. Continue: teams wait --claim"
    )
    assert (refused.status, refused.stderr.splitlines()[-1].strip()) == (11, note)


def test_a_task_assigned_to_a_lost_member_ends_the_wait_of_another(cli: Cli) -> None:
    cli.ok("set", "staleAfterSeconds", "1", agent="lea")
    cli.ok("create-task", "one", "--for", "bob", agent="lea")
    leading = begin(cli, "lea", "wait", "--needed", "--timeout", "60")
    assert ended(begin(cli, "mia", "wait", "--claim", "--timeout", "60"))["claimed"]["id"] == "task-1"
    ended(leading)
    told = [each["message"] for each in cli.ok("read-messages", "--all", agent="lea")]
    assert any(text.startswith("task-1 (one) was assigned to bob, and anybody may claim it now") for text in told)


def test_a_wait_for_mail_ends_with_the_team(cli: Cli) -> None:
    words = ("read-messages", "--wait", "60")
    waiting = cli.start(*words, agent="bob")
    cli.ok("send-message", "mia", "one more thing", agent="lea")
    cli.ok("close-team", agent="lea")
    _, err = waiting.communicate(timeout=TIMEOUT)
    assert waiting.returncode == 11 and b"team alpha is closed" in err
    assert cli(*words, agent="bob").status == 11
    assert cli(*words, agent="mia").status == 0


def test_an_edit_ends_the_wait_of_the_assignee_only_if_the_task_is_ready(cli: Cli) -> None:
    """An edit of a task that is still blocked is shown with the claim."""
    in_progress(cli, "mia", "one")
    cli.ok("create-task", "two", "--for", "bob", "--blocked-by", "1", agent="lea")
    (notice,) = ended(begin(cli, "bob"))["messages"]
    assert ("you will be notified when it is ready" in notice["message"], notice["next"]) == (True, None)
    cli.ok("update-task", "2", "--append", "\nand faster", agent="lea")
    nothing(cli, "bob")
    assert cli("heartbeat", agent="bob").stderr == ""
    waiting = begin(cli, "bob", "wait", "--claim", "--timeout", "60")
    cli.ok("update-task", "1", "--status", "completed", agent="mia")
    found = ended(waiting)
    assert (found["messages"], found["happened"], found["claimed"]["id"]) == ([], [], "task-2")
    assert found["claimed"]["description"] == "and faster"
    waiting = begin(cli, "mia")
    cli.ok("create-task", "three", "--for", "mia", agent="lea")
    assert [each["text"] for each in ended(waiting)["happened"]] == ["task-3, assigned to you, is ready: three"]
    nothing(cli, "mia")
    cli.ok("update-task", "3", "--append", "and faster", agent="lea")
    (edit,) = ended(begin(cli, "mia"))["messages"]
    assert edit["message"] == "lea edited task-3 (three): added: and faster"


def test_a_lost_task_is_offered_only_while_it_is_free(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    offer = "; it is free: teams claim-task task-1"
    cli.ok("release-task", "1", "--reason", "too slow", "--force", agent="lea")
    assert offer in cli("wait", "--timeout", "0", agent="bob").stdout
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("release-task", "1", "--reason", "too slow", "--force", agent="lea")
    cli.ok("update-task", "1", "--owner", "mia", agent="lea")
    said = cli("wait", "--timeout", "0", agent="bob").stdout
    assert "task-1 (one) is no longer yours: lea released it (too slow)." in said and offer not in said
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("release-task", "1", "--reason", "too slow", "--force", agent="lea")
    cli.ok("update-task", "1", "--status", "cancelled", agent="human")
    for words in (("brief",), ("wait", "--message", "--timeout", "1")):
        said = cli(*words, agent="mia").stdout
        assert "task-1 (one) is no longer yours: lea released it (too slow)." in said and offer not in said
        cli.ok("update-task", "1", "--status", "pending", agent="human")
        cli.ok("claim-task", "1", agent="mia")
        cli.ok("release-task", "1", "--reason", "too slow", "--force", agent="lea")
        cli.ok("update-task", "1", "--status", "cancelled", agent="human")


def test_no_command_follows_what_nobody_can_do_any_more(cli: Cli) -> None:
    """A former reviewer is not sent to the review, and nobody in a closed team to a change."""
    in_progress(cli, "bob", "one")
    cli.ok("update-task", "1", "--review-by", "mia", agent="lea")
    cli.ok("propose-plan", "so", agent="bob")
    cli.ok("update-task", "1", "--status", "completed", agent="bob")
    cli.ok("update-task", "1", "--review-by", "lea", agent="lea")
    said = cli("read-messages", agent="mia").stdout
    assert "waits for your review" in said and "review-task" not in said
    cli.ok("send-message", "bob", "well?", agent="lea")
    cli.ok("close-team", "--force", agent="lea")
    for words in (("show-task", "1"), ("show-plan", "1"), ("read-messages",)):
        for agent in ("lea", "bob", "mia"):
            said = cli(*words, agent=agent).stdout
            assert not re.search(r"next: |\(teams (approve|review|reply)", said), said
