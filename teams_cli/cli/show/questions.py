"""Questions and answers in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import age, ago, present
from teams_cli.cli.tables import Table
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.show import Parts


def result(found: dict[str, Any]) -> Parts:
    lines: Parts = [f"{found['requestId']}: {found['status']}"]
    lines += [found["note"]] if "note" in found else []
    for said in found["responses"]:
        lines.append(f"{said['responder_id']}{' (failed)' if said.get('failed') else ''}:")
        lines += text.quoted(said["content"], "| ")
    for said in found.get("human_qa_history", ()) if found["status"] == "deferred" else ():
        lines += [f"the human was asked: {said['question']}", f"and answered: {said['answer']}"]
    if found["status"] == "deferred":
        lines.append(found["human_qa_note"])
    if found["status"] == "timeout":
        lines.append(f"late answers are sent to you, and kept: teams show-question {found['requestId']}")
    return lines


def asked(question: dict[str, Any]) -> Parts:
    answered = {answer["responder"] for answer in question["answers"]}
    missing = question["waitingFor"] or [name for name in question["to"] if name not in answered]
    waits = f", no answer from {', '.join(missing)}" if missing else ""
    return [f"{question['id']}: {question['status']}, from {question['from']}{waits}: {question['question']}"]


def answered(question: dict[str, Any]) -> Parts:
    """Show the question, and whether the answer was too late for its asker to wait for it."""
    late = any(answer.get("late") for answer in question["answers"][-1:])
    return [*asked(question), *(["your answer is late: it is kept, and sent to the asker"] if late else [])]


def whole(question: dict[str, Any]) -> Parts:
    said = [f"{answer['responder']}: {answer['content']}{_late(answer)}" for answer in question["answers"]]
    return [*asked(question), *said]


def _late(answer: dict[str, Any]) -> str:
    return " (late)" if answer.get("late") else ""


def questions(found: list[dict[str, Any]]) -> Parts:
    return [line for question in found for line in asked(question)] or ["no questions"]


def settled(done: dict[str, Any]) -> Parts:
    return [f"{done['id']}: {done['status']}"]


def information(info: dict[str, Any]) -> Parts:
    return [info["message"]]


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


def plan(plan: dict[str, Any]) -> Parts:
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


_UNTOLD = 5


def page_changed(page: dict[str, Any]) -> Parts:
    if "text" not in page:
        return [f"{page['key']}: removed"]
    return [f"{page['key']}: version {page['version']}", *untold_pages(page)]


def agreed(page: dict[str, Any]) -> Parts:
    """Show an agreement, with who has confirmed it."""
    named = text.listed([page["author"], *page.get("agreed", ())])
    return [f"{page['key']}: version {page['version']}, agreed to by {named}", *text.quoted(page["text"])]


def untold_pages(document: dict[str, Any]) -> Parts:
    """The first of the pages that came along because nobody told of them yet, each with how to read it."""
    found = document.get("pages", [])
    more = [f"{len(found) - _UNTOLD} more pages: teams shared"] if len(found) > _UNTOLD else []
    return [*map(_untold, found[:_UNTOLD]), *more]


def _untold(page: dict[str, Any]) -> str:
    said = f"page {page['key']} (version {page['version']} by {page['author']}): {page['line']}"
    return f"{said}: teams shared {page['key']}"


def page(page: dict[str, Any]) -> Parts:
    head = f"{page['key']}: version {page['version']} by {page['author']}, {ago(page['updatedAt'])}"
    return [head, *text.quoted(page["text"])]


def pages(found: list[dict[str, Any]]) -> Parts:
    rows = [[page["key"], str(page["version"]), page["author"], age(page["updatedAt"]), page["line"]] for page in found]
    return [Table(["page", "version", "by", "age", "begins"], rows, "no pages")]
