"""Waiting until something is so: a task finished, all settled, a plan decided, a message there, an agent done."""

from __future__ import annotations

from teams_cli import errors, extensions
from teams_cli.clock import length
from teams_cli.messages import inboxes, notices
from teams_cli.store.contract import Kind, Store
from teams_cli.store.pace import NO_TEAM, Alarm, sleep_until
from teams_cli.store.retrying import Ended, upsert
from teams_cli.tasks import claims, leases, overviews, plans, tasks
from teams_cli.tasks.plans import PLAN
from teams_cli.tasks.tasks import FINISHED, TASK
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import standing_of
from teams_cli.teams.teams import Team
from teams_cli.views import steps
from teams_cli.views.standing import in_words, of_agent, of_all, of_plan, of_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceTold

    Look = Callable[[Alarm], dict[str, Any] | None]


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
    """The state of what was waited for, and the next step."""
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

    If marking fails, ignore it: the agent has got the text already.
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
        found = overviews.settled(store, team, alarm=alarm)
        if found is None:
            claims.release_lost(store, teams.get(store, team), alarm)
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
        claims.release_lost(store, of_now, alarm)
        found = list(claims.ready_for(store, of_now, caller, alarm))
        return {"ready": [task.id for task in found]} if found else None

    def stands() -> str:
        return in_words(store, team, caller)

    return Condition("ready", "a task that is ready", tasks.FREED, _while_open(store, team, look), stands)


def nothing_left(store: Store, team: str, caller: Caller, once_told: OnceTold) -> Condition:
    """All tasks are settled, for a member that was not told so: it is done, whatever it waits for."""
    from teams_cli.views.facts import settled_key

    def look(alarm: Alarm) -> dict[str, Any] | None:
        at = standing_of(teams.get(store, team), caller)
        counts = overviews.over(store, team, alarm) if at and not (at.leads or caller.is_human) else None
        about = settled_key(counts) if counts else ""
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
        claims.release_lost(store, teams.get(store, team), alarm)
        busy = [task.id for task in tasks.labelled(store, team, tasks.IN_PROGRESS) if task.owner == name]
        return None if busy else {"agent": name}

    topics = {f"session/{name}", *tasks.FREED}
    return Condition("agent", f"the end of {name}'s work", topics, look, lambda: of_agent(store, team, name))


def after_waiting(store: Store, team: str, caller: Caller, again: str) -> tuple[str, str]:
    """The state of the work after a wait without a result; and the same with the command to wait longer, unless nothing
    is left to do.
    """
    said = ""
    try:
        found = teams.get(store, team)
        if done := _done(store, found, caller):
            return done, done
        said = _instead(store, found, caller)
    except errors.TeamsError:  # that nothing came is told all the same
        pass
    said = said or in_words(store, team, caller)
    state = f"{said}." if said else ""
    return state, f"{state} Keep waiting: {again}".lstrip()


def _done(store: Store, team: Team, caller: Caller) -> str:
    """A text: all tasks are settled, and what is left for a leader."""
    if not team.member(caller.name) and team.leader != caller.name:
        return ""
    from teams_cli.views import work

    step = work.when_idle(store, team, caller)
    return "" if steps.is_wait(step) else f"All tasks are settled: {step or 'you are done'}"


def _instead(store: Store, team: Team, caller: Caller) -> str:
    """A text: the caller has a task to continue."""
    from teams_cli.views import work

    found = work.held_task(store, team, caller.name)
    return f"{found.why}: {found.step}" if found else ""
