"""Tasks released with a reason: the leader hears of it, and others are offered the task first."""

from __future__ import annotations

import pytest

from tests.support.cli import Cli, in_progress
from tests.support.waits import begin, ended, nothing

WHY = ("--reason", "needs a key of the server")


@pytest.fixture
def cli(cli: Cli) -> Cli:
    in_progress(cli, "bob", "deploy")
    return cli


def test_a_release_without_a_reason_tells_nobody_and_the_owner_may_claim_again(cli: Cli) -> None:
    released = cli("release-task", "1", agent="bob").stdout
    assert released == "task-1: pending: deploy\nnext: teams wait --claim --timeout 540\n"
    nothing(cli, "lea")
    assert cli.ok("wait", "--claim", "--timeout", "0", agent="bob")["claimed"]["id"] == "task-1"


def test_the_leader_hears_why_and_others_are_offered_the_task_until_it_is_edited(cli: Cli) -> None:
    waiting = begin(cli, "lea", "wait", "--needed", "--timeout", "60")
    cli.ok("release-task", "1", *WHY, agent="bob")
    (message,) = ended(waiting)["messages"]
    assert message["message"].startswith("task-1 (deploy) was released by bob: needs a key of the server")
    assert "teams update-task task-1" in message["message"]
    nothing(cli, "bob")
    for words in ("--claim", "--ready"):
        assert cli("wait", words, "--timeout", "0", agent="bob").status == 14
    assert cli.ok("wait", "--claim", "--timeout", "0", agent="mia")["claimed"]["id"] == "task-1"
    cli.ok("release-task", "1", agent="mia")
    waiting = begin(cli, "bob", "wait", "--claim", "--timeout", "60")
    cli.ok("update-task", "1", "--append", "The key is in the vault.", agent="lea")
    assert ended(waiting)["claimed"]["id"] == "task-1"


def test_an_agent_that_works_alone_is_offered_its_released_task(cli: Cli) -> None:
    cli.ok("leave-team", agent="mia")
    cli.ok("release-task", "1", *WHY, agent="bob")
    assert cli.ok("wait", "--claim", "--timeout", "0", agent="bob")["claimed"]["id"] == "task-1"
