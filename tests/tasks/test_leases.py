"""Leases: a claim lasts while its owner gives signs of life; after that a late owner is told so."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from teams_cli.clock import parse_rfc3339
from teams_cli.errors import StaleClaim, TaskClaimed
from teams_cli.membership import joining
from teams_cli.messages import reading
from teams_cli.messages.reading import Selection
from teams_cli.tasks import changes as task_changes
from teams_cli.tasks import claims, leases, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import Caller
from tests.support.agents import NEEDS_PROC
from tests.support.cli import ALPHA

if TYPE_CHECKING:
    from teams_cli.store.contract import Store
    from tests.conftest import FakeClock

LEA, BOB, MIA = Caller("lea"), Caller("bob"), Caller("mia")


@pytest.fixture
def team(team: Store) -> Store:
    """A team in which bob has task-1 in progress, and task-2 is free."""
    joining.join(team, ALPHA, MIA)
    for title in ("one", "two"):
        tasks.create(team, ALPHA, LEA, Task(team_name=ALPHA, title=title, created_at=""))
    claims.claim(team, ALPHA, BOB, "1")
    return team


def seen(store: Store, task: str = "1") -> Task:
    return leases.current(store, teams.get(store, ALPHA), tasks.get(store, ALPHA, task))


def lapse(store: Store, clock: FakeClock) -> None:
    """Let the leases end, and then the grace period, which begins when somebody looks."""
    clock.advance(901)
    claims.release_lost(store, teams.get(store, ALPHA))
    clock.advance(121)


def told(store: Store, caller: Caller = LEA) -> list[str]:
    """The notices that the caller got, which here are about claims that ended."""
    found = reading.read(store, ALPHA, caller, Selection(handled=True), [])
    return [message["message"] for message in found if message["type"] == "notice"]


def test_a_lease_lasts_a_quarter_of_an_hour_and_the_grace_period_two_minutes(team: Store, clock: FakeClock) -> None:
    clock.advance(1000)
    assert not tasks.get(team, ALPHA, "1").in_grace
    assert (seen(team).owner, seen(team).in_grace) == ("bob", True)
    clock.advance(119.9)
    assert seen(team).owner == "bob"
    clock.advance(0.2)
    task = seen(team)
    assert (task.status, task.owner, task.claim, task.lease_expires_at) == ("pending", None, 1, None)
    assert (task.notes[-1].what, task.notes[-1].by) == ("expired", "system")


def test_the_leader_is_told_once(team: Store, clock: FakeClock) -> None:
    lapse(team, clock)
    for _ in range(3):
        seen(team)
    with pytest.raises(StaleClaim):
        claims.heartbeat(team, ALPHA, BOB, "1")
    claims.claim(team, ALPHA, MIA, "1")
    _, text = told(team)
    assert "task-1" in text and "free again" in text
    _, lost, taken = told(team, BOB)
    assert lost.startswith("task-1 (one) is no longer yours: the lease of bob ended ")
    assert taken == "task-1 (one), which was yours: mia has it now, and its files."
    lapse(team, clock)
    seen(team)
    assert "mia" in told(team)[-1]


def test_owner_and_leader_are_asked_when_a_lease_ends(team: Store, clock: FakeClock) -> None:
    """A sign of life in the grace period keeps the task, and handles what was asked."""
    clock.advance(901)
    with pytest.raises(TaskClaimed, match="is silent; the task is released in 2 min"):
        claims.claim(team, ALPHA, MIA, "1")
    (asked,) = told(team, BOB)
    assert asked.startswith("task-1 (one): are you at work on it? You were silent since ")
    (silent,) = told(team)
    assert "bob is silent since 03:04:05 UTC, and was asked; in 2 min" in silent
    clock.advance(60)
    claims.heartbeat(team, ALPHA, BOB)
    assert [reading.read(team, ALPHA, who, Selection(), []) for who in (BOB, LEA)] == [[], []]
    clock.advance(899)
    assert (seen(team).owner, seen(team).in_grace) == ("bob", False)


def test_an_older_version_ends_the_grace_period_by_its_renewal(team: Store, clock: FakeClock) -> None:
    """A renewal by an older version counts, although it leaves the end of the grace period in the record."""
    clock.advance(901)
    task = seen(team)
    renewed = leases.with_lease(team, task, teams.get(team, ALPHA).silence).having(grace_until=task.grace_until)
    team.replace(ALPHA, tasks.TASK, "task-1", renewed, team.get(ALPHA, tasks.TASK, "task-1")[1])
    clock.advance(901)
    assert (seen(team).owner, seen(team).in_grace) == ("bob", True)


def test_a_heartbeat_renews_all_of_ones_leases(team: Store, clock: FakeClock) -> None:
    """A heartbeat renews all leases of an agent, or only that of the task that it names."""
    claims.claim(team, ALPHA, BOB, "2")
    for _ in range(4):
        clock.advance(600)
        assert [task.id for task in claims.heartbeat(team, ALPHA, BOB)] == ["task-1", "task-2"]
    expires = seen(team).lease_expires_at
    assert expires and (parse_rfc3339(expires) - clock.now()).total_seconds() == 900
    clock.advance(600)
    claims.heartbeat(team, ALPHA, BOB, "2")
    clock.advance(600)
    assert (seen(team, "1").in_grace, seen(team, "2").in_grace) == (True, False)


def test_the_owner_of_an_expired_claim_is_refused(team: Store, clock: FakeClock) -> None:
    def complete() -> Task:
        return task_changes.change_task(team, ALPHA, MIA, "1", Edit(status="completed", result="mine"))[0]

    lapse(team, clock)
    seen(team)
    for step in (lambda: None, lambda: claims.claim(team, ALPHA, MIA, "1"), complete):
        step()
        before = tasks.get(team, ALPHA, "1")
        for changes in (Edit(status="completed", result="late"), Edit(status="failed"), Edit(result="late")):
            with pytest.raises(StaleClaim) as refusal:
                task_changes.change_task(team, ALPHA, BOB, "1", changes)
            assert refusal.value.status == 11 and refusal.value.hint
        with pytest.raises(StaleClaim):
            claims.heartbeat(team, ALPHA, BOB, "1")
        assert tasks.get(team, ALPHA, "1") == before


def test_fencing_tells_two_claims_of_one_agent_apart(team: Store, clock: FakeClock) -> None:
    """The number of an earlier claim is refused even if the same agent has claimed the task again."""
    lapse(team, clock)
    assert claims.claim(team, ALPHA, BOB, "1").claim == 2
    with pytest.raises(StaleClaim):
        task_changes.change_task(team, ALPHA, BOB, "1", Edit(status="completed", claim=1))
    done, _ = task_changes.change_task(team, ALPHA, BOB, "1", Edit(status="completed", claim=2))
    assert done.status == "completed"


def test_the_wall_clock_decides_nothing(team: Store, clock: FakeClock) -> None:
    """A lease is measured by the steady clock, and ends when the machine restarts."""
    clock.wall = clock.wall.replace(year=2040)
    assert seen(team).owner == "bob"
    clock.wall = clock.wall.replace(year=2020)
    clock.seconds += 901
    seen(team)
    clock.seconds += 121
    assert seen(team).owner is None
    claims.claim(team, ALPHA, BOB, "2")
    clock.restart()
    task = seen(team, "2")
    assert task.owner is None and "restarted" in str(task.notes[-1].reason)


@NEEDS_PROC
def test_tasks_of_an_agent_whose_process_is_gone_are_free_at_once(team: Store) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        presence.register_process(team, ALPHA, "bob", process.pid)
        assert seen(team).owner == "bob"
        process.kill()
    task = seen(team)
    assert task.owner is None and "process" in str(task.notes[-1].reason)
    assert len(told(team)) == 1


def test_a_claim_of_a_member_that_joined_since_the_team_was_read_holds(team: Store) -> None:
    tom = Caller("tom")
    joining.join(team, ALPHA, tom)
    joining.leave(team, ALPHA, tom)
    looked_at = teams.get(team, ALPHA)
    joining.join(team, ALPHA, tom)
    claims.claim(team, ALPHA, tom, "2")
    claims.release_lost(team, looked_at)
    assert leases.current(team, looked_at, tasks.get(team, ALPHA, "2")).owner == "tom"
    with pytest.raises(TaskClaimed):
        claims.take(team, looked_at, MIA, tasks.get(team, ALPHA, "task-2"), refuse_own=True)
