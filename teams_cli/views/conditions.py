"""Waiting until something is so: a task finished, all settled, a plan decided, a message there, an agent done."""

from __future__ import annotations

from teams_cli import errors, extensions, text
from teams_cli.clock import length, seconds_since
from teams_cli.messages import inboxes, notices
from teams_cli.store.contract import Kind, Store
from teams_cli.store.pace import NO_TEAM, Alarm, sleep_until
from teams_cli.store.retrying import Ended, upsert
from teams_cli.tasks import choosing, dependencies, leases, overviews, plans, tasks
from teams_cli.tasks.overviews import Overview
from teams_cli.tasks.plans import PLAN
from teams_cli.tasks.tasks import FINISHED, TASK, Task
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import standing_of
from teams_cli.teams.teams import Member, Team
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceTold

    Look = Callable[[Alarm], dict[str, Any] | None]


_NAMED = 3
"""Tasks that are named: those whose owners are silent longest."""
_SILENT = 60.0
"""Seconds of silence that are worth a word."""
_NOBODY = "no member has joined yet (teams join-team, or teams run-agent)"


def in_words(store: Store, team_name: str, caller: Caller) -> str:
    """What others are at, since when, and who of them is silent; who leads hears what is free, and of a standstill."""
    try:
        team = teams.get(store, team_name)
        at = standing_of(team, caller)
        return _work(store, team, caller.name, leads=caller.is_human or (at is not None and at.leads))
    except errors.TeamsError:  # that nothing came is told all the same
        return ""


def of_nobody(store: Store, team_name: str, caller: Caller) -> str:
    """That who leads waits for nobody: no other member is there that could bring anything about."""
    try:
        team = teams.get(store, team_name)
    except errors.TeamsError:  # the wait itself says what is wrong
        return ""
    at = standing_of(team, caller)
    return _NOBODY if at and at.leads and not _others(team, caller.name) else ""


def of_all(store: Store, team_name: str) -> str:
    """What all are at, since when, and who of them is silent; what is free, and whether nothing goes on."""
    return _work(store, teams.get(store, team_name), "", leads=True)


def _work(store: Store, team: Team, but: str, leads: bool) -> str:
    found = [task for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS) if task.owner != but]
    whole = overviews.overview(store, team.name)
    left = _left(store, team, but, found, whole) if leads else _end(whole)
    return "; ".join(filter(None, (_in_work(store, team, found, whole.found), left)))


def _end(whole: Overview) -> str:
    """That nothing is left to take, for who waits for work."""
    counts = whole.counts
    at_work = counts[tasks.IN_PROGRESS] or counts.get(tasks.IN_REVIEW)
    return "no other task is left" if at_work and not counts["pending"] else ""


def _in_work(store: Store, team: Team, found: list[Task], others: Sequence[Task] = ()) -> str:
    by_silence = sorted(((silence(store, team, task), task) for task in found), key=lambda each: -each[0])
    named = text.listed([_named(store, task, silent, others) for silent, task in by_silence], _NAMED)
    return f"In progress: {named}" if named else ""


def of_task(store: Store, team_name: str, task_id: str) -> str:
    """Who has the task and since when; of one that nobody has, why not."""
    team = teams.get(store, team_name)
    task = leases.current(store, team, tasks.get(store, team_name, task_id))
    if task.status == tasks.IN_PROGRESS:
        return _in_work(store, team, [task])
    if task.status == tasks.IN_REVIEW:
        return f"{task.id} waits for {task.review_by}'s review"
    if waits := dependencies.open_blockers(task, dependencies.stored(store, team_name)):
        return f"{task.id} is blocked by {text.listed([_blocker(store, team, each) for each in waits], _NAMED)}"
    return f"{task.id} is ready, {f'assigned to {task.assignee}' if task.assignee else 'and nobody has claimed it'}"


def _blocker(store: Store, team: Team, blocker: dependencies.Blocker) -> str:
    if blocker.status != tasks.IN_PROGRESS:
        return str(blocker)
    task = tasks.get(store, team.name, blocker.id)
    return _named(store, task, silence(store, team, task))


def of_plan(store: Store, team_name: str, plan_id: str) -> str:
    """Since when the plan waits, and when who decides it was last heard of."""
    team, plan = teams.get(store, team_name), plans.get(store, team_name, plan_id)
    waits = f"{plan.id} has waited {length(seconds_since(plan.created_at, store.now()))} for {team.leader}"
    seen = presence.load(store, team.name, team.leader or "").last_seen
    return f"{waits}, last heard of {length(seconds_since(seen, store.now()))} ago" if seen else waits


def of_agent(store: Store, team_name: str, name: str) -> str:
    """What the agent has in work; of one that `teams` started, how its session stands."""
    from teams_cli.agents import sessions

    session = sessions.find(store, team_name, name)
    found = [task for task in tasks.labelled(store, team_name, tasks.IN_PROGRESS) if task.owner == name]
    started = f"{name} is {session.state}" if session and not session.ended else ""
    return "; ".join(filter(None, (started, _in_work(store, teams.get(store, team_name), found))))


def silence(store: Store, team: Team, task: Task) -> float:
    """Seconds for which nothing was heard of the owner."""
    last_seen = presence.load(store, team.name, task.owner or "").last_seen
    return seconds_since(max(last_seen or "", task.claimed_at or ""), store.now())


def _named(store: Store, task: Task, silent: float, others: Sequence[Task] = ()) -> str:
    """The task with its owner, since when, and how many of the *others* wait for it."""
    since = length(seconds_since(task.claimed_at, store.now())) if task.claimed_at else ""
    behind = len(dependencies.waiting_for([task.id], others))
    waited_for = f"{behind} blocked by it" if behind else ""
    return f"{task.id} ({', '.join(filter(None, (task.owner, since, _silent_for(silent), waited_for)))})"


def _silent_for(silent: float) -> str:
    """That nothing was heard for so many seconds, if that is worth a word."""
    return f"silent for {length(silent)}" if silent >= _SILENT else ""


def _left(store: Store, team: Team, but: str, in_work: list[Task], whole: Overview) -> str:
    """What there is to take, and who has nothing to do; where nobody works, also what else is left, and who was last
    heard of.
    """
    ready = len(whole.ready) + whole.free
    if in_work:
        return "; ".join(filter(None, (f"{ready} ready" if ready else "", _idle(store, team, but, in_work))))
    waiting = whole.counts["pending"] - ready
    if not ready + waiting:
        return ""
    counts = [f"{number} {what}" for number, what in ((ready, "ready"), (waiting, "blocked")) if number]
    return f"Nobody has a task: {', '.join(counts)}; {_last_heard_of(store, team, but)}"


def _idle(store: Store, team: Team, but: str, in_work: list[Task]) -> str:
    """Who of the others has nothing to do, and since when nothing was heard of it, if that is long."""
    busy = {team.leader, *(task.owner for task in in_work)}
    named = []
    for member in _others(team, but):
        if member.agent_id not in busy:
            silent = _silent_for(seconds_since(_heard_of(store, team, member), store.now()))
            named.append(f"{member.agent_id} ({silent})" if silent else member.agent_id)
    return f"idle: {text.listed(named, _NAMED)}" if named else ""


def _last_heard_of(store: Store, team: Team, but: str) -> str:
    """Who of the others was last heard of, and when."""
    heard = [(_heard_of(store, team, member), member.agent_id) for member in _others(team, but)]
    if not heard:
        return _NOBODY
    seen, name = max(heard)
    return f"last seen: {name}, {length(seconds_since(seen, store.now()))} ago"


def _others(team: Team, but: str) -> list[Member]:
    return [member for member in team.members if member.active and member.agent_id != but]


def _heard_of(store: Store, team: Team, member: Member) -> str:
    return max(presence.load(store, team.name, member.agent_id).last_seen or "", member.joined_at or team.created_at)


_OF_THE_TEAM = "team"
_ALIVE = 2.0
_REQUEST = 30.0
"""Seconds until a pull request is looked at again."""


class Condition:
    """Something to wait for. *look* returns what there is of it, or None, and sets the alarm for when time alone may
    bring it about; changes that may are on the *topics*. Answers call it *name*, people *what*, which is empty where
    nobody asked for it. Who waited for it in vain is told how it *stands*, and what to do: *in_vain*.
    """

    def __init__(
        self,
        name: str,
        what: str,
        topics: Collection[str],
        look: Look,
        stands: Callable[[], str] = str,
        in_vain: str = "Wait longer, or look: teams brief",
    ) -> None:
        self.name = name
        self.what = what
        self.topics = frozenset({_OF_THE_TEAM, *topics})
        self.look = look
        self.stands = stands
        self.in_vain = in_vain


def wait(
    store: Store,
    team: str,
    conditions: Sequence[Condition],
    timeout: float | None,
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Block until one of the conditions holds; what was then found. With several, `because` says which held.

    Raises:
        WaitRanOut: None did within *timeout* seconds.
    """
    alarm = Alarm()
    held: list[str] = []
    found: dict[str, Any] = {}

    def ready() -> bool:
        for condition in conditions:
            if (result := condition.look(alarm)) is not None:
                held.append(condition.name)
                found.update(result)
        return bool(held)

    topics = frozenset().union(*(condition.topics for condition in conditions))
    try:
        came = sleep_until(store, team, ready, timeout, topics, alarm, say)
    except Ended as ended:
        ended.hint = _in_vain(conditions)
        raise
    if not came:
        what = " or ".join(condition.what for condition in conditions if condition.what)
        raise errors.WaitRanOut(f"timed out after {length(timeout or 0.0)} waiting for {what}", _in_vain(conditions))
    return {**found, "because": held} if sum(bool(condition.what) for condition in conditions) > 1 else found


def _in_vain(conditions: Sequence[Condition]) -> str:
    """How that stands which was waited for, and what to do."""
    said = [each for each in map(_standing, conditions) if each]
    return " ".join([*(f"{each}." for each in said), conditions[0].in_vain])


def _standing(condition: Condition) -> str:
    """Nothing where it can't be read: that it did not come is told all the same."""
    try:
        return condition.stands()
    except errors.TeamsError:
        return ""


def count_as_read(store: Store, team: str, agent: str, found: dict[str, Any]) -> None:
    """Have notices count as read that say no more than what a wait of the agent *found*, as it is told that.

    It is told, so failing here is no failure.
    """
    kinds: list[Kind[Any]] = [TASK, PLAN]
    if "landing" in found:
        from teams_cli.tasks.landings import LANDING

        kinds.append(LANDING)
    ends = [(kind, str(found[kind.name]["id"])) for kind in kinds if kind.name in found]
    try:
        owing = store.owing(team) if ends else []
        for kind, key in ends:
            if (kind.name, key) in owing:
                notices.settle(store, team, kind, key)
            mailbox = inboxes.Mailbox(store, team, agent)
            mail = mailbox.open_messages()
            mailbox.mark_read({each.number for each in mail if each.about == key and each.only_informs})
    except errors.TeamsError:
        return


def _while_open(store: Store, team: str, look: Look) -> Look:
    """The condition, until the team is closed."""

    def look_in_time(alarm: Alarm) -> dict[str, Any] | None:
        found = look(alarm)
        if found is None:
            overviews.refuse_closed(store, teams.get(store, team))
        return found

    return look_in_time


def team_there(store: Store, team: str, again: str) -> Condition:
    """There is a team of that name; who waits on says *again*."""

    def look(alarm: Alarm) -> dict[str, Any] | None:
        try:
            teams.get(store, team)
        except errors.TeamNotFound:
            alarm.ring_in(NO_TEAM)
            return None
        return {"team": team}

    return Condition("team", f"team {team}", (), look, in_vain=f"Nobody has created it yet. Keep waiting: {again}")


def task_finished(store: Store, team: str, word: str) -> Condition:
    """The task is completed, failed or cancelled.

    Here and below, waiting raises WrongState when the team is closed before that.
    """
    task_id = tasks.get(store, team, word).id

    def look(alarm: Alarm) -> dict[str, Any] | None:
        of_now = teams.get(store, team)
        task = leases.current(store, of_now, tasks.get(store, team, task_id))
        leases.set_alarm(store, of_now, [task], alarm)
        return {"task": task.to_document()} if task.status in FINISHED else None

    def stands() -> str:
        return of_task(store, team, task_id)

    topics = [f"task/{task_id}"]
    return Condition("task", f"the end of {task_id}", topics, _while_open(store, team, look), stands)


def landing_over(store: Store, team: str, word: str, go_on: Callable[[], object]) -> Condition:
    """The landing landed, or came back, and its task knows, so that who waited finds the task in its hands again; or
    its pull request was opened meanwhile.
    *go_on* sees to it that somebody is at it: who was may have been killed.
    """
    from teams_cli.tasks import landings

    settled = extensions.needed("a landing of the task", "--landing", "landing")
    begun = landings.get(store, team, word)
    landing_id = begun.id

    def look(alarm: Alarm) -> dict[str, Any] | None:
        landing = settled(store, teams.get(store, team), landings.get(store, team, landing_id))
        if not landing.returned:
            go_on()
            alarm.ring_in(_REQUEST if landing.url else _ALIVE)
        is_news = landing.returned or (landing.url and not begun.url)
        return {"landing": landings.to_document(landing)} if is_news else None

    def stands() -> str:
        return f"{landing_id} is {landings.get(store, team, landing_id).state}"

    topics = [f"landing/{landing_id}"]
    return Condition("landing", f"the end of {landing_id}", topics, _while_open(store, team, look), stands)


def all_settled(store: Store, team: str) -> Condition:
    """No task is in progress, and every pending one waits for one that failed or was cancelled."""

    def look(alarm: Alarm) -> dict[str, Any] | None:
        found = overviews.settled(store, team)
        if found is None:
            choosing.release_lost(store, teams.get(store, team), alarm)
        return found

    def stands() -> str:
        return of_all(store, team)

    return Condition("allTasks", "the end of all tasks", tasks.FREED, _while_open(store, team, look), stands)


def plan_decided(store: Store, team: str, word: str) -> Condition:
    """The plan is approved or rejected."""
    plan_id = plans.get(store, team, word).id

    def look(alarm: Alarm) -> dict[str, Any] | None:
        plan = plans.get(store, team, plan_id)
        return {"plan": plan.to_document()} if plan.status != "proposed" else None

    def stands() -> str:
        return of_plan(store, team, plan_id)

    topics = [f"plan/{plan_id}"]
    return Condition("plan", f"a decision on {plan_id}", topics, _while_open(store, team, look), stands)


def message_there(store: Store, team: str, agent: str) -> Condition:
    """The agent has a message that it has not read."""

    def look(alarm: Alarm) -> dict[str, Any] | None:
        numbers = inboxes.unread(store, team, agent)
        return {"unread": [f"msg-{number}" for number in numbers]} if numbers else None

    return Condition("message", "a message", [f"message/{agent}"], _while_open(store, team, look))


def task_ready(store: Store, team: str, caller: Caller) -> Condition:
    """There is a task that the caller can claim."""

    def look(alarm: Alarm) -> dict[str, Any] | None:
        of_now = teams.get(store, team)
        choosing.release_lost(store, of_now, alarm)
        found = list(choosing.ready_for(store, of_now, caller, alarm))
        return {"ready": [task.id for task in found]} if found else None

    def stands() -> str:
        return in_words(store, team, caller)

    return Condition("ready", "a task that is ready", tasks.FREED, _while_open(store, team, look), stands)


def nothing_left(store: Store, team: str, caller: Caller, once_told: OnceTold) -> Condition:
    """All tasks are settled, for a member that was not told so: it is done, whatever it waits for."""
    from teams_cli.views.facts import settled_as

    def look(alarm: Alarm) -> dict[str, Any] | None:
        at = standing_of(teams.get(store, team), caller)
        counts = overviews.over(store, team) if at and not (at.leads or caller.is_human) else None
        about = settled_as(counts) if counts else ""
        if not about or about in presence.load(store, team, caller.name).told:
            return None
        fresh, place = presence.Agent(agent=caller.name), presence.AGENT.also_closed
        once_told(lambda: upsert(store, team, place, caller.name, fresh, lambda a: a.having(told=[*a.told, about])))
        return {"settled": overviews.DONE}

    return Condition("settled", "", tasks.FREED, look)


def agent_done(store: Store, team: str, name: str) -> Condition:
    """The agent has no task in progress, or is no longer a member; if `teams` started it, its session has ended."""
    from teams_cli.agents import ending, sessions

    if sessions.find(store, team, name) is None:
        teams.get_recipient(teams.get(store, team), name)

    def look(alarm: Alarm) -> dict[str, Any] | None:
        session = ending.current(store, team, name)
        if session and not session.ended:
            ending.set_alarm(store, team, [session], alarm)
            return None
        choosing.release_lost(store, teams.get(store, team), alarm)
        busy = [task.id for task in tasks.labelled(store, team, tasks.IN_PROGRESS) if task.owner == name]
        return None if busy else {"agent": name}

    topics = {f"session/{name}", *tasks.FREED}
    return Condition("agent", f"the end of {name}'s work", topics, look, lambda: of_agent(store, team, name))


def after_waiting(store: Store, team: str, caller: Caller, again: str) -> str:
    """How the work stands, for who waited in vain, and how to wait on; or what it could do instead, and that nothing is
    left to do.
    """
    said = ""
    try:
        found = teams.get(store, team)
        if done := _done(store, found, caller):
            return done
        said = _instead(store, found, caller)
    except errors.TeamsError:  # that nothing came is told all the same
        pass
    said = said or in_words(store, team, caller)
    return f"{f'{said}. ' if said else ''}Keep waiting: {again}"


def _done(store: Store, team: Team, caller: Caller) -> str:
    """That all tasks are settled, and what is left to a leader."""
    if not team.member(caller.name) and team.leader != caller.name:
        return ""
    from teams_cli.views import work

    step = work.when_idle(store, team, caller)
    return "" if steps.is_wait(step) else f"All tasks are settled: {step or 'you are done'}"


def _instead(store: Store, team: Team, caller: Caller) -> str:
    """That the caller has a task to go on with."""
    from teams_cli.views import work

    found = work.held_task(store, team, caller.name)
    return f"{found.why}: {found.step}" if found else ""
