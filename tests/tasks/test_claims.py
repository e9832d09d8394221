"""Claiming: a task has one owner, the best task comes first, and a released one can be claimed again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from teams_cli.errors import NothingReady, TaskNotFound, WrongState
from teams_cli.membership import joining
from teams_cli.tasks import changes, claims, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.tasks import Task
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli, add_tasks

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

LEA, BOB, MIA = Caller("lea"), Caller("bob"), Caller("mia")


@pytest.fixture
def team(team: Store) -> Store:
    joining.join(team, ALPHA, MIA, specialty="rust")
    return team


def add(store: Store, title: str = "t", **fields: Any) -> str:
    return tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title=title, created_at="", **fields)).id


def test_finished_tasks_are_not_claimed(team: Store) -> None:
    add(team)
    claims.claim(team, ALPHA, BOB, "1")
    changes.change_task(team, ALPHA, BOB, "1", Edit(status="completed"))
    for caller in (BOB, MIA):
        with pytest.raises(WrongState) as refusal:
            claims.claim(team, ALPHA, caller, "1")
        assert refusal.value.message == "task-1 is completed by bob"
    with pytest.raises(TaskNotFound):
        claims.claim(team, ALPHA, BOB, "2")


def test_next_is_by_priority_then_by_age(team: Store) -> None:
    """`--next` passes over tasks that are blocked or need other skills; task-2 is older than task-10."""
    for title, priority in (("a", "low"), ("b", "normal"), ("c", "high"), ("d", "normal"), ("e", "high")):
        add(team, title, priority=priority)
    for number in range(6, 12):
        add(team, str(number))
    add(team, "waits", blocked_by=["task-1"], priority="high")
    add(team, "needs rust", require=["rust"])
    order = ["c", "e", "b", "d", *"6789", "10", "11", "a"]
    assert [claims.claim_next(team, ALPHA, BOB).title for _ in order] == order
    with pytest.raises(NothingReady) as refusal:
        claims.claim_next(team, ALPHA, BOB)
    assert refusal.value.status == 10
    changes.change_task(team, ALPHA, BOB, "1", Edit(status="completed"))
    assert claims.claim_next(team, ALPHA, BOB).title == "waits"
    assert claims.claim_next(team, ALPHA, MIA).title == "needs rust"


def test_next_follows_changes(team: Store) -> None:
    """Changed priorities count, and so do tasks that were released or set to pending again."""
    for title in ("a", "b", "c"):
        add(team, title)
    changes.change_task(team, ALPHA, LEA, "3", Edit(priority="high"))
    assert claims.claim_next(team, ALPHA, BOB).title == "c"
    claims.release(team, ALPHA, BOB, "3")
    assert claims.claim_next(team, ALPHA, MIA).title == "c"
    changes.change_task(team, ALPHA, MIA, "3", Edit(status="failed"))
    assert claims.claim_next(team, ALPHA, MIA).title == "a"
    changes.change_task(team, ALPHA, MIA, "3", Edit(status="pending"))
    assert claims.claim_next(team, ALPHA, BOB).title == "c"


def test_what_was_made_pending_by_hand_is_found_where_nothing_else_is_ready(cli: Cli) -> None:
    """Tasks that somebody set to pending in their files are claimed by priority and number; damaged files are
    skipped.
    """
    add_tasks(cli, *"abcd", "what is pending", "unsaid")
    for number in range(1, 7):
        cli.ok("update-task", str(number), "--status", "cancelled", agent="human")
    for number, priority in (1, "low"), (2, "normal"), (3, "high"), (4, "high"):
        path = cli.root / f"tasks/alpha/task-{number}.json"
        task = json.loads(path.read_text())
        path.write_text(json.dumps({**task, "status": "pending", "priority": priority}))
    (cli.root / "tasks/alpha/task-4.json").write_text("pending")
    path = cli.root / "tasks/alpha/task-6.json"
    path.write_text(json.dumps({key: said for key, said in json.loads(path.read_text()).items() if key != "status"}))
    store = cli.store()
    assert [claims.claim_next(store, ALPHA, BOB).title for _ in range(4)] == ["c", "b", "unsaid", "a"]
    with pytest.raises(NothingReady):
        claims.claim_next(store, ALPHA, BOB)


def test_a_damaged_record_of_an_owner_holds_up_nobody_else(cli: Cli) -> None:
    cli.ok("join-team", agent="mia")
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    (cli.root / "teams/alpha/agents/bob.json").write_text('{"agent": "bob"')
    rows = cli.ok("get-tasks", agent="mia")
    assert [(row["id"], row.get("owner")) for row in rows] == [("task-1", "bob"), ("task-2", None)]
    assert cli.refused("claim-task", "1", agent="mia") == (11, "task_claimed")
    assert cli.refused("release-task", "1", agent="lea") == (11, "conflict")
    assert cli.ok("claim-task", "--next", agent="mia")["id"] == "task-2"
    assert cli.ok("brief", agent="mia")["next"].startswith("teams update-task task-2 ")
    assert cli("wait", "--needed", "--timeout", "0", agent="lea").status == 14
    completed = cli("update-task", "1", "--status", "completed", agent="bob")
    assert completed.status == 0 and "bob.json: is not JSON" in completed.stderr


def test_who_was_too_late_for_a_task_gets_the_next_one_of_its_priority(team: Store) -> None:
    """Another member claims the best task a moment before bob does, whose claim looks at every task with `faster`."""
    for _ in range(5):
        keys = [add(team, priority=priority) for priority in ("high", "high", *["normal"] * 8)]

        def faster(task: Task, first: str = keys[0]) -> bool:
            if task.id == first:
                claims.claim(team, ALPHA, MIA, first)
            return True

        claimed = claims.claim_next(team, ALPHA, BOB, faster)
        assert claimed.id == keys[1]
        for caller, key in [(MIA, keys[0]), (BOB, keys[1])]:
            changes.change_task(team, ALPHA, caller, key, Edit(status="completed"))
