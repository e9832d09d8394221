"""Facts that concern only who leads, or the person: all is settled, a member is lost or silent, a plan or a question
waits, so many tasks are completed.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import length, seconds_since
from teams_cli.messages import inboxes
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.store.contract import Store
from teams_cli.store.pace import Alarm
from teams_cli.tasks import dependencies, leases, overviews, plans, tasks
from teams_cli.tasks.overviews import Overview
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Member, Team
from teams_cli.text import listed
from teams_cli.views import standing, steps, work
from teams_cli.views.facts import PLAN, Facts, fact, settled_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.permission import Caller
    from teams_cli.views.facts import Found, Known


_FEW = 3
_LATE = 0.8
"""The part of a lease after which a silence is reported even if others have work."""
_LONG = 600.0
"""Seconds of silence that are worth a word where others have nothing to do until then: who writes code says nothing
for some minutes.
"""
_ALSO = 0.5
"""Of the silence that is told: others that are silent for that part of it are told with it, and not a while later."""


def silences_told(
    store: Store, team: Team, caller: Caller, alarm: Alarm, known: set[str], patient: bool = False
) -> dict[str, str | None]:
    """What there is to tell of silent owners, by the word it is known under; None what was told. Once of each claim,
    and again when its lease is about to end; who is *patient* hears that alone. The alarm rings when there may be more.
    """
    late = _LATE * leases.lease_seconds(team)
    first = late if patient else min(late, _LONG)
    silent = {task.id: (task, _silence(store, team, task)) for task in _in_work(store, team)}
    for _, seconds in silent.values():
        if ahead := [end - seconds for end in (first, late) if end > seconds]:
            alarm.ring_after(ahead[0])
    words = {key: _words(task, seconds, late) for key, (task, seconds) in silent.items()}
    found: dict[str, str | None] = {word: None for key in silent for word in words[key] if word in known}
    due = [key for key, (_, seconds) in silent.items() if seconds >= first and words[key][-1] not in known]
    if not due:
        return found
    whole = overviews.overview(store, team.name)
    idle = [agent.agent for agent in work.idle(store, team, caller.name)]
    texts = {key: _text(store, team, silent[key], late, whole, idle) for key in due}
    if any(texts.values()):
        also = [key for key, (_, s) in silent.items() if s >= _ALSO * first and not known.intersection(words[key])]
        texts |= {key: _text(store, team, silent[key], late, whole, idle) for key in also}
    for key in (key for key, text in texts.items() if text):
        found |= {**dict.fromkeys(words[key]), words[key][-1]: texts[key]}
    return found


def _silence(store: Store, team: Team, task: Task) -> float:
    """Seconds for which nothing was heard of the owner, without those that it said it would be silent for."""
    return min(standing.silence(store, team, task), leases.lease_seconds(team) - leases.left(store, task))


def _in_work(store: Store, team: Team) -> list[Task]:
    return list(tasks.labelled(store, team.name, tasks.IN_PROGRESS))


def _words(task: Task, seconds: float, late: float) -> list[str]:
    """The words that a silence is told under: from its beginning, and another once it is late."""
    word = f"silent:{task.id}:{task.claim}"
    return [word, f"{word}:late"] if seconds >= late > _LONG else [word]


def _text(store: Store, team: Team, silent: tuple[Task, float], late: float, whole: Overview, idle: list[str]) -> str:
    """That others have nothing to do until a task is done; or that most wait for one whose owner is silent for most of
    a lease. Empty if neither is so.
    """
    task, seconds = silent
    waiting = sorted(dependencies.waiting_for([task.id], whole.found), key=tasks.TASK.number_in)
    said = f"its owner {task.owner} has been silent for {length(seconds)}; the claim expires in {_left(store, task)}"
    if idle and not (whole.free or whole.ready):
        said += f"; idle: {listed(idle, _FEW)}"
        if waiting:
            return f"{task.id} blocks {listed(waiting, _FEW)}; {said} ({_without(task, whole)})"
        return "" if whole.counts["pending"] else f"{task.id} blocks all others; {said}"
    held_up = seconds >= late and len(waiting) > 1 and 2 * len(waiting) > whole.counts["pending"]
    return f"{task.id} blocks {len(waiting)} tasks; {said}" if held_up else ""


def _left(store: Store, task: Task) -> str:
    return length(max(leases.left(store, task), 1.0))


def _without(task: Task, whole: Overview) -> str:
    """The command to continue without a task whose owner is silent: unblock the task with the fewest blockers."""
    behind = [each for each in whole.found if each.status == "pending" and task.id in each.blocked_by]
    waits = {each.id: [one.id for one in dependencies.open_blockers(each, whole.status_of)] for each in behind}
    first = min(behind, key=lambda each: (len(waits[each.id]), tasks.TASK.number_in(each.id))).id
    freed = " ".join(f"--unblock {key}" for key in waits[first])
    return f"to continue without it: teams update-task {first} {freed}"


_NAMED = 5
_IDLE = 300.0
"""Seconds for which a member has had nothing to do when the leader hears of it."""


class Leading:
    """What is so now and concerns who leads, beside the *facts* that concern every member. The alarm is set for what
    time alone may make so. That so many tasks are *completed* is told to who asks for it.
    """

    def __init__(self, facts: Facts, alarm: Alarm, completed: int | None) -> None:
        self.store = facts.store
        self.team = facts.team
        self.caller = facts.caller
        self.leads = facts.leads
        self.alarm = alarm
        self.wanted = completed

    def true(self, known: set[str]) -> Known:
        """All but `completed`."""
        found: Known = {}
        if self.leads:
            whole = overviews.overview(self.store, self.team.name)
            settled = self._settled(known, whole)
            found |= settled | self._plans()
            if not settled:
                found |= self._lost(known) | (self._silent(known) or self._idle(known, whole))
        if self.caller.is_human:
            found |= self._questions() | self._plans()
        return found

    def completed(self, known: set[str]) -> Known:
        """A text: as many tasks are completed as the leader asked for."""
        if self.wanted is None:
            return {}
        counts = overviews.overview(self.store, self.team.name).counts
        if counts["completed"] < self.wanted:
            return {}
        about = f"completed:{self.wanted}"
        if about in known:
            return {about: None}
        text = f"the number of tasks that you waited for is completed: {counts['completed']} of {sum(counts.values())}"
        if said := standing.in_words(self.store, self.team.name, self.caller):
            text += f". {said}"
        return {about: fact("completed", self.team.name, text, "")}

    def _settled(self, known: set[str], whole: Overview) -> Known:
        found = overviews.settled(self.store, self.team.name, whole, self.alarm)
        if found is None or not any(found["taskCounts"].values()):
            return {}
        about = settled_as(found["taskCounts"])
        if about in known:
            return {about: None}
        counts = {status: count for status, count in found["taskCounts"].items() if count}
        text = f"all tasks are settled: {', '.join(f'{count} {status}' for status, count in counts.items())}"
        others = [name for name in self.team.active_names() if name not in (self.caller.name, self.team.leader)]
        if others:
            text += self._unread(others)
        what = steps.after_all(found["stuck"])
        return {about: fact("settled", self.team.name, text, what)}

    def _unread(self, others: list[str]) -> str:
        """The others with unread mail, as a phrase: something may be left to do. Empty if there are none."""
        try:
            counts = inboxes.unread_counts(self.store, self.team.name, others)
        except errors.TeamsError:  # the doctor says what is wrong
            return "; unread mail could not be counted"
        unread = [f"{name} ({count})" for name, count in counts.items() if count]
        return f"; unread mail: {listed(unread, _NAMED)}" if unread else ""

    def _lost(self, known: set[str]) -> Known:
        """Members of whom nothing is heard and that have no task; of one that lost a task by that the leader was told.

        Of an agent that `teams` started its keeper knows more.
        """
        found: Known = {}
        busy = {task.owner for task in tasks.labelled(self.store, self.team.name, tasks.IN_PROGRESS)}
        for member in self.team.members:
            if member.active and member.agent_id not in (self.caller.name, *busy) and not member.started_by:
                agent = presence.load(self.store, self.team.name, member.agent_id)
                since = max(filter(None, (agent.expected_at, member.joined_at)), default="")
                if since and self._is_silent(agent, since):
                    about = f"lost:{member.agent_id}:{since}"
                    found[about] = None if about in known else self._loss(member, since)
        return found

    def _is_silent(self, agent: Agent, since: str) -> bool:
        left = leases.lease_seconds(self.team) - seconds_since(since, self.store.now())
        if left < 0 or presence.is_gone(agent):
            return True
        self.alarm.ring_after(left)
        self.alarm.ring_at_end_of(agent.pid, agent.pid_started, agent.pid_boot)
        return False

    def _loss(self, member: Member, since: str) -> Found | None:
        name = member.agent_id
        for task in tasks.all_of(self.store, self.team.name, []):
            if any(note.what == "expired" and note.owner == name and note.at >= since for note in task.notes):
                return None
        text = f"{name}, who has no task, was silent for {leases.lease_seconds(self.team):g} s"
        return fact("lost", name, text, steps.WAIT_TO_LEAD)

    def _silent(self, known: set[str]) -> Known:
        found = silences_told(self.store, self.team, self.caller, self.alarm, known, patient=self.wanted is not None)
        return {
            about: fact("silent", about.split(":")[1], text, steps.WAIT_TO_LEAD) if text else None
            for about, text in found.items()
        }

    def _idle(self, known: set[str], whole: Overview) -> Known:
        """That members have had nothing to do for a while, as nothing is ready; once for what is in progress then."""
        held = list(tasks.labelled(self.store, self.team.name, tasks.IN_PROGRESS))
        if not held or not whole.counts["pending"] or whole.free or whole.ready:
            return {}
        busy = {self.team.leader, *(task.owner for task in held)}
        idle = [member for member in self.team.members if member.active and member.agent_id not in busy]
        idle = [member for member in idle if not presence.is_silent(self.store, self.team, member.agent_id)]
        if not idle:
            return {}
        since = max(filter(None, [*(task.claimed_at for task in held), *(member.joined_at for member in idle)]))
        if (left := _IDLE - seconds_since(since, self.store.now())) > 0:
            self.alarm.ring_after(left)
            return {}
        about = f"idle:{'-'.join(task.id for task in held)}"
        if about in known:
            return {about: None}
        pending = whole.counts["pending"] - len(whole.stuck)
        alone = [task.id for task in held if len(dependencies.waiting_for([task.id], whole.found)) == pending]
        what = f"everything waits for {alone[0]}" if alone else "nothing is ready"
        text = f"{what}. {standing.in_words(self.store, self.team.name, self.caller)}"
        return {about: fact("idle", self.team.name, text, steps.WAIT_TO_LEAD)}

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
