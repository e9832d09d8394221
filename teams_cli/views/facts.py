"""Facts of the team that concern one agent: a task is ready, a message is overdue, all is done.

Each has a key, which is noted in the agent's record once it was reported. Facts for the leader or the person are in
`leading`.
"""

from __future__ import annotations

import time

from teams_cli import errors
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.pace import Alarm
from teams_cli.tasks import claims, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams.permission import standing_of
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Team
from teams_cli.views import steps, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from teams_cli.teams.permission import Caller

    Document = dict[str, Any]
    FactsByKey = dict[str, Document | None]
    """Facts by their keys; None for a fact that is reported together with another, or was before."""

SHUTDOWN = "shutdown"
"""The kind of shutdown requests. The module for them is imported only if there are any."""
PLAN = "plan:"
"""The beginning of the key of a fact about a plan."""
_TITLE = 60
_IN_SIGHT = 10
"""Ready tasks that are looked at. More are only if all new ones among them are left to others."""
_BEYOND = f"{work.READY}more:"
"""The beginning of the key of the fact that more tasks are ready; the position of the last one looked at follows."""
_MANY_CHANGES = 100
"""Changes after which ready tasks are reported again, instead of searching all of them for a claim of the agent."""
_TURN = 0.1
"""The seconds between the looks of agents that wait for work, so that each is told of another task."""
_TO_LEAVE = 1.0
"""Seconds that an agent waits for another that was offered the same task to leave it."""


def fact(what: str, about: str, text: str, step: str) -> Document:
    """Return a fact as answers show it: its kind *what*, the id of its subject, a sentence, and the next step."""
    return {"what": what, "id": about, "text": text, "next": step}


def settled_key(counts: dict[str, int]) -> str:
    """Return the key of the fact that all tasks are settled, with these *counts* by status."""
    return f"settled:{'-'.join(map(str, counts.values()))}"


class Facts:
    """Finds the facts that hold now and concern the caller. It sets the *alarm* for facts that become true only because
    time passes.

    *queue* has, for each ready task that was left to other agents first, the time from which the caller may be offered
    it. *kinds* are kinds of records that the team has.
    """

    def __init__(
        self,
        store: Store,
        team: Team,
        caller: Caller,
        alarm: Alarm,
        queue: dict[str, float],
        kinds: Collection[str] = (),
    ) -> None:
        self.store = store
        self.team = team
        self.caller = caller
        self.alarm = alarm
        self.queue = queue
        self.kinds = kinds
        standing = standing_of(team, caller)
        self.leads = standing is not None and standing.leads
        self.works = claims.may_claim(team, caller)
        self.offer: str | None = None
        """The key of the ready task that the caller is offered."""
        self._unread_ready: Iterator[Task] | None = None
        self._ready: list[Task] = []
        self._idle: list[Agent] | None = None
        self._waiting: list[str] = []

    def overdue(self, agent: Agent) -> FactsByKey:
        """Return a fact for each message of the caller that was not acknowledged in time. *agent* is the caller's
        record.
        """
        if not agent.awaits:
            return {}
        from teams_cli.messages import receipts

        if (seconds := receipts.next_due(self.store, self.team.name, self.caller.name)) is not None:
            self.alarm.ring_after(seconds)
        rows = receipts.overdue(self.store, self.team.name, self.caller.name)
        return {
            f"overdue:{row['id']}": fact(
                "overdue", row["id"], receipts.in_words(row), f"teams show-message {row['id']}"
            )
            for row in rows
        }

    def held(self) -> list[str]:
        """Return the ids of the tasks that the caller has in progress."""
        in_progress = tasks.labelled(self.store, self.team.name, tasks.IN_PROGRESS)
        return [task.id for task in in_progress if task.owner == self.caller.name]

    def still_reported(self, agent: Agent, but_ready: bool = False) -> set[str]:
        """Return the keys of the facts that need not be reported to the agent again.

        Ready tasks are reported again once the agent may have claimed one, and after many changes; with *but_ready*,
        always.
        """
        ready = {key for key in agent.told if key.startswith(work.READY)}
        if ready and (but_ready or self._may_have_taken_one(ready, agent.ready_at or "")):
            return set(agent.told) - ready
        return set(agent.told)

    def _may_have_taken_one(self, told: set[str], since: str) -> bool:
        """Whether the caller may have become the owner of a task since the time *since*, at which the ready tasks with
        the keys *told* were reported to it.
        """
        gone = told - {work.ready_key(task) for task in self._in_sight()}
        if any(self._has_claimed(work.task_of_key(key), since) for key in gone if not key.startswith(_BEYOND)):
            return True
        from teams_cli.teams import history

        changes = enumerate(history.later(self.store, self.team.name, since), 1)
        return any(count > _MANY_CHANGES or self._gives_a_task(entry) for count, entry in changes)

    def _has_claimed(self, task_id: str, since: str) -> bool:
        try:
            notes = tasks.get(self.store, self.team.name, task_id).notes
        except errors.TeamsError:
            return False
        return any(note.what == "claimed" and note.by == self.caller.name and note.at > since for note in notes)

    def _gives_a_task(self, entry: Document) -> bool:
        """Whether the change in an *entry* of the history may have made the caller the owner of a task, through a claim
        or through another agent.
        """
        name, what, actor = self.caller.name, entry.get("what"), entry.get("actor")
        if what == "task handed over":  # older versions did not say to whom
            return bool(entry.get("to", name) == name)
        if what == "task reopened":  # a task that did not land is its owner's again
            return bool(actor == SYSTEM)
        is_given = entry.get("to") == name or (what == "task rejected" and entry.get("owner") == name)
        return is_given or (what == "task claimed" and actor == name)

    def _in_sight(self, most: int = _IN_SIGHT) -> list[Task]:
        """Return the best *most* tasks that the caller can claim, and one more if there are more."""
        if self._unread_ready is None:
            self._unread_ready = claims.ready_for(self.store, self.team, self.caller, self.alarm)
        while len(self._ready) <= most and (task := next(self._unread_ready, None)):
            self._ready.append(task)
        return self._ready[: most + 1]

    def ready(self, told: set[str]) -> FactsByKey:
        """Return facts about the tasks that the caller can claim. All that are not in *told* are reported as one."""
        if not self.works or not self._in_sight() or self._is_asked_to_end():
            return {}
        facts, is_left = self._ready_among(_IN_SIGHT, told)
        if not is_left:
            return facts
        # Each waiting agent may be told of another task, and those that it was told of a moment ago are left to it.
        members = len(self.team.members)
        return self._ready_among(max(_IN_SIGHT + members, 2 * members), told)[0]

    def _ready_among(self, most: int, told: set[str]) -> tuple[FactsByKey, bool]:
        """Return the facts about the best *most* ready tasks. Also return whether to look at more tasks: there are
        more, and all new ones among the best are left to other agents.
        """
        ready = self._in_sight(most)
        has_more = len(ready) > most
        beyond = next((key for key in told if key.startswith(_BEYOND)), "") if has_more else ""
        facts: FactsByKey = {key: None for key in map(work.ready_key, ready) if key in told}
        if beyond:  # a task that others come before is out of sight, and comes back
            facts[min(beyond, self._beyond_key(ready[-1]), key=_position)] = None
        new = {work.ready_key(task) for task in ready if not (beyond and self._order(task) >= _position(beyond))} - told
        free = self._not_offered(ready) if new else []
        fresh = [task for task in free if work.ready_key(task) in new]
        if fresh:
            self.offer = work.ready_key(fresh[0])
            facts |= dict.fromkeys(map(work.ready_key, fresh), self._ready_fact(fresh[0], len(free) - 1, has_more))
        if has_more and not beyond and (fresh or not new):
            facts[self._beyond_key(ready[-1])] = None
        return facts, has_more and bool(new) and not fresh

    def done(self, told: set[str]) -> FactsByKey:
        """Return the fact that no work is left, for a member that does not lead."""
        if self.leads or not self.team.member(self.caller.name):
            return {}
        from teams_cli.tasks import overviews

        counts = overviews.counts_if_ended(self.store, self.team.name, self.alarm)
        if not counts:
            return {}
        key = settled_key(counts)
        return {key: None if key in told else fact("settled", self.team.name, overviews.DONE, "")}

    def _is_asked_to_end(self) -> bool:
        if SHUTDOWN not in self.kinds:
            return False
        from teams_cli.membership import shutdowns

        return shutdowns.is_asked_to_end(self.store, self.team, self.caller.name)

    def _ready_fact(self, task: Task, others: int, has_more: bool) -> Document:
        kept = ", assigned to you," if task.assignee == self.caller.name else ""
        text = f"{task.id}{kept} is ready: {task.title[:_TITLE]}"
        if others or has_more:
            text += f" (and {'at least ' if has_more else ''}{others or 1} more)"
        return fact("ready", task.id, text, steps.CLAIM)

    def _order(self, task: Task) -> tuple[int, int]:
        """Return a sort key that puts ready tasks in the order of claims, apart from conflicts with tasks in
        progress.
        """
        rank = 0 if task.assignee == self.caller.name else 1 + tasks.PRIORITIES.index(task.priority)
        return rank, tasks.TASK.number_in(task.id)

    def _beyond_key(self, task: Task) -> str:
        return f"{_BEYOND}{'-'.join(map(str, self._order(task)))}"

    def _not_offered(self, ready: list[Task]) -> list[Task]:
        """Return the tasks in *ready* that the caller may be offered, because no other idle agent was just offered
        them. The alarm is set for the end of the other offers.
        """
        if self._idle is None:
            self._idle = work.idle(self.store, self.team, self.caller.name)
        offers = {agent.offered: left for agent in self._idle if (left := work.offer_left(self.store, agent)) > 0}
        for task in ready:
            if (key := work.ready_key(task)) in offers:
                self.alarm.ring_after(offers[key])
        free = [task for task in ready if task.assignee or work.ready_key(task) not in offers]
        if free and free[0].assignee:
            return free
        self._waiting = [agent.agent for agent in self._idle if agent.waiting]
        return self._in_turn(free, sum(name < self.caller.name for name in self._waiting))

    def _in_turn(self, free: list[Task], before: int) -> list[Task]:
        """Return the tasks in *free* that the caller may be offered now.

        The first *before* tasks are left to the agents that wait and come before the caller. If these do not claim
        them, the caller is offered them a moment later.
        """
        left = free[:before]
        for place, task in enumerate(left):
            since = self.queue.setdefault(work.ready_key(task), time.monotonic() + _TURN * (before - place))
            self.alarm.ring_in(since - time.monotonic())
        late = [task for task in left if self.queue[work.ready_key(task)] <= time.monotonic()]
        return [*free[before:], *late] if free[before:] else late

    def is_offered_to_another(self) -> bool:
        """Whether another agent is offered the same task at the same time, so that the caller has to leave it. This can
        happen on a busy machine.

        Both record their offer before they look, so at least one sees the other. The agent whose name sorts first gets
        the task, once the other has left it or a second has passed.
        """
        give_up, has_met = time.monotonic() + _TO_LEAVE, False
        while others := self._also_offered():
            if min(others) < self.caller.name or time.monotonic() > give_up:
                self.alarm.ring_in(2 * _TO_LEAVE)  # the other may have left it as well
                return True
            has_met = True
            time.sleep(_TURN / 2)
        return has_met and not self._can_be_taken()

    def _can_be_taken(self) -> bool:
        """Whether the offered task is still pending and unchanged."""
        try:
            task = tasks.get(self.store, self.team.name, work.task_of_key(self.offer or ""))
        except errors.TeamsError:
            return False
        return task.status == "pending" and work.ready_key(task) == self.offer

    def _also_offered(self) -> list[str]:
        """Return the names of the other idle agents that are offered the same task as the caller."""
        if not self._waiting:
            return []
        others = work.idle(self.store, self.team, self.caller.name)
        return [one.agent for one in others if one.offered == self.offer and work.offer_left(self.store, one)]


def _position(beyond_key: str) -> tuple[int, int]:
    """Return the position in a key that `_beyond_key` made. If the key was edited by hand, the position is behind all
    tasks.
    """
    try:
        rank, number = map(int, beyond_key.removeprefix(_BEYOND).split("-"))
    except ValueError:
        return len(tasks.PRIORITIES) + 1, 0
    return rank, number
