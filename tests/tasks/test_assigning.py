"""Assigning: a task is kept for one member, as long as that member is in the team."""

from __future__ import annotations

from pathlib import Path

import pytest

from teams_cli.messages.messages import MESSAGE
from teams_cli.tasks import changes
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli, add_tasks, complete, in_progress, make_team
from tests.tasks.conftest import told


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob", "ann", "mia", roles={"mia": "task-manager"})


def test_an_assigned_task_is_left_alone_by_others(cli: Cli) -> None:
    made = cli.ok("create-task", "for bob", "--for", "bob", "--priority", "low", agent="lea")
    assert made["assignee"] == "bob" and "owner" not in made
    add_tasks(cli, "for anybody", "another", priority="high")
    assert cli.refused("claim-task", "1", agent="ann") == (11, "task_kept")
    assert "task-1 is assigned to bob" in cli("claim-task", "1", agent="ann").stderr
    assert cli.ok("claim-task", "--next", agent="ann")["id"] == "task-2"
    claimed = cli.ok("claim-task", "--next", agent="bob")
    assert (claimed["id"], claimed["owner"], "assignee" in claimed) == ("task-1", "bob", False)
    assert cli.ok("claim-task", "--next", agent="mia")["id"] == "task-3"
    assert cli("claim-task", "--next", agent="mia").status == 10
    assert told(cli, "bob") == ["task-1 (for bob) is assigned to you and ready: teams claim-task --next"]


def test_who_may_assign(cli: Cli) -> None:
    add_tasks(cli, "first", "second")
    cli.ok("update-task", "2", "--blocked-by", "1", agent="lea")
    for task in ("1", "2"):
        kept = cli.ok("update-task", task, "--owner", "bob", agent="mia")
        assert (kept["status"], kept["assignee"], "owner" in kept) == ("pending", "bob", False)
    assert cli.refused("update-task", "1", "--owner", "ann", agent="ann") == (13, "not_allowed")
    assert cli.refused("update-task", "1", "--owner", "lea", agent="mia") == (13, "not_allowed")
    assert cli.refused("update-task", "1", "--owner", "nobody", agent="mia") == (10, "agent_not_found")
    assert cli.refused("create-task", "t", "--for", "no body", agent="mia") == (2, "invalid_value")
    first, second = told(cli, "bob")
    assert first.endswith("is assigned to you and ready: teams claim-task --next")
    assert second.endswith("blocked by task-1 (pending); you will be notified when it is ready (teams show-task ID)")
    cli.ok("claim-task", "1", agent="bob")
    assert cli.refused("update-task", "1", "--owner", "ann", agent="ann") == (13, "not_allowed")


def test_the_assignee_is_told_when_its_task_becomes_ready(cli: Cli) -> None:
    add_tasks(cli, "one", "two")
    cli.ok("create-task", "last", "--for", "bob", "--blocked-by", "1", "--blocked-by", "2", agent="lea")
    told(cli, "bob")
    for task in ("1", "2"):
        assert told(cli, "bob") == []
        complete(cli, "ann", task)
    assert told(cli, "bob") == ["task-3 (last), kept for you, is ready: teams claim-task --next"]
    assert cli.ok("claim-task", "--next", agent="bob")["id"] == "task-3"


def test_taking_an_assigned_task_back(cli: Cli) -> None:
    cli.ok("create-task", "t", "--for", "bob", agent="lea")
    assert cli.refused("update-task", "1", "--unassign", agent="ann") == (13, "not_allowed")
    assert "assignee" not in cli.ok("update-task", "1", "--unassign", "--reason", "ann is free", agent="lea")
    assert told(cli, "bob")[-1] == "task-1 (t) is no longer assigned to you, by lea: ann is free"
    assert cli.refused("update-task", "1", "--unassign", agent="lea") == (11, "wrong_state")
    cli.ok("update-task", "1", "--owner", "bob", agent="lea")
    cli.ok("update-task", "1", "--unassign", agent="bob")
    assert cli.ok("claim-task", "--next", agent="ann")["id"] == "task-1"


def test_a_busy_member_hears_nothing_of_a_task_that_was_assigned_to_it_for_a_while(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("create-task", "t", "--for", "bob", agent="lea")
    assert "task-2" not in str(cli("announce", "at work", agent="bob"))
    cli.ok("update-task", "2", "--unassign", agent="lea")
    assert "task-2" not in str(cli("announce", "still at work", agent="bob"))
    cli.ok("update-task", "2", "--owner", "bob", agent="lea")
    assert "task-2 (t) is assigned to you" in str(cli("update-task", "1", "--status", "completed", agent="bob"))
    cli.ok("update-task", "2", "--unassign", agent="lea")
    assert "task-2 (t) is no longer assigned to you, by lea" in str(cli("announce", "free", agent="bob"))


def test_a_member_that_left_keeps_no_task(cli: Cli) -> None:
    cli.ok("create-task", "t", "--for", "bob", agent="lea")
    cli.ok("leave-team", agent="bob")
    assert cli.ok("claim-task", "--next", agent="ann")["id"] == "task-1"
    (said,) = [text for text in told(cli, "lea") if "task-1" in text]
    assert said.startswith("task-1 (t) was assigned to bob, and anybody may claim it now: ") and "bob" in said[40:]


def test_a_task_is_kept_for_one_who_has_yet_to_join(cli: Cli) -> None:
    assert "pending, for eve, who has yet to join: t" in cli("create-task", "t", "--for", "eve", agent="lea").stdout
    add_tasks(cli, "for anybody")
    cli.ok("create-task", "--from", "-", agent="lea", stdin=b'[{"title": "listed", "for": "zoe"}]')
    assert cli.ok("claim-task", "--next", agent="ann")["id"] == "task-2"
    assert "assigned to eve" in cli("claim-task", "1", agent="ann").stderr
    claimed = cli.ok("join-team", "--claim", agent="eve")["claimed"]
    assert (claimed["id"], "assigneeExpected" in claimed) == ("task-1", False)
    cli.ok("create-task", "not for ida any more", "--for", "ida", agent="lea")
    cli.ok("update-task", "4", "--unassign", agent="lea")
    answer = cli("join-team", "--claim", agent="ida")
    assert "task-4: in_progress by ida" in answer.stdout and "assigned" not in answer.stdout + answer.stderr
    cli.ok("leave-team", agent="ann")
    refused = cli("create-task", "t", "--for", "ann", agent="lea")
    assert refused.status == 10 and "it left" in refused.stderr


def test_no_task_is_kept_for_a_name_with_which_nobody_can_join(cli: Cli) -> None:
    for name in ("BOB", "Leader"):
        for option in ("--for", "--review-by"):
            assert cli.refused("create-task", "t", option, name, agent="lea") == (10, "agent_not_found")
    assert cli.refused("create-task", "t", "--review-by", "Human", agent="lea") == (2, "invalid_value")
    cli.ok("create-task", "t", "--for", "Eve", agent="lea")
    cli.ok("join-team", agent="eve")
    assert cli.ok("claim-task", "--next", agent="eve")["id"] == "task-1"
    end = "anybody may claim it now: Eve differs only in case from eve"
    assert [said for said in told(cli, "lea") if said.endswith(end)]


def test_no_task_is_kept_for_a_member_that_joined_and_may_not_claim_it(cli: Cli) -> None:
    cli.ok("define-role", "watcher", "--extends", "team-member", "--deny", "claim-task", agent="lea")
    cli.ok("create-task", "a", "--for", "eve", "--require", "rust", agent="lea")
    cli.ok("create-task", "b", "--for", "zoe", agent="lea")
    for name, role in (("eve", "team-member"), ("zoe", "watcher")):
        answer = cli("join-team", "--role", role, agent=name)
        assert answer.status == 0 and "assigned to you" not in answer.stdout + answer.stderr
    freed = [said.partition(": ")[2] for said in told(cli, "lea")]
    assert "task-1 requires skills eve does not have: rust" in freed
    assert "zoe is a watcher, which may not claim-task" in freed
    assert cli.ok("claim-task", "2", agent="ann")["owner"] == "ann"
    assert "requires skills" in cli("claim-task", "1", agent="mia").stderr


def test_an_owner_is_not_reminded_of_its_next_task(cli: Cli) -> None:
    """The owner gets the other task, which is assigned to it, when it completes the first."""
    in_progress(cli, "bob", "now")
    cli.ok("create-task", "then", "--for", "bob", agent="lea")
    assert cli("heartbeat", agent="bob").stderr == ""
    answer = cli("update-task", "1", "--status", "completed", "--next", agent="bob")
    assert "task-2: in_progress by bob: then" in answer.stdout and "kept" not in answer.stdout + answer.stderr


def test_each_assignment_is_told_also_after_more_events_than_a_task_keeps(cli: Cli) -> None:
    add_tasks(cli, "one")
    store = cli.store()
    for edit in [changes.Edit(owner="bob"), changes.Edit(unassign=True)] * 30:
        changes.change_task(store, ALPHA, Caller("lea"), "1", edit)
    sent = [message for message in store.read(ALPHA, MESSAGE, "bob", 0, []) if message.to == "bob"]
    assert len(sent) == 60
