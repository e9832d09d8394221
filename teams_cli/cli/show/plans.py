"""Plans and shutdowns in words."""

from __future__ import annotations

from teams_cli.cli.output import Table
from teams_cli.cli.show import present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def _plan(plan: dict[str, Any]) -> Parts:
    task = f" for {plan['task']}" if "task" in plan else ""
    by = f" by {plan['decidedBy']}" if "decidedBy" in plan else ""
    return [f"{plan['id']}: {plan['status']}{by}, from {plan['from']}{task}"]


def _plans(plans: list[dict[str, Any]]) -> Parts:
    if not plans:
        return ["no plans"]
    told: Parts = []
    for plan in plans:
        told += [*_plan(plan), *(f"  {line}" for line in plan["plan"].splitlines())]
        told += present(f"  note: {plan['note']}" if plan.get("note") else None)
        told += present(f"  feedback: {plan['feedback']}" if plan.get("feedback") else None)
    return told


def _shutdown(asked: dict[str, Any]) -> Parts:
    freed = asked.get("releasedTasks")
    return present(
        f"{asked['id']}: {asked['status']}, for {asked['agent']}, asked by {asked['requestedBy']}",
        f"reason: {asked['reason']}" if "reason" in asked else None,
        f"answer: {asked['answer']}" if "answer" in asked else None,
        f"free again: {', '.join(freed)}" if freed else None,
    )


SHOW = {
    "propose-plan": _plan,
    "get-plans": _plans,
    "approve-plan": _plan,
    "reject-plan": _plan,
    "request-shutdown": _shutdown,
    "approve-shutdown": _shutdown,
    "reject-shutdown": _shutdown,
}
