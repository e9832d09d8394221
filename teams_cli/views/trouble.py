"""Find what needs a person: agents that failed, are lost or wait, failed tasks, and open questions."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages import inboxes, messages
from teams_cli.messages.messages import Message
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.tasks import attempts, reviews
from teams_cli.tasks.tasks import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.questions.questions import Question
    from teams_cli.tasks.plans import Plan as Proposal
    from teams_cli.views.course import Graph


_LETTERS = 50

_REASON = 400

_FORMAL = frozenset({"notice", "info", "shutdown", "plan"})

_ENDS = frozenset({"in_review", "completed", "failed", "cancelled", "released", "expired", "reopened"})


def reason(task: Task) -> str:
    """Why it failed, as much as a card has room for."""
    return attempts.why_failed(task)[-_REASON:]


def spans_of_work(task: Task) -> list[list[str | None]]:
    """The owners of the task from its notes, each with begin, end and outcome; the end of the present one is None."""
    found: list[list[str | None]] = []
    for note in task.notes:
        if note.what == "claimed":
            found.append([note.by, note.at, None, None])
        elif note.what == "rejected" and found:
            found.append([found[-1][0], note.at, None, None])
        elif found and found[-1][2] is None and note.what in _ENDS:
            found[-1][2:] = [note.at, note.what]
    if task.claimed_at and task.owner and not found:
        found.append([task.owner, task.claimed_at, task.completed_at, task.status if task.completed_at else None])
    return found


def missed(found: list[Task]) -> dict[str, str]:
    """The agents that are missed when they are silent: those that have a task, or whose claim ran out last."""
    last: dict[str, tuple[str, str]] = {}
    for task in found:
        for agent, start, _, how in spans_of_work(task)[-1:]:
            if how in (None, "expired") and agent and start:
                last[agent] = max(last.get(agent, ("", "")), (start, task.id))
    return {agent: task for agent, (_, task) in last.items()}


def of_agent(
    row: dict[str, Any], asked: list[Question], deciding: dict[str, str], had: dict[str, str]
) -> tuple[str | None, str | None]:
    """The trouble of a listed agent, or what it waits for, in a word, and the reason.

    *deciding* has for each agent the plan of its that is not decided, *had* says who is missed.
    """
    if row["state"] == "limited":
        return "limited", None
    session = row.get("session") or {}
    if session.get("outcome") in ("failed", "lost") and session.get("state") == "done":
        lost = "its process is gone" if session["outcome"] == "lost" else None
        return session["outcome"], row.get("failure") or lost
    if row["paused"] and row["state"] != "stopped":
        return "paused", row["pauseReason"]
    if row["state"] == "stale" and row["name"] in had:
        return "silent", f"it had {had[row['name']]}, and has been silent since"
    waits = next((question for question in asked if question.from_ == row["name"]), None)
    if waits is not None:
        return "waiting", f"{waits.id} waits for an answer from {', '.join(waits.waiting_for) or 'somebody'}"
    if row["name"] in deciding and row["state"] != "stopped":
        return "waiting", f"{deciding[row['name']]} waits for a decision"
    return None, None


def letters(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Message]:
    """The newest letters to the person that are not handled; what only informs is none."""
    inbox = inboxes.advance(store, team, inboxes.load(store, team, HUMAN), problems)
    numbers = sorted(entry.number for entry in inbox.open if not entry.quiet)[-2 * _LETTERS :]
    found = store.fetch(team, messages.MESSAGE, numbers, problems) if numbers else []
    return [message for message in found if message.type not in _FORMAL][-_LETTERS:]


def failures(graph: Graph) -> list[dict[str, Any]]:
    """The tasks that failed, or were cancelled and hold up others; those first that hold up most."""
    counts = graph.waiting_counts()
    rows = [
        {"id": task.id, "title": task.title, "status": task.status, "reason": reason(task), "waiting": waiting}
        for task in graph.tasks.values()
        if task.status in ("failed", "cancelled") and ((waiting := counts.get(task.id, 0)) or task.status == "failed")
    ]
    return sorted(rows, key=lambda row: -row["waiting"])


def for_person(
    asked: list[Question], proposed: list[Proposal], mail: list[Message], found: list[Task]
) -> list[dict[str, Any]]:
    """What waits for an answer of the person: questions, those that nobody waits for last, plans, work to review,
    and letters.
    """
    to_answer = sorted((each for each in asked if HUMAN in each.waiting_for), key=lambda each: each.left_alone)
    return [
        *(
            {
                "kind": "question",
                "id": each.id,
                "from": each.from_,
                "text": each.question,
                "expiresAt": each.expires_at,
                "leftAlone": each.left_alone,
            }
            for each in to_answer
        ),
        *({"kind": "plan", "id": each.id, "from": each.from_, "text": each.plan} for each in proposed),
        *(
            {"kind": "review", "id": t.id, "from": t.owner or "", "text": f"to review: {t.title}"}
            for t in reviews.for_person(found)
        ),
        *({"kind": "message", "id": each.id, "from": each.from_, "text": each.message} for each in mail),
    ]
