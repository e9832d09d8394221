"""Who lost a task is told so, once, and who has it then."""

from __future__ import annotations

import re

import pytest

from teams_cli.tasks.tasks import TASK
from teams_cli.teams import presence, teams
from tests.support.cli import ALPHA, Cli, add_tasks, lapse
from tests.support.waits import begin, ended, until
from tests.views.test_waits import cli

__all__ = ["cli"]


def test_who_loses_a_task_to_another_s_decision_is_told(cli: Cli) -> None:
    add_tasks(cli, "one")
    for words, why in (
        (("release-task", "1", "--reason", "wrong one"), "(wrong one)"),
        (("update-task", "1", "--owner", "mia"), "mia has it now"),
    ):
        cli.ok("claim-task", "1", agent="bob")
        cli.ok(*words, agent="human")
        said = ended(begin(cli, "bob"))["messages"][-1]["message"]
        assert said.startswith("task-1 (one) is no longer yours: human") and why in said


def test_who_leads_takes_a_task_from_an_owner_at_work_only_by_force(cli: Cli) -> None:
    """It hears that the owner is at work; with --force one command hands the task over, and the owner hears at once."""
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    for words in (("release-task", "1"), ("update-task", "1", "--owner", "mia")):
        assert cli.refused(*words, agent="lea") == (11, "conflict")
        refused = cli(*words, agent="lea").stderr
        assert re.match(r"teams: bob is at work on task-1: last seen [\d.]+ s ago; nothing was changed\n", refused)
        assert refused.endswith(f"teams {' '.join(words)} --force\n".replace(" 1", " task-1"))
    waiting = begin(cli, "bob")
    handed = cli.ok("update-task", "1", "--owner", "mia", "--force", agent="lea")
    assert (handed["owner"], handed["claim"]) == ("mia", 2)
    said = "task-1 (one) is no longer yours: lea gave it away; mia has it now."
    assert ended(waiting)["messages"][-1]["message"] == said


def test_the_first_answer_after_a_loss_begins_with_it(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("update-task", "1", "--owner", "mia", "--force", agent="lea")
    first = cli("get-tasks", agent="bob")
    assert first.stdout.startswith("task-1 (one) is no longer yours: lea gave it away; mia has it now.\nTASK")
    assert "no longer yours" not in first.stderr + cli("get-tasks", agent="bob").stdout


def test_a_task_of_a_silent_owner_is_handed_over_without_force(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    store = cli.store()
    task, revision = store.get(ALPHA, TASK, "task-1")
    store.replace(ALPHA, TASK, "task-1", task.having(lease_until=0.5), revision)
    assert cli.ok("update-task", "1", "--owner", "mia", agent="lea")["owner"] == "mia"


@pytest.mark.slow
def test_who_was_killed_as_it_waited_is_not_said_to_wait(cli: Cli) -> None:
    cli.ok("set", "staleAfterSeconds", "2", agent="lea")
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    waiting = begin(cli, "mia")
    until(lambda: presence.load(cli.store(), ALPHA, "mia").waiting)
    waiting.kill()
    waiting.communicate()
    store = cli.store()
    until(lambda: not presence.is_around(store, teams.get(store, ALPHA), presence.load(store, ALPHA, "mia")))
    assert presence.load(store, ALPHA, "mia").waiting

    def told() -> str:
        cli("wait", "--timeout", "0", agent="lea")
        return str(cli.ok("read-messages", "--all", agent="lea"))

    until(lambda: "task-1 (one) is free again: " in told())
    assert "waits for work" not in told()


def test_who_takes_again_what_it_lost_is_told_so_in_one_line(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    lapse(cli.store())
    said = cli("wait", "--claim", agent="bob").stdout.splitlines()
    assert said[0] == "task-1: in_progress by bob: one"
    assert re.match(r"1[45] min left, renewed by any `teams` command; ", said[2])
    assert re.fullmatch(r"it was yours before, until the lease of bob ended [\d:]+ UTC", said[1])
    assert said[3].startswith("next: teams update-task task-1 ") and len(said) == 4
    assert "no longer yours" not in cli("brief", agent="bob").stdout


def test_who_releases_what_another_has_meanwhile_hears_whose_it_was(cli: Cli) -> None:
    """It may have been claimed anew since one last looked; who has a result says what to do with that."""
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="mia")
    said = cli("release-task", "1", "--reason", "bob is silent", "--force", agent="lea").stdout
    assert said.startswith("task-1: pending, taken from mia: one\n")
    refused = cli("update-task", "1", "--status", "completed", agent="mia")
    assert refused.status == 11
    assert "Keep your result: teams claim-task task-1, and complete it again" in refused.stderr
    cli.ok("claim-task", "1", agent="bob")
    refused = cli("update-task", "1", "--status", "completed", agent="mia")
    note = "Keep your result: teams note task-1 TEXT; its files are bob's now. Continue: teams wait --claim"
    assert (refused.status, refused.stderr.splitlines()[-1].strip()) == (11, note)


def test_who_waits_in_vain_for_a_team_hears_how_to_wait_on(cli: Cli) -> None:
    said = cli("join-team", "beta", "--wait", "0", "--claim", agent="bob").stderr
    assert "Nobody has created it yet. Keep waiting: teams join-team beta --claim --wait 540\n" in said
    said = cli("join-team", "--wait", "0", "--as", "bob", "--team", "beta", agent="lea").stderr
    assert "Keep waiting: teams join-team --as bob --wait 540\n" in said
