"""Several agents doing anything in any order: files and PostgreSQL answer alike."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from teams_cli.errors import TeamsError
from teams_cli.membership import joining, shutdowns
from teams_cli.messages import inboxes, messages, reading
from teams_cli.messages.reading import Selection
from teams_cli.records.records import Record
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import changes as task_changes
from teams_cli.tasks import claims, leases, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import Caller
from tests.conftest import FakeClock, postgres_store
from tests.support.cli import ALPHA
from tests.support.waits import at_once

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

pytestmark = pytest.mark.slow

AGENTS = st.sampled_from(["lea", "bob", "mia", "zoe"])
TASKS = st.integers(1, 6).map(str)
MESSAGES = st.integers(1, 12).map(str)
STATUSES = st.sampled_from(["completed", "failed", "pending", "cancelled"])


def plain(value: Any) -> Any:
    """The answer of an operation as what can be compared."""
    if isinstance(value, Record):
        return {key: said for key, said in value.to_json().items() if key != "host"}  # files know of one machine
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


class AnyOrder(RuleBasedStateMachine):
    """Everything is done on both engines, which share a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="teams-machine-"))
        self.clock = FakeClock()
        self.files: Store = FileStore(str(self.directory / "root"), self.clock)
        self.postgres = postgres_store(self.directory / "there", self.clock)

    def teardown(self) -> None:
        self.postgres.close()
        shutil.rmtree(self.directory)

    def both(self, do: Callable[[Store], object]) -> None:
        """Do it on both, and see that both say the same."""
        assert self._outcome(self.files, do) == self._outcome(self.postgres, do)

    def _outcome(self, store: Store, do: Callable[[Store], object]) -> object:
        try:
            return plain(do(store))
        except TeamsError as error:
            return error.status, error.code, error.message

    @initialize()
    def make_a_team(self) -> None:
        self.both(lambda s: joining.spawn_team(s, ALPHA, Caller("lea")))
        self.both(lambda s: joining.join(s, ALPHA, Caller("bob")))
        self.both(lambda s: joining.join(s, ALPHA, Caller("mia"), "task-manager"))

    @rule(agent=AGENTS, role=st.sampled_from([None, "task-manager", "team-leader"]))
    def join(self, agent: str, role: str | None) -> None:
        self.both(lambda s: joining.join(s, ALPHA, Caller(agent), role))

    @rule()
    def join_nameless(self) -> None:
        self.both(lambda s: joining.join(s, ALPHA, None))

    @rule(agent=AGENTS)
    def leave(self, agent: str) -> None:
        self.both(lambda s: joining.leave(s, ALPHA, Caller(agent)))

    @rule(agent=AGENTS, to=AGENTS)
    def hand_over(self, agent: str, to: str) -> None:
        self.both(lambda s: joining.hand_over(s, ALPHA, Caller(agent), to))

    @rule(
        agent=AGENTS,
        title=st.sampled_from(["one", "two"]),
        priority=st.sampled_from(tasks.PRIORITIES),
        blocked_by=st.lists(TASKS.map("task-{}".format), max_size=1),
    )
    def create(self, agent: str, title: str, priority: str, blocked_by: list[str]) -> None:
        draft: dict[str, Any] = {"title": title, "priority": priority, "blocked_by": blocked_by}
        task = Task(team_name=ALPHA, created_at="", **draft)
        self.both(lambda s: tasks.create(s, ALPHA, Caller(agent), task))

    @rule(agent=AGENTS, task=TASKS)
    def claim(self, agent: str, task: str) -> None:
        self.both(lambda s: claims.claim(s, ALPHA, Caller(agent), task))

    @rule(agent=AGENTS)
    def claim_next(self, agent: str) -> None:
        self.both(lambda s: claims.claim_next(s, ALPHA, Caller(agent)))

    @rule(agent=AGENTS, task=TASKS)
    def release(self, agent: str, task: str) -> None:
        self.both(lambda s: claims.release(s, ALPHA, Caller(agent), task, "why not"))

    @rule(agent=AGENTS, task=TASKS, status=STATUSES, claim=st.sampled_from([None, 1, 2]))
    def set_status(self, agent: str, task: str, status: str, claim: int | None) -> None:
        changes = Edit(status=status, result="r", claim=claim)
        self.both(lambda s: task_changes.change_task(s, ALPHA, Caller(agent), task, changes))

    @rule(agent=AGENTS, task=TASKS, blocker=TASKS)
    def block(self, agent: str, task: str, blocker: str) -> None:
        changes = Edit(block=[blocker])
        self.both(lambda s: task_changes.change_task(s, ALPHA, Caller(agent), task, changes))

    @rule(agent=AGENTS, task=TASKS, owner=AGENTS)
    def give(self, agent: str, task: str, owner: str) -> None:
        changes = Edit(owner=owner)
        self.both(lambda s: task_changes.change_task(s, ALPHA, Caller(agent), task, changes))

    @rule(agent=AGENTS)
    def heartbeat(self, agent: str) -> None:
        self.both(lambda s: claims.heartbeat(s, ALPHA, Caller(agent)))

    @rule(
        agent=AGENTS,
        to=AGENTS,
        text=st.sampled_from(["hi", "ho"]),
        uid=st.sampled_from([None, "u"]),
    )
    def send(self, agent: str, to: str, text: str, uid: str | None) -> None:
        self.both(lambda s: messages.send(s, ALPHA, Caller(agent), to, text, uid))

    @rule(agent=AGENTS)
    def broadcast(self, agent: str) -> None:
        self.both(lambda s: messages.broadcast(s, ALPHA, Caller(agent), "all"))

    @rule(agent=AGENTS, peek=st.booleans(), handled=st.booleans(), limit=st.integers(0, 2))
    def read(self, agent: str, peek: bool, handled: bool, limit: int) -> None:
        chosen = Selection(handled=handled, limit=limit)
        self.both(lambda s: reading.read(s, ALPHA, Caller(agent), chosen, [], None if peek else at_once))

    @rule(agent=AGENTS, message=MESSAGES)
    def ack(self, agent: str, message: str) -> None:
        self.both(lambda s: reading.handle(s, ALPHA, Caller(agent), [message]))

    @rule(agent=AGENTS, message=MESSAGES)
    def reply(self, agent: str, message: str) -> None:
        self.both(lambda s: reading.reply(s, ALPHA, Caller(agent), message, "re", []))

    @rule(agent=AGENTS)
    def announce(self, agent: str) -> None:
        self.both(lambda s: presence.announce(s, ALPHA, Caller(agent), "busy"))

    @rule(agent=AGENTS, to=AGENTS)
    def ask_to_shut_down(self, agent: str, to: str) -> None:
        self.both(lambda s: shutdowns.request(s, ALPHA, Caller(agent), to))

    @rule(agent=AGENTS)
    def shut_down(self, agent: str) -> None:
        self.both(lambda s: shutdowns.approve(s, ALPHA, Caller(agent)))

    @rule(seconds=st.sampled_from([1, 200, 301]))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def restart_the_machine(self) -> None:
        self.clock.restart()

    @rule()
    def look(self) -> None:
        self.both(lambda s: leases.release_all(s, teams.get(s, ALPHA)))

    @invariant()
    def the_records_are_the_same(self) -> None:
        if ALPHA in self.files.teams():
            assert self._state(self.files) == self._state(self.postgres)

    def _state(self, store: Store) -> list[Any]:
        problems: list[TeamsError] = []
        found = [list(tasks.all_of(store, ALPHA, problems)), teams.get(store, ALPHA)]
        found.append(store.read(ALPHA, messages.MESSAGE, None, 0, problems))
        found += [inboxes.unread(store, ALPHA, name) for name in ("lea", "bob")]
        assert problems == []
        return [plain(item) for item in found]

    @invariant()
    def tasks_are_owned_as_they_should_be(self) -> None:
        """In progress means owned, and by a claim that was counted; pending means free."""
        for task in tasks.all_of(self.files, ALPHA, []):
            assert (task.owner is not None and task.claim > 0) or task.status != "in_progress"
            assert task.owner is None or task.status != "pending"


AnyOrder.TestCase.settings = settings(
    max_examples=15, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnyOrder = AnyOrder.TestCase
