"""Plans: proposed by members, decided once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from teams_cli.errors import NotAllowed, PlanRequired, WrongState
from teams_cli.membership import joining
from teams_cli.messages import reading
from teams_cli.messages.reading import Selection
from teams_cli.tasks import changes, claims, plans, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.tasks import Task
from teams_cli.teams.permission import Caller
from tests.support.cli import add_tasks, make_team
from tests.support.waits import at_once

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

ALPHA = "alpha"
LEA, BOB, MIA, HUMAN = Caller("lea"), Caller("bob"), Caller("mia"), Caller("human")


@pytest.fixture
def team(team: Store) -> Store:
    """A team in which bob has a task in progress that requires a plan."""
    joining.join(team, ALPHA, MIA)
    tasks.create(team, ALPHA, LEA, Task(team_name=ALPHA, title="t", created_at="", plan_required=True))
    claims.claim(team, ALPHA, BOB, "1")
    return team


def read(store: Store, caller: Caller) -> list[str]:
    return [message["message"] for message in reading.read(store, ALPHA, caller, Selection(), [], at_once)]


def test_a_task_that_asks_for_a_plan_waits_for_one(team: Store) -> None:
    def complete() -> Task:
        return changes.change_task(team, ALPHA, BOB, "1", Edit(status="completed"))[0]

    plans.propose(team, ALPHA, BOB, "for all my work")
    plans.propose(team, ALPHA, BOB, "first", "1")
    plans.approve(team, ALPHA, LEA, "1")
    plans.reject(team, ALPHA, LEA, "2", "shorter")
    with pytest.raises(PlanRequired) as refusal:
        complete()
    assert refusal.value.status == 11 and "propose-plan" in refusal.value.hint
    assert plans.propose(team, ALPHA, BOB, "second", revises="2").task == "task-1"
    with pytest.raises(PlanRequired):
        complete()
    plans.approve(team, ALPHA, HUMAN, "3")
    assert complete().status == "completed"


def test_a_decided_plan_stays_decided(team: Store) -> None:
    plans.propose(team, ALPHA, BOB, "p")
    decided = plans.approve(team, ALPHA, LEA, "1", "go")
    for decide in (lambda: plans.approve(team, ALPHA, LEA, "1"), lambda: plans.reject(team, ALPHA, HUMAN, "1", "no")):
        with pytest.raises(WrongState) as refusal:
            decide()
        assert "approved by lea" in refusal.value.message
    assert plans.approve(team, ALPHA, LEA, "1", "go").status == "approved"  # repeated, as after a lost answer
    assert plans.get(team, ALPHA, "1").decided_at == decided.decided_at


def test_a_plan_that_its_author_replaced_is_not_decided(team: Store) -> None:
    plans.propose(team, ALPHA, BOB, "with threads")
    plans.propose(team, ALPHA, BOB, "without threads", revises="1")
    assert [plan.id for plan in plans.all_of(team, ALPHA, [], only_open=True)] == ["plan-2"]
    with pytest.raises(WrongState) as refusal:
        plans.approve(team, ALPHA, LEA, "1")
    assert refusal.value.message == "bob replaced plan-1 with plan-2" and "show-plan plan-2" in refusal.value.hint
    plans.reject(team, ALPHA, LEA, "2", "shorter")
    assert plans.all_of(team, ALPHA, [], only_open=True) == []


def test_everybody_sees_which_plan_replaced_another(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one", plan_required=True)
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("propose-plan", "with threads", "--task", "1", agent="bob")
    cli.ok("propose-plan", "without", "--task", "1", "--revises", "1", agent="bob")
    assert cli("wait", "--plan", "1", agent="bob").stdout.startswith("plan-1: bob replaced it with plan-2\n")
    assert cli.ok("wait", "--plan", "1", agent="bob")["plan"]["replacedBy"] == "plan-2"
    assert cli("show-plan", "1", agent="lea").stdout.startswith("plan-1: replaced by plan-2, from bob for task-1\n")
    assert [plan.get("replacedBy") for plan in cli.ok("get-plans", agent="lea")] == ["plan-2", None]
    assert [plan["id"] for plan in cli.ok("get-plans", "--open", agent="lea")] == ["plan-2"]


def test_who_asks_too_late_or_too_early_is_led_to_the_plan(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one", plan_required=True)
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("propose-plan", "with threads", "--task", "1", agent="bob")
    refused = cli("update-task", "1", "--status", "completed", agent="bob").stderr
    assert refused.endswith("\n  plan-1 waits for a decision: teams wait --plan plan-1\n")
    cli.ok("reject-plan", "1", "no threads", agent="lea")
    refused = cli("approve-plan", "1", agent="lea").stderr
    assert refused.endswith("\n  Only bob can propose a new one. See: teams show-plan plan-1\n")
    assert "--revises plan-1" in cli("heartbeat", agent="bob").stderr
    cli.ok("reject-plan", "1", "no threads", agent="lea")
    cli.ok("propose-plan", "without", "--task", "1", "--revises", "1", agent="bob")
    said = cli("read-messages", agent="bob").stdout  # the rejection asks for nothing any more
    assert "plan-1 was rejected by lea: no threads" in said and said.endswith("\nnext: teams wait --timeout 540\n")


def test_nobody_decides_on_their_own(team: Store) -> None:
    plans.propose(team, ALPHA, MIA, "p")
    joining.hand_over(team, ALPHA, LEA, "mia")
    for decide in (lambda: plans.approve(team, ALPHA, MIA, "1"), lambda: plans.reject(team, ALPHA, MIA, "1", "no")):
        with pytest.raises(NotAllowed):
            decide()
    assert plans.approve(team, ALPHA, HUMAN, "1").decided_by == "human"
