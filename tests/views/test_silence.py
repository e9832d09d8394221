"""What leaders hear of silent, idle and expected members while work waits for them; reminders of mail."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from teams_cli.errors import WaitRanOut
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.store.contract import Store, update, upsert
from teams_cli.tasks import changes, claims, creating, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, settings, teams
from teams_cli.teams.permission import Caller
from teams_cli.views import concerns
from teams_cli.views.concerns import Wanted
from teams_cli.views.mail import reminder
from tests.conftest import FakeClock
from tests.support.cli import ALPHA
from tests.support.shop import git
from tests.support.waits import at_once

LEA, BOB, MIA, ANN = (Caller(name) for name in ("lea", "bob", "mia", "ann"))
TOLD = "task-1 blocks 3 tasks; its owner bob has been silent for 4 min; the claim expires in 59 s"


def told(team: Store, completed: int | None = None) -> list[str]:
    """What the leader hears now, while it waits to be needed, and for *completed* tasks if that is given."""
    try:
        found = concerns.wait(team, ALPHA, LEA, 0, at_once, wanted=Wanted(needed=True, completed=completed))
    except WaitRanOut:
        return []
    return [each["text"] for each in found["happened"]]


@pytest.fixture
def silence(store: Store) -> Callable[..., Store]:
    """A function that makes a team with tasks that wait for *blockers*, in which bob has task-1."""

    def begin(blockers: list[list[str]], *, lease: int = 300, members: tuple[Caller, ...] = (BOB, MIA)) -> Store:
        joining.spawn_team(store, ALPHA, LEA)
        for seconds in (300, lease):
            settings.change(store, ALPHA, LEA, "staleAfterSeconds", str(seconds))
        for caller in members:
            joining.join(store, ALPHA, caller)
        for before in blockers:
            tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title="t", created_at="", blocked_by=before))
        claims.claim(store, ALPHA, BOB, "1")
        return store

    return begin


def test_the_leader_hears_once_of_each_silent_owner_for_which_most_wait(
    silence: Callable[..., Store], clock: FakeClock
) -> None:
    """The leader hears it shortly before the claim expires; a sign of life puts that off."""
    team = silence([[], [], ["task-1"], ["task-3"], ["task-4"], ["task-2"]])
    claims.claim(team, ALPHA, MIA, "2")
    clock.advance(239)
    assert told(team) == []
    claims.heartbeat(team, ALPHA, BOB)
    clock.advance(239)
    assert TOLD not in told(team)
    clock.advance(2)
    assert TOLD in told(team)
    clock.advance(10)
    assert told(team) == []
    claims.heartbeat(team, ALPHA, BOB)
    clock.advance(241)
    assert told(team) == []


def test_the_leader_hears_late_of_a_silent_owner_of_the_last_task(
    silence: Callable[..., Store], clock: FakeClock
) -> None:
    """Nobody waits for that task, so there is nothing to decide before the claim is about to expire."""
    team = silence([[]], lease=900)
    clock.advance(660)
    assert not [text for text in told(team) if "task-1" in text]
    clock.advance(61)
    claims.heartbeat(team, ALPHA, MIA)
    (text,) = [text for text in told(team) if "task-1" in text]
    assert text.startswith("only task-1 is left; its owner bob has been silent for 12 min; ")


def test_a_change_of_the_tasks_files_breaks_the_silence_of_its_owner(
    silence: Callable[..., Store], clock: FakeClock, tmp_path: Path
) -> None:
    team = silence([[], [], ["task-1"], ["task-3"], ["task-4"], ["task-2"]])
    update(team, ALPHA, tasks.TASK, "task-1", lambda task: task.having(touches=["new.py"]))
    claims.claim(team, ALPHA, MIA, "2")
    checkout = tmp_path / "checkout"
    git(tmp_path, "init", "-q", str(checkout))
    (checkout / "new.py").write_text("half a module")
    record = presence.Agent(agent="bob")
    upsert(team, ALPHA, presence.AGENT, "bob", record, lambda agent: agent.having(checkout=str(checkout)))
    clock.advance(230)
    written_at = team.now().timestamp()
    os.utime(checkout / "new.py", (written_at, written_at))
    clock.advance(11)
    assert TOLD not in told(team)


def test_the_leader_hears_once_of_a_lost_member_without_a_task(silence: Callable[..., Store], clock: FakeClock) -> None:
    """A lost member whose task the leader has just released is not reported."""
    store = silence([[]])
    clock.advance(200)
    claims.heartbeat(store, ALPHA, BOB)
    clock.advance(101)
    assert told(store) == ["mia, who has no task, was silent for 300 s"]
    clock.advance(200)
    assert claims.release(store, ALPHA, LEA, "1").owner is None
    assert told(store) == []


def reminded(store: Store) -> str:
    """The reminder that bob gets, which is noted as told."""
    return reminder(store, teams.get(store, ALPHA), "bob", lambda note: note(), str)[0]


def to_mia(store: Store, count: int) -> None:
    for number in range(count):
        messages.send(store, ALPHA, Caller("lea"), "mia", f"number {number}")


def assign_new(store: Store, name: str) -> None:
    """Create a task that only the agent called *name* may claim."""
    draft = Task(team_name=ALPHA, title="t", created_at="")
    creating.create_all(store, ALPHA, LEA, [creating.Planned("a", draft, [], name)])


def test_mail_is_told_of_also_behind_many_messages_for_others(team: Store) -> None:
    """How far the messages were looked through is noted only if there were many."""
    joining.join(team, ALPHA, Caller("mia"))
    to_mia(team, 5)
    assert reminded(team) == ""
    assert presence.load(team, ALPHA, "bob").told_to is None
    messages.send(team, ALPHA, Caller("lea"), "bob", "hello")
    assert reminded(team) == "msg-6 from lea: hello (teams reply msg-6 TEXT)"
    to_mia(team, 40)
    assert reminded(team) == ""
    assert presence.load(team, ALPHA, "bob").told_to == 46
    messages.broadcast(team, ALPHA, Caller("lea"), "all of you")
    assert reminded(team) == "msg-47 from lea: all of you"
    assert reminded(team) == ""


def test_the_leader_hears_that_all_ready_tasks_are_for_members_that_have_not_joined(
    store: Store, clock: FakeClock
) -> None:
    """The leader hears this once, a minute after the last such task was made, if a member is idle."""
    joining.spawn_team(store, ALPHA, LEA)
    joining.join(store, ALPHA, BOB)
    for name in ("ann", "mia"):
        assign_new(store, name)
    clock.advance(59)
    assert told(store) == []
    clock.advance(2)
    assert told(store) == ["all ready tasks are assigned to ann, mia, not in the team yet; idle: bob"]
    assert told(store) == []
    tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title="for anybody", created_at=""))
    clock.advance(61)
    assert told(store) == []


def test_the_leader_hears_once_for_which_task_everything_waits(silence: Callable[..., Store], clock: FakeClock) -> None:
    """The leader hears it once a member was idle for two minutes, and again when another member is idle as well."""
    team = silence([[], [], [], ["task-1"], ["task-1"], ["task-4", "task-5"]], lease=3000, members=(BOB, MIA, ANN))
    for caller, task in ((MIA, "2"), (ANN, "3")):
        claims.claim(team, ALPHA, caller, task)

    def hears(*, after: int) -> bool:
        clock.advance(after)
        for caller in (BOB, MIA, ANN):
            presence.announce(team, ALPHA, caller, "here")
        advice = "or, to let them start now: teams update-task task-4,task-5 --unblock task-1 --after task-1"
        return any(text.startswith("everything waits for task-1") and advice in text for text in told(team))

    clock.advance(110)
    changes.change_task(team, ALPHA, MIA, "2", changes.Edit(status="completed"))
    assert not hears(after=110)
    assert hears(after=11)
    assert not hears(after=301)
    changes.change_task(team, ALPHA, ANN, "3", changes.Edit(status="completed"))
    assert not hears(after=110)
    assert hears(after=11)
    assert not hears(after=301)


def test_the_leader_hears_that_a_member_is_idle_while_a_busy_one_has_the_ready_task(
    silence: Callable[..., Store], clock: FakeClock
) -> None:
    """It hears nothing as long as the idle member may claim a ready task."""
    team = silence([[]], lease=3000)
    for name in ("bob", "mia", "bob"):
        assign_new(team, name)

    def hears(*, after: int) -> list[str]:
        clock.advance(after)
        for caller in (BOB, MIA):
            presence.announce(team, ALPHA, caller, "here")
        return [text.partition(". ")[0] for text in told(team)]

    assert hears(after=130) == []
    changes.change_task(team, ALPHA, Caller("human"), "3", changes.Edit(status="cancelled"))
    cause, how = "task-2, task-4 are ready, but assigned to busy members", "teams update-task task-2,task-4 --unassign"
    assert hears(after=1) == [f"{cause}; to let idle members claim them: {how}"]
    assert hears(after=130) == []


def test_it_hears_what_has_to_end_before_the_task_for_which_everything_waits(
    silence: Callable[..., Store], clock: FakeClock
) -> None:
    """It hears this once, even if the idle member has another task meanwhile."""
    team = silence([[], ["task-1"], []], lease=3000)
    changes.change_task(team, ALPHA, LEA, "3", changes.Edit(review_by="lea"))
    changes.change_task(team, ALPHA, LEA, "1", changes.Edit(after=["3"]))
    for task in ("3", "4"):
        claims.claim(team, ALPHA, MIA, task)
        changes.change_task(team, ALPHA, MIA, task, changes.Edit(status="completed"))
        clock.advance(121)
        for caller in (BOB, MIA):
            presence.announce(team, ALPHA, caller, "here")
        heard = [text.partition(";")[0] for text in told(team)]
        cause = "everything waits for task-1, which completes after task-3 (in_review)"
        assert heard == ([cause] if task == "3" else [])
        tasks.create(team, ALPHA, LEA, Task(team_name=ALPHA, title="t", created_at=""))
        assert told(team) == []
