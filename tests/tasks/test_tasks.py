"""Tasks: creating and editing them, blockers, and the allowed changes of their status."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from teams_cli.errors import DependencyCycle, TaskNotFound, TeamsError
from teams_cli.membership import joining
from teams_cli.tasks import changes as task_changes
from teams_cli.tasks import claims, reviews, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.tasks import Task
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

LEA, BOB, MIA, MAX = Caller("lea"), Caller("bob"), Caller("mia"), Caller("max")


@pytest.fixture
def team(team: Store) -> Store:
    joining.join(team, ALPHA, MIA)
    joining.join(team, ALPHA, MAX, "task-manager")
    return team


def add(store: Store, *titles: str, **fields: Any) -> list[str]:
    drafts = [Task(team_name=ALPHA, title=title, created_at="", **fields) for title in titles]
    return [tasks.create(store, ALPHA, LEA, draft).id for draft in drafts]


def change(store: Store, caller: Caller, task: str = "1", **changes: Any) -> Task:
    return task_changes.change_task(store, ALPHA, caller, task, Edit(**changes))[0]


def in_status(store: Store, status: str, number: str = "1") -> None:
    add(store, "t")
    if status == "cancelled":
        change(store, MAX, number, status="cancelled")
    elif status != "pending":
        claims.claim(store, ALPHA, BOB, number)
        if status != "in_progress":
            change(store, BOB, number, status=status)


MOVES = {
    # from: {to by its owner, and to by a task-manager: done, or refused with}
    "pending": {"completed": 11, "failed": 11, "pending": 0, "cancelled": 0},
    "in_progress": {"completed": 0, "failed": 0, "pending": 11, "cancelled": 11},
    "completed": {"completed": 0, "failed": 11, "pending": 0, "cancelled": 11},
    "failed": {"completed": 11, "failed": 0, "pending": 0, "cancelled": 11},
    "cancelled": {"completed": 11, "failed": 11, "pending": 0, "cancelled": 0},
}


def test_moves(team: Store) -> None:
    """A change of status that `MOVES` allows is made; any other is refused and changes nothing."""
    number = 0
    for before, moves in MOVES.items():
        for after, status in moves.items():
            number += 1
            in_status(team, before, str(number))
            task = tasks.get(team, ALPHA, str(number))
            caller = MAX if after == "cancelled" else BOB if task.owner else MAX
            if status == 0:
                assert change(team, caller, str(number), status=after).status == after
                continue
            with pytest.raises(TeamsError) as refusal:
                change(team, caller, str(number), status=after)
            assert refusal.value.status in ((11, 13) if before == "cancelled" else (11,)), (before, after)
            assert tasks.get(team, ALPHA, str(number)) == task


def test_a_refused_completion_says_who_ended_the_task_and_when(team: Store) -> None:
    in_status(team, "in_progress")
    change(team, LEA, review_by="max")
    change(team, BOB, status="completed", result="a")
    reviews.review(team, ALPHA, MAX, "1", accept=True)
    with pytest.raises(TeamsError) as refusal:
        change(team, BOB, status="completed", result="b")
    assert refusal.value.message.startswith("task-1 is completed already, accepted by max ")


def test_several_changes_are_one(team: Store) -> None:
    in_status(team, "in_progress")
    before = tasks.get(team, ALPHA, "1")
    for caller, changes in (
        (LEA, {"title": "x", "status": "completed"}),
        (MAX, {"priority": "high", "result": "x"}),
        (BOB, {"title": "x", "unblock": ["9"]}),
        (BOB, {"title": "x", "block": ["9"]}),
        (BOB, {"title": "x", "status": "cancelled"}),
    ):
        with pytest.raises(TeamsError):
            change(team, caller, **changes)
        assert tasks.get(team, ALPHA, "1") == before
    done = change(team, BOB, title="x", priority="low", status="completed", result="y")
    assert (done.title, done.priority, done.status, done.result) == ("x", "low", "completed", "y")


def test_a_task_waits_for_all_its_blockers(team: Store) -> None:
    """Completed blockers stay recorded, failed and cancelled ones go on blocking, and a later one delays the
    completion.
    """
    add(team, "a", "b")
    add(team, "c", blocked_by=["task-1", "task-2"])

    def refused(do: Callable[[], Task], blocker: str) -> None:
        with pytest.raises(TeamsError) as refusal:
            do()
        assert refusal.value.code == "task_blocked" and blocker in refusal.value.message

    for number in ("1", "2"):
        refused(lambda: claims.claim(team, ALPHA, MIA, "3"), f"task-{number}")
        claims.claim(team, ALPHA, BOB, number)
        change(team, BOB, number, status="completed")
    assert claims.claim(team, ALPHA, MIA, "3").blocked_by == ["task-1", "task-2"]
    for number, end in (("4", "failed"), ("6", "cancelled")):
        in_status(team, end, number)
        (waits,) = add(team, "c", blocked_by=[f"task-{number}"])
        refused(lambda key=waits: claims.claim(team, ALPHA, MIA, key), f"task-{number} ({end})")
        assert change(team, LEA, waits, unblock=[number]).blocked_by == []
        claims.claim(team, ALPHA, MIA, waits)
    add(team, "later")
    change(team, LEA, "3", block=["#8"])
    refused(lambda: change(team, MIA, "3", status="completed"), "task-8")
    assert change(team, MIA, "3", status="failed").status == "failed"


def test_circles_are_refused_however_long(team: Store) -> None:
    add(team, *"abcdef")
    for number in range(2, 7):
        change(team, LEA, str(number), block=[str(number - 1)])
    for blocker in range(1, 7):
        with pytest.raises(DependencyCycle) as refusal:
            change(team, LEA, "1", block=[str(blocker)])
        assert "task-1" in refusal.value.message
    assert tasks.get(team, ALPHA, "1").blocked_by == []
    with pytest.raises(TaskNotFound):
        change(team, LEA, "1", block=["99"])


def test_lists_and_filters(cli: Cli) -> None:
    store = cli.store()
    add(store, *(f"t{n}" for n in range(12)))
    add(store, "waits", blocked_by=["task-12"])
    claims.claim(store, ALPHA, BOB, "2")
    claims.claim(store, ALPHA, BOB, "11")
    change(store, BOB, "11", status="failed")

    def ids(*words: str) -> list[int]:
        return [int(task["id"][5:]) for task in cli.ok("get-tasks", *words)]

    assert ids() == list(range(1, 14))
    assert ids("--status", "in_progress") == [2]
    assert ids("--owner", "bob") == [2, 11]
    assert ids("--ready", "--limit", "3") == [1, 3, 4]
    assert ids("--blocked") == [13]
    assert ids("--status", "pending", "--limit", "100") == [1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13]
    assert ids("--status", "failed", "--owner", "nobody") == []


def test_a_title_in_place_of_an_id_is_refused_with_the_tasks_that_have_it(cli: Cli) -> None:
    add(cli.store(), "deck.py: read the cards", "tests of deck.py", "other")
    refused = cli("show-task", "Deck.py", agent="bob")
    assert refused.status == 2
    assert "Tasks with such a title: task-1 (deck.py: read the cards), task-2 (tests of deck.py)" in refused.stderr
    assert "Write it as task-7, #7 or 7" in cli("show-task", "nothing.py", agent="bob").stderr
