"""Plans: a member proposes a plan, and the leader or the human decides it once."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.messages.messages import Event
from teams_cli.messages.notices import close_requests, deliver
from teams_cli.names import id_of
from teams_cli.records.records import Owed, Record, owing
from teams_cli.store.contract import Kind, Store, update
from teams_cli.tasks import tasks
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.records.types import Name, PlanId, PlanStatus, TaskId, Text, Time
    from teams_cli.teams.permission import Caller


class PlanNotFound(errors.NotFound):
    """The team has no such plan."""


class Plan(Record):
    """One plan. The decision on it is final. To change a plan, its author proposes another one, whose field *revises*
    names the plan that it replaces.
    """

    nested = {"owed": Owed}  # noqa: RUF012

    id: PlanId = ""
    team_name: Name
    from_: Name
    task: TaskId | None = None
    plan: Text
    status: PlanStatus = "proposed"
    revises: PlanId | None = None
    created_at: Time
    decided_by: Name | None = None
    decided_at: Time | None = None
    note: Text | None = None
    feedback: Text | None = None
    owed: list[Owed] | None = None

    def numbered(self, **numbers: Any) -> Plan:
        """Return the plan with its *numbers*, such as its id, and with a notice to the leader that names this id."""
        plan = self.having(**numbers)
        for_task = f" for {plan.task}" if plan.task else ""
        body = f"{plan.from_} proposes {plan.id}{for_task}: teams show-plan {plan.id}"
        notices = [notice.having(message=body, uid=f"proposed-{plan.id}", about=plan.id) for notice in plan.owed or ()]
        return plan.having(owed=notices or None)


PLAN: Kind[Plan] = Kind("plan", Plan, numbered=True, logins="plan")


def propose(
    store: Store,
    team_name: str,
    caller: Caller | None,
    body: str,
    task_ref: str | None = None,
    revises: str | None = None,
) -> Plan:
    """Propose a plan to the leader, for a task or for all your work.

    Raises:
        TaskNotFound, PlanNotFound: The task, or the plan of --revises, does not exist.
        NotAllowed: The plan of --revises belongs to another member.
    """
    standing = require(store, team_name, caller, "propose-plan")
    author = standing.name
    text.checked(body, "plan", text.MAX_RESULT)
    draft = Plan(team_name=team_name, from_=author, plan=body, created_at=teams.now(store))
    if task_ref is not None:
        draft = draft.having(task=tasks.get(store, team_name, task_ref).id)
    if revises is not None:
        earlier = get(store, team_name, revises)
        if earlier.from_ != author:
            raise errors.NotAllowed(
                f"{earlier.id} was proposed by {earlier.from_}", "Revise your own plan, or propose a new one."
            )
        task_id = draft.task or earlier.task  # a revision is for the same task, unless another one is named
        draft = draft.having(revises=earlier.id, task=task_id)

    def content(plan: Plan) -> tuple[object, ...]:
        return plan.from_, plan.plan, plan.task, plan.revises

    open_plans = all_of(store, team_name, [], only_open=True)
    plan = next((plan for plan in open_plans if content(plan) == content(draft)), None)
    if plan is not None:  # its author repeats a command whose answer was lost
        store.confirm(team_name, PLAN, plan.id)
    else:
        # `Plan.numbered` completes the notice, once the plan has a number.
        notice = Owed(to=standing.team.leader, message="", uid="", type="plan", by=author, event=Event.PLAN_PROPOSED)
        plan, _ = store.create(team_name, PLAN, None, draft.having(owed=[notice]))
        history.note(store, team_name, author, "plan proposed", plan=plan.id, task=plan.task)
    deliver(store, team_name, PLAN, plan)
    return plan


def get(store: Store, team: str, plan_ref: str) -> Plan:
    """Return the plan with that id, which may be written as a number.

    Raises:
        PlanNotFound: There is no such plan.
    """
    plan_id = id_of(plan_ref, "plan")
    try:
        return store.get(team, PLAN, plan_id)[0]
    except errors.NotFound:
        raise PlanNotFound(f"team {team} has no plan {plan_id}", "See: teams get-plans") from None


def all_of(store: Store, team: str, problems: list[errors.TeamsError], only_open: bool = False) -> list[Plan]:
    """Return all plans, in the order of their numbers; with *only_open*, only those that wait for a decision. Errors of
    damaged plans are appended to *problems*.
    """
    plans = [plan for plan, _ in store.scan(team, PLAN, problems)]
    return open_ones(plans) if only_open else plans


def open_ones(all_plans: Sequence[Plan]) -> list[Plan]:
    """Return those of a team's plans that wait for a decision: they are neither decided, nor replaced by a later plan
    of their author.
    """
    replaced = {plan.revises for plan in all_plans}
    return [plan for plan in all_plans if plan.status == "proposed" and plan.id not in replaced]


def is_open(store: Store, team: str, plan: Plan) -> bool:
    """Return whether the plan waits for a decision."""
    return plan.status == "proposed" and replacement(store, team, plan) is None


def replacement(store: Store, team: str, plan: Plan) -> Plan | None:
    """Return the plan by which the author replaced this *plan*; None if there is none."""
    return next((later for later in all_of(store, team, []) if later.revises == plan.id), None)


def approve(store: Store, team_name: str, caller: Caller | None, plan_ref: str, note: str | None = None) -> Plan:
    """Approve a plan. Its author is notified.

    Raises:
        PlanNotFound: There is no such plan.
        WrongState: The plan is already decided, or its author replaced it.
        NotAllowed: The plan is your own.
    """
    return _decide(store, team_name, caller, plan_ref, "approved", "approve-plan", note=note)


def reject(store: Store, team_name: str, caller: Caller | None, plan_ref: str, feedback: str) -> Plan:
    """Reject a plan, and say why. Its author is notified.

    Raises:
        PlanNotFound: There is no such plan.
        WrongState: The plan is already decided, or its author replaced it.
        NotAllowed: The plan is your own.
    """
    text.checked(feedback, "feedback")
    return _decide(store, team_name, caller, plan_ref, "rejected", "reject-plan", feedback=feedback)


def _decide(
    store: Store,
    team_name: str,
    caller: Caller | None,
    plan_ref: str,
    status: str,
    operation: str,
    note: str | None = None,
    feedback: str | None = None,
) -> Plan:
    """Decide a proposed plan: *status* is `approved`, with a *note*, or `rejected`, with *feedback*. The author is
    notified. Repeating the same decision changes nothing. *operation* is the right that the caller needs.
    """
    name = require(store, team_name, caller, operation, plan_ref).name

    def change(plan: Plan) -> Plan:
        if (plan.status, plan.decided_by, plan.note, plan.feedback) == (status, name, note, feedback):
            return plan
        if plan.status != "proposed":
            raise errors.WrongState(
                f"{plan.id} was {plan.status} by {plan.decided_by} at {plan.decided_at}",
                f"Only {plan.from_} can propose a new one. See: teams show-plan {plan.id}",
            )
        if later := replacement(store, team_name, plan):
            raise errors.WrongState(
                f"{plan.from_} replaced {plan.id} with {later.id}", f"See: teams show-plan {later.id}"
            )
        if plan.from_ == name:
            raise errors.NotAllowed(f"{plan.id} is your own", "Let another leader or the human decide it.")
        now = teams.now(store)
        decided = plan.having(status=status, decided_by=name, decided_at=now, note=note, feedback=feedback)
        message = f"{plan.id} was {status} by {name}"
        if comment := note or feedback:
            message += f": {comment}"
        notice = Owed(
            to=plan.from_,
            message=message,
            uid=f"{status}-{plan.id}",
            type="plan",
            by=name,
            about=plan.id,
            event=f"plan-{status}",
        )
        return owing(decided, notice)

    text.within(note or "", "note", text.MAX_MESSAGE)
    before, plan = update(store, team_name, PLAN, get(store, team_name, plan_ref).id, change)
    if before is not plan:
        history.note(store, team_name, name, f"plan {status}", plan=plan.id, note=note or feedback)
    deliver(store, team_name, PLAN, plan)
    close_requests(store, team_name, name, plan.id)
    return plan


def refuse_unplanned(store: Store, team: str, task_id: str) -> None:
    """Raise PlanRequired if no plan is approved for the task. The error names the plan that waits for a decision."""
    all_plans = all_of(store, team, [])
    if newest_approved(all_plans, task_id) is None:
        hint = f"Propose one: teams propose-plan TEXT --task {task_id}"
        if proposed := next((plan for plan in open_ones(all_plans) if plan.task == task_id), None):
            hint = f"{proposed.id} waits for a decision: teams wait --plan {proposed.id}"
        raise errors.PlanRequired(f"{task_id} needs an approved plan before it is completed", hint)


def newest_approved(plans: Sequence[Plan], task_id: str) -> Plan | None:
    """Return the last of the *plans* that is approved for the task, whichever member proposed it; None if there is
    none.
    """
    return next((plan for plan in reversed(plans) if plan.status == "approved" and plan.task == task_id), None)
