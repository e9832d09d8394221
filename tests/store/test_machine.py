"""Random changes by several actors on a disk that fails now and then, compared with the engine that has no disk."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from teams_cli.errors import Conflict, NotFound, OutcomeUnknown, StorageFailed
from teams_cli.store.files.engine import FileStore
from tests.store.faults import ERRORS, Fault
from tests.store.kinds import INBOX, MESSAGE, TASK, TEAM, Inbox, Message, Task, Team, seen, texts

pytestmark = pytest.mark.slow

teams = st.sampled_from(["alpha", "alpha", "alpha", "beta"])
tasks = st.sampled_from(["task-1", "task-1", "task-2"])
names = st.sampled_from(["bob", "BOB", "cid"])
actors = st.integers(0, 2)
faults = st.none() | st.builds(Fault, st.integers(1, 40), st.sampled_from(ERRORS))


class Machine(RuleBasedStateMachine):
    """A refused change changes nothing, an acknowledged one is there, and an unknown one is there or not."""

    @initialize()
    def begin(self):
        # Nothing that the collector clears: it might, while another machine's calls are made to fail.
        self.place = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.actors = [FileStore(f"{self.place}/root", lock_timeout=0.3) for _ in range(3)]
        self.model = FileStore(f"{self.place}/model")
        self.held = {}
        self.writes = self.not_removed = 0
        self.create_task("alpha", 0, None)

    def teardown(self):
        if hasattr(self, "place"):
            tmp = f"{self.place}/root/tmp"
            left = os.listdir(tmp) if os.path.isdir(tmp) else []
            shutil.rmtree(self.place)
            assert len(left) <= self.not_removed

    def both(self, actor, fault, change):
        """Make a change on both engines; what each returned, or None where it was refused."""
        try:
            with fault or Fault(0, 0) as happened:
                done = change(self.actors[actor], "files")
        except OutcomeUnknown as unknown:
            note(f"unknown: {unknown}")
            assert happened.happened
            return self.catch_up(change)
        except StorageFailed as refused:
            note(f"refused: {refused}")
            assert happened.happened
            assert self.place in str(refused)
            return None
        except (Conflict, NotFound) as refused:
            assert type(refused) is type(self.refusal_of_the_model(change))
            return None
        finally:
            self.not_removed += happened.happened == "unlink"
        return done, change(self.model, "memory")

    def refusal_of_the_model(self, change):
        try:
            change(self.model, "memory")
        except (Conflict, NotFound) as refused:
            return refused
        return None

    def catch_up(self, change):
        """After `OutcomeUnknown`, asking tells: if the change is there, the model makes it too."""
        if seen(self.actors[0]) != seen(self.model):
            change(self.model, "memory")

    @rule(team=teams, actor=actors, fault=faults)
    def create_team(self, team, actor, fault):
        self.both(actor, fault, lambda store, _: store.create(team, TEAM, team, Team(name=team, leader="ann")))

    @rule(team=teams, actor=actors, fault=faults)
    def create_task(self, team, actor, fault):
        self.writes += 1
        task = Task(title=f"t{self.writes}")
        made = self.both(actor, fault, lambda store, _: store.create(team, TASK, None, task))
        if made:
            assert made[0][0] == made[1][0]

    @rule(team=teams, name=names, actor=actors, fault=faults)
    def create_inbox(self, team, name, actor, fault):
        self.both(actor, fault, lambda store, _: store.create(team, INBOX, name, Inbox(agent=name)))

    @rule(team=teams, key=tasks, actor=actors)
    def look_at_a_task(self, team, key, actor):
        try:
            mine, revision = self.actors[actor].get(team, TASK, key)
        except NotFound:
            assert isinstance(self.refusal_of_the_model(lambda store, _: store.get(team, TASK, key)), NotFound)
            return
        model, of_model = self.model.get(team, TASK, key)
        assert mine == model
        self.held[actor, team, key] = mine, {"files": revision, "memory": of_model}

    @rule(team=teams, key=tasks, actor=actors, fault=faults)
    def replace_a_task(self, team, key, actor, fault):
        """By what the actor saw last, which may be long ago. Each write is another, as in life: times differ."""
        if (actor, team, key) not in self.held:
            self.look_at_a_task(team, key, actor)
        if (actor, team, key) in self.held:
            self.writes += 1
            task, revisions = self.held[actor, team, key]
            task = task.having(count=self.writes, status="in_progress" if self.writes % 2 else "pending")
            lasting = bool(self.writes % 3)
            made = self.both(
                actor, fault, lambda store, name: store.replace(team, TASK, key, task, revisions[name], lasting)
            )
            if made:
                self.held[actor, team, key] = task, dict(zip(("files", "memory"), made, strict=True))

    @rule(
        team=teams, to=st.sampled_from([["bob"], ["cid"], ["bob", "cid"], ["cid", "dan"]]), actor=actors, fault=faults
    )
    def send(self, team, to, actor, fault):
        self.writes += 1
        self.append(team, to, f"u{self.writes}", actor, fault)

    @rule(
        team=teams,
        to=st.sampled_from([["bob"], ["bob", "cid"]]),
        uid=st.sampled_from("xyz"),
        actor=actors,
        fault=faults,
    )
    def send_with_a_uid_that_may_be_used(self, team, to, uid, actor, fault):
        self.append(team, to, uid, actor, fault)

    def append(self, team, to, uid, actor, fault):
        several = to if len(to) > 1 else None
        message = Message(from_="ann", to="all" if several else to[0], message=f"by {actor}", recipients=several)
        made = self.both(actor, fault, lambda store, _: store.append(team, MESSAGE, to, message, uid))
        if made:
            assert made[0] == made[1]

    @rule(
        team=teams,
        agent=names | st.none(),
        after=st.integers(0, 6),
        limit=st.integers(0, 3),
        actor=actors,
        fault=faults,
    )
    def read(self, team, agent, after, limit, actor, fault):
        problems = []
        try:
            with fault or Fault(0, 0) as happened:
                read = self.actors[actor].read(team, MESSAGE, agent, after, problems, limit)
        except StorageFailed:
            assert happened.happened
        else:
            assert problems or read == self.model.read(team, MESSAGE, agent, after, [], limit)
            assert not problems or happened.happened

    @invariant()
    def both_hold_the_same(self):
        if hasattr(self, "place"):
            expected = seen(self.model)
            for actor in self.actors[:2]:
                assert seen(actor) == expected
            for team in ("alpha", "beta"):
                self.labels_find_all(team)
                for agent in ("bob", "cid"):
                    assert texts(self.actors[0], agent, team=team) == texts(self.model, agent, team=team)

    def labels_find_all(self, team):
        """A hint may name too many, never too few of those that nobody edited by hand."""
        for label in ("pending", "in_progress"):
            assert set(self.model.labelled(team, TASK, label)) <= set(self.actors[0].labelled(team, TASK, label))


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],  # a failure is told at once; shrinking it would take minutes
    suppress_health_check=[HealthCheck.too_slow],
)
