"""Shutdowns: requested of a member, who alone approves or rejects the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from teams_cli.errors import AgentNotFound, Conflict, NotAllowed, WrongState
from teams_cli.membership import joining, shutdowns
from teams_cli.membership.shutdowns import ShutdownNotFound
from teams_cli.messages import messages, reading
from teams_cli.messages.reading import Selection
from teams_cli.store.contract import update
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import claims, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import teams
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import TEAM
from tests.support.cli import ALPHA, Cli
from tests.support.waits import at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from teams_cli.store.contract import Store

LEA, BOB, MIA, HUMAN = Caller("lea"), Caller("bob"), Caller("mia"), Caller("human")


@pytest.fixture
def team(team: Store) -> Store:
    """A team in which bob has a task in progress."""
    joining.join(team, ALPHA, MIA)
    tasks.create(team, ALPHA, LEA, Task(team_name=ALPHA, title="t", created_at=""))
    claims.claim(team, ALPHA, BOB, "1")
    return team


def read(store: Store, caller: Caller) -> list[str]:
    return [message["message"] for message in reading.read(store, ALPHA, caller, Selection(), [], at_once)]


def test_an_approved_shutdown_ends_the_member_and_nobody_else(team: Store) -> None:
    shutdowns.request(team, ALPHA, LEA, ["bob"], "done")
    [asked] = read(team, BOB)
    assert "shutdown-1" in asked and "done" in asked
    answer, freed = shutdowns.approve(team, ALPHA, BOB)
    assert (answer.status, freed) == ("approved", ["task-1"])
    assert teams.get(team, ALPHA).active_names() == ["lea", "mia"]
    assert "bob approved shutdown-1" in read(team, LEA)[0]
    assert claims.claim(team, ALPHA, MIA, "1").owner == "mia"


class Meanwhile(FileStore):
    """A store in which another command changes the team just before a change of the team is stored."""

    act: Callable[[], object] | None = None

    def replace(self, team: str, kind: Any, key: str, record: Any, revision: Any, lasting: bool = True) -> Any:
        act, self.act = self.act, None if kind is TEAM else self.act
        if kind is TEAM and act:
            act()
        return super().replace(team, kind, key, record, revision, lasting)


@pytest.fixture
def raced(team: Store) -> Meanwhile:
    """A store with the same team, in which bob has no task."""
    claims.release(team, ALPHA, BOB, "1")
    return Meanwhile(team.root)


def test_a_member_that_leaves_meanwhile_approves_nothing(raced: Meanwhile) -> None:
    shutdowns.request(raced, ALPHA, LEA, ["mia"])
    raced.act = lambda: joining.leave(raced, ALPHA, MIA)
    with pytest.raises(NotAllowed, match="mia left team alpha"):
        shutdowns.approve(raced, ALPHA, MIA)
    assert read(raced, LEA) == []


def test_a_team_is_handed_over_once(raced: Meanwhile) -> None:
    raced.act = lambda: joining.hand_over(raced, ALPHA, LEA, "mia")
    with pytest.raises(Conflict, match="mia leads team alpha now"):
        joining.hand_over(raced, ALPHA, LEA, "bob")
    assert teams.get(raced, ALPHA).leader == "mia"


def test_who_became_the_leader_meanwhile_is_not_shut_down(raced: Meanwhile) -> None:
    """The hand-over looked at the requests before this one was made."""
    shutdowns.request(raced, ALPHA, HUMAN, ["mia"])
    raced.act = lambda: update(raced, ALPHA, TEAM, ALPHA, lambda team: team.having(leader="mia"))
    with pytest.raises(WrongState, match="mia leads team alpha"):
        shutdowns.approve(raced, ALPHA, MIA)
    assert teams.get(raced, ALPHA).member("mia")


def test_a_member_that_was_shut_down_changes_nothing(team: Store) -> None:
    shutdowns.request(team, ALPHA, HUMAN, ["bob"])
    shutdowns.approve(team, ALPHA, BOB, "1")
    for do in (
        lambda: messages.send(team, ALPHA, BOB, "lea", "hi"),
        lambda: claims.claim_next(team, ALPHA, BOB),
        lambda: claims.heartbeat(team, ALPHA, BOB),
        lambda: joining.leave(team, ALPHA, BOB),
        lambda: joining.join(team, ALPHA, BOB),
    ):
        with pytest.raises(NotAllowed) as refusal:
            do()
        assert "shutdown-1" in refusal.value.message
    assert shutdowns.approve(team, ALPHA, BOB, "1")[0].status == "approved"  # repeated, as after a lost answer
    with pytest.raises(AgentNotFound, match=r"it was shut down \(shutdown-1\)"):
        messages.send(team, ALPHA, LEA, "bob", "hi")


def test_a_rejection_says_why_and_changes_nothing_else(team: Store) -> None:
    shutdowns.request(team, ALPHA, LEA, ["bob"])
    assert shutdowns.reject(team, ALPHA, BOB, None, "busy").answer == "busy"
    assert tasks.get(team, ALPHA, "1").owner == "bob"
    assert "busy" in read(team, LEA)[0]
    for do in (lambda: shutdowns.approve(team, ALPHA, BOB, "1"), lambda: shutdowns.reject(team, ALPHA, BOB, "1", "x")):
        with pytest.raises(WrongState):
            do()
    with pytest.raises(ShutdownNotFound):
        shutdowns.approve(team, ALPHA, BOB)
    assert shutdowns.request(team, ALPHA, LEA, ["bob"])[0].id == "shutdown-2"


@pytest.mark.parametrize("ends", ["leave-team", "approve-shutdown"])
def test_the_leader_gets_the_reviews_of_a_member_that_ends(cli: Cli, ends: str) -> None:
    cli.ok("join-team", agent="mia")
    for title, reviewer in (("one", "mia"), ("any", "team-member"), ("human", "human")):
        cli.ok("create-task", title, "--review-by", reviewer, agent="lea")
    for task in ("1", "2", "3"):
        cli.ok("claim-task", task, agent="bob")
        cli.ok("update-task", task, "--status", "completed", agent="bob")
    cli.ok("request-shutdown", "mia", agent="lea")
    cli.ok("read-messages", agent="lea")
    for _ in range(2):  # repeated, as after a lost answer
        cli.ok(ends, agent="mia")
    said = [message["message"] for message in cli.ok("read-messages", agent="lea")]
    asked = [each.partition(" by ")[0] for each in said if "waits for your review" in each]
    assert asked == ["task-1 (one)", "task-2 (any)"]
    assert cli.ok("review-task", "1", "--accept", agent="lea")["status"] == "completed"


def test_several_are_asked_to_shut_down_at_once_or_none(cli: Cli) -> None:
    """The leader can't be asked, and a member that is asked can't become the leader."""
    assert cli.refused("request-shutdown", "bob", "lea", agent="lea") == (2, "invalid_value")
    assert cli.refused("request-shutdown", "bob", "nobody", agent="lea") == (10, "agent_not_found")
    assert [each["id"] for each in cli.ok("request-shutdown", "bob,mia", agent="lea")] == ["shutdown-1", "shutdown-2"]
    assert cli.refused("hand-over", "bob", agent="lea") == (11, "conflict")
    assert cli.ok("reject-shutdown", "1", "Still working", agent="bob")["answer"] == "Still working"
    assert cli.ok("reject-shutdown", "Still working", agent="mia")["answer"] == "Still working"
    assert "hand-over" in cli("request-shutdown", "lea", agent="human").stderr
    assert cli.ok("hand-over", "bob", agent="lea")["leader"] == "bob"
