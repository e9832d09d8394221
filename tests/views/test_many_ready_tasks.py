"""Waiting for work where much is ready: no more is looked at than it takes to tell of it, and nothing is told twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from teams_cli.names import HUMAN
from teams_cli.tasks.tasks import TASK
from teams_cli.teams import history, presence
from tests.support.cli import ALPHA, Cli, add_tasks, make_team
from tests.support.waits import nothing

MANY = 60
SEEN = 10 + 3
"""How many ready tasks are looked at: ten, and as many as there are members."""


@pytest.fixture
def cli(tmp_path: Path, each_engine: str) -> Cli:
    """A team in which bob was told that many tasks are ready, and took none."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, *(f"number {number}" for number in range(MANY)))
    assert told(cli) == f"task-1 is ready: number 0 (and at least {SEEN} more)"
    nothing(cli, "bob")
    return cli


def told(cli: Cli, agent: str = "bob") -> str:
    """All that a wait, which ends at once, says of what is so."""
    found = cli.ok("wait", "--timeout", "0", agent=agent)
    return " | ".join(each["text"] for each in found["happened"])


def take(cli: Cli, task: str, agent: str = "mia") -> None:
    cli.ok("claim-task", task, agent=agent)
    cli.ok("update-task", task, "--status", "completed", agent=agent)


def test_what_was_told_is_written_down_in_few_words(cli: Cli) -> None:
    assert len(presence.load(cli.store(), ALPHA, "bob").told) <= SEEN + 2


def test_what_comes_into_sight_as_others_take_tasks_is_no_news(cli: Cli) -> None:
    for number in range(1, 6):
        take(cli, str(number))
        nothing(cli, "bob")


@pytest.mark.parametrize(("words", "kept"), [(("--priority", "high"), ""), (("--for", "bob"), ", kept for you,")])
def test_what_goes_before_them_is_news(cli: Cli, words: tuple[str, ...], kept: str) -> None:
    cli.ok("create-task", "this one", *words, agent="lea")
    assert f"task-{MANY + 1}{kept} is ready: this one" in told(cli)
    nothing(cli, "bob")


def test_one_that_was_given_back_is_news(cli: Cli) -> None:
    cli.ok("claim-task", "20", agent="mia")
    for number in range(1, 15):
        cli.ok("update-task", str(number), "--status", "cancelled", agent=HUMAN)
    nothing(cli, "bob")
    cli.ok("release-task", "20", "--reason", "too hard", agent="mia")
    assert "is ready" in told(cli)
    nothing(cli, "bob")


@pytest.mark.parametrize("task", ["1", "50"])
def test_all_are_news_to_who_took_one(cli: Cli, task: str) -> None:
    """One of those that it was told of, or one behind them."""
    take(cli, task, "bob")
    assert "is ready" in told(cli)
    nothing(cli, "bob")


def test_what_is_left_of_them_is_no_news(cli: Cli) -> None:
    for number in range(1, MANY - 5):
        cli.ok("update-task", str(number), "--status", "cancelled", agent=HUMAN)
    nothing(cli, "bob")
    nothing(cli, "bob")


def test_much_later_they_are_told_of_again(cli: Cli) -> None:
    for number in range(101):
        history.note(cli.store(), ALPHA, "mia", "status announced", status=f"at {number}")
    assert "task-1 is ready" in told(cli)
    nothing(cli, "bob")


def test_one_without_a_label_is_found_among_many(tmp_path: Path) -> None:
    """As a person leaves it who moves its file, or a loss of power: no mark says that it waits."""
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, *(f"number {number}" for number in range(MANY)))
    for number in range(1, MANY + 1):
        cli.ok("update-task", str(number), "--status", "cancelled", agent=HUMAN)
    store = cli.store()
    task, revision = store.get(ALPHA, TASK, "task-7")
    store.replace(ALPHA, TASK, "task-7", task.having(status="pending"), revision)
    (mark,) = (cli.root / "tasks" / ALPHA / "index").rglob("task-7")
    mark.unlink()
    assert told(cli) == "task-7 is ready: number 6"
