"""Waiting when many tasks are ready: only the first are read, and no agent is told of one twice."""

from __future__ import annotations

import pytest

from teams_cli.names import HUMAN
from teams_cli.tasks.changes import Edit, change_task
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.waits import nothing

MANY = 40
SEEN = 10
"""How many ready tasks are read, unless all of these are left to other agents."""


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """A team in which bob was told that many tasks are ready, and claimed none."""
    add_tasks(cli, *(f"number {number}" for number in range(MANY)))
    assert told(cli) == f"task-1 is ready: number 0 (and at least {SEEN} more)"
    nothing(cli, "bob")
    return cli


def told(cli: Cli, agent: str = "bob") -> str:
    found = cli.ok("wait", "--timeout", "0", agent=agent)
    return " | ".join(each["text"] for each in found["happened"])


def cancel(cli: Cli, *numbers: int) -> None:
    for number in numbers:
        change_task(cli.store(), ALPHA, Caller(HUMAN), str(number), Edit(status="cancelled"))


def test_a_released_or_more_urgent_task_is_news(cli: Cli) -> None:
    cli.ok("claim-task", "3", agent="mia")
    nothing(cli, "bob")
    cli.ok("release-task", "3", "--reason", "too hard", agent="mia")
    assert told(cli) == f"task-3 is ready: number 2 (and at least {SEEN} more)"
    nothing(cli, "bob")
    cancel(cli, *range(1, 21))
    nothing(cli, "bob")
    for number, words in enumerate([("--priority", "high"), ("--for", "bob")], start=MANY + 1):
        cli.ok("create-task", "this one", *words, agent="lea")
        assert told(cli).startswith(f"task-{number}")
        nothing(cli, "bob")


def test_when_few_tasks_are_left_an_agent_is_told_of_them_once(cli: Cli) -> None:
    cancel(cli, *range(1, MANY - 5))
    assert told(cli) == f"task-{MANY - 5} is ready: number {MANY - 6} (and 5 more)"
    nothing(cli, "bob")
