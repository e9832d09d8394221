"""Commands on plans, reviews of tasks, and shutdowns."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.agents import sessions
from teams_cli.clock import age
from teams_cli.commands import completions
from teams_cli.commands.declaration import TASK, Command, Table, argument, in_group, option, present, switch
from teams_cli.commands.task_documents import words_of_claimed_too
from teams_cli.membership import shutdowns
from teams_cli.membership.shutdowns import Shutdown
from teams_cli.names import each_name, is_id, is_number
from teams_cli.tasks import plans, reviews
from teams_cli.tasks.plans import Plan
from teams_cli.tasks.tasks import Task
from teams_cli.teams import pages
from teams_cli.teams.permission import standing_of
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts

_SHORT = 60
_SHOW = """Show a plan in full, with the decision.

Raises:
    PlanNotFound: There is no such plan.
"""


def _propose(call: Call, plan: str, task: str | None, revises: str | None, wait: float | None) -> Any:
    document = plans.propose(call.store, call.team, call.caller, plan, task, revises).to_document()
    if wait is not None:
        from teams_cli.commands import claims

        return claims.add_news(call, document, wait)
    call.try_to(call.set_next_step)
    return document


def _get(call: Call, open: bool) -> Any:
    team = call.load_team()
    all_plans = plans.all_of(call.store, team.name, call.problems)
    later = {plan.revises: plan for plan in reversed(all_plans)}
    shown = plans.open_ones(all_plans) if open else all_plans
    return [_with_replacement(plan.to_document(), later.get(plan.id)) for plan in shown]


def _with_replacement(document: dict[str, Any], later: Plan | None) -> dict[str, Any]:
    """Return the *document* of a plan. If its author replaced it undecided, `replacedBy` names the *later* plan."""
    return document | {"replacedBy": later.id} if later and document["status"] == "proposed" else document


def _show(call: Call, plan: str) -> Any:
    team = call.load_team()
    shown = plans.get(call.store, team.name, plan)
    standing = call.caller and standing_of(team, call.caller)
    may_decide = call.caller and (call.caller.is_human or (standing and standing.leads))
    if may_decide and team.state != "closed" and plans.is_open(call.store, call.team, shown):
        call.next_step = steps.decide(shown.id)
    return _with_replacement(shown.to_json(), plans.replacement(call.store, call.team, shown))


def _approve(call: Call, plan: str, note: str | None, page: str | None) -> Any:
    if page is not None:  # if the page would be invalid, the plan is not approved
        pages.check(call.store, call.team, call.caller, page, plans.get(call.store, call.team, plan).plan)
    approved = plans.approve(call.store, call.team, call.caller, plan, note)
    if page is not None:  # the plan is approved, so a failure here is only reported
        call.try_to(lambda: pages.share(call.store, call.team, call.caller, page, approved.plan))
    _set_next_step(call)
    return approved.to_document()


def _reject(call: Call, plan: str, feedback: str | None, feedback_option: str | None) -> Any:
    why = _reason_given_once(feedback, feedback_option, 'Write: teams reject-plan ID "WHY"')
    rejected = plans.reject(call.store, call.team, call.caller, plan, why)
    _set_next_step(call)
    return rejected.to_document()


def _reason_given_once(as_argument: str | None, as_option: str | None, usage: str) -> str:
    """Return the reason, which is given as an argument or as an option. Refuse if it is given twice or not at all."""
    reasons = [reason for reason in (as_argument, as_option) if reason is not None]
    if len(reasons) != 1:
        raise errors.WrongUsage("give the reason once", usage)
    return reasons[0]


def _set_next_step(call: Call) -> None:
    if not call.known_caller.is_human:
        call.try_to(call.set_next_step)


def _review(call: Call, task: str, accept: bool, reject: str | None, next: bool, wait: float | None) -> Any:
    if accept == (reject is not None):
        raise errors.WrongUsage(
            "give either --accept or --reject", "Write: teams review-task ID --accept, or with --reject WHY"
        )
    from teams_cli.commands import claims

    if accept:
        completions.note_completing(call, task)
    reviewed = reviews.review(call.store, call.team, call.caller, task, accept, reject)
    document = completions.landed_too(call, reviewed)
    if next:
        return claims.add_next_task(call, document, wait)
    if wait is not None:
        return claims.add_news(call, document, wait)
    call.try_to(call.set_next_step)
    return document


def _request(call: Call, to: list[str], reason: str | None) -> Any:
    names = each_name(to)
    if not names:
        raise errors.WrongUsage("the agent is missing", "Write: teams request-shutdown AGENT")
    for name in names:
        if sessions.was_stopped(call.store, call.team, name):
            raise errors.WrongState(
                f"{name} was stopped already, so no request was sent", "To end the team: teams close-team"
            )
    requests = shutdowns.request(call.store, call.team, call.caller, names, reason)
    _set_next_step(call)
    documents = [request.to_document() for request in requests]
    return documents[0] if len(documents) == 1 else documents


def _approve_shutdown(call: Call, shutdown: str | None) -> Any:
    from teams_cli.agents import logs

    approved, released = shutdowns.approve(call.store, call.team, call.caller, shutdown)
    call.try_to(lambda: logs.sweep(call.store, call.team))
    return {**approved.to_document(), "releasedTasks": released}


def _reject_shutdown(call: Call, shutdown: str | None, reason: str | None, reason_option: str | None) -> Any:
    is_id_given = shutdown and (is_id(shutdown, "shutdown") or is_number(shutdown.removeprefix("#")))
    if shutdown and not is_id_given:  # this word is not an id: it is the beginning of the reason
        shutdown, reason = None, " ".join(filter(None, (shutdown, reason)))
    why = _reason_given_once(reason, reason_option, 'Write: teams reject-shutdown "WHY"')
    return shutdowns.reject(call.store, call.team, call.caller, shutdown, why).to_document()


_PLAN = argument("ID", "The plan's id, such as 7, #7 or plan-7.", name="plan")
_SHUTDOWN = argument(
    "ID", "The request; the default is your open request.", name="shutdown", required=False, seldom=True
)


def words_of_proposed(plan: dict[str, Any]) -> Parts:
    if "happened" not in plan:
        return words_of_decided(plan)
    from teams_cli.commands import claims

    return [*words_of_decided(plan), *claims.words_of_news(plan)]


def words_of_decided(plan: dict[str, Any]) -> Parts:
    task = f" for {plan['task']}" if "task" in plan else ""
    by = f" by {plan['decidedBy']}" if "decidedBy" in plan else ""
    return [f"{plan['id']}: {_status(plan)}{by}, from {plan['from']}{task}"]


def _status(plan: dict[str, Any]) -> str:
    return f"replaced by {plan['replacedBy']}" if "replacedBy" in plan else str(plan["status"])


def words_of_reviewed(task: dict[str, Any]) -> Parts:
    lines = [*completions.landed_line(task), *words_of_claimed_too(task)]
    if "happened" not in task:
        return lines
    from teams_cli.commands import claims

    return [*lines, *claims.words_of_news(task)]


def words_of_plans(plans: list[dict[str, Any]]) -> Parts:
    rows = []
    for plan in plans:
        begin = text.clipped_line(plan["plan"], _SHORT)
        rows.append([plan["id"], _status(plan), plan["from"], plan.get("task", "-"), age(plan["createdAt"]), begin])
    return [Table(["plan", "status", "from", "task", "age", "plan"], rows, "no plans")]


def words_of_plan(plan: dict[str, Any]) -> Parts:
    fields = [f"{name}: {plan[name]}" for name in ("note", "feedback", "revises") if plan.get(name)]
    return [*words_of_decided(plan), *text.quoted(plan["plan"]), *fields]


def words_of_shutdown(request: dict[str, Any] | list[dict[str, Any]]) -> Parts:
    if isinstance(request, list):
        return [line for each in request for line in words_of_shutdown(each)]
    released = request.get("releasedTasks")
    return present(
        f"{request['id']}: {request['status']}, for {request['agent']}, asked by {request['requestedBy']}",
        f"reason: {request['reason']}" if "reason" in request else None,
        f"answer: {request['answer']}" if "answer" in request else None,
        f"released: {', '.join(released)}" if released else None,
        steps.after_shutdown(request["agent"]) if request["status"] == "approved" else None,
    )


COMMANDS = in_group(
    "Tasks",
    Command(
        "review-task",
        _review,
        TASK,
        switch("--accept", "Accept the work."),
        option("--reject", "Reject the work, for this reason.", metavar="WHY", text=True),
        switch("--next", "Then claim the next task.", seldom=True),
        option(
            "--wait",
            "How long to wait: with --next for a task, else for something that needs you.",
            metavar="SECONDS",
            seldom=True,
        ),
        doc=reviews.review,
        words=words_of_reviewed,
        answers=Task,
        traits="long sleeps",
        held="task accept reject next wait",
        example='review-task 7 --reject "the tests cover nothing"',
        also={
            "review": "",
            "accept-task approve-task accept/ID": "review-task ID --accept",
            "reject-task": "review-task ID --reject WHY",
        },
    ),
) | in_group(
    "Plans and shutdown",
    Command(
        "propose-plan",
        _propose,
        argument("TEXT", "The plan; `-` reads it from standard input.", name="plan", also="plan", text=True),
        option("--task", "The task that the plan is for.", metavar="ID"),
        option("--revises", "The plan that this one replaces.", metavar="PLAN"),
        option(
            "--wait",
            "How long to wait for the decision, or for anything else that concerns you.",
            metavar="SECONDS",
            seldom=True,
        ),
        doc=plans.propose,
        words=words_of_proposed,
        answers=Plan,
        traits="long sleeps adding daily",
        held="plan task revises wait",
        example='propose-plan "1. a test 2. the fix" --task 7',
        also="plan submit-plan create-plan",
    ),
    Command(
        "get-plans",
        _get,
        switch("--open", "Only plans that wait for a decision."),
        doc="List the plans, by number.",
        words=words_of_plans,
        answers=list[Plan],
        traits="reads",
        held="open",
        example="get-plans --open",
        also="plans",
    ),
    Command(
        "show-plan",
        _show,
        _PLAN,
        doc=_SHOW,
        words=words_of_plan,
        answers=Plan,
        traits="reads",
        held="plan",
        example="show-plan 2",
        also="view-plan read-plan",
    ),
    Command(
        "approve-plan",
        _approve,
        _PLAN,
        option("--note --feedback", "A note to its author.", text=True),
        option("--share", "Also share the plan, as the page with this name.", metavar="KEY", name="page", seldom=True),
        doc=plans.approve,
        words=words_of_decided,
        answers=Plan,
        traits="daily for_person",
        held="plan note page",
        example="approve-plan 3",
        also="accept-plan approve",
    ),
    Command(
        "reject-plan",
        _reject,
        _PLAN,
        argument("FEEDBACK", "What the author should change.", name="feedback", text=True, required=False, needed=True),
        option(
            "--feedback",
            "The same text as an option, instead of an argument.",
            text=True,
            name="feedback_option",
            at_shell=True,
        ),
        doc=plans.reject,
        words=words_of_decided,
        answers=Plan,
        traits="daily for_person",
        held="plan feedback feedback_option",
        example='reject-plan 3 "The tests come first"',
        also="decline-plan reject",
    ),
    Command(
        "request-shutdown",
        _request,
        argument("AGENT", "The members.", name="to", many=True),
        option("--reason", "The reason.", text=True),
        doc=shutdowns.request,
        words=words_of_shutdown,
        answers=Shutdown | list[Shutdown],
        traits="daily",
        held="to reason",
        example='request-shutdown bob --reason "the work is done"',
        also="shutdown shut-down dismiss end-agent kick remove-member remove-agent",
    ),
    Command(
        "approve-shutdown",
        _approve_shutdown,
        _SHUTDOWN,
        doc=shutdowns.approve,
        changes=False,
        words=words_of_shutdown,
        answers=Shutdown,
        traits="daily moves",
        held="shutdown",
        example="approve-shutdown",
        also="accept-shutdown",
    ),
    Command(
        "reject-shutdown",
        _reject_shutdown,
        argument(
            "ID",
            "The request; the default is your open request.",
            name="shutdown",
            required=False,
            seldom=True,
            listed=True,
        ),
        argument("REASON", "The reason why you decline.", name="reason", text=True, required=False, needed=True),
        option(
            "--reason",
            "The same text as an option, instead of an argument.",
            text=True,
            name="reason_option",
            at_shell=True,
        ),
        doc=shutdowns.reject,
        words=words_of_shutdown,
        answers=Shutdown,
        traits="daily",
        held="shutdown reason reason_option",
        example='reject-shutdown "two tasks are mine"',
        also="decline-shutdown",
    ),
)
