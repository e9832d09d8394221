"""Waiting for a condition: a task is finished, all tasks are, a plan is decided, a message has come, an agent is
done.
"""

from __future__ import annotations

from teams_cli import errors, extensions
from teams_cli.clock import Ended, length
from teams_cli.messages import inboxes, notices
from teams_cli.messages.messages import Event
from teams_cli.store.contract import Kind, Store, upsert
from teams_cli.store.pace import NEXT_LOOK_FOR_TEAM, Alarm, sleep_until
from teams_cli.tasks import claims, dependencies, leases, overviews, plans, tasks
from teams_cli.tasks.plans import PLAN
from teams_cli.tasks.tasks import FINISHED, IN_PROGRESS, TASK, Task
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import refuse_former, require, standing_of
from teams_cli.views import mail, standing, steps, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceShown

    Document = dict[str, Any]
    Look = Callable[[Alarm], Document | None]


_NEXT_LOOK = 2.0
"""Seconds after which a wait looks again at a landing, or at a task whose changes no topic announces."""
_NEXT_LOOK_AT_REQUEST = 30.0
"""Seconds after which a wait looks again at a pull request."""


class Condition:
    """A condition to wait for.

    The function *look* returns a document if the condition holds, else None. If the condition may come true because
    time passes, *look* sets the alarm for that time. Changes with one of the *topics* may also make it true. *name*
    stands for the condition in JSON, and *what* in sentences. *what* is empty if the caller did not ask for the
    condition.

    When the wait times out, the function *state* describes what was waited for, and *advice* is a sentence about what
    to do. If the team is closed, the wait ends with an error, unless *while_open* is false.
    """

    def __init__(
        self,
        name: str,
        what: str,
        topics: Collection[str],
        look: Look,
        state: Callable[[], str] = str,
        advice: str = "Wait longer, or look: teams brief",
        while_open: bool = True,
    ) -> None:
        self.name = name
        self.what = what
        self.topics = frozenset({"team", *topics})
        self._look = look
        self.state = state
        self.advice = advice
        self._while_open = while_open

    def look(self, store: Store, team: str, alarm: Alarm) -> Document | None:
        """Return the document of the condition if it holds, else None.

        Raises:
            WrongState: The condition does not hold and needs an open team, but the team is closed.
        """
        document = self._look(alarm)
        if document is None and self._while_open:
            overviews.refuse_closed(store, teams.get(store, team))
        return document


def wait(
    store: Store,
    team: str,
    conditions: Sequence[Condition],
    timeout: float | None,
    say: Callable[[str], None] | None = None,
) -> Document:
    """Block until at least one of the conditions holds, and return its document. If the caller asked for several
    conditions, `because` in the document names those that hold.

    Raises:
        WaitRanOut: No condition held within *timeout* seconds.
        WrongState: The team is closed, and a condition needs an open team.
    """
    alarm = Alarm()
    fulfilled: list[str] = []
    news: Document = {}

    def is_fulfilled(condition: Condition) -> bool:
        document = condition.look(store, team, alarm)
        if document is None:
            return False
        fulfilled.append(condition.name)
        news.update(document)
        return True

    def ready() -> bool:
        unfulfilled = [condition for condition in conditions if not is_fulfilled(condition)]
        if fulfilled:
            # The change that fulfilled one condition may have fulfilled another right after that was looked at: when
            # the last task is completed, it is finished, and all tasks are settled.
            for condition in unfulfilled:
                is_fulfilled(condition)
        return bool(fulfilled)

    topics = frozenset().union(*(condition.topics for condition in conditions))
    asked_for = [condition.what for condition in conditions if condition.what]
    try:
        if not sleep_until(store, team, ready, timeout, topics, alarm, say):
            raise errors.WaitRanOut(f"timed out after {length(timeout or 0.0)} waiting for {' or '.join(asked_for)}")
    except (Ended, errors.WaitRanOut) as ended:
        sentences = []
        for condition in conditions:
            try:
                if state := condition.state():
                    sentences.append(f"{state}.")
            except errors.TeamsError:  # the advice helps even without the state
                pass
        ended.hint = " ".join([*sentences, conditions[0].advice])
        raise
    return {**news, "because": fulfilled} if len(asked_for) > 1 else news


def count_as_read(store: Store, team: str, agent: str, news: Document) -> None:
    """Mark as read the notices that only inform the agent of the task, plan or landing in *news*, which a wait
    showed.
    """
    kinds: list[Kind[Any]] = [TASK, PLAN]
    if "landing" in news:
        from teams_cli.tasks.landings import LANDING

        kinds.append(LANDING)
    subjects = [(kind, str(news[kind.name]["id"])) for kind in kinds if kind.name in news]
    try:
        owing = store.owing(team) if subjects else []
        for kind, key in subjects:
            if (kind.name, key) in owing:  # a notice that was sent later would be news again
                notices.send_owed_by(store, team, kind, key)
            mailbox = inboxes.Mailbox(store, team, agent)
            mailbox.mark_read({m.number for m in mailbox.open_messages() if m.about == key and m.only_informs})
    except errors.TeamsError:  # the answer is given already, and the agent is notified a second time
        pass


def team_there(store: Store, team: str, again: str) -> Condition:
    """Return the condition that the team exists. *again* is the command for a longer wait."""

    def existing_team(alarm: Alarm) -> Document | None:
        try:
            teams.get(store, team)
        except errors.TeamNotFound:
            alarm.ring_in(NEXT_LOOK_FOR_TEAM)  # the creation of the team may not wake this wait
            return None
        return {"team": team}

    advice = f"Nobody has created it yet. Keep waiting: {again}"
    return Condition("team", f"team {team}", (), existing_team, advice=advice, while_open=False)


def task_finished(store: Store, team: str, key: str, waiter: str) -> Condition:
    """Return the condition that the task is completed, failed or cancelled.

    If the task is assigned to *waiter* before or during the wait, the wait ends with an error, because nobody but the
    waiting member will finish the task. *waiter* is "" if a program without a name waits.
    """
    task_id = tasks.get(store, team, key).id

    def finished_task(alarm: Alarm) -> Document | None:
        team_now = teams.get(store, team)
        task = leases.current(store, team_now, tasks.get(store, team, task_id))
        if waiter and task.status == "pending" and task.assignee == waiter:
            raise errors.WrongState(f"{task_id} is assigned to you", f"Claim it: teams claim-task {task_id}")
        leases.set_alarm(store, team_now, [task], alarm)
        return {"task": task.to_document()} if task.status in FINISHED else None

    what, topics = f"the end of {task_id}", [f"task/{task_id}"]
    return Condition("task", what, topics, finished_task, lambda: standing.of_task(store, team, task_id))


def completable(store: Store, team: str, key: str) -> Condition:
    """Return the condition that the task can be completed: all tasks that must end before it have ended. To end a wait
    that has become useless, the condition also holds if the task is no longer in progress, or has another owner.
    """
    task = tasks.get(store, team, key)
    awaited_ids = set(task.waits_for)

    def completable_task(alarm: Alarm) -> Document | None:
        task_now, status_of = tasks.get(store, team, task.id), dependencies.stored(store, team)
        if not awaited_ids.issuperset(task_now.waits_for):
            alarm.ring_in(_NEXT_LOOK)  # the leader added a task, and no topic wakes this wait at its end
        predecessors = dependencies.before_completion(task_now, status_of)
        is_waited_for = dependencies.is_waited_for(store, team, predecessors)
        is_held = task_now.status == IN_PROGRESS and task_now.owner == task.owner
        return None if is_waited_for and is_held else {"task": task_now.to_document()}

    topics = [f"task/{task_id}" for task_id in (task.id, *awaited_ids)]
    return Condition("task", f"the tasks before {task.id}", topics, completable_task)


def asked_completable(store: Store, team: str, agent: str, besides: str) -> Condition:
    """Return the condition that a task which the agent asked too early to complete can be completed. The task *besides*
    does not count.
    """

    def others() -> list[Task]:
        return [task for task in tasks.held_by(store, team, agent) if task.id != besides]

    def look(alarm: Alarm) -> Document | None:
        free = dependencies.asked_and_free(store, team, others())
        return {"asked": [task.id for task in free]} if free else None

    topics = {f"task/{key}" for task in others() for key in task.waits_for}
    return Condition("asked", "", topics, look)


def landing_over(
    store: Store, team: str, key: str, start_lander: Callable[[], object], until_requested: bool = False
) -> Condition:
    """Return the condition that the landing has ended and its outcome is recorded in the task. With *until_requested*,
    the condition also holds once a pull request is opened for the landing.

    The function *start_lander* starts the process that merges branches. It is called at each look, because the process
    may have been killed.
    """
    from teams_cli.tasks import landings

    record_outcome = extensions.needed("a landing of the task", "--landing", "landing")
    at_begin = landings.get(store, team, key)
    landing_id = at_begin.id

    def ended_landing(alarm: Alarm) -> Document | None:
        landing = record_outcome(store, teams.get(store, team), landings.get(store, team, landing_id))
        if not landing.returned:
            start_lander()
            alarm.ring_in(_NEXT_LOOK_AT_REQUEST if landing.url else _NEXT_LOOK)
        is_news = landing.returned or (until_requested and landing.url and not at_begin.url)
        return {"landing": landings.to_document(landing)} if is_news else None

    def state() -> str:
        return f"{landing_id} is {landings.get(store, team, landing_id).state}"

    topics = [f"landing/{landing_id}"]
    return Condition("landing", f"the end of {landing_id}", topics, ended_landing, state)


def all_settled(store: Store, team: str) -> Condition:
    """Return the condition that no task of the team can go on, because each has ended or can never become ready."""

    def settlement(alarm: Alarm) -> Document | None:
        settled = overviews.settled(store, team, alarm=alarm)
        if settled is None:
            claims.release_lost(store, teams.get(store, team), alarm)
        return settled

    return Condition("allTasks", "the end of all tasks", tasks.FREED, settlement, lambda: standing.of_all(store, team))


def plan_decided(store: Store, team: str, key: str) -> Condition:
    """Return the condition that the plan is approved, rejected or replaced."""
    plan_id = plans.get(store, team, key).id

    def decided_plan(alarm: Alarm) -> Document | None:
        plan = plans.get(store, team, plan_id)
        if plan.status != "proposed":
            return {"plan": plan.to_document()}
        later = plans.replacement(store, team, plan)
        return {"plan": plan.to_document() | {"replacedBy": later.id}} if later else None

    what, topics = f"a decision on {plan_id}", [f"plan/{plan_id}"]
    return Condition("plan", what, topics, decided_plan, lambda: standing.of_plan(store, team, plan_id))


def message_there(store: Store, team: str, caller: Caller) -> Condition:
    """Return the condition that the caller has an unread message.

    Raises:
        NotAllowed: The caller may not read its messages, or has left the team. A new name may wait for messages.
    """
    agent = caller.name
    if caller.is_human or teams.get(store, team).member(agent):
        require(store, team, caller, "read-messages")

    def unread_messages(alarm: Alarm) -> Document | None:
        refuse_former(teams.get(store, team), caller)
        numbers = inboxes.unread(store, team, agent)
        return {"unread": [f"msg-{number}" for number in numbers]} if numbers else None

    return Condition("message", "a message", [f"message/{agent}"], unread_messages)


def news_there(store: Store, team: str, agent: str) -> Condition:
    """Return the condition that the agent has an unread message that was not shown yet. The message must ask for
    something, as far as the program can tell, or say that the agent's own task was edited.
    """

    def unread_news(alarm: Alarm) -> Document | None:
        mailbox, team_now = inboxes.Mailbox(store, team, agent), teams.get(store, team)
        record = presence.load(store, team, agent)
        news = [
            message.id
            for message in mailbox.messages(mailbox.unread())
            if not (mail.was_shown(record, message) or mail.is_outdated(store, team, agent, message))
            if message.event_and_task[0] == Event.OWN_TASK_EDITED or mail.asks_for_something(store, team_now, message)
        ]
        return {"unread": news} if news else None

    return Condition("message", "a message", [f"message/{agent}"], unread_news)


def task_ready(store: Store, team: str, caller: Caller) -> Condition:
    """Return the condition that a task is ready for the caller to claim."""

    def ready_tasks(alarm: Alarm) -> Document | None:
        team_now = teams.get(store, team)
        refuse_former(team_now, caller)
        claims.release_lost(store, team_now, alarm)
        ready = [task.id for task in claims.ready_for(store, team_now, caller, alarm)]
        return {"ready": ready} if ready else None

    return Condition(
        "ready", "a task that is ready", tasks.FREED, ready_tasks, lambda: standing.in_words(store, team, caller)
    )


def task_claimed(store: Store, team: str, caller: Caller, before: Sequence[Condition]) -> Condition:
    """Return the condition that a task was ready and is now claimed for the caller. No task is claimed if one of the
    conditions *before* holds.
    """

    def look(alarm: Alarm) -> Document | None:
        team_now = teams.get(store, team)
        claims.release_lost(store, team_now, alarm)
        if not next(claims.ready_for(store, team_now, caller, alarm), None):
            return None
        if any(condition.look(store, team, alarm) for condition in before):
            return None
        try:
            return {"claimed": claims.claim_next(store, team, caller)}
        except errors.NothingReady:
            return None

    return Condition("claimed", "", tasks.FREED, look)


def nothing_left(store: Store, team: str, caller: Caller, once_shown: OnceShown) -> Condition:
    """Return the condition that all tasks of the team have ended. It ends a member's wait for something else, but only
    once: as soon as the member was shown it, it holds no more. It never holds for a leader or the person.
    """
    from teams_cli.views.facts import settled_key

    def end_of_all_tasks(alarm: Alarm) -> Document | None:
        standing = standing_of(teams.get(store, team), caller)
        if standing is None or standing.leads or caller.is_human:
            return None
        counts = overviews.counts_if_ended(store, team, alarm)
        if not counts:
            return None
        key = settled_key(counts)
        if key in presence.load(store, team, caller.name).told:
            return None

        def note_shown() -> None:
            fresh, kind = presence.Agent(agent=caller.name), presence.AGENT.even_in_closed_team
            upsert(store, team, kind, caller.name, fresh, lambda agent: agent.having(told=[*agent.told, key]))

        once_shown(note_shown)
        return {"settled": overviews.DONE}

    not_asked_for = ""
    return Condition("settled", not_asked_for, tasks.FREED, end_of_all_tasks, while_open=False)


def agent_done(store: Store, team: str, name: str) -> Condition:
    """Return the condition that the agent has no task in progress and, if `teams` started it, its session has ended."""
    from teams_cli.agents import ending, sessions

    if sessions.find(store, team, name) is None:  # refuse a name that nobody has
        teams.get_recipient(teams.get(store, team), name)

    def idle_agent(alarm: Alarm) -> Document | None:
        session = ending.current(store, team, name)
        if session and not session.ended:
            ending.set_alarm(store, team, [session], alarm)
            return None
        claims.release_lost(store, teams.get(store, team), alarm)
        return None if tasks.held_by(store, team, name) else {"agent": name}

    what, topics = f"the end of {name}'s work", {f"session/{name}", *tasks.FREED}
    return Condition("agent", what, topics, idle_agent, lambda: standing.of_agent(store, team, name), while_open=False)


def after_waiting(store: Store, team: str, caller: Caller, again: str) -> tuple[str, str]:
    """Return two texts for a wait that ended without a result: the state of the work, and the same followed by the
    command *again*, which waits longer. If nothing is left to do, both say only that all tasks are settled.
    """
    state = ""
    try:
        team_now = teams.get(store, team)
        if team_now.member(caller.name) or team_now.leader == caller.name:
            step = work.when_idle(store, team_now, caller)
            if not steps.is_wait(step):
                settled = f"All tasks are settled: {step or 'you are done'}"
                return settled, settled
        if step := work.step_others_wait_for(store, team_now, caller):
            state = f"Somebody waits for you: {step}."
        elif held := work.held_task(store, team_now, caller.name):
            state = f"{held.why}: {held.step}."
    except errors.TeamsError:  # the end of the wait is reported all the same
        pass
    if not state and (line := standing.in_words(store, team, caller)):
        state = f"{line}."
    return state, f"{state} Keep waiting: {again}".lstrip()
