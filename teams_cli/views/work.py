"""The tasks that an agent has in progress, what each waits for, and the next command of the agent."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import seconds_since
from teams_cli.messages import messages
from teams_cli.messages.messages import MESSAGE, Event, Message
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.tasks import dependencies, leases, tasks
from teams_cli.tasks.claims import may_claim
from teams_cli.tasks.dependencies import Blocker
from teams_cli.tasks.tasks import IN_PROGRESS, Task
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import standing_of
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Team
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.tasks.plans import Plan
    from teams_cli.teams.permission import Caller

    Document = dict[str, Any]


SHOWN = 4
READY = "ready:"
"""The beginning of the key of the fact that a task is ready. `facts` explains facts and their keys."""
HELD = "held:"
"""The beginning of the key of the fact that an agent has a task."""
_TITLE = 48
_TITLE_IN_REMINDER = 60
_RESULT = 1200
"""How many characters of a blocker's result a row shows."""
_OFFER_LASTS = 15.0
"""Seconds for which a ready task is reserved for the first agent offered it. Models take about ten for a step."""
_SOON = 0.25
"""The last fraction of a lease, in which its owner is warned that it ends soon."""
_CAN_WAIT = (
    Event.REVIEW_ACCEPTED,
    Event.TASK_EDITED,
    Event.TASK_ASSIGNED,
    Event.TASK_ASSIGNED_BLOCKED,
    Event.TASK_READY,
)
"""Events that can wait until their reader has finished its present work."""
_MOST_SEARCHED = 50
"""How many messages are searched for an unanswered question of the owner."""


def rows_of(store: Store, team: Team, held: list[Task], all_plans: list[Plan]) -> list[Document]:
    """Return rows for the first few tasks *held* by an agent. Each row has the time until the claim expires, the tasks
    that the owner waits for, and the state of its plan. *all_plans* are the plans of the team.

    The owner waits for the blockers. Once it has stored its result, it waits for the blockers and the tasks of `after`
    that have not ended. `inVain` names those that ended without being completed or can never become ready, and
    `toDoFirst` one that only the owner can do now. If `resultIsKept`, a completion need not repeat the result.
    """
    by_id = {task.id: task for task in held[:SHOWN]}
    for key in {key for task in held[:SHOWN] for key in task.waits_for}:
        try:
            by_id[key] = tasks.get(store, team.name, key)
        except errors.TeamsError:
            continue
    rows = []
    for task in held[:SHOWN]:
        blockers = [by_id[key] for key in task.blocked_by if key in by_id]
        has_result = task.result_so_far is not None
        awaited = [blocker for blocker in blockers if blocker.status != "completed"]
        if has_result:
            predecessors = [by_id[key] for key in task.waits_for if key in by_id]
            awaited = [each for each in predecessors if each.status != "completed"]
        in_vain = [
            each.id
            for each in awaited
            if each.status in tasks.FINISHED or dependencies.is_stuck(store, team.name, each.id)
        ]
        status, plan_id = plan_of(task, all_plans)
        expires_at = leases.expires_at(store, task)
        seconds_left = None if expires_at is None else max(0, round(-seconds_since(expires_at, store.now())))
        row = {
            "id": task.id,
            "title": text.clipped_line(task.title, _TITLE),
            "leaseExpiresAt": expires_at,
            "leaseSeconds": seconds_left,
            "leaseEndsSoon": seconds_left is not None and seconds_left < team.silence * _SOON,
            "waitsFor": [each.id for each in awaited if not (has_result and each.id in in_vain)],
            "inVain": in_vain,
            "toDoFirst": dependencies.left_to_owner(store, team.name, task) if awaited else None,
            "hasResult": has_result,
            "resultIsKept": has_result or (task.checked is not None and _is_kept(task)),
            "results": [
                {"id": blocker.id, "owner": blocker.owner, "result": text.clipped_line(blocker.result or "", _RESULT)}
                for blocker in blockers
                if blocker.status == "completed"
            ],
            "plan": status,
            "planId": plan_id,
        }
        rows.append(row)
    return rows


def _is_kept(task: Task) -> bool:
    from teams_cli.tasks import checks  # imported only after a check

    return checks.kept_result(task, task.owner or "") is not None


def plan_of(task: Task, all_plans: list[Plan]) -> tuple[str | None, str | None]:
    """Return the status and the id of the owner's newest plan for the task, or of one approved for an earlier owner. If
    there is no such plan, the id is None, and the status is `required` if the task needs a plan, else None.
    """
    for plan in reversed(all_plans):
        if plan.task == task.id and plan.from_ == task.owner:
            return plan.status, plan.id
    for plan in reversed(all_plans):
        if plan.task is None and plan.from_ == task.owner and plan.status == "proposed":  # a plan for all of its work
            return "proposed", plan.id
    if not task.plan_required:
        return None, None
    from teams_cli.tasks import plans

    approved = plans.newest_approved(all_plans, task.id)
    return (approved.status, approved.id) if approved else ("required", None)


def to_review(store: Store, team: Team, caller: Caller) -> list[str]:
    """Return the ids of the tasks that wait for the caller's review. A task that has to wait for others can't be
    accepted yet, so it is left out, unless it waits in vain.
    """
    in_review = list(tasks.labelled(store, team.name, tasks.IN_REVIEW))
    if not in_review:
        return []
    from teams_cli.tasks import reviews  # most teams have no reviews

    status_of = dependencies.stored(store, team.name)
    return [
        task.id
        for task in in_review
        if caller.name in reviews.reviewers(team, task, caller.config)
        and not dependencies.is_waited_for(store, team.name, dependencies.before_completion(task, status_of))
    ]


def step_others_wait_for(store: Store, team: Team, caller: Caller) -> str:
    """Return the first command that somebody waits for the caller to run: to agree to shut down, to answer a question,
    to decide a plan, or to review a task. Return "" if nobody waits.
    """
    kinds = store.holds(team.name, "shutdown", "question", "plan")  # modules of other kinds are not imported
    if "shutdown" in kinds:
        from teams_cli.membership import shutdowns

        if request := next(shutdowns.open_requests(store, team, caller.name), None):
            return steps.end(request.id)
    if "question" in kinds:
        from teams_cli.questions import questions

        for question in questions.all_of(store, team.name, []):
            if question.open and caller.name in question.waiting_for:
                return steps.answer(question.id)
    standing = standing_of(team, caller)
    if "plan" in kinds and standing and (standing.leads or caller.is_human):
        from teams_cli.tasks import plans

        for plan in plans.all_of(store, team.name, [], only_open=True):
            if plan.from_ != caller.name:
                return steps.decide(plan.id)
    if waiting := to_review(store, team, caller):
        return steps.review(waiting[0], may_claim(team, caller), caller.name == team.leader)
    return ""


def next_step(store: Store, team: Team, caller: Caller) -> str:
    """Return the next command for a caller that has just finished something. It is the first of these that applies: a
    command that somebody waits for, to continue the caller's own task, or the command of `when_idle`.
    """
    if step := step_others_wait_for(store, team, caller):
        return step
    own_tasks = tasks.held_by(store, team.name, caller.name)
    own_step = steps.work({"myTasks": _rows_with_plans(store, team, own_tasks)}) if own_tasks else None
    return own_step or when_idle(store, team, caller)


def _rows_with_plans(store: Store, team: Team, held: list[Task]) -> list[Document]:
    from teams_cli.tasks import plans  # imported only for an agent that has a task

    return rows_of(store, team, held, plans.all_of(store, team.name, []))


def when_idle(store: Store, team: Team, caller: Caller) -> str:
    """Return the next command for a caller without a task: to wait, or "" if no work is left.

    A leader also waits for the answers of members that it asked to shut down. When no work is left for a leader, its
    command shows the tasks that are blocked for good. If there are none, it closes the team.
    """
    from teams_cli.tasks import overviews

    standing = standing_of(team, caller)
    if standing is None or not standing.leads:
        step = steps.WAIT_TO_WORK if may_claim(team, caller) else steps.WAIT
        return "" if overviews.counts_if_ended(store, team.name) else step
    settled = overviews.settled(store, team.name)
    has_tasks = settled is not None and any(settled["taskCounts"].values())
    if settled is None or not has_tasks or awaits_shutdowns(store, team.name, caller.name):
        return steps.WAIT_TO_LEAD
    return after_all(store, team.name, settled["stuck"])


def after_all(store: Store, team: str, stuck: list[str]) -> str:
    """Return the next command for a leader when only *stuck* tasks are left, or none: to close the team, or to free the
    stuck tasks that wait for the same ended tasks.
    """
    status_of = dependencies.stored(store, team)
    ids_by_ended: dict[str, list[str]] = {}
    for task_id in stuck:
        blockers = dependencies.open_blockers(tasks.get(store, team, task_id), status_of)
        if ended := [blocker.id for blocker in blockers if not blocker.may_be_completed]:
            ids_by_ended.setdefault(",".join(ended), []).append(task_id)
    for ended_ids, ids in ids_by_ended.items():
        return f"teams update-task {','.join(ids)} --unblock {ended_ids}, or {steps.CLOSE}"
    return steps.CLOSE


def idle(store: Store, team: Team, name: str) -> list[Agent]:
    """Return the agents other than *name* that have no task and are not silent."""
    busy = {task.owner for task in tasks.labelled(store, team.name, IN_PROGRESS)}
    agents = (agent for agent, _ in store.scan(team.name, presence.AGENT, []) if agent.agent not in (name, *busy))
    return [agent for agent in agents if presence.is_around(store, team, agent)]


def ready_key(task: Task) -> str:
    """Return the key of the fact that the task is ready. It changes with each claim, so that it is reported again."""
    return f"{READY}{task.id}:{task.claim}"


def task_of_key(key: str) -> str:
    """Return the id of the task in a *key* that `ready_key` made."""
    return key.removeprefix(READY).partition(":")[0]


def offer_left(store: Store, agent: Agent) -> float:
    """Return the seconds for which the task that was offered to the agent is still reserved for it; 0 if no task was
    offered, or if a wrong clock dated the offer in the future.
    """
    if not agent.offered_at:
        return 0.0
    seconds = _OFFER_LASTS - seconds_since(agent.offered_at, store.now())
    return seconds if 0 < seconds <= _OFFER_LASTS else 0.0


class Held:
    """A task in progress that its owner can continue. *row* is the row of the task from `rows_of`, and *step* the next
    command. *in_vain* lists tasks for which it waits and which will not be completed. `key` is the key of the fact that
    reports this, `why` the reason, and `text` a sentence for the owner.
    """

    def __init__(self, task: Task, row: Document, step: str, in_vain: list[Blocker]) -> None:
        self.task = task
        awaited = [str(each) for each in in_vain]
        self.key = ":".join([f"{HELD}{task.id}:{task.claim}:{row['plan'] or ''}", *awaited])
        plan = f", {row['planId']} is {row['plan']}" if row["planId"] else ""
        blocked = f"waits in vain for {text.listed(awaited)}" if awaited else "nothing blocks it"
        self.why = f"{task.id} is yours{plan}, and {blocked}"
        self.text = f"{self.why}: {task.title[:_TITLE_IN_REMINDER]} (all of it: teams show-task {task.id})"
        self.step = step


def held_task(store: Store, team: Team, name: str) -> Held | None:
    """Return the first task of the agent *name* that waits for no other task, if the agent can continue it, else None.
    A task that waits only for tasks that will not be completed counts, too.

    The agent can't continue if it was asked to shut down. Nor can it if it waits for the decision on a plan, or for the
    answer to a question that it asked since the claim.
    """
    status_of = dependencies.stored(store, team.name)
    for task in tasks.held_by(store, team.name, name):
        is_finished = task.completion_is_asked or task.result_so_far is not None
        find_awaited = dependencies.before_completion if is_finished else dependencies.open_blockers
        awaited = find_awaited(task, status_of)
        if not dependencies.is_waited_for(store, team.name, awaited):
            break
    else:
        return None
    from teams_cli.membership import shutdowns
    from teams_cli.questions import questions

    rows = _rows_with_plans(store, team, [task])
    step = steps.work({"myTasks": rows})
    if not step or steps.is_wait(step) or shutdowns.is_asked_to_end(store, team, name):
        return None
    if any(question.from_ == name and question.open for question in questions.all_of(store, team.name, [])):
        return None
    if unanswered(store, team.name, name, task.claimed_at or ""):
        return None
    return Held(task, rows[0], step, awaited)


def unanswered(store: Store, team: str, name: str, since: str) -> Message | None:
    """Return the last message since the time *since* in which the agent *name* asked for something, unless somebody has
    written to the agent since then.
    """
    last = store.last(team, MESSAGE)
    question: Message | None = None
    for message in store.read(team, MESSAGE, None, max(0, last - _MOST_SEARCHED), []):
        if message.from_ == name:
            needs_answer = message.type == "plain" and not message.is_closed_by_reading and message.timestamp >= since
            if needs_answer and (message.ack_by or steps.asks(message.message)):
                question = message
        elif message.from_ != SYSTEM and name in (message.recipients or [message.to]):
            question = None
    return question


def notify_of_blocked(store: Store, team: str, name: str, only_with_task: bool = True) -> None:
    """If the agent *name* waits for an answer, notify the agents that it asked, once for each message, that it is
    blocked. With *only_with_task*, do this only if the agent has a task in progress.
    """
    own_tasks = tasks.held_by(store, team, name)
    if only_with_task and not own_tasks:
        return
    since = (own_tasks[0].claimed_at or "") if own_tasks else ""
    question = unanswered(store, team, name, since)
    if question is None:
        return
    for to in question.recipients or [question.to]:
        body = f"{name} is BLOCKED waiting for your answer to {question.id}"
        messages.notify(
            store, team, to, body, f"blocked-{question.number}~{to}", by=name, about=question.id, event="peer-blocked"
        )


def can_wait(news: list[Message], awaits_shutdowns: bool) -> bool:
    """Return whether none of the messages in *news* asks anything of the reader now.

    A notice asks nothing if it says that a task was completed or accepted, or if it is about a task that the reader has
    not claimed yet. *awaits_shutdowns* says that other members still have to agree to shut down. If so, a message that
    one of them has agreed asks nothing either.
    """
    from teams_cli.membership import shutdowns

    def asks_nothing(message: Message) -> bool:
        if message.from_ != SYSTEM:
            return False
        if awaits_shutdowns and shutdowns.is_approval(message.about):
            return True
        is_completion = message.type == "info" and (message.about or "").startswith("task-")
        return is_completion or message.event in _CAN_WAIT

    return all(map(asks_nothing, news))


def awaits_shutdowns(store: Store, team_name: str, name: str) -> bool:
    """Return whether the agent *name* still waits for answers to its requests to shut down: a member has not decided
    yet, or has approved and the notice of this is not sent yet.

    The requests are read before the team's record, and the caller must read the mail after that. Then no answer that
    arrives meanwhile is missed: it is either in the team's list of unsent notices or in the mail.
    """
    from teams_cli.membership import shutdowns

    requests = [request for request, _ in store.scan(team_name, shutdowns.SHUTDOWN, []) if request.requested_by == name]
    team = teams.get(store, team_name)
    if any(owed.to == name and shutdowns.is_approval(owed.about) for owed in team.owed or ()):
        return True
    return any(shutdowns.as_decided(request, team).status == "requested" for request in requests)
