"""Facts: what is so in the team and concerns one agent: a task is ready, all are settled, a member is lost, a plan or a
question waits. Each has a word by which it is known whether the agent was told.
"""

from __future__ import annotations

import time

from teams_cli.clock import seconds_since
from teams_cli.errors import TeamsError
from teams_cli.membership import shutdowns
from teams_cli.messages import counting, receipts
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.records.annotations import Any
from teams_cli.store.contract import Store
from teams_cli.store.pace import Alarm
from teams_cli.tasks import choosing, claims, leases, overviews, plans, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import history, presence
from teams_cli.teams.permission import standing_of
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Member, Team
from teams_cli.text import listed
from teams_cli.views import conditions, silences, standing, steps, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller

    Found = dict[str, Any]
    Known = dict[str, Found | None]

PLAN = "plan:"
"""What the word begins with under which a plan is told."""
_TITLE = 60
_NAMED = 5
_READY = "ready:"
_BEHIND = f"{_READY}more"
"""Under which it is told that more tasks are ready than are looked at: `_AT_ONCE`, and as many as there are members."""
_AT_ONCE = 10
_MUCH = 100
"""So many changes later what is ready is told again: nobody looks through more of the history for whoever took none."""
_GAVE_IT = "task released"
_TOOK_ONE = frozenset(("task claimed", "task completed", "task failed", _GAVE_IT))
"""What the history says of who took a task."""
_PAST = 0.005
_TURN = 0.1
"""Seconds by which those who wait for work look for it one after the other."""


def fact(what: str, about: str, text: str, step: str) -> Found:
    """One thing that concerns an agent: its kind, what it is about, in words, and the command that follows."""
    return {"what": what, "id": about, "text": text, "next": step}


class Facts:
    """What is so now and concerns the caller. The alarm is set for what time alone may make so.

    The *queue* says from when on the caller may be told of a task that was left to those who wait before it. That so
    many tasks are *completed* is told to who asks for it.
    """

    def __init__(
        self,
        store: Store,
        team: Team,
        caller: Caller,
        alarm: Alarm,
        queue: dict[str, float],
        completed: int | None = None,
    ) -> None:
        self.store = store
        self.team = team
        self.caller = caller
        self.alarm = alarm
        self.queue = queue
        self.completed = completed
        at = standing_of(team, caller)
        self.leads = at is not None and at.leads
        self._told_at = ""
        self._looked_at: list[Task] | None = None
        self.offer: str | None = None
        """Which ready task the caller is told of first."""
        self.works = claims.may_claim(team, caller)

    def true(self, known: set[str]) -> Known:
        """What is so, by the word it is told under; several may be told as one, and None goes without saying."""
        found = self._overdue() | self._completed(known)
        if self.works:
            found |= self._ready(known)
        if self.leads:
            found |= self._settled(known) | self._plans() | self._lost(known) | self._silent(known)
        if self.caller.is_human:
            found |= self._questions() | self._plans()
        return found

    def _overdue(self) -> Known:
        """Messages of the caller that were not acknowledged in time."""
        if (seconds := receipts.next_due(self.store, self.team.name, self.caller.name)) is not None:
            self.alarm.ring_in(seconds + _PAST)
        late = receipts.overdue(self.store, self.team.name, self.caller.name)
        return {
            f"overdue:{row['id']}": fact("overdue", row["id"], receipts.in_words(row), steps.look_at(row["id"]))
            for row in late
        }

    def _completed(self, known: set[str]) -> Known:
        """That so many tasks are completed as were asked for."""
        if self.completed is None:
            return {}
        counts = overviews.overview(self.store, self.team.name).counts
        if counts["completed"] < self.completed:
            return {}
        about = f"completed:{self.completed}"
        if about in known:
            return {about: None}
        text = f"{counts['completed']} of {sum(counts.values())} tasks are completed"
        if said := standing.in_words(self.store, self.team.name, self.caller):
            text += f". {said}"
        return {about: fact("completed", self.team.name, text, "")}

    def held(self) -> list[str]:
        """The tasks that the caller has in progress."""
        found = tasks.labelled(self.store, self.team.name, tasks.IN_PROGRESS)
        return [task.id for task in found if task.owner == self.caller.name]

    def still_told(self, agent: Agent, but_ready: bool = False) -> set[str]:
        """What the agent knows of what it was told. Once it took a task, also one of which it was not told, those that
        were ready are news when it looks for work again, as they are once much was changed; *but_ready*, always.
        """
        self._told_at = agent.ready_at or ""
        ready = {about for about in agent.told if about.startswith(_READY)}
        return set(agent.told) - (ready if ready and (but_ready or self._took_one(ready)) else set())

    def _took_one(self, told: set[str]) -> bool:
        """Whether the caller claimed a task since it was told of those that were ready, or may have."""
        others = told - {_BEHIND} - {work.about(task) for task in self._first_ready()}
        if any(self._claimed(about.split(":")[1]) for about in others):
            return True
        changes = enumerate(history.after(self.store, self.team.name, self._told_at), 1)
        return any(count > _MUCH or self._tells_of_taking(entry) for count, entry in changes)

    def _tells_of_taking(self, entry: Found) -> bool:
        """Whether an entry of the history may be of a task that the caller took, or was given."""
        name, what = self.caller.name, entry.get("what")
        if what == "task handed over":  # it says by whom, and not to whom
            return True
        return (what in _TOOK_ONE and entry.get("actor") == name) or (what == _GAVE_IT and entry.get("owner") == name)

    def _claimed(self, key: str) -> bool:
        try:
            notes = tasks.get(self.store, self.team.name, key).notes
        except TeamsError:
            return False
        return any(n.what == "claimed" and n.by == self.caller.name and n.at > self._told_at for n in notes)

    def _first_ready(self) -> list[Task]:
        """The tasks that the caller can claim, best first; of many one more than are looked at."""
        if self._looked_at is None:
            places = range(self._most + 1)  # first: a task that has no place is not read
            found = choosing.ready_for(self.store, self.team, self.caller)
            self._looked_at = [task for _, task in zip(places, found, strict=False)]
        return self._looked_at

    @property
    def _most(self) -> int:
        return _AT_ONCE + len(self.team.members)

    def _ready(self, known: set[str]) -> Known:
        ready = self._first_ready()
        if not ready or next(shutdowns.open_requests(self.store, self.team, self.caller.name), None):
            return {}
        more = len(ready) > self._most
        told: Known = {about: None for about in map(work.about, ready) if about in known}
        if more and _BEHIND in known:
            told[_BEHIND] = None
        news = self._news(ready, known)
        free = self._not_offered(ready) if news else []
        if not any(work.about(task) in news for task in free):
            return told
        self.offer = work.about(free[0])
        kept = ", kept for you," if free[0].assignee == self.caller.name else ""
        text = f"{free[0].id}{kept} is ready: {free[0].title[:_TITLE]}"
        if len(free) > 1:
            text += f" (and {'at least ' if more else ''}{len(free) - 1} more)"
        shown = fact("ready", free[0].id, text, steps.CLAIM)
        told |= {about: shown for about in map(work.about, free) if about in news}
        return told | {_BEHIND: None} if more else told

    def _news(self, ready: list[Task], known: set[str]) -> set[str]:
        """Under what words those of the tasks are told of which the caller does not know. Who was told that there are
        many knows of all that come into sight behind those that it was told of, as long as there are.
        """
        abouts = [work.about(task) for task in ready]
        if _BEHIND in known and len(ready) > self._most:
            last = max((place for place, about in enumerate(abouts) if about in known), default=0)
            abouts = abouts[:last]
        return set(abouts) - known

    def _not_offered(self, ready: list[Task]) -> list[Task]:
        """Those of the tasks of which no other without work was told a moment ago; else the alarm rings after that."""
        others = work.idle(self.store, self.team, self.caller.name)
        offers = {agent.offered: left for agent in others if (left := work.offer_left(self.store, agent)) > 0}
        for task in ready:
            if (about := work.about(task)) in offers:
                self.alarm.ring_in(offers[about] + _PAST)
        free = [task for task in ready if task.assignee or work.about(task) not in offers]
        before = sum(bool(agent.waiting) and agent.agent < self.caller.name for agent in others)
        return free if free and free[0].assignee else self._in_turn(free, before)

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

    def _settled(self, known: set[str]) -> Known:
        found = conditions.settled(self.store, self.team.name)
        if found is None or not any(found["taskCounts"].values()):
            return {}
        about = f"settled:{'-'.join(map(str, found['taskCounts'].values()))}"
        if about in known:
            return {about: None}
        counts = {status: count for status, count in found["taskCounts"].items() if count}
        text = f"all tasks are settled: {', '.join(f'{count} {status}' for status, count in counts.items())}"
        others = [name for name in self.team.active_names() if name not in (self.caller.name, self.team.leader)]
        if others:
            named = " ".join(others) if len(others) <= _NAMED else "NAME ..."
            text += f"; still here: {listed(others, _NAMED)}, who hear it when you close the team"
            text += f" (or first: teams request-shutdown {named}); {self._unread(others)}"
        what = steps.after_all(found["stuck"])
        return {about: fact("settled", self.team.name, text, what)}

    def _unread(self, others: list[str]) -> str:
        """Who of the others has mail that it has not read: something may be left to do."""
        try:
            counts = counting.unread_counts(self.store, self.team.name, others)
        except TeamsError:  # the doctor says what is wrong
            return "who has unread mail can't be told"
        unread = [f"{name} ({count})" for name, count in counts.items() if count]
        return f"unread mail: {listed(unread, _NAMED)}" if unread else "nobody has unread mail"

    def _lost(self, known: set[str]) -> Known:
        """Members of whom nothing is heard and that have no task; of one that lost a task by that the leader was told.

        Of an agent that `teams` started its keeper knows more.
        """
        found: Known = {}
        busy = {task.owner for task in tasks.labelled(self.store, self.team.name, tasks.IN_PROGRESS)}
        for member in self.team.members:
            if member.active and member.agent_id not in (self.caller.name, *busy) and not member.started_by:
                agent = presence.load(self.store, self.team.name, member.agent_id)
                since = max(filter(None, (agent.last_seen, member.joined_at)), default="")
                if since and self._is_silent(agent, since):
                    about = f"lost:{member.agent_id}:{since}"
                    found[about] = None if about in known else self._loss(member, since)
        return found

    def _is_silent(self, agent: Agent, since: str) -> bool:
        left = leases.length(self.team) - seconds_since(since, self.store.now())
        if left < 0 or presence.is_gone(agent):
            return True
        self.alarm.ring_in(left + _PAST)
        self.alarm.ring_at_end_of(agent.pid, agent.pid_started, agent.pid_boot)
        return False

    def _loss(self, member: Member, since: str) -> Found | None:
        name = member.agent_id
        for task in tasks.all_of(self.store, self.team.name, []):
            if any(note.what == "expired" and note.owner == name and note.at >= since for note in task.notes):
                return None
        text = f"{name}, who has no task, was not heard of for {leases.length(self.team):g} s"
        return fact("lost", name, text, steps.WAIT_TO_LEAD)

    def _silent(self, known: set[str]) -> Known:
        found = silences.told(self.store, self.team, self.caller, self.alarm, known, patient=self.completed is not None)
        return {
            about: fact("silent", about.split(":")[1], text, steps.WAIT_TO_LEAD) if text else None
            for about, text in found.items()
        }

    def _questions(self) -> Known:
        asked = [q for q in questions.all_of(self.store, self.team.name, []) if q.open and HUMAN in q.waiting_for]
        return {
            f"question:{q.id}": fact("question", q.id, f"{q.id} from {q.from_}: {q.question}", steps.answer(q.id))
            for q in asked
        }

    def _plans(self) -> Known:
        found: Known = {}
        for plan in plans.all_of(self.store, self.team.name, [], only_open=True):
            if plan.from_ != self.caller.name:
                about = f" for {plan.task}" if plan.task else ""
                text = f"{plan.id} from {plan.from_}{about}:\n{plan.plan}"
                found[f"{PLAN}{plan.id}"] = fact("plan", plan.id, text, steps.decide(plan.id))
        return found
