"""Answers on questions, plans, shutdowns and pages, in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import age, ago, present
from teams_cli.cli.tables import Table
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.show import Parts


def result(document: dict[str, Any]) -> Parts:
    lines: Parts = [f"{document['requestId']}: {document['status']}"]
    lines += [document["note"]] if "note" in document else []
    for answer in document["responses"]:
        lines.append(f"{answer['responder_id']}{' (failed)' if answer.get('failed') else ''}:")
        lines += text.quoted(answer["content"], "| ")
    for answer in document.get("human_qa_history", ()) if document["status"] == "deferred" else ():
        lines += [f"the human was asked: {answer['question']}", f"and answered: {answer['answer']}"]
    if document["status"] == "deferred":
        lines.append(document["human_qa_note"])
    if document["status"] == "timeout":
        lines.append(f"late answers are sent to you, and kept: teams show-question {document['requestId']}")
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
    answers = [
        f"{answer['responder']}: {answer['content']}{' (late)' if answer.get('late') else ''}"
        for answer in question["answers"]
    ]
    return [*asked(question), *answers]


def questions(questions: list[dict[str, Any]]) -> Parts:
    return [line for question in questions for line in asked(question)] or ["no questions"]


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
    rows = []
    for plan in plans:
        begin = text.clipped_line(plan["plan"], _SHORT)
        rows.append([plan["id"], plan["status"], plan["from"], plan.get("task", "-"), age(plan["createdAt"]), begin])
    return [Table(["plan", "status", "from", "task", "age", "plan"], rows, "no plans")]


_SHORT = 60


def plan(plan: dict[str, Any]) -> Parts:
    rest = [f"{name}: {plan[name]}" for name in ("note", "feedback", "revises") if plan.get(name)]
    return [*decided(plan), *text.quoted(plan["plan"]), *rest]


def shutdown(request: dict[str, Any] | list[dict[str, Any]]) -> Parts:
    if isinstance(request, list):
        return [line for each in request for line in shutdown(each)]
    released = request.get("releasedTasks")
    return present(
        f"{request['id']}: {request['status']}, for {request['agent']}, asked by {request['requestedBy']}",
        f"reason: {request['reason']}" if "reason" in request else None,
        f"answer: {request['answer']}" if "answer" in request else None,
        f"released: {', '.join(released)}" if released else None,
        steps.after_shutdown(request["agent"]) if request["status"] == "approved" else None,
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
    """The first of the pages that the reader has not seen, each with the command that shows it."""
    pages = document.get("pages", [])
    lines: Parts = [
        f"page {page['key']} (version {page['version']} by {page['author']}): {page['line']}: "
        f"teams shared {page['key']}"
        for page in pages[:_UNTOLD]
    ]
    return [*lines, f"{len(pages) - _UNTOLD} more pages: teams shared"] if len(pages) > _UNTOLD else lines


def page(page: dict[str, Any]) -> Parts:
    head = f"{page['key']}: version {page['version']} by {page['author']}, {ago(page['updatedAt'])}"
    return [head, *text.quoted(page["text"])]


def pages(pages: list[dict[str, Any]]) -> Parts:
    rows = [[page["key"], str(page["version"]), page["author"], age(page["updatedAt"]), page["line"]] for page in pages]
    return [Table(["page", "version", "by", "age", "begins"], rows, "no pages")]
