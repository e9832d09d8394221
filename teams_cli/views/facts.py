"""Facts of the team that concern one agent: a task is ready, a message is overdue, all is done.

Each fact has a key, which is recorded for the agent once the fact was reported. Facts for the leader or the person are
in `leading`.
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
_FEW = 10
"""How many ready tasks are looked at first. If all new tasks among them are left to other agents, more are looked
at.
"""
_MORE = f"{work.READY}more:"
"""The beginning of the key of the fact that more tasks are ready. The position of the last task looked at follows."""
_MANY_CHANGES = 100
"""After more changes than this, ready tasks are reported again, without searching the changes for a claim of the
agent.
"""
_TURN = 0.1
"""Agents that wait for work look for it one after the other, this many seconds apart, so that each is offered another
task.
"""
_SECONDS_TO_GIVE_UP = 1.0
"""How many seconds an agent waits for another agent to give up a task that both were offered."""


def fact(what: str, about: str, text: str, step: str) -> Document:
    """Return a fact in the form in which answers show it. *what* is its kind, *about* the id of its subject, *text* a
    sentence, and *step* the next command.
    """
    return {"what": what, "id": about, "text": text, "next": step}


def settled_key(counts: dict[str, int]) -> str:
    """Return the key of the fact that all tasks are settled. *counts* maps statuses to numbers of tasks."""
    return f"settled:{'-'.join(map(str, counts.values()))}"


class Facts:
    """Finds the facts that hold now and concern the caller. Some facts become true without a change, because time
    passes: the *alarm* is set for these times.

    *offer_times* maps the key of each ready task that is left to others for a moment to the time from which the task
    may be offered to the caller. It is kept between looks. *kinds* are the kinds of records that the team has.
    """

    def __init__(
        self,
        store: Store,
        team: Team,
        caller: Caller,
        alarm: Alarm,
        offer_times: dict[str, float],
        kinds: Collection[str],
    ) -> None:
        self.store = store
        self.team = team
        self.caller = caller
        self.alarm = alarm
        self.offer_times = offer_times
        self.kinds = kinds
        standing = standing_of(team, caller)
        self.leads = standing is not None and standing.leads
        self.may_claim = claims.may_claim(team, caller)
        self._unread_ready: Iterator[Task] | None = None
        self._ready: list[Task] = []
        """The best tasks that the caller can claim, as far as they were read. *_unread_ready* yields the others."""
        self._idle: list[Agent] | None = None
        self._may_collide = False
        """Whether another agent that waits may be offered the same task at this moment."""

    def overdue(self, agent: Agent) -> FactsByKey:
        """Return a fact for each message of the caller, whose record is *agent*, that was not acknowledged in time."""
        if not agent.awaits:
            return {}
        from teams_cli.views import receipts

        if (seconds := receipts.next_due(self.store, agent)) is not None:
            self.alarm.ring_after(seconds)
        facts: FactsByKey = {}
        for row in receipts.overdue(self.store, self.team.name, agent):
            step = f"teams show-message {row['id']}"
            facts[f"overdue:{row['id']}"] = fact("overdue", row["id"], receipts.in_words(row), step)
        return facts

    def held(self) -> list[str]:
        """Return the ids of the caller's tasks in progress."""
        return [task.id for task in tasks.held_by(self.store, self.team.name, self.caller.name)]

    def still_reported(self, agent: Agent, ready_again: bool) -> set[str]:
        """Return the keys of the facts that need not be reported to the agent again. *agent* is the caller's record.

        Facts about ready tasks are reported again if the agent may have claimed a task since, or if there were very
        many changes. With *ready_again*, they are always reported again.
        """
        ready = {key for key in agent.told if key.startswith(work.READY)}
        if ready and (ready_again or self._may_have_claimed(ready, agent.ready_at or "")):
            return set(agent.told) - ready
        return set(agent.told)

    def _may_have_claimed(self, reported_ready: set[str], since: str) -> bool:
        """Return whether the caller may have become the owner of a task since the time *since*, at which the ready
        tasks with the keys *reported_ready* were reported to it. If there were very many changes, return True.
        """
        still_ready = {work.ready_key(task) for task in self._best_ready(_FEW)}
        for key in reported_ready - still_ready:
            if key.startswith(_MORE):
                continue
            try:
                notes = tasks.get(self.store, self.team.name, work.task_of_key(key)).notes
            except errors.TeamsError:  # the history below has the claim, too
                continue
            if any(note.what == "claimed" and note.by == self.caller.name and note.at > since for note in notes):
                return True
        from teams_cli.teams import history

        changes = enumerate(history.later(self.store, self.team.name, since), 1)
        return any(count > _MANY_CHANGES or self._gives_a_task(entry) for count, entry in changes)

    def _gives_a_task(self, entry: Document) -> bool:
        """Return whether the change in an *entry* of the history may have made the caller the owner of a task."""
        name = self.caller.name
        change = entry.get("what")
        actor = entry.get("actor")
        if change == "task handed over":  # older versions did not say to whom
            return bool(entry.get("to", name) == name)
        if change == "task reopened":
            # SYSTEM reopens a task that did not land. It then has the same owner as before, who may be the caller. A
            # task that a member reopens has no owner.
            return bool(actor == SYSTEM)
        is_given = entry.get("to") == name or (change == "task rejected" and entry.get("owner") == name)
        return is_given or (change == "task claimed" and actor == name)

    def _best_ready(self, most: int) -> list[Task]:
        """Return the best tasks that the caller can claim: up to *most*, and one more if there are further tasks, so
        that the caller of this function sees that there are.
        """
        if self._unread_ready is None:
            self._unread_ready = claims.ready_for(self.store, self.team, self.caller, self.alarm)
        while len(self._ready) <= most and (task := next(self._unread_ready, None)):
            self._ready.append(task)
        return self._ready[: most + 1]

    def ready(self, reported: set[str]) -> tuple[FactsByKey, str | None]:
        """Return the facts about the tasks that the caller can claim, by key, and the key of the task that is offered.

        A single fact offers the best new task, that is, the best one that was not reported before. It is the value for
        the keys of all new tasks that are not left to other agents. All other keys, such as those in *reported*, have
        the value None. If no task is new, or all new tasks are left to others, the key of the offered task is None.
        """
        if not self.may_claim or not self._best_ready(_FEW):
            return {}, None
        if SHUTDOWN in self.kinds:
            from teams_cli.membership import shutdowns

            if shutdowns.is_asked_to_end(self.store, self.team, self.caller.name):
                return {}, None
        facts, offer, must_look_at_more = self._facts_of_best(_FEW, reported)
        if must_look_at_more:
            # A task may be left to each member that waits for work, and one to each that was just offered a task.
            members = len(self.team.members)
            facts, offer, _ = self._facts_of_best(max(_FEW + members, 2 * members), reported)
        return facts, offer

    def _facts_of_best(self, most: int, reported: set[str]) -> tuple[FactsByKey, str | None, bool]:
        """Return the facts about the best *most* ready tasks, the key of the task that is offered, and whether to look
        at more tasks, because there are more, and all new tasks among the best are left to other agents.
        """
        ready = self._best_ready(most)
        has_more = len(ready) > most
        by_key = {work.ready_key(task): task for task in ready}
        facts: FactsByKey = {key: None for key in by_key if key in reported}
        new = {key: task for key, task in by_key.items() if key not in reported}
        more_key = next((key for key in reported if key.startswith(_MORE)), "") if has_more else ""
        if more_key:  # from its position on, all tasks count as reported, even if better ones hid them meanwhile
            new = {key: task for key, task in new.items() if self._order(task) < _position(more_key)}
            facts[min(more_key, self._more_key(ready[-1]), key=_position)] = None  # it stays reported
        open_tasks = self._open_to_caller(ready) if new else []
        open_new_keys = [key for key in map(work.ready_key, open_tasks) if key in new]
        offer = open_new_keys[0] if open_new_keys else None
        if offer:
            task, other_count = new[offer], len(open_tasks) - 1
            assigned = ", assigned to you," if task.assignee == self.caller.name else ""
            text = f"{task.id}{assigned} is ready: {task.title[:_TITLE]}"
            if other_count or has_more:  # if all others of these are left to other agents, at least one more is known
                text += f" (and {'at least ' if has_more else ''}{other_count or 1} more)"
            facts |= dict.fromkeys(open_new_keys, fact("ready", task.id, text, steps.CLAIM))
        is_left_to_others = bool(new) and not offer
        if has_more and not more_key and not is_left_to_others:
            facts[self._more_key(ready[-1])] = None
        return facts, offer, has_more and is_left_to_others

    def done(self, reported: set[str]) -> FactsByKey:
        """Return the fact that all tasks have ended, by its key; None in its place if the key is in *reported*. Return
        {} if a task has not ended, and always for a leader and for an agent that is not a member.
        """
        if self.leads or not self.team.member(self.caller.name):
            return {}
        from teams_cli.tasks import overviews

        counts = overviews.counts_if_ended(self.store, self.team.name, self.alarm)
        if not counts:
            return {}
        key = settled_key(counts)
        return {key: None if key in reported else fact("settled", self.team.name, overviews.DONE, "")}

    def _order(self, task: Task) -> tuple[int, int]:
        """Return a sort key for the order in which tasks are claimed, ignoring conflicts with tasks in progress."""
        rank = 0 if task.assignee == self.caller.name else 1 + tasks.PRIORITIES.index(task.priority)
        return rank, tasks.TASK.number_in(task.id)

    def _more_key(self, task: Task) -> str:
        """Return the key of the fact that more tasks are ready; *task* is the last one that was looked at."""
        rank, number = self._order(task)
        return f"{_MORE}{rank}-{number}"

    def _open_to_caller(self, ready: list[Task]) -> list[Task]:
        """Return the tasks in *ready*, which has the best ones first, that are not left to other agents now, so that
        each agent that waits for work is offered a different task. The alarm is set for when a task is no longer left
        to others.

        A task is left to another agent for a while if it was just offered to that agent. Of the other tasks, the best
        ones are left to the waiting agents whose names sort before the caller's, a task to each. A moment later, the
        caller may be offered those that are still ready. If the caller's best task is assigned to the caller, nothing
        is left to waiting agents. If two agents are offered the same task nevertheless, one of them gives it up.
        """
        if self._idle is None:
            self._idle = work.idle(self.store, self.team, self.caller.name)
        offers = {agent.offered: seconds for agent in self._idle if (seconds := work.offer_left(self.store, agent))}
        for task in ready:
            if (key := work.ready_key(task)) in offers:
                self.alarm.ring_after(offers[key])
        not_offered = [task for task in ready if task.assignee or work.ready_key(task) not in offers]
        if not_offered and not_offered[0].assignee:
            return not_offered
        waiting = [agent.agent for agent in self._idle if agent.waiting]
        self._may_collide = bool(waiting)
        agents_before = sum(name < self.caller.name for name in waiting)
        no_longer_left = []
        for index, task in enumerate(not_offered[:agents_before]):
            left_until = time.monotonic() + _TURN * (agents_before - index)
            seconds = self.offer_times.setdefault(work.ready_key(task), left_until) - time.monotonic()
            self.alarm.ring_in(seconds)
            if seconds <= 0:
                no_longer_left.append(task)
        return [*not_offered[agents_before:], *no_longer_left]

    def must_give_up(self, key: str) -> bool:
        """Wait until only one agent is offered the task with this *key*, and return whether the caller, which was just
        offered it, must give it up. On a busy machine, two agents can be offered the same task.

        Each agent records its offer before it looks for other offers, so at least one of the two sees the other's. The
        agent whose name sorts last gives up the task. The other agent waits for that, but after a second it gives up
        the task, too.
        """
        if not self._may_collide:
            return False
        give_up_at, has_waited = time.monotonic() + _SECONDS_TO_GIVE_UP, False
        while rivals := self._offered(key):
            if min(rivals) < self.caller.name or time.monotonic() > give_up_at:
                self.alarm.ring_in(2 * _SECONDS_TO_GIVE_UP)  # the other may have given it up as well
                return True
            has_waited = True
            time.sleep(_TURN / 2)
        if not has_waited:  # nobody else was offered the task, so nobody can have claimed it
            return False
        try:  # meanwhile somebody may have claimed it
            task = tasks.get(self.store, self.team.name, work.task_of_key(key))
        except errors.TeamsError:
            return True
        return task.status != "pending" or work.ready_key(task) != key

    def _offered(self, key: str) -> list[str]:
        """Return the names of the other idle agents to which the task with this *key* is offered at present."""
        others = work.idle(self.store, self.team, self.caller.name)
        return [agent.agent for agent in others if agent.offered == key and work.offer_left(self.store, agent)]


def _position(more_key: str) -> tuple[int, int]:
    """Return the position that `_more_key` put into *more_key*."""
    try:
        rank, number = map(int, more_key.removeprefix(_MORE).split("-"))
    except ValueError:  # somebody edited the record by hand: behind all tasks
        return len(tasks.PRIORITIES) + 1, 0
    return rank, number
