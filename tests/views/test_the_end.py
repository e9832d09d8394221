"""The end is told: when all tasks are settled nobody waits on."""

from __future__ import annotations

from pathlib import Path

import pytest

from teams_cli.teams import presence
from tests.support.cli import ALPHA, Cli, add_tasks, make_team
from tests.support.shop import CHECK, Shop, shop
from tests.support.waits import until

__all__ = ["shop"]
DONE = "all tasks are settled: you are done\n"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob", "mia", "tom")


def test_every_wait_ends_once_all_tasks_are_settled(cli: Cli) -> None:
    """Of members and of the leader, whatever they wait for; no answer tells to wait any more."""
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    kinds = {"mia": ("--claim",), "tom": ("--ready",), "lea": ("--needed",)}
    waits = [cli.start("wait", *how, "--timeout", "60", agent=name, text=True) for name, how in kinds.items()]
    until(lambda: presence.load(cli.store(), ALPHA, "mia").waiting)
    said = cli("update-task", "1", "--status", "completed", "--next", "--wait", "60", agent="bob").stdout
    assert said == f"task-1: completed by bob: one\n{DONE}"
    mia, tom, lea = [process.communicate(timeout=60)[0] for process in waits]
    assert (mia, tom) == (DONE, DONE)
    assert "\nall tasks are settled: 1 completed\n" in lea and lea.endswith("next: teams close-team\n")
    said = cli("send-message", "mia", "thanks", agent="lea").stdout
    assert said.endswith("\nmia: heard that all is done, and may not read it\n")
    for words in (("reply", "2", "so it is"), ("brief",), ("claim-task", "--next"), ("wait", "--timeout", "0")):
        answer = cli(*words, agent="mia")
        assert "teams wait" not in answer.stdout + answer.stderr and "you are done" in answer.stdout + answer.stderr
    for words in (("brief",), ("read-messages",), ("wait", "--timeout", "0")):
        answer = cli(*words, agent="lea")
        assert "teams wait" not in answer.stdout + answer.stderr, answer


def test_what_can_be_freed_is_not_the_end(cli: Cli) -> None:
    """The leader is shown what is stuck; members wait, as it may free that."""
    add_tasks(cli, "one")
    add_tasks(cli, "two", blocked_by=["task-1"])
    cli.ok("claim-task", "1", agent="bob")
    said = cli("update-task", "1", "--status", "failed", "--reason", "why", agent="bob").stdout
    assert said.endswith("next: teams wait --claim --timeout 540\n")
    assert cli("wait", "--timeout", "0", agent="lea").stdout.endswith("next: teams get-tasks --blocked\n")
    cli.ok("update-task", "2", "--status", "cancelled", "--reason", "why", agent="human")
    assert cli("wait", "--timeout", "0", agent="bob").stdout == DONE


@pytest.mark.slow
def test_what_has_yet_to_land_is_not_the_end(shop: Shop) -> None:
    """It may come back to its owner."""
    shop.create("one", "--check", CHECK)
    shop.cli.ok("set", "landing", "completed", agent="lea")
    shop.ok("bob", "claim-task", "1")
    shop.write(shop.trees["bob"], "one", "1")
    said = shop.ok("bob", "update-task", "1", "--status", "completed", "--next", "--wait", "60")
    assert said.endswith(DONE) and shop.task()["landing"] == "landing-1"
