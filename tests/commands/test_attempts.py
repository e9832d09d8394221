"""A command that adds something and was not answered adds nothing more when it is repeated; one that was, does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import TIMEOUT, Cli, add_tasks, make_team

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob")


def unanswered(cli: Cli, *words: str) -> None:
    """Have the command be done, and its answer be lost, as by a kill behind the change."""
    with FULL.open("wb") as full:
        process = cli.start(*words, agent="lea", stdout=full)
        assert process.communicate(timeout=TIMEOUT)[1] and process.returncode == 1


def test_a_message(cli: Cli) -> None:
    words = ("send-message", "bob", "hello")
    unanswered(cli, *words)
    assert [cli.ok(*words, agent="lea")["id"] for _ in range(2)] == ["msg-1", "msg-2"]
    assert not list((cli.root / "tmp").glob("command-*"))


def test_a_note(cli: Cli) -> None:
    add_tasks(cli, "one")
    unanswered(cli, "note", "1", "seen")
    assert [len(cli.ok("note", "1", "seen", agent="lea")["notes"]) for _ in range(2)] == [1, 2]


def test_what_is_appended_to_several_tasks(cli: Cli) -> None:
    add_tasks(cli, "one", "two")
    words = ("update-task", "1,2", "--append", "more")
    unanswered(cli, *words)
    assert [each["description"] for each in cli.ok(*words, agent="lea")] == ["more", "more"]
    assert [each["description"] for each in cli.ok(*words, agent="lea")] == ["more\n\nmore", "more\n\nmore"]
