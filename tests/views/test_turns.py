"""Agents that wait take turns at a ready task; if one is slower than its turn, only one is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import claims
from teams_cli.teams import presence
from teams_cli.teams.permission import Caller
from teams_cli.views.concerns import Lookout
from tests.conftest import FakeClock
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks
from tests.support.waits import at_once

BOB, MIA = Caller("bob"), Caller("mia")


class Slow(FileStore):
    """A store that calls a function before it notes what an agent is told of, and another one after."""

    before_noting: Callable[[], Any] | None = None
    when_noted: Callable[[], Any] | None = None

    def replace(self, team, kind, key, record, revision, lasting=True):  # type: ignore[no-untyped-def]
        if not getattr(record, "offered", None):
            return super().replace(team, kind, key, record, revision, lasting)
        before, self.before_noting = self.before_noting, None
        if before:
            before()
        stored = super().replace(team, kind, key, record, revision, lasting)
        noted, self.when_noted = self.when_noted, None
        if noted:
            noted()
        return stored


def may_look_now(lookout: Lookout, now: bool = True) -> None:
    """Let the turn of the agent at the task come now, or not within this test."""
    lookout.offer_times = dict.fromkeys(lookout.offer_times, 0.0 if now else float("inf"))


def told(found: dict[str, Any]) -> list[str]:
    return [each["text"] for each in found.get("happened", ())]


def two_that_wait(cli: Cli) -> tuple[FakeClock, Slow, Lookout, Lookout]:
    """Have bob and mia wait, and a task be ready that mia leaves to bob for a moment."""
    clock = FakeClock()
    clock.wall = datetime.now(UTC)  # bob and mia were seen by the real clock
    slow = Slow(str(cli.root), clock)
    bob = Lookout(slow, ALPHA, BOB, at_once, waits=True)
    mia = Lookout(Slow(str(cli.root), clock), ALPHA, MIA, at_once, waits=True)
    assert (bob.look(), mia.look()) == ({}, {})
    add_tasks(cli, "one")
    assert mia.look() == {}
    return clock, slow, bob, mia


def test_an_agent_that_is_slower_than_its_turn_leaves_the_task(cli: Cli) -> None:
    clock, slow, bob, mia = two_that_wait(cli)
    may_look_now(mia)
    meanwhile: list[dict[str, Any]] = []
    slow.before_noting = lambda: meanwhile.append(mia.look())
    assert told(bob.look()) == []
    assert told(meanwhile[0]) == ["task-1 is ready: one"]
    assert presence.load(slow, ALPHA, "bob").told == []
    assert bob.alarm.moment - time.monotonic() <= 2.0
    assert told(bob.look()) == []
    clock.advance(16)
    assert told(bob.look()) == ["task-1 is ready: one"]  # which mia did not take


def test_an_agent_that_is_quick_enough_is_told_of_the_task(cli: Cli) -> None:
    _, slow, bob, mia = two_that_wait(cli)
    may_look_now(mia, now=False)
    slow.before_noting = lambda: mia.look()
    assert told(bob.look()) == ["task-1 is ready: one"]
    may_look_now(mia)
    assert mia.look() == {}


def test_of_two_agents_at_once_only_one_is_told(cli: Cli) -> None:
    _, _, bob, mia = two_that_wait(cli)
    may_look_now(mia)
    found: dict[str, list[str]] = {}
    looks = {"bob": bob, "mia": mia}
    both_looked, both_noted = threading.Barrier(2, timeout=TIMEOUT), threading.Barrier(2, timeout=TIMEOUT)
    for lookout in (bob, mia):
        assert isinstance(lookout.store, Slow)
        lookout.store.before_noting, lookout.store.when_noted = both_looked.wait, both_noted.wait
    threads = [
        threading.Thread(target=lambda name=name: found.update({name: told(looks[name].look())})) for name in looks
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert found == {"bob": ["task-1 is ready: one"], "mia": []}


def test_a_task_that_was_taken_meanwhile_is_not_told(cli: Cli) -> None:
    _, slow, bob, mia = two_that_wait(cli)
    may_look_now(mia)
    taking = threading.Timer(0.2, lambda: claims.claim(cli.store(), ALPHA, MIA, "1"))
    slow.before_noting = lambda: (mia.look(), taking.start())
    assert told(bob.look()) == []
    taking.join(TIMEOUT)
