"""The JSON Schemas of answers: those of the records as they are on disk, and of what is made for a request."""

from __future__ import annotations

from types import UnionType

from teams_cli.records.validation import schema_of
from teams_cli.serving import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.declaration import Command

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
        "landings": _many(ref("Landing")),
        "pages": _many({"type": "object"}),
        "position": {"type": "integer"},
        "now": _STRING,
        "course": ref("Course"),
    }
)
_COURSE = _object(
    {
        "total": {"type": "integer"},
        "done": {"type": "integer"},
        "percent": {"type": "integer", "minimum": 0, "maximum": 100},
        "inProgress": {"type": "integer"},
        "ready": {"type": "integer"},
        "blocked": {"type": "integer"},
        "failed": {"type": "integer"},
        "cancelled": {"type": "integer"},
        "heldUp": {"type": "integer"},
        "criticalPath": _many(_STRING),
        "pace": {"type": ["object", "null"]},
        "estimate": {"type": ["object", "null"]},
        "noEstimate": {"type": ["string", "null"]},
    }
)
_ROWS = _object(
    {
        "version": _STRING,
        "whole": {"type": "boolean"},
        "rows": {"type": "object", "additionalProperties": {"type": "object"}},
        "messages": _many(ref("Message")),
        "position": {"type": "integer"},
        "now": _STRING,
    }
)
_RUN: dict[str, Any] = {"type": ["object", "null"], "properties": {"workflow": _STRING, "status": _STRING}}
TEAMS = _many(_object({"name": _STRING, "state": _STRING, "description": {"type": ["string", "null"]}, "run": _RUN}))
MESSAGES = _many(ref("Message"))
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
    "Course": _COURSE,
    "Rows": _ROWS,
    "Report": _object({"workflow": _STRING, "status": _STRING, "markdown": {"type": ["string", "null"]}}),
}


def answer(command: Command) -> dict[str, Any]:
    """What a command answers with."""
    record = _record_of(command)
    if record is None:
        return {}
    one = ref(record.__name__)
    if isinstance(command.answers, UnionType):  # one of one, many of many
        return {"anyOf": [one, _many(one)]}
    return one if record is command.answers else _many(one)


def _record_of(command: Command) -> Any:
    """The kind of record that a command answers with, one or many of them; None if it answers with something else."""
    return getattr(command.answers, "__args__", (command.answers,))[0]


def components() -> dict[str, Any]:
    """All schemas that have a name."""
    found = dict(_MADE)
    for record in filter(None, dict.fromkeys(map(_record_of, requests.offered()))):
        schema = schema_of(record)
        found |= {name: _answered(part) for name, part in schema.pop("$defs", {}).items()}
        found[record.__name__] = _answered(schema)
    return found


def _answered(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a record as it is answered with: stored, so it has its number, and nothing is left to defaults."""
    parts: dict[str, Any] = schema.get("properties", {})
    stored = [key for key in ("id", "number") if parts.get(key, {}).get("default") in ("", 0)]
    for part in parts.values():
        part.pop("default", None)
    return {**schema, "required": [*schema.get("required", ()), *stored]} if stored else schema
