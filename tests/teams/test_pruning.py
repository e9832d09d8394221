"""Removing closed teams: which, after what, and that nothing of them is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "root")


def made(cli: Cli, name: str, closed: bool = True) -> None:
    """A team with a member, a task and a message."""
    cli.ok("spawn-team", name, agent="lea")
    cli.ok("join-team", name, agent="bob")
    cli.ok("create-task", "a secret plan", agent="lea", team=name)
    cli.ok("send-message", "bob", "a secret word", agent="lea", team=name)
    if closed:
        cli.ok("close-team", agent="lea", team=name)


def names(cli: Cli) -> set[str]:
    return {row["name"] for row in cli.ok("discover-teams", "--all", agent="lea")}


def test_only_closed_teams_of_that_age_are_removed_and_only_after_a_yes(cli: Cli) -> None:
    made(cli, "old")
    made(cli, "going-on", closed=False)
    assert cli.ok("prune", "--yes", agent="lea") == []
    rows = cli.ok("prune", "--older-than", "0s", agent="lea")
    assert [(row["team"], row["removed"], row["kept"]) for row in rows] == [("old", False, None)]
    assert names(cli) == {"old", "going-on"}
    rows = cli.ok("prune", "--older-than", "0", "--yes", agent="lea")
    assert [(row["team"], row["removed"]) for row in rows] == [("old", True)]
    assert names(cli) == {"going-on"}
    assert cli.refused("show-team", "old", agent="lea")[1] == "team_not_found"


def test_nothing_is_left_and_the_name_is_free(cli: Cli) -> None:
    made(cli, "old")
    cli.ok("prune", "--older-than", "0", "--yes", agent="human")
    assert not [path for path in cli.root.rglob("*") if "old" in path.name]
    cli.ok("spawn-team", "old", agent="bob")
    assert cli.ok("get-tasks", agent="bob", team="old") == []
    assert cli.ok("create-task", "anew", agent="bob", team="old")["id"] == "task-1"


def test_who_does_not_lead_a_team_removes_nothing(cli: Cli) -> None:
    made(cli, "old")
    rows = cli.ok("prune", "--older-than", "0", "--yes", agent="bob")
    assert not rows[0]["removed"] and "may not prune" in rows[0]["kept"]
    assert names(cli) == {"old"}
    assert (
        cli.ok("prune", "--older-than", "1d", agent="bob") == cli.ok("prune", "--older-than", "24h", agent="bob") == []
    )
    assert cli.refused("prune", "--older-than", "-1", agent="lea") == (2, "invalid_value")
