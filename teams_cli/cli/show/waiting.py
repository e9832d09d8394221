"""The end of a wait in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import ago, is_old, present
from teams_cli.messages.messages import Message, quote_bounded
from teams_cli.tasks.tasks import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.tables import Table

    Parts = list[str | Table]


def waited(found: dict[str, Any]) -> Parts:
    if "happened" in found:
        return came(found)
    lines: Parts = []
    if "task" in found:
        lines += _task(found["task"])
    if "landing" in found:
        from teams_cli.cli.show import landings

        lines += landings.over(found["landing"])
    if "plan" in found:
        lines += _plan(found["plan"])
    lines += _mail(found)
    if "ready" in found:
        lines.append(f"ready: {text.listed(found['ready'], _MOST_NAMED)}")
    lines += present(found.get("settled"))
    if "taskCounts" in found:
        lines += _settled(found)
    if "outcome" in found:
        from teams_cli.cli.show import agents

        lines += agents.ended(found)
    elif "agent" in found:
        lines.append(f"{found['agent']}: nothing in progress")
    return lines


def came(found: dict[str, Any]) -> Parts:
    """What concerns the caller, each with what follows; and the task that it has now."""
    lines = _mail(found)
    for each in found.get("happened", ()):
        lines += [each["text"], *present(_step(each["next"]))]
    if "claimed" in found:
        from teams_cli.cli.show import tasks

        return lines + tasks.claimed(found["claimed"])
    lines += present(found.get("standing"))
    if not any(each["next"] for each in [*found.get("messages", ()), *found.get("happened", ())]):
        lines += present(_step(found.get("next")))
    return lines


def _mail(found: dict[str, Any]) -> Parts:
    lines: Parts = []
    for message in found.get("messages", ()):
        lines += [*_message(message), *present(_step(message["next"]))]
    if "moreMessages" in found:
        lines.append(f"{found['moreMessages']} more messages: teams read-messages")
    return lines


def _message(document: dict[str, Any]) -> list[str]:
    about = f" answers {document['replyTo']}" if "replyTo" in document else ""
    old = f", {ago(document['timestamp'])}" if is_old(document["timestamp"]) else ""
    return [f"{document['id']}{about}{old}", *quote_bounded(Message.from_json(document))]


def _step(command: str | None) -> str | None:
    return f"next: {command}" if command else None


def _task(task: dict[str, Any]) -> Parts:
    by = f" by {task['owner']}" if task.get("owner") else ""
    why = Task.from_json(task).why_ended
    return present(f"{task['id']}: {task['status']}{by}{f': {why}' if why else ''}", *_result(task))


def _result(task: dict[str, Any]) -> list[str]:
    return text.bounded(
        text.quoted(task.get("result")), text.MOST_LETTER, f"[cut; the whole: teams show-task {task['id']}]"
    )


def _plan(plan: dict[str, Any]) -> Parts:
    why = plan.get("feedback") or plan.get("note")
    return [f"{plan['id']}: {plan['status']} by {plan['decidedBy']}{f': {why}' if why else ''}"]


def _settled(found: dict[str, Any]) -> Parts:
    counts = ", ".join(f"{count} {status}" for status, count in found["taskCounts"].items() if count) or "no tasks"
    return present(
        f"settled: {counts}", f"stuck: {text.listed(found['stuck'], _MOST_NAMED)}" if found["stuck"] else None
    )


_MOST_NAMED = 20
