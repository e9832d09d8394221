"""What waits end for that nobody says: a member that is lost, an agent that was shut down, a team that is closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from teams_cli.store.retrying import update
from teams_cli.teams.teams import TEAM
from tests.support.cli import ALPHA, Cli, add_tasks, lapse, make_team
from tests.support.waits import begin, ended


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob", "mia")


def test_what_is_kept_for_a_member_that_is_lost_ends_the_wait_of_another(cli: Cli) -> None:
    """It is anybody's by then; and who leads is told."""
    cli.ok("set", "staleAfterSeconds", "1", agent="lea")
    cli.ok("create-task", "one", "--for", "bob", agent="lea")
    leading = begin(cli, "lea", "wait", "--needed", "--timeout", "60")
    assert ended(begin(cli, "mia", "wait", "--claim", "--timeout", "60"))["claimed"]["id"] == "task-1"
    ended(leading)
    told = [each["message"] for each in cli.ok("read-messages", "--all", agent="lea")]
    assert any(text.startswith("task-1 (one) was assigned to bob, and anybody may claim it now") for text in told)


def test_what_was_kept_for_who_leads_now_is_anybodys(cli: Cli) -> None:
    cli.ok("create-task", "one", "--for", "bob", agent="lea")
    cli.ok("hand-over", "bob", agent="lea")
    assert cli.ok("wait", "--claim", "--timeout", "0", agent="mia")["claimed"]["id"] == "task-1"
    said = cli("wait", "--timeout", "0", agent="bob").stdout
    assert (
        "was assigned to bob, and anybody may claim it now: bob leads the team now" in said
        and "is kept for you" not in said
    )


def test_who_was_shut_down_is_not_told_to_join(cli: Cli) -> None:
    cli.ok("request-shutdown", "mia", agent="lea")
    cli.ok("approve-shutdown", agent="mia")
    said = cli("wait", "--claim", agent="mia")
    assert (said.status, said.stderr) == (
        11,
        "teams: mia was shut down\n  You are done.\n",
    )


def test_a_wait_for_mail_ends_with_the_team(cli: Cli) -> None:
    """Also one that begins then; mail that is there is read all the same."""
    words = ("read-messages", "--wait", "60")
    waiting = cli.start(*words, agent="bob")
    cli.ok("send-message", "mia", "one more thing", agent="lea")
    cli.ok("close-team", agent="lea")
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 11 and b"team alpha is closed" in err
    assert cli(*words, agent="bob").status == 11
    assert cli(*words, agent="mia").status == 0


def test_a_task_that_was_lost_is_not_said_to_be_free_beside_who_has_it(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    lapse(cli.store())
    assert cli.ok("get-tasks", agent="mia")[0]["status"] == "pending"
    cli.ok("claim-task", "1", agent="mia")
    said = cli("get-tasks", agent="bob").stdout
    assert "it is free" not in said and "which was yours: mia has it now" in said


def test_why_a_task_was_taken_from_one_is_told_also_when_one_has_it_again(cli: Cli) -> None:
    """That is more than what one sees by having it."""
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("release-task", "1", "--reason", "use the other branch", "--force", agent="lea")
    said = cli("claim-task", "1", agent="bob").stdout
    assert "lea released it (use the other branch)" in said


def test_what_is_kept_for_who_leads_is_freed_by_who_looks(cli: Cli) -> None:
    """Whoever handed over may have been killed before it did so."""
    cli.ok("create-task", "one", "--for", "bob", agent="lea")
    store = cli.store()
    update(store, ALPHA, TEAM, ALPHA, lambda team: team.having(leader="bob"))
    assert cli.ok("wait", "--claim", "--timeout", "0", agent="mia")["claimed"]["id"] == "task-1"
