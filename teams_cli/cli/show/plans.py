"""Plans and shutdowns in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import age, present
from teams_cli.cli.tables import Table
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def proposed(plan: dict[str, Any]) -> Parts:
    """Show a plan that waits, and what came while its author waited for the decision."""
    if "happened" not in plan:
        return decided(plan)
    from teams_cli.cli.show import waiting

    return [*decided(plan), *waiting.came(plan)]


def decided(plan: dict[str, Any]) -> Parts:
    task = f" for {plan['task']}" if "task" in plan else ""
    by = f" by {plan['decidedBy']}" if "decidedBy" in plan else ""
    return [f"{plan['id']}: {plan['status']}{by}, from {plan['from']}{task}"]


def plans(plans: list[dict[str, Any]]) -> Parts:
    """A line each: `show-plan` has the words."""
    rows = [
        [plan["id"], plan["status"], plan["from"], plan.get("task", "-"), _age(plan), _begin(plan)] for plan in plans
    ]
    return [Table(["plan", "status", "from", "task", "age", "plan"], rows, "no plans")]


def _age(plan: dict[str, Any]) -> str:
    return age(plan["createdAt"])


def _begin(plan: dict[str, Any]) -> str:
    return text.clipped_line(plan["plan"], _SHORT)


_SHORT = 60


def whole(plan: dict[str, Any]) -> Parts:
    said = [("note", plan.get("note")), ("feedback", plan.get("feedback")), ("revises", plan.get("revises"))]
    return [
        *decided(plan),
        *text.quoted(plan["plan"]),
        *(f"{name}: {value}" for name, value in said if value),
    ]


def shutdown(asked: dict[str, Any] | list[dict[str, Any]]) -> Parts:
    if isinstance(asked, list):
        return [line for one in asked for line in shutdown(one)]
    freed = asked.get("releasedTasks")
    return present(
        f"{asked['id']}: {asked['status']}, for {asked['agent']}, asked by {asked['requestedBy']}",
        f"reason: {asked['reason']}" if "reason" in asked else None,
        f"answer: {asked['answer']}" if "answer" in asked else None,
        f"released: {', '.join(freed)}" if freed else None,
        steps.after_shutdown(asked["agent"]) if asked["status"] == "approved" else None,
    )
