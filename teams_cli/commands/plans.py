"""Commands on plans and shutdowns."""

from __future__ import annotations

from teams_cli import plans, shutdowns, teams
from teams_cli.commands.declaration import Command, argument, option, switch, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.plans import Plan
    from teams_cli.shutdowns import Shutdown

_GET = """List the plans, by number; with --open those that wait for a decision."""


def _propose(call: Call, plan: str, task: str | None, revises: str | None) -> Any:
    proposed = plans.propose(call.store, call.team, call.caller, plan, task, revises)
    call.wake(call.load_team().leader)
    return proposed.to_json()


def _get(call: Call, open: bool) -> Any:
    team = teams.load(call.store, call.team).name
    return [plan.to_json() for plan in plans.listing(call.store, team, call.problems, only_open=open)]


def _approve(call: Call, plan: str, note: str | None) -> Any:
    return _decided(call, plans.approve(call.store, call.team, call.caller, plan, note))


def _reject(call: Call, plan: str, feedback: str) -> Any:
    return _decided(call, plans.reject(call.store, call.team, call.caller, plan, feedback))


def _decided(call: Call, plan: Plan) -> Any:
    call.wake(plan.from_)
    return plan.to_json()


def _request(call: Call, to: str, reason: str | None) -> Any:
    asked = shutdowns.request(call.store, call.team, call.caller, to, reason)
    call.wake(asked.agent)
    return asked.to_json()


def _approve_shutdown(call: Call, shutdown: str | None) -> Any:
    done, freed = shutdowns.approve(call.store, call.team, call.caller, shutdown)
    return {**_answered(call, done), "releasedTasks": freed}


def _reject_shutdown(call: Call, shutdown: str | None, reason: str) -> Any:
    return _answered(call, shutdowns.reject(call.store, call.team, call.caller, shutdown, reason))


def _answered(call: Call, shutdown: Shutdown) -> Any:
    call.wake(shutdown.requested_by)
    return shutdown.to_json()


_PLAN = argument("ID", "The plan: 7, #7 or plan-7.", name="plan")
_SHUTDOWN = argument("ID", "The request; your open one unless given.", name="shutdown", required=False)

COMMANDS = table(
    Command(
        "propose-plan",
        _propose,
        argument("TEXT", "The plan; `-` reads it from standard input.", name="plan", text=True),
        option("--task", "The task that it is for.", metavar="ID"),
        option("--revises", "The plan that it takes the place of.", metavar="PLAN"),
        doc=plans.propose,
    ),
    Command("get-plans", _get, switch("--open", "Only those that wait for a decision."), doc=_GET, reads=True),
    Command("approve-plan", _approve, _PLAN, option("--note", "A word to its author.", text=True), doc=plans.approve),
    Command(
        "reject-plan",
        _reject,
        _PLAN,
        option("--feedback", "What its author should do better.", text=True, required=True),
        doc=plans.reject,
    ),
    Command(
        "request-shutdown",
        _request,
        argument("AGENT", "The member to end.", name="to"),
        option("--reason", "Why.", text=True),
        doc=shutdowns.request,
    ),
    Command("approve-shutdown", _approve_shutdown, _SHUTDOWN, doc=shutdowns.approve, changes=False),
    Command(
        "reject-shutdown",
        _reject_shutdown,
        _SHUTDOWN,
        option("--reason", "Why not.", text=True, required=True),
        doc=shutdowns.reject,
    ),
)
