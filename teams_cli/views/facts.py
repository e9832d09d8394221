"""Facts of the team that concern one agent: a task is ready, a message is overdue. Each has a word that notes whether
the agent has seen it. Facts for the leader or the person are in `leading`.
"""

from __future__ import annotations

import time

from teams_cli import errors
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.pace import Alarm
from teams_cli.tasks import choosing, claims, tasks
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

    Found = dict[str, Any]
    Known = dict[str, Found | None]

SHUTDOWN = "shutdown"
"""The kind of the requests to end: what looks at them is imported where there are any."""
PLAN = "plan:"
"""The beginning of the key of a fact about a plan."""
_TITLE = 60
_IN_SIGHT = 10
"""So many ready tasks are looked at, where not all that are news among them are left to others."""
_BEHIND = f"{work.READY}more:"
"""The beginning of the key of the fact that more tasks are ready; the position of the last one looked at follows.
"""
_MUCH = 100
"""After so many changes what is ready is told again, rather than looking further back for a task that the agent took.
"""
_TURN = 0.1
"""Seconds by which those who wait for work look for it one after the other."""
_TO_LEAVE = 1.0
"""Seconds that an agent waits for another that was offered the same task to leave it."""


def fact(what: str, about: str, text: str, step: str) -> Found:
    """One thing that concerns an agent: its kind, what it is about, in words, and the command that follows."""
    return {"what": what, "id": about, "text": text, "next": step}


def settled_as(counts: dict[str, int]) -> str:
    """The word under which it is told that all tasks are settled."""
    return f"settled:{'-'.join(map(str, counts.values()))}"


class Facts:
    """The present facts that concern the caller, by key. Several may be reported as one, and None is not reported. The
    alarm is set for facts that time alone may make true.

    The *queue* says from when on the caller may be told of a task that was left to those who wait before it; *there*
    names kinds of records that the team has.
    """

    def __init__(
        self,
        store: Store,
        team: Team,
        caller: Caller,
        alarm: Alarm,
        queue: dict[str, float],
        there: Collection[str] = (),
    ) -> None:
        self.store = store
        self.team = team
        self.caller = caller
        self.alarm = alarm
        self.queue = queue
        self.there = there
        at = standing_of(team, caller)
        self.leads = at is not None and at.leads
        self._ready: Iterator[Task] | None = None
        self._seen: list[Task] = []
        self.offer: str | None = None
        """The ready task that the caller is offered first."""
        self._idle: list[Agent] | None = None
        self._waiting: list[str] = []
        self.works = claims.may_claim(team, caller)

    def overdue(self, agent: Agent) -> Known:
        """Messages of the caller, the *agent*, that were not acknowledged in time."""
        if not agent.awaits:
            return {}
        from teams_cli.messages import receipts

        if (seconds := receipts.next_due(self.store, self.team.name, self.caller.name)) is not None:
            self.alarm.ring_after(seconds)
        late = receipts.overdue(self.store, self.team.name, self.caller.name)
        return {
            f"overdue:{row['id']}": fact("overdue", row["id"], receipts.in_words(row), steps.look_at(row["id"]))
            for row in late
        }

    def held(self) -> list[str]:
        """The tasks that the caller has in progress."""
        found = tasks.labelled(self.store, self.team.name, tasks.IN_PROGRESS)
        return [task.id for task in found if task.owner == self.caller.name]

    def still_told(self, agent: Agent, but_ready: bool = False) -> set[str]:
        """What the agent still knows of what it was told. What was ready is news again once it may have taken a task,
        and after many changes; *but_ready*, always.
        """
        ready = {about for about in agent.told if about.startswith(work.READY)}
        if ready and (but_ready or self._may_have_taken_one(ready, agent.ready_at or "")):
            return set(agent.told) - ready
        return set(agent.told)

    def _may_have_taken_one(self, told: set[str], since: str) -> bool:
        """Whether the caller has claimed one of the tasks that it was told of, or one at all as the history says; it is
        not looked through to its beginning for that.
        """
        gone = told - {work.about(task) for task in self._in_sight()}
        keys = [work.task_of(about) for about in gone if not about.startswith(_BEHIND)]
        if any(self._claimed(key, since) for key in keys):
            return True
        from teams_cli.teams import history

        changes = enumerate(history.later(self.store, self.team.name, since), 1)
        return any(count > _MUCH or self._tells_of_taking(entry) for count, entry in changes)

    def _claimed(self, key: str, since: str) -> bool:
        try:
            notes = tasks.get(self.store, self.team.name, key).notes
        except errors.TeamsError:
            return False
        return any(note.what == "claimed" and note.by == self.caller.name and note.at > since for note in notes)

    def _tells_of_taking(self, entry: Found) -> bool:
        """Whether a change may have made the caller the owner of a task: it claimed one, or got one from another."""
        name, what, actor = self.caller.name, entry.get("what"), entry.get("actor")
        if what == "task handed over":  # older versions did not say to whom
            return bool(entry.get("to", name) == name)
        if what == "task reopened":  # what did not land is its owner's again
            return bool(actor == SYSTEM)
        got = entry.get("to") == name or (what == "task rejected" and entry.get("owner") == name)
        return got or (what == "task claimed" and actor == name)

    def _in_sight(self, most: int = _IN_SIGHT) -> list[Task]:
        """The first of the tasks that the caller can claim, best first; one more than *most*, which are told of, tells
        that there are more.
        """
        if self._ready is None:
            self._ready = choosing.ready_for(self.store, self.team, self.caller, self.alarm)
        while len(self._seen) <= most and (task := next(self._ready, None)):
            self._seen.append(task)
        return self._seen[: most + 1]

    @property
    def _most(self) -> int:
        """How many ready tasks may have to be looked at: each of those who wait may be told of another, and what it was
        told of a moment ago is left to it.
        """
        members = len(self.team.members)
        return max(_IN_SIGHT + members, 2 * members)

    def ready(self, known: set[str]) -> Known:
        """The tasks that the caller can claim; all that are news are told as one."""
        if not self.works or not self._in_sight() or self._is_asked_to_end():
            return {}
        told, is_left = self._ready_among(_IN_SIGHT, known)
        return self._ready_among(self._most, known)[0] if is_left else told

    def _ready_among(self, most: int, known: set[str]) -> tuple[Known, bool]:
        """The same, for the first *most* ready tasks; whether new ones are left to others though more are ready."""
        ready = self._in_sight(most)
        more = len(ready) > most
        behind = next((about for about in known if about.startswith(_BEHIND)), "") if more else ""
        told: Known = {about: None for about in map(work.about, ready) if about in known}
        if behind:  # what others come before is out of sight, and comes back
            told[min(behind, self._behind(ready[-1]), key=_place_in)] = None
        news = {work.about(task) for task in ready if not (behind and self._is_behind(task, behind))} - known
        free = self._not_offered(ready) if news else []
        fresh = [task for task in free if work.about(task) in news]
        if fresh:
            self.offer = work.about(fresh[0])
            told |= dict.fromkeys(map(work.about, fresh), self._ready_fact(fresh[0], len(free) - 1, more))
        if more and not behind and (fresh or not news):
            told[self._behind(ready[-1])] = None
        return told, more and bool(news) and not fresh

    def done(self, known: set[str]) -> Known:
        """A text for a member: nothing is left to do. `leading` has the text for the leader."""
        from teams_cli.tasks import overviews

        counts = (
            None
            if self.leads or not self.team.member(self.caller.name)
            else overviews.over(self.store, self.team.name, self.alarm)
        )
        if not counts:
            return {}
        about = settled_as(counts)
        return {about: None if about in known else fact("settled", self.team.name, overviews.DONE, "")}

    def _is_asked_to_end(self) -> bool:
        if SHUTDOWN not in self.there:
            return False
        from teams_cli.membership import shutdowns

        return shutdowns.is_asked_to_end(self.store, self.team, self.caller.name)

    def _ready_fact(self, task: Task, others: int, more: bool) -> Found:
        kept = ", assigned to you," if task.assignee == self.caller.name else ""
        text = f"{task.id}{kept} is ready: {task.title[:_TITLE]}"
        if others or more:
            text += f" (and {'at least ' if more else ''}{others or 1} more)"
        return fact("ready", task.id, text, steps.CLAIM)

    def _place(self, task: Task) -> tuple[int, int]:
        """The sort key for ready tasks in the order of claims, without regard to what others have in progress."""
        rank = 0 if task.assignee == self.caller.name else 1 + tasks.PRIORITIES.index(task.priority)
        return rank, tasks.TASK.number_in(task.id)

    def _behind(self, task: Task) -> str:
        return f"{_BEHIND}{'-'.join(map(str, self._place(task)))}"

    def _is_behind(self, task: Task, behind: str) -> bool:
        """Whether the task stands behind those that were looked at when the caller was told that there are more."""
        return self._place(task) >= _place_in(behind)

    def _not_offered(self, ready: list[Task]) -> list[Task]:
        """The tasks that were not just offered to another idle agent; for the others the alarm is set."""
        if self._idle is None:
            self._idle = work.idle(self.store, self.team, self.caller.name)
        others = self._idle
        offers = {agent.offered: left for agent in others if (left := work.offer_left(self.store, agent)) > 0}
        for task in ready:
            if (about := work.about(task)) in offers:
                self.alarm.ring_after(offers[about])
        free = [task for task in ready if task.assignee or work.about(task) not in offers]
        if free and free[0].assignee:
            return free
        self._waiting = [agent.agent for agent in others if agent.waiting]
        return self._in_turn(free, self._before())

    def is_told_to_another(self) -> bool:
        """Whether another is told of the task of which it is noted that the caller is: on a busy machine a turn may
        last longer than is left for it. Both note it before they look, so at least one of them sees it; of two that do
        the first by name has it, which stays with it until the other has left it, or is seen to stay.
        """
        give_up, met = time.monotonic() + _TO_LEAVE, False
        while others := self._also_told():
            if min(others) < self.caller.name or time.monotonic() > give_up:
                self.alarm.ring_in(2 * _TO_LEAVE)  # the other may have left it as well
                return True
            met = True
            time.sleep(_TURN / 2)
        return met and not self._can_be_taken()

    def _can_be_taken(self) -> bool:
        """Whether the offered task is still pending and unchanged."""
        try:
            task = tasks.get(self.store, self.team.name, work.task_of(self.offer or ""))
        except errors.TeamsError:
            return False
        return task.status == "pending" and work.about(task) == self.offer

    def _also_told(self) -> list[str]:
        """The other waiting agents that are offered the same task as the caller."""
        if not self._waiting:
            return []
        others = work.idle(self.store, self.team, self.caller.name)
        return [one.agent for one in others if one.offered == self.offer and work.offer_left(self.store, one)]

    def _before(self) -> int:
        """The number of waiting agents before the caller."""
        return sum(name < self.caller.name for name in self._waiting)

    def _in_turn(self, free: list[Task], before: int) -> list[Task]:
        """The tasks for the caller, where so many who wait come *before* it and take the first ones.

        What they don't take, because they wait no more, is its own a moment later.
        """
        left = free[:before]
        for place, task in enumerate(left):
            since = self.queue.setdefault(work.about(task), time.monotonic() + _TURN * (before - place))
            self.alarm.ring_in(since - time.monotonic())
        late = [task for task in left if self.queue[work.about(task)] <= time.monotonic()]
        return [*free[before:], *late] if free[before:] else late


def _place_in(behind: str) -> tuple[int, int]:
    """The place that such a word says; one behind all if it was edited by hand."""
    try:
        rank, number = map(int, behind.removeprefix(_BEHIND).split("-"))
    except ValueError:
        return len(tasks.PRIORITIES) + 1, 0
    return rank, number
