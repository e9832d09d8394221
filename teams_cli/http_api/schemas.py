"""The JSON Schemas of answers: those of the records as they are on disk, and of what is made for a request."""

from __future__ import annotations

from teams_cli.messages import Message
from teams_cli.plans import Plan
from teams_cli.questions import Question
from teams_cli.shutdowns import Shutdown
from teams_cli.tasks import Task
from teams_cli.validation import schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RECORDS = {"Task": Task, "Message": Message, "Plan": Plan, "Question": Question, "Shutdown": Shutdown}
_STRING: dict[str, Any] = {"type": "string"}


def ref(name: str) -> dict[str, Any]:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with at least these keys."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _many(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


MESSAGE = _object({"message": _STRING, "sender": _STRING}, {"uid": _STRING})
AGENTS = _many(ref("Agent"))
_AGENT = _object(
    {"name": _STRING, "status": {"enum": ["idle", "active"]}, "queueDepth": {"type": "integer"}},
    {
        "role": _STRING,
        "agentType": {"type": ["string", "null"]},
        "state": _STRING,
        "announced": {"type": ["string", "null"]},
        "lastSeen": _STRING,
    },
)
_BOARD = _object(
    {
        "team": {"type": "object"},
        "settings": {"type": "object"},
        "agents": _many({"type": "object"}),
        "tasks": _many(ref("Task")),
        "taskCounts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "moves": {"type": "object", "additionalProperties": _many(_STRING)},
        "messages": _many(ref("Message")),
        "questions": _many(ref("Question")),
        "plans": _many(ref("Plan")),
        "shutdowns": _many(ref("Shutdown")),
        "position": {"type": "integer"},
        "now": _STRING,
    }
)
_MADE = {
    "Error": _object({"error": _object({"code": _STRING, "message": _STRING, "hint": _STRING})}),
    "Agent": _AGENT,
    "Delivered": _object(
        {
            "delivered": {"const": True},
            "target": _STRING,
            "id": _STRING,
            "number": {"type": "integer"},
            "interrupted": {"type": "boolean"},
        }
    ),
    "Undelivered": _object(
        {"delivered": {"const": False}, "error": _STRING},
        {"available": _many(_STRING), "code": _STRING, "hint": _STRING},
    ),
    "Log": _object({"agent": _STRING, "lines": _many(_STRING)}),
    "Board": _BOARD,
}
_ANSWERS = {
    **dict.fromkeys(["create-task", "show-task", "claim-task", "update-task", "release-task"], ref("Task")),
    "get-tasks": _many(ref("Task")),
    **dict.fromkeys(["send-message", "broadcast-message", "interject", "reply"], ref("Message")),
    "read-messages": _many(ref("Message")),
    **dict.fromkeys(["propose-plan", "approve-plan", "reject-plan"], ref("Plan")),
    "get-plans": _many(ref("Plan")),
    **dict.fromkeys(["request-shutdown", "approve-shutdown", "reject-shutdown"], ref("Shutdown")),
    **dict.fromkeys(["answer", "show-question"], ref("Question")),
    "get-questions": _many(ref("Question")),
}


def answer(command: str) -> dict[str, Any]:
    """What a command answers with."""
    return _ANSWERS.get(command, {})


def components() -> dict[str, Any]:
    """All schemas that have a name."""
    found = dict(_MADE)
    for name, record in _RECORDS.items():
        schema = schema_of(record)
        found |= schema.pop("$defs", {})
        found[name] = schema
    return found
