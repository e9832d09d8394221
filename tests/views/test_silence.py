"""What a leader hears of a member that says nothing while most of the work waits for it."""

from __future__ import annotations

import pytest

from teams_cli.errors import WaitRanOut
from teams_cli.membership import joining
from teams_cli.store.contract import Store
from teams_cli.tasks import changes, claims, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.tasks import Task
from teams_cli.teams import settings
from teams_cli.teams.permission import Caller
from teams_cli.views import concerns
from teams_cli.views.concerns import Wanted
from tests.conftest import FakeClock
from tests.support.cli import ALPHA
from tests.support.waits import at_once

LEA, BOB, MIA, ANN = (Caller(name) for name in ("lea", "bob", "mia", "ann"))
TOLD = "task-1, which blocks 3 tasks: bob, silent for 4 min; its lease ends in 59 s"


@pytest.fixture
def team(store: Store) -> Store:
    """Two tasks in work; for the first wait all others but one."""
    joining.spawn_team(store, ALPHA, LEA)
    settings.change(store, ALPHA, LEA, "staleAfterSeconds", "300")
    for caller in (BOB, MIA):
        joining.join(store, ALPHA, caller)
    for title, blockers in (
        ("one", []),
        ("two", []),
        ("three", ["task-1"]),
        ("four", ["task-3"]),
        ("five", ["task-4"]),
    ):
        tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title=title, created_at="", blocked_by=blockers))
    tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title="six", created_at="", blocked_by=["task-2"]))
    claims.claim(store, ALPHA, BOB, "1")
    claims.claim(store, ALPHA, MIA, "2")
    return store


def told(team: Store, completed: int | None = None) -> list[str]:
    """What the leader hears now, also if it waits for so many *completed* tasks."""
    try:
        found = concerns.wait(team, ALPHA, LEA, 0, at_once, wanted=Wanted(needed=True, completed=completed))
    except WaitRanOut:
        return []
    return [each["text"] for each in found["happened"]]


def test_it_hears_once_of_each_claim_for_which_most_wait(team: Store, clock: FakeClock) -> None:
    clock.advance(239)
    assert told(team) == []
    clock.advance(2)
    assert told(team) == [TOLD]
    clock.advance(10)
    assert told(team) == []
    claims.heartbeat(team, ALPHA, BOB)
    clock.advance(241)
    assert told(team) == []


def test_a_sign_of_life_keeps_it_from_hearing(team: Store, clock: FakeClock) -> None:
    clock.advance(239)
    claims.heartbeat(team, ALPHA, BOB)
    clock.advance(239)
    assert TOLD not in told(team)
    clock.advance(2)
    assert TOLD in told(team)


def test_it_hears_of_one_for_whom_others_stand_idle(store: Store, clock: FakeClock) -> None:
    """Long before its lease ends, once of each claim; and not while there is something else to do."""
    joining.spawn_team(store, ALPHA, LEA)
    settings.change(store, ALPHA, LEA, "staleAfterSeconds", "300")
    settings.change(store, ALPHA, LEA, "staleAfterSeconds", "1800")
    for caller in (BOB, MIA):
        joining.join(store, ALPHA, caller)
    for title, blockers in (("one", []), ("two", ["task-1"]), ("three", [])):
        tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title=title, created_at="", blocked_by=blockers))
    claims.claim(store, ALPHA, BOB, "1")
    clock.advance(241)
    assert told(store) == []
    claims.claim(store, ALPHA, MIA, "3")
    changes.change_task(store, ALPHA, MIA, "3", Edit(status="completed"))
    claims.heartbeat(store, ALPHA, MIA)
    assert told(store) == []
    clock.advance(360)
    claims.heartbeat(store, ALPHA, MIA)
    alone = "task-1, which blocks task-2: bob, silent for 10 min; its lease ends in 20 min; "
    how = "idle: mia (to continue without it: teams update-task task-2 --unblock task-1)"
    assert told(store) == [alone + how]
    clock.advance(350)
    assert told(store) == []


@pytest.fixture
def four(store: Store) -> Store:
    """Two tasks in work with leases of 30 minutes; the others wait for them."""
    joining.spawn_team(store, ALPHA, LEA)
    settings.change(store, ALPHA, LEA, "staleAfterSeconds", "300")
    settings.change(store, ALPHA, LEA, "staleAfterSeconds", "1800")
    for caller in (BOB, MIA, ANN):
        joining.join(store, ALPHA, caller)
    for title, blockers in (("one", []), ("two", []), ("all", ["task-1", "task-2"]), ("few", ["task-1"])):
        tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title=title, created_at="", blocked_by=blockers))
    claims.claim(store, ALPHA, BOB, "1")
    return store


def minutes(store: Store, clock: FakeClock, count: int, completed: int | None = None) -> list[str]:
    """What the leader hears in so many minutes, in which ann says something each minute."""
    heard: list[str] = []
    for _ in range(count):
        clock.advance(61)
        claims.heartbeat(store, ALPHA, ANN)
        heard += told(store, completed)
    return heard


def test_it_hears_again_of_a_silence_when_the_lease_is_about_to_end(four: Store, clock: FakeClock) -> None:
    """And of the task that waits for the fewest, with all that it waits for."""
    claims.claim(four, ALPHA, MIA, "2")
    changes.change_task(four, ALPHA, MIA, "2", Edit(status="failed"))
    idle, *heard = minutes(four, clock, 28)
    assert idle.startswith("nothing is ready. In progress: task-1 (bob, 5 min, ")
    said = [each.partition("; idle")[0] for each in heard]
    waits = "task-1, which blocks task-3, task-4: bob, silent for"
    assert said == [f"{waits} 10 min; its lease ends in 20 min", f"{waits} 24 min; its lease ends in 6 min"]
    assert all("teams update-task task-4 --unblock task-1)" in each for each in heard)


def test_one_that_waits_for_so_many_completed_hears_only_of_the_end_of_a_lease(four: Store, clock: FakeClock) -> None:
    assert [each[:45] for each in minutes(four, clock, 23, completed=4)] == []
    assert len(minutes(four, clock, 3, completed=4)) == 1
    assert minutes(four, clock, 2) == []


def test_it_hears_of_others_that_are_silent_with_the_first(four: Store, clock: FakeClock) -> None:
    assert minutes(four, clock, 4) == []
    claims.claim(four, ALPHA, MIA, "2")
    idle, *heard = minutes(four, clock, 6)
    assert idle.startswith("everything waits for task-1. In progress: ")
    assert [each.partition(", which blocks")[0] for each in heard] == ["task-1", "task-2"]
    assert ["silent for 10 min" in heard[0], "silent for 6 min" in heard[1]] == [True, True]
    assert minutes(four, clock, 12) == []


def test_it_hears_of_the_last_task_of_all(store: Store, clock: FakeClock) -> None:
    joining.spawn_team(store, ALPHA, LEA)
    settings.change(store, ALPHA, LEA, "staleAfterSeconds", "300")
    for caller in (BOB, MIA):
        joining.join(store, ALPHA, caller)
    tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title="one", created_at=""))
    claims.claim(store, ALPHA, BOB, "1")
    clock.advance(241)
    assert told(store) == []
    claims.heartbeat(store, ALPHA, MIA)
    said = "bob, silent for 4 min; its lease ends in 59 s; idle: mia"
    assert told(store) == [f"task-1, which blocks all others: {said}"]
    assert told(store) == []


def test_it_hears_once_of_a_member_that_is_lost_without_a_task(store: Store, clock: FakeClock) -> None:
    joining.spawn_team(store, ALPHA, LEA)
    settings.change(store, ALPHA, LEA, "staleAfterSeconds", "300")
    for caller in (BOB, MIA):
        joining.join(store, ALPHA, caller)
    tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title="one", created_at=""))
    claims.claim(store, ALPHA, BOB, "1")
    clock.advance(200)
    claims.heartbeat(store, ALPHA, BOB)
    clock.advance(101)
    assert told(store) == ["mia, who has no task, was silent for 300 s"]
    assert told(store) == []
