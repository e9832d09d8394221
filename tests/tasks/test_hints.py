"""The commands that a refusal names work: its reader may run them, and they are not refused in turn."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.cli import Cli, add_tasks, make_team

STATES = ("pending", "kept", "blocked", "in progress", "in review", "completed", "failed", "cancelled", "released")
"""The states of the tasks, from task-1 on. Those that have an owner, or had one, are those of bob."""
CHANGES = (
    "claim-task {}",
    "release-task {}",
    "heartbeat --task {}",
    "review-task {} --accept",
    "update-task {} --status completed",
    "update-task {} --status failed",
    "update-task {} --status cancelled",
    "update-task {} --status pending",
    "update-task {} --result x",
    "update-task {} --owner tom",
    "update-task {} --append x",
    "update-task {} --unassign",
)
ROLES = {"meg": "task-manager"}
SAFE = ("is at work", "no task is ready", "in progress: ")
"""What a second refusal may say: without `--force`, an owner at work keeps its task, and a team at work stays open."""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A team with a task in each state."""
    cli = make_team(
        tmp_path_factory.mktemp("hints") / "root", "bob", "ann", "tom", "meg", roles={"meg": "task-manager"}
    )
    add_tasks(cli, *STATES)
    cli.ok("update-task", "2", "--owner", "ann", agent="lea")
    cli.ok("update-task", "3", "--blocked-by", "1", agent="lea")
    cli.ok("update-task", "5", "--review-by", "task-manager", agent="lea")
    for number in (4, 5, 6, 7, 9):
        cli.ok("claim-task", str(number), agent="bob")
    for number, status in ((5, "completed"), (6, "completed"), (7, "failed")):
        cli.ok("update-task", str(number), "--status", status, agent="bob")
    cli.ok("update-task", "8", "--status", "cancelled", agent="meg")
    cli.ok("release-task", "9", agent="bob")
    return cli


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["lea", "bob", "tom", "meg", "human"])
def test_the_commands_of_a_refusal_are_not_refused(team: Cli, agent: str, tmp_path: Path) -> None:
    wrong, cli = [], copied(team, tmp_path)
    for number in range(1, len(STATES) + 1):
        for change in CHANGES:
            words = change.format(number).split()
            refused = cli(*words, agent=agent)
            commands = commands_in(refused.stderr)
            for command in commands:
                answer = cli(*command, agent=agent)
                if answer.status and not any(each in answer.stderr for each in SAFE):
                    wrong.append(f"{STATES[number - 1]}: {refused}\n{answer}")
                cli = copied(team, tmp_path)
            if not refused.status:
                cli = copied(team, tmp_path)
    assert not wrong, "\n".join(wrong)


def copied(cli: Cli, directory: Path) -> Cli:
    """A copy of the team, which the test may change."""
    shutil.rmtree(directory / "root", ignore_errors=True)
    shutil.copytree(cli.root, directory / "root")
    return Cli(directory / "root", "lea")


def commands_in(refusal: str) -> list[list[str]]:
    """The commands that a refusal asks its reader to run. What others have to run follows `ask`."""
    hint = re.sub(r"ask [a-z ]+(for|to)?: .*", "", refusal.partition("\n")[2])
    found = re.findall(r"teams ([a-z]+-?[a-z]* ?[^,;.()\n]*)", hint.replace(", or ", ".").replace(" or close", "."))
    return [words.split() for words in found if not words.startswith("run-agent")]
