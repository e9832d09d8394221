"""Repeating a command whose answer was lost adds nothing; repeating a command that was answered does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import TIMEOUT, Cli, add_tasks

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


def unanswered(cli: Cli, *words: str) -> None:
    """Run the command so that it makes its change and its answer is lost."""
    with FULL.open("wb") as full:
        process = cli.start(*words, agent="lea", stdout=full)
        assert process.communicate(timeout=TIMEOUT)[1] and process.returncode == 1


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        ("send-message bob hello", lambda found: found["number"]),
        ("note 1 seen", lambda found: len(found["notes"])),
        ("update-task 1,2 --append more", lambda found: found[1]["description"].count("more")),
        ("create-task new", lambda found: int(found["id"][5:]) - 2),
        ("create-task new --for bob --blocks 1", lambda found: int(found["id"][5:]) - 2),
    ],
)
def test_what_was_not_answered_adds_nothing_more(cli: Cli, words: str, counted: Callable[[Any], int]) -> None:
    add_tasks(cli, "one", "two")
    unanswered(cli, *words.split())
    assert [counted(cli.ok(*words.split(), agent="lea")) for _ in range(2)] == [1, 2]
    assert not list((cli.root / "tmp").glob("command-*"))


def test_a_list_of_tasks_is_created_once(cli: Cli) -> None:
    words = ("create-task", "--from", "- {title: one, id: a}\n- {title: two, blockedBy: [a]}\n")
    unanswered(cli, *words)
    add_tasks(cli, "one")  # of another command
    for ids in (["task-1", "task-2"], ["task-4", "task-5"]):
        assert [task["id"] for task in cli.ok(*words, agent="lea")] == ids
