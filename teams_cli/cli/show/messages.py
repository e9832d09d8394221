"""Messages and agents in words."""

from __future__ import annotations

from teams_cli.cli.output import Table
from teams_cli.messages import Message, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def _sent(message: dict[str, Any]) -> Parts:
    to = ", ".join(message.get("recipients") or [message["to"]])
    return [f"{message['id']}: sent to {to}"]


def _read(messages: list[dict[str, Any]]) -> Parts:
    if not messages:
        return ["no messages"]
    return [_message(message) for message in messages]


def _message(document: dict[str, Any]) -> str:
    about = f", answers {document['replyTo']}" if "replyTo" in document else ""
    done = ", handled" if "handledAt" in document else ""
    head = f"{document['id']} {document['timestamp']}{about}{done}"
    return f"{head}\n{quote(Message.from_json(document))}"


def _replied(answer: dict[str, Any]) -> Parts:
    original = answer["repliedTo"]
    quoted = "\n".join(f"> {line}" for line in original["message"].splitlines())
    return [f"{answer['id']}: replied to {original['id']} from {original['from']}:", quoted]


def _agents(found: dict[str, Any]) -> Parts:
    rows = [
        [
            agent["name"] + (" (you)" if agent["name"] == found["self"] else ""),
            agent["role"],
            agent["state"],
            str(agent["queueDepth"]),
            agent["lastSeen"] or "-",
            agent["status"] or "-",
        ]
        for agent in found["agents"]
    ]
    trees = [(agent["name"], agent.get("session", {}).get("worktree")) for agent in found["agents"]]
    return [
        Table(["agent", "role", "state", "unread", "last seen", "status"], rows, "no agents"),
        *(f"{name} works in {tree}" for name, tree in trees if tree),
    ]


def _tree(agent: dict[str, Any]) -> str:
    return f" (in {agent['worktree']})" if "worktree" in agent else ""


def _attention(payload: dict[str, Any]) -> Parts:
    state = payload["state"]
    output = state["output"]
    lines: Parts = [state["title"]]
    lines += [output["hint"]] if "hint" in output else []
    for agent in output["agents"]:
        lines.append(f"{agent['name']}{' (idle)' if agent['idle'] else ''}: {agent['status'] or '-'}{_tree(agent)}")
    for message in output["messages"]:
        body = "\n".join(f"| {line}" for line in message["content"].splitlines())
        lines.append(f'#{message["id"]}\n[From agent "{message["from"]}"]:\n{body}')
    return lines


SHOW = {
    "send-message": _sent,
    "broadcast-message": _sent,
    "announce": lambda agent: [f"{agent['name']}: {agent['status']}"],
    "read-messages": _read,
    "reply": _replied,
    "ack": lambda done: [f"handled: {', '.join(done['handled'])}"],
    "list-agents": _agents,
    "attend": _attention,
}
