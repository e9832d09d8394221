"""Questions and answers in words."""

from __future__ import annotations

from teams_cli import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.tables import Table

    Parts = list[str | Table]


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
