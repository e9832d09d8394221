"""Events of notices: programs read them from fields, and from sentences only in notices of older versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teams_cli.messages.messages import Message
from tests.support.cli import Cli

OLD = [
    ("task-7 (A) is no longer yours: the process of bob is gone; it is free: teams claim-task task-7.", "task-lost"),
    (
        "task-7 (A (b)) is no longer yours: lea released it (too slow); it is free: teams claim-task task-7.",
        "task-released",
    ),
    ("task-7 (A\nb), which was yours: mia has it now, and its files.", "task-taken"),
    ("task-7 (A) is kept for you; it waits for task-1", "task-assigned-blocked"),
    ("task-7 (A) is kept for you and ready: teams claim-task --next", "task-assigned"),
    ("task-7 (A), kept for you, is ready: teams claim-task --next", "task-ready"),
]


@pytest.mark.parametrize(("sentence", "event"), OLD)
def test_what_an_older_version_wrote_as_a_sentence_is_an_event(sentence: str, event: str) -> None:
    notice = Message(from_="system", to="bob", message=sentence, timestamp="2030-01-01T00:00:00.000Z")
    assert notice.event_and_task == (event, "task-7")
    assert notice.having(from_="ann").event_and_task == ("", ""), "members write what they like"


def test_a_plan_that_an_older_version_told_of_is_proposed() -> None:
    root = Path(__file__).parents[1] / "fixtures/0.1"
    (path,) = root.glob("teams/*/messages/0/*proposed-plan-1.json")
    assert Message.from_json(json.loads(path.read_text())).event_and_task[0] == "plan-proposed"


def test_a_notice_has_its_event_and_its_task(cli: Cli) -> None:
    cli.ok("create-task", "A", "--for", "bob", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("release-task", "1", "--reason", "too slow", "--force", agent="lea")
    found = cli.ok("read-messages", "--all", agent="bob")
    assert [(one["event"], one["task"]) for one in found] == [("task-assigned", "task-1"), ("task-released", "task-1")]
