"""Facts that concern only the leader or the person.

All tasks are settled, a member is lost, silent or idle, ready tasks are assigned to absent members or wait for members
that have ended, a plan or a question waits, tasks are completed.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import sessions
from teams_cli.clock import length, seconds_since
from teams_cli.messages import inboxes
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.store.pace import Alarm
from teams_cli.tasks import dependencies, leases, overviews, plans, tasks, touching
from teams_cli.tasks.overviews import Overview
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence
from teams_cli.teams.teams import Member
from teams_cli.text import counts_of, listed
from teams_cli.views import standing, steps, work
from teams_cli.views.facts import PLAN, Facts, fact, settled_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.views.facts import Document, FactsByKey


_FEW = 3
_NAMED = 5
_LATE = 0.8
"""The fraction of a lease after which an owner's silence is reported even if the others have work."""
_LONG = 600.0
"""An owner's silence of this many seconds is reported if others have nothing to do meanwhile. An agent that writes code
is silent for some minutes.
"""
_TOGETHER = 0.5
"""The fraction of a reported silence after which other silent owners are reported with it, instead of a while later."""
_ABSENT = 60.0
"""Seconds after which the leader is notified that no member takes the ready tasks: they are assigned to members that
have not joined, or the members have ended.
"""
_IDLE = 120.0
"""How many seconds a member has had nothing to do when the leader is notified."""
_IDLE_KEY = "idle:"
"""The beginning of the key of the fact that members are idle. The ids of the tasks in progress follow, and after
`_BEFORE_NAMES` the names of the idle members.
"""
_BEFORE_NAMES = "|"


class Leading:
    """Finds the facts that concern only a leader or the person. *facts* finds the other facts, and says which team and
    caller are meant.

    Some facts become true without a change, because time passes: the *alarm* is set for these times. If the caller
    waits until a number of tasks is completed, *completed* is this number, else None.
    """

    def __init__(self, facts: Facts, alarm: Alarm, completed: int | None) -> None:
        self.store = facts.store
        self.team = facts.team
        self.caller = facts.caller
        self.leads = facts.leads
        self.alarm = alarm
        self.completed_wanted = completed

    def present(self, reported: set[str]) -> FactsByKey:
        """Return the facts that hold now, except the one of `completed`. *reported* are the keys reported before."""
        facts: FactsByKey = {}
        if self.leads:
            overview = overviews.overview(self.store, self.team.name)
            settled = self._settled(reported, overview)
            facts |= settled | self._plans()
            if not settled:
                facts |= self._lost(reported) | self._kept_for_absent(reported, overview)
                facts |= self._waiting_in_vain(reported, overview)
                facts |= self._silent(reported) or self._idle(reported, overview)
        if self.caller.is_human:
            facts |= self._questions() | self._plans()
        return facts

    def completed(self, reported: set[str]) -> FactsByKey:
        """Return the fact that the number of tasks for which the caller waits is completed."""
        if self.completed_wanted is None:
            return {}
        counts = overviews.overview(self.store, self.team.name).counts
        if counts["completed"] < self.completed_wanted:
            return {}
        key = f"completed:{self.completed_wanted}"
        if key in reported:
            return {key: None}
        text = f"the number of tasks that you waited for is completed: {counts['completed']} of {sum(counts.values())}"
        if state := standing.in_words(self.store, self.team.name, self.caller):
            text += f". {state}"
        return {key: fact("completed", self.team.name, text, "")}

    def _settled(self, reported: set[str], overview: Overview) -> FactsByKey:
        """Return the fact that there are tasks and all are settled. Its key maps to None if it was reported before."""
        settled = overviews.settled(self.store, self.team.name, overview, self.alarm)
        if settled is None or not any(settled["taskCounts"].values()):
            return {}
        key = settled_key(settled["taskCounts"])
        if key in reported:
            return {key: None}
        other_members = [name for name in self.team.active_names() if name not in (self.caller.name, self.team.leader)]
        unread_mail = ""  # unread mail may mean that more work comes
        try:
            unread = inboxes.unread_counts(self.store, self.team.name, other_members) if other_members else {}
            if names := [f"{name} ({count})" for name, count in unread.items() if count]:
                unread_mail = f"; unread mail: {listed(names, _NAMED)}"
        except errors.TeamsError:  # the doctor says what is wrong
            unread_mail = "; unread mail could not be counted"
        text = f"all tasks are settled: {counts_of(settled['taskCounts'])}{unread_mail}"
        if stuck := settled["stuck"]:
            text += f"; {listed(stuck, _NAMED)} {'waits' if len(stuck) == 1 else 'wait'} in vain for ended tasks"
        step = work.after_all(self.store, self.team.name, stuck)
        return {key: fact("settled", self.team.name, text, step)}

    def _lost(self, reported: set[str]) -> FactsByKey:
        """Return a fact for each silent member without a task; None for those in *reported*. Members that lost a task
        are left out, because a message reports the loss. So are members that `teams` started, because the supervisor
        reports their end.
        """
        facts: FactsByKey = {}
        busy = {task.owner for task in self._in_progress()}
        for member in self.team.members:
            if not member.active or member.agent_id in (self.caller.name, *busy) or member.started_by:
                continue
            agent = presence.load_other(self.store, self.team.name, member.agent_id)
            since = max(agent.expected_at or "", member.joined_at or "")
            if not since:
                continue
            remaining = self.team.silence - seconds_since(since, self.store.now())
            if remaining < 0 or presence.is_gone(agent):
                key = f"lost:{member.agent_id}:{since}"
                facts[key] = None if key in reported else self._lost_fact(member.agent_id, since)
            else:
                self.alarm.ring_after(remaining)
                self.alarm.ring_at_end_of(agent.pid, agent.pid_started, agent.pid_boot)
        return facts

    def _lost_fact(self, name: str, since: str) -> Document | None:
        """Return the fact that the member is silent. Return None if the leader was already notified, because a task of
        the member expired or was released after the time *since*.
        """
        for task in tasks.all_of(self.store, self.team.name, []):
            for note in task.notes:
                if note.what in ("expired", "released") and note.owner == name and note.at >= since:
                    return None
        text = f"{name}, who has no task, was silent for {self.team.silence:g} s"
        return fact("lost", name, text, steps.WAIT_TO_LEAD)

    def _silent(self, reported: set[str]) -> FactsByKey:
        """Return a fact for each owner that is silent while others wait for its task.

        For each claim, the silence is reported at most twice: after a while, and when the claim expires soon. If the
        leader waits until a number of tasks is completed, only the second report is made.
        """
        late = _LATE * self.team.silence
        first = late if self.completed_wanted is not None else min(late, _LONG)
        in_progress = self._in_progress()
        seconds = {task.id: self._silence(task, first) for task in in_progress}
        keys_of: dict[str, list[str]] = {}
        for task in in_progress:
            silence, key = seconds[task.id], f"silent:{task.id}:{task.claim}"
            keys_of[task.id] = [key, f"{key}:late"] if silence >= late > _LONG else [key]
            if silence < late:
                self.alarm.ring_after((first if silence < first else late) - silence)
        facts: FactsByKey = {key: None for keys in keys_of.values() for key in keys if key in reported}
        silent = [task for task in in_progress if seconds[task.id] >= first and keys_of[task.id][-1] not in reported]
        if not silent:
            return facts
        overview = overviews.overview(self.store, self.team.name)
        idle = [agent.agent for agent in work.idle(self.store, self.team, self.caller.name)]
        texts = {task.id: self._text_of_silence(task, seconds[task.id], late, overview, idle) for task in silent}
        if any(texts.values()):
            for task in in_progress:
                if seconds[task.id] >= _TOGETHER * first and not reported.intersection(keys_of[task.id]):
                    texts[task.id] = self._text_of_silence(task, seconds[task.id], late, overview, idle)
        for task_id, text in texts.items():
            if text:  # under the last key; the first one counts as reported
                facts |= dict.fromkeys(keys_of[task_id])
                facts[keys_of[task_id][-1]] = fact("silent", task_id, text, steps.WAIT_TO_LEAD)
        return facts

    def _silence(self, task: Task, long: float) -> float:
        """Return the seconds for which the task's owner has been silent. A silence that the owner announced does not
        count. If the silence lasts *long* seconds or more, a change of the task's files ends it, because the owner may
        be writing files without running commands.
        """
        since_renewal = self.team.silence - leases.seconds_left(self.store, task)
        silence = min(standing.silence(self.store, self.team, task), since_renewal)
        since_work = touching.seconds_since_work(self.store, self.team.name, task) if silence >= long else None
        return silence if since_work is None else min(silence, since_work)

    def _text_of_silence(self, task: Task, seconds: float, late: float, overview: Overview, idle: list[str]) -> str:
        """Return a sentence about the silence of the task's owner, or "" if the silence holds up nobody.

        A silence holds up others in three cases: members are *idle* until tasks that wait for this one are ready; or
        the owner has been silent for *late* seconds, most of a lease, and either no other task is left, or most pending
        tasks wait for this one. *seconds* is the length of the silence.
        """
        waiting = sorted(dependencies.waiting_for([task.id], overview.tasks_read), key=tasks.TASK.number_in)
        expires_in = length(max(leases.seconds_left(self.store, task), 1.0))
        text = f"its owner {task.owner} has been silent for {length(seconds)}; the claim expires in {expires_in}"
        if idle and not (overview.free or overview.ready):
            text += f"; idle: {listed(idle, _FEW)}"
            if waiting:
                return f"{task.id} blocks {listed(waiting, _FEW)}; {text} ({_how_to_unblock(task, overview)})"
            is_last = seconds >= late and not overview.counts["pending"] and overview.counts[tasks.IN_PROGRESS] == 1
            return f"only {task.id} is left; {text}" if is_last else ""
        blocks_most = seconds >= late and len(waiting) > 1 and 2 * len(waiting) > overview.counts["pending"]
        return f"{task.id} blocks {len(waiting)} tasks; {text}" if blocks_most else ""

    def _in_progress(self) -> list[Task]:
        return list(tasks.labelled(self.store, self.team.name, tasks.IN_PROGRESS))

    def _idle_members(self, in_progress: list[Task]) -> list[Member]:
        """Return the members that have no task and are not silent, except for the leader."""
        busy = {self.team.leader, *(task.owner for task in in_progress)}
        without_task = [member for member in self.team.members if member.active and member.agent_id not in busy]
        return [member for member in without_task if not presence.is_silent(self.store, self.team, member.agent_id)]

    def _kept_for_absent(self, reported: set[str], overview: Overview) -> FactsByKey:
        """Return the fact that members are idle because all ready tasks are assigned to agents that have not joined."""
        assigned = [task for task in overview.ready if task.assignee and not self.team.find(task.assignee)]
        if not assigned or len(assigned) < len(overview.ready) or overview.free:
            return {}
        idle = self._idle_members(self._in_progress())
        if not idle:
            return {}
        since = max([*(task.created_at for task in assigned), *(member.joined_at or "" for member in idle)])
        if (remaining := _ABSENT - seconds_since(since, self.store.now())) > 0:
            self.alarm.ring_after(remaining)
            return {}
        ids = [task.id for task in assigned]
        key = f"kept:{','.join(ids)}"
        if key in reported:
            return {key: None}
        absent = listed(sorted({task.assignee or "" for task in assigned}), _NAMED)
        idle_names = listed([member.agent_id for member in idle], _NAMED)
        text = f"all ready tasks are assigned to {absent}, not in the team yet; idle: {idle_names}"
        return {key: fact("kept", assigned[0].id, text, steps.unassign(ids))}

    def _waiting_in_vain(self, reported: set[str], overview: Overview) -> FactsByKey:
        """Return the fact that perhaps nobody is left for the ready tasks. All that may claim them have left, or may
        have ended.
        """
        counts = overview.counts
        if counts[tasks.IN_PROGRESS] or counts.get(tasks.IN_REVIEW) or not overview.ready:
            return {}
        members = {name for name in self.team.active_names() if name not in (self.caller.name, self.team.leader)}
        is_for_all = overview.free or any(task.assignee is None for task in overview.ready)
        claimants = members if is_for_all else {task.assignee or "" for task in overview.ready}
        left_at = [member.left_at for member in self.team.members if member.left_at]
        if not (claimants or left_at):  # the first member has yet to join
            return {}
        if len(sessions.that_may_have_ended(self.store, self.team, claimants)) < len(claimants):
            return {}
        newest = max([*(task.created_at for task in overview.ready), *(() if claimants else left_at)])
        if (remaining := _ABSENT - seconds_since(newest, self.store.now())) > 0:
            self.alarm.ring_after(remaining)
            return {}
        ids = [task.id for task in overview.ready]
        key = f"in-vain:{','.join(ids)}"
        if key in reported:
            return {key: None}
        if claimants:
            text = f"perhaps nobody is left for {listed(ids, _NAMED)}; notified that all work is done: "
            text += listed(sorted(claimants), _NAMED)
        else:
            text = f"nobody is left for {listed(ids, _NAMED)}: all members have left or were shut down"
        return {key: fact("unattended", ids[0], text, steps.IF_NOBODY_IS_LEFT)}

    def _idle(self, reported: set[str], overview: Overview) -> FactsByKey:
        """Return the fact that members have had nothing to do for a while, because no task is ready, or the ready tasks
        are assigned to members that have another task. It is reported again once none of the tasks in progress that its
        key names is in progress any more, or another member is idle.
        """
        in_progress = self._in_progress()
        open_ids = {task.id for task in in_progress}
        still_reported: FactsByKey = {}
        reported_names: set[str] = set()
        for key in reported:
            if not key.startswith(_IDLE_KEY):
                continue
            ids, _, names_in_key = key.removeprefix(_IDLE_KEY).partition(_BEFORE_NAMES)
            if open_ids.intersection(ids.split(",")):
                still_reported[key] = None
                reported_names.update(names_in_key.split(","))
        owners = {task.owner for task in in_progress}
        kept = [task for task in overview.ready if task.assignee in owners]
        if not in_progress or not overview.counts["pending"] or overview.free or len(kept) < len(overview.ready):
            return still_reported
        idle = self._idle_members(in_progress)
        names = {member.agent_id for member in idle}
        if names <= reported_names:
            return still_reported
        end_times = [
            task.updated_at for task in overview.tasks_read if task.owner in names and task.status != "pending"
        ]
        claim_times = [task.claimed_at for task in in_progress]
        since = max(filter(None, [*claim_times, *end_times, *(member.joined_at for member in idle)]))
        if (remaining := _IDLE - seconds_since(since, self.store.now())) > 0:
            self.alarm.ring_after(remaining)
            return still_reported
        blocker_of_all = _blocker_of_all(in_progress, overview)
        advice = "only a new task would occupy idle members"
        if kept:
            kept_ids = [task.id for task in kept]
            verb, pronoun = ("is", "it") if len(kept) == 1 else ("are", "them")
            cause = f"{listed(kept_ids, _NAMED)} {verb} ready, but assigned to busy members"
            advice = f"to let idle members claim {pronoun}: {steps.unassign(kept_ids)}"
            tasks_in_key = in_progress
        elif blocker_of_all:
            cause = f"everything waits for {_with_predecessors(blocker_of_all, overview)}"
            advice += f", or, {_how_to_unblock(blocker_of_all, overview)}"
            tasks_in_key = [blocker_of_all]
        else:
            cause = "nothing is ready"
            tasks_in_key = in_progress
        state = standing.in_words(self.store, self.team.name, self.caller)
        text = f"{cause}; {advice}. {state}"
        ids_in_key = ",".join(sorted(task.id for task in tasks_in_key))
        key = f"{_IDLE_KEY}{ids_in_key}{_BEFORE_NAMES}{','.join(sorted(names))}"
        return {**still_reported, key: fact("idle", self.team.name, text, steps.WAIT_TO_LEAD)}

    def _questions(self) -> FactsByKey:
        """Return a fact for each question that the person has not answered yet."""
        facts: FactsByKey = {}
        for question in questions.all_of(self.store, self.team.name, []):
            if question.open and HUMAN in question.waiting_for:
                text = f"{question.id} from {question.from_}: {question.question}"
                facts[f"question:{question.id}"] = fact("question", question.id, text, steps.answer(question.id))
        return facts

    def _plans(self) -> FactsByKey:
        """Return a fact for each plan of another member that waits for a decision."""
        facts: FactsByKey = {}
        for plan in plans.all_of(self.store, self.team.name, [], only_open=True):
            if plan.from_ != self.caller.name:
                about = f" for {plan.task}" if plan.task else ""
                text = f"{plan.id} from {plan.from_}{about}:\n{plan.plan}"
                facts[f"{PLAN}{plan.id}"] = fact("plan", plan.id, text, steps.decide(plan.id))
        return facts


def _blocker_of_all(in_progress: list[Task], overview: Overview) -> Task | None:
    """Return the first task in progress for which all pending tasks wait, except for those that can never be ready."""
    pending = overview.counts["pending"] - len(overview.stuck)
    for task in in_progress:
        waiting = dependencies.waiting_for([task.id], overview.tasks_read)
        if waiting and len(waiting) == pending:
            return task
    return None


def _with_predecessors(task: Task, overview: Overview) -> str:
    """Return the id of the task, with the unfinished tasks that must be completed before it."""
    open_tasks = dependencies.open_predecessors(task, overview.status_of)
    return f"{task.id}, which completes after {listed(list(map(str, open_tasks)), _FEW)}" if open_tasks else task.id


def _how_to_unblock(task: Task, overview: Overview) -> str:
    """Return a command that lets the tasks that wait for *task* start now and complete after it. Of these tasks, it
    names those with the fewest blockers.
    """
    ids_by_blockers: dict[tuple[str, ...], list[str]] = {}
    for waiting in overview.tasks_read:
        if waiting.status == "pending" and task.id in waiting.blocked_by:
            blockers = tuple(blocker.id for blocker in dependencies.open_blockers(waiting, overview.status_of))
            ids_by_blockers.setdefault(blockers, []).append(waiting.id)
    blockers, ids = min(ids_by_blockers.items(), key=lambda item: len(item[0]))
    return f"to let {'it' if len(ids) == 1 else 'them'} start now: {steps.start_now(ids, blockers)}"
