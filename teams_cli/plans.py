"""Plans: proposed by members, decided once, by the leader or the human."""

from __future__ import annotations

from teams_cli import history, messages, tasks, teams, text
from teams_cli.errors import NotAllowed, NotFound, PlanNotFound, TeamsError, WrongState
from teams_cli.names import id_of
from teams_cli.records import Record
from teams_cli.roles import require
from teams_cli.store.contract import Kind, update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.caller import Caller
    from teams_cli.shapes import Name, PlanId, PlanStatus, TaskId, Text, Time
    from teams_cli.store.contract import Store


class Plan(Record):
    """One plan. A decided plan is decided; a better one revises it."""

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


PLAN: Kind[Plan] = Kind("plan", Plan, numbered=True)


def propose(
    store: Store, team_name: str, caller: Caller | None, body: str, task: str | None = None, revises: str | None = None
) -> Plan:
    """Propose a plan to the leader, for a task or for all of one's work.

    Raises:
        TaskNotFound, PlanNotFound: The task, or the plan it revises, does not exist.
        NotAllowed: The plan it revises is another member's.
    """
    team = require(store, team_name, caller, "propose-plan")
    assert caller is not None
    text.checked(body, "plan", text.MAX_RESULT)
    draft = Plan(team_name=team_name, from_=caller.name, plan=body, created_at=teams.now(store))
    if task is not None:
        draft = draft.having(task=tasks.load(store, team_name, task).id)
    if revises is not None:
        earlier = load(store, team_name, revises)
        if earlier.from_ != caller.name:
            raise NotAllowed(f"{earlier.id} is {earlier.from_}'s", "Revise your own, or propose a new one.")
        draft = draft.having(revises=earlier.id, task=draft.task or earlier.task)
    plan, _ = store.create(team_name, PLAN, None, draft)
    history.note(store, team_name, caller.name, "plan proposed", plan=plan.id, task=plan.task)
    told = f"{caller.name} proposes {plan.id}{f' for {plan.task}' if plan.task else ''}: teams get-plans --open"
    messages.notify(store, team_name, team.leader, told, f"proposed-{plan.id}", "plan")
    return plan


def load(store: Store, team: str, word: str) -> Plan:
    """The plan of that id.

    Raises:
        PlanNotFound: There is none.
    """
    plan_id = id_of(word, "plan")
    try:
        return store.get(team, PLAN, plan_id)[0]
    except NotFound:
        raise PlanNotFound(f"team {team} has no plan {plan_id}", "See `teams get-plans`.") from None


def listing(store: Store, team: str, problems: list[TeamsError], only_open: bool = False) -> list[Plan]:
    """All plans, by number, or those that wait for a decision."""
    found = [plan for plan, _ in store.scan(team, PLAN, problems)]
    return [plan for plan in found if not only_open or plan.status == "proposed"]


def approve(store: Store, team_name: str, caller: Caller | None, word: str, note: str | None = None) -> Plan:
    """Approve a plan, once; its author is told.

    Raises:
        PlanNotFound: There is none.
        WrongState: It is decided already.
        NotAllowed: It is one's own.
    """
    return _decide(store, team_name, caller, word, "approved", "approve-plan", note=note)


def reject(store: Store, team_name: str, caller: Caller | None, word: str, feedback: str) -> Plan:
    """Reject a plan, once, saying why; its author is told.

    Raises:
        PlanNotFound: There is none.
        WrongState: It is decided already.
        NotAllowed: It is one's own.
    """
    text.checked(feedback, "feedback")
    return _decide(store, team_name, caller, word, "rejected", "reject-plan", feedback=feedback)


def _decide(
    store: Store,
    team_name: str,
    caller: Caller | None,
    word: str,
    status: str,
    operation: str,
    note: str | None = None,
    feedback: str | None = None,
) -> Plan:
    require(store, team_name, caller, operation, word)
    assert caller is not None
    name = caller.name

    def change(plan: Plan) -> Plan:
        if plan.status != "proposed":
            raise WrongState(
                f"{plan.id} was {plan.status} by {plan.decided_by} at {plan.decided_at}",
                f"A decided plan stays so; a new one revises it: teams propose-plan … --revises {plan.id}",
            )
        if plan.from_ == name:
            raise NotAllowed(f"{plan.id} is your own", "Let another leader or the human decide it.")
        return plan.having(status=status, decided_by=name, decided_at=teams.now(store), note=note, feedback=feedback)

    text.within(note or "", "note", text.MAX_MESSAGE)
    _, plan = update(store, team_name, PLAN, load(store, team_name, word).id, change)
    history.note(store, team_name, name, f"plan {status}", plan=plan.id, note=note or feedback)
    told = f"{plan.id} was {status} by {name}{f': {note or feedback}' if note or feedback else ''}"
    messages.notify(store, team_name, plan.from_, told, f"{status}-{plan.id}", "plan")
    return plan


def is_approved(store: Store, team: str, task_id: str) -> bool:
    """Whether a plan for the task was approved."""
    return any(plan.status == "approved" and plan.task == task_id for plan in listing(store, team, []))
