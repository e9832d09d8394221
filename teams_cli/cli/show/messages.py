"""Answers on messages, members and waits, in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import ago, counts_of, is_old, present, state
from teams_cli.cli.tables import Table
from teams_cli.messages.messages import Message, quote, quote_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.show import Parts


_SHORT = 72
_TITLE = 48


def sent(message: dict[str, Any]) -> Parts:
    to = ", ".join(message.get("recipients") or [message["to"]])
    unread = ", ".join(message.get("notReadBy", ()))
    done = ", ".join(message.get("mayNotRead", ()))
    late = message.get("keptFor", ())
    return present(
        f"{message['id']}: sent to {to}",
        f"kept until {text.listed(late)} {'joins' if len(late) == 1 else 'join'}" if late else None,
        f"{unread} was stopped and will not read it; see: teams list-agents" if unread else None,
        f"{done}: was notified that all work is done, and may not read it" if done else None,
    )


def read(messages: list[dict[str, Any]]) -> Parts:
    """What is new in full; of what was read before and is still open a line each."""
    new = [line for message in messages if not message.get("readBefore") for line in _message(message, is_bounded=True)]
    before = [
        f"  {message['id']} from {message['from']}, {ago(message['timestamp'])}: "
        + text.clipped_line(message["message"], _SHORT)
        for message in messages
        if message.get("readBefore")
    ]
    if before:
        before.insert(0, "still open (`teams reply ID TEXT`, or `teams ack`; in full: `teams read-messages --all`):")
    return [*(new or ["no new messages" if before else "no messages"]), *before]


def _message(document: dict[str, Any], is_bounded: bool = False) -> list[str]:
    about = f", answers {document['replyTo']}" if "replyTo" in document else ""
    done = ", handled" if document.get("handledAt", "") > document.get("readAt", "") else ""
    is_wanted = "ackBy" in document and "reach" not in document and not done
    wanted = f", to acknowledge: teams ack {document['id']}" if is_wanted else ""
    head = f"{document['id']}, {ago(document['timestamp'])}{about}{done}{wanted}"
    message = Message.from_json(document)
    return [head, *(quote_bounded(message) if is_bounded else quote(message).split("\n"))]


def sent_before(documents: list[dict[str, Any]]) -> Parts:
    rows = []
    for document in documents:
        short = text.clipped_line(document["message"], _TITLE)
        late = " OVERDUE" if document.get("overdue") else ""
        rows += [
            [document["id"], each["name"], how_far(each) + late, ago(document["timestamp"]), short]
            for each in document["reach"]
        ]
    return [Table(["message", "to", "state", "age", "text"], rows, "nothing sent")]


def how_far(each: dict[str, Any]) -> str:
    """How far it got with one recipient: the state in words, and in which of its turns the agent was shown it."""
    turn = f" (turn {each['turn']})" if "turn" in each else ""
    return f"{each['state'].replace('_', ' ')}{turn}"


def reached(document: dict[str, Any]) -> Parts:
    rows = [
        [to["name"], how_far(to), *(ago(to.get(key)) for key in ("shownAt", "readAt", "handledAt"))]
        for to in document["reach"]
    ]
    late = [f"overdue: it should have been acknowledged {ago(document['ackBy'])}"] if document.get("overdue") else []
    return [*_message(document), Table(["to", "state", "shown", "read", "handled"], rows, "nobody"), *late]


def replied(answer: dict[str, Any]) -> Parts:
    original = answer["repliedTo"]
    if "question" in answer:
        return [f"{answer['question']}: answered to {answer['to']}; {original['id']} is handled"]
    return [f"{answer['id']}: sent to {answer['to']}; {original['id']} is handled"]


def agents(document: dict[str, Any]) -> Parts:
    rows = [
        [
            agent["name"] + (" (you)" if agent["name"] == document["self"] else ""),
            agent["role"],
            state(agent),
            str(agent["queueDepth"]),
            ago(agent["lastSeen"]),
            text.listed(agent.get("tasks", ()), 3) or "-",
            agent["status"] or "-",
        ]
        for agent in document["agents"]
    ]
    waits = [(agent["name"], agent.get("terminal", {}).get("waitsFor")) for agent in document["agents"]]
    trees = [(agent["name"], agent.get("session", {}).get("worktree")) for agent in document["agents"]]
    return [
        Table(["agent", "role", "state", "unread", "last seen", "tasks", "status"], rows, "no agents"),
        *(f"{name} works in {tree}" for name, tree in trees if tree),
        *(f"{name} waits for a permission: {wish}" for name, wish in waits if wish),
    ]


def attention(payload: dict[str, Any]) -> Parts:
    state = payload["state"]
    output = state["output"]
    lines: Parts = [state["title"]]
    lines += [output["hint"]] if "hint" in output else []
    for agent in output["agents"]:
        tree = f" (in {agent['worktree']})" if "worktree" in agent else ""
        lines.append(f"{agent['name']}{' (idle)' if agent['idle'] else ''}: {agent['status'] or '-'}{tree}")
    for message in output["messages"]:
        lines += [f"#{message['id']}", f'[From agent "{message["from"]}"]:', *text.quoted(message["content"], "| ")]
    return [*lines, *present(output.get("more"))]


def announced(agent: dict[str, Any]) -> Parts:
    return [f"{agent['name']}: {agent['status']}"]


def handled(done: dict[str, Any]) -> Parts:
    return [f"handled: {', '.join(done['handled']) or 'nothing was open'}"]


def waited(news: dict[str, Any]) -> Parts:
    if "happened" in news:
        return came(news)
    lines: Parts = []
    if "task" in news:
        lines += _task(news["task"])
    if "landing" in news:
        from teams_cli.cli.show import tasks

        lines += tasks.landing_over(news["landing"])
    if "plan" in news:
        lines += _plan(news["plan"])
    lines += _mail(news)
    if "ready" in news:
        lines.append(f"ready: {text.listed(news['ready'], _MOST_NAMED)}")
    lines += present(news.get("settled"))
    if "taskCounts" in news:
        lines += _settled(news)
    if "outcome" in news:
        from teams_cli.cli.show import agents

        lines += agents.ended(news)
    elif "agent" in news:
        lines.append(f"{news['agent']}: nothing in progress")
    return lines


def proposed(plan: dict[str, Any]) -> Parts:
    """Show a plan that waits, and what came while its author waited for the decision."""
    from teams_cli.cli.show import questions

    return [*questions.decided(plan), *(came(plan) if "happened" in plan else ())]


def came(news: dict[str, Any]) -> Parts:
    """What concerns the caller, each with what follows; and the task that it has now."""
    lines = _mail(news)
    for each in news.get("happened", ()):
        lines += [each["text"], *present(_step(each["next"]))]
    if "claimed" in news:
        from teams_cli.cli.show import tasks

        return lines + tasks.claimed(news["claimed"])
    lines += present(news.get("standing"))
    if not any(each["next"] for each in [*news.get("messages", ()), *news.get("happened", ())]):
        lines += present(_step(news.get("next")))
    return lines


def _mail(news: dict[str, Any]) -> Parts:
    lines: Parts = []
    for message in news.get("messages", ()):
        lines += [*_received(message), *present(_step(message["next"]))]
    if "moreMessages" in news:
        lines.append(f"{news['moreMessages']} more messages: teams read-messages")
    return lines


def _received(document: dict[str, Any]) -> list[str]:
    about = f" answers {document['replyTo']}" if "replyTo" in document else ""
    old = f", {ago(document['timestamp'])}" if is_old(document["timestamp"]) else ""
    return [f"{document['id']}{about}{old}", *quote_bounded(Message.from_json(document))]


def _step(command: str | None) -> str | None:
    return f"next: {command}" if command else None


def _task(task: dict[str, Any]) -> Parts:
    from teams_cli.tasks.tasks import Task

    by = f" by {task['owner']}" if task.get("owner") else ""
    why = Task.from_json(task).why_ended
    rest = f"[cut; the whole: teams show-task {task['id']}]"
    result = text.bounded(text.quoted(task.get("result")), text.MOST_LETTER, rest)
    return present(f"{task['id']}: {task['status']}{by}{f': {why}' if why else ''}", *result)


def _plan(plan: dict[str, Any]) -> Parts:
    why = plan.get("feedback") or plan.get("note")
    return [f"{plan['id']}: {plan['status']} by {plan['decidedBy']}{f': {why}' if why else ''}"]


def _settled(news: dict[str, Any]) -> Parts:
    return present(
        f"settled: {counts_of(news['taskCounts'])}",
        f"stuck: {text.listed(news['stuck'], _MOST_NAMED)}" if news["stuck"] else None,
    )


_MOST_NAMED = 20
