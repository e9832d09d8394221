"""The description of the API, in OpenAPI 3.1, derived from the declarations of the commands."""

from __future__ import annotations

from functools import cache
from types import UnionType

from teams_cli import __version__
from teams_cli.agents import interrupting
from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.refusals import description, in_requests
from teams_cli.records.validation import schema_of
from teams_cli.runs import reports
from teams_cli.serving import requests
from teams_cli.views import board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.commands.declaration import Command


_STRING: dict[str, Any] = {"type": "string"}
_INTEGER: dict[str, Any] = {"type": "integer"}
_OBJECT: dict[str, Any] = {"type": "object"}


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
    {"name": _STRING, "status": {"enum": ["idle", "active"]}, "queueDepth": _INTEGER},
    {
        "role": _STRING,
        "agentType": {"type": ["string", "null"]},
        "state": _STRING,
        "announced": {"type": ["string", "null"]},
        "lastSeen": _STRING,
    },
)
_BOARD_SCHEMA = _object(
    {
        "team": _OBJECT,
        "settings": _OBJECT,
        "agents": _many(_OBJECT),
        "tasks": _many(ref("Task")),
        "taskCounts": {"type": "object", "additionalProperties": _INTEGER},
        "moves": {"type": "object", "additionalProperties": _many(_STRING)},
        "messages": _many(ref("Message")),
        "questions": _many(ref("Question")),
        "plans": _many(ref("Plan")),
        "shutdowns": _many(ref("Shutdown")),
        "landings": _many(ref("Landing")),
        "pages": _many(_OBJECT),
        "position": _INTEGER,
        "now": _STRING,
        "course": ref("Course"),
    }
)
_COURSE = _object(
    {
        "total": _INTEGER,
        "done": _INTEGER,
        "percent": {"type": "integer", "minimum": 0, "maximum": 100},
        "inProgress": _INTEGER,
        "ready": _INTEGER,
        "blocked": _INTEGER,
        "failed": _INTEGER,
        "cancelled": _INTEGER,
        "heldUp": _INTEGER,
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
        "rows": {"type": "object", "additionalProperties": _OBJECT},
        "messages": _many(ref("Message")),
        "position": _INTEGER,
        "now": _STRING,
    }
)
_RUN: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {"workflow": _STRING, "status": _STRING},
}
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
            "number": _INTEGER,
            "interrupted": {"type": "boolean"},
        }
    ),
    "Undelivered": _object(
        {"delivered": {"const": False}, "error": _STRING},
        {"available": _many(_STRING), "code": _STRING, "hint": _STRING},
    ),
    "Log": _object({"agent": _STRING, "lines": _many(_STRING)}),
    "Board": _BOARD_SCHEMA,
    "Course": _COURSE,
    "Rows": _ROWS,
    "Report": _object({"workflow": _STRING, "status": _STRING, "markdown": {"type": ["string", "null"]}}),
}


def answer(command: Command) -> dict[str, Any]:
    """The schema of a command's answer."""
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
    schemas = dict(_MADE)
    for record in filter(None, dict.fromkeys(map(_record_of, requests.offered()))):
        schema = schema_of(record)
        schemas |= {name: _answered(part) for name, part in schema.pop("$defs", {}).items()}
        schemas[record.__name__] = _answered(schema)
    return schemas


def _answered(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a record as it is answered with: stored, so it has its number, and nothing is left to defaults."""
    parts: dict[str, Any] = schema.get("properties", {})
    stored = [key for key in ("id", "number") if parts.get(key, {}).get("default") in ("", 0)]
    for part in parts.values():
        part.pop("default", None)
    return {**schema, "required": [*schema.get("required", ()), *stored]} if stored else schema


_ABOUT = """The operations of `teams` over HTTP, on this machine alone. A request is a command with JSON values.

Reading needs no token unless the server is private; whatever changes something needs the bearer token. The caller is
the human unless `as` says otherwise; in a team made with --secure the caller's own token is needed too. When records
could not be read, the header X-Teams-Damaged of an answer says how many. Refusals name requests; asked with
`Prefer: hints=shell` they name commands, for people.
"""
_REFUSALS = {
    "400": "A value is not valid, or the body is not JSON.",
    "401": "The server's token is missing or wrong.",
    "403": "The caller may not do this, or the request comes from a page of another site.",
    "404": "It was not found.",
    "405": "The address is for another method.",
    "408": "The wait or the body took too long.",
    "409": "The state of the team does not admit the change.",
    "413": f"The body has more than {refusals.BODY} bytes.",
    "415": "The body is of another type than JSON.",
    "421": "The server does not go by the name in Host.",
    "422": "Another failure that was to be expected.",
    "500": "A record on disk is damaged, or a bug.",
    "503": "Busy: a retry is safe.",
}
_AGENTS, _BOARD = "Agents", "Board"
_TAGS = {
    "Teams": "Making teams, joining and leaving them, and who one is.",
    "Tasks": "Creating tasks, taking them, and bringing them to their end.",
    "Messages": "Writing to others, and reading one's mail.",
    "Questions": "Asking the other agents and the person.",
    _AGENTS: "Starting, interrupting and stopping agents.",
    "Plans and shutdown": "Proposing and deciding plans; asking agents to end.",
    "Workflows": "What a workflow file may say.",
    "Inspect": "Looking at what happened, and at settings.",
    _BOARD: "What a page needs that shows a team and keeps up with it.",
}
_RETRY = {"Retry-After": {"schema": _STRING, "description": "With 503: seconds to wait before the retry."}}


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    paths = _agents() | _board()
    for command in requests.offered():
        paths[f"/api/{command.name}"] = {"get" if command.reads else "post": _command(command)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "teams", "version": __version__, "description": _ABOUT},
        "tags": [{"name": name, "description": what} for name, what in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": components(),
            "parameters": {"team": _TEAM, "as": _AS},
            "responses": {"Refused": _refusal(ref("Error"))},
            "securitySchemes": {
                "server": {"type": "http", "scheme": "bearer"},
                "caller": {"type": "apiKey", "in": "header", "name": "X-Teams-Token"},
            },
        },
    }


def _refusal(schema: dict[str, Any]) -> dict[str, Any]:
    """Every other answer of an operation, with what each status means."""
    rows = [f"| {status} | {what} |" for status, what in _REFUSALS.items()]
    description = "\n".join(["The request is refused, and changed nothing.", "", "| status | |", "|---|---|", *rows])
    return {"description": description, "headers": _RETRY, "content": _json(schema)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _query(name: str, schema: dict[str, Any], help: str, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": schema, "description": help}


_TEAM = _query("team", _STRING, "The team to act in; the only one unless said.")
_AS = _query("as", _STRING, "Who asks: an agent; the human unless said.")
_NAME = {"name": "name", "in": "path", "required": True, "schema": _STRING, "description": "The agent."}
_WHERE = [{"$ref": "#/components/parameters/team"}, {"$ref": "#/components/parameters/as"}]


def _command(command: Command) -> dict[str, Any]:
    schema = requests.schema(command.name, requests.camel_case)
    found = _operation(command.group, command.name, command.doc, answer(command), changes=not command.reads)
    if command.reads:
        needed = schema.get("required", ())
        rest = [
            _query(
                key,
                {k: v for k, v in field.items() if k != "description"},
                in_requests(field["description"]),
                key in needed,
            )
            for key, field in schema["properties"].items()
        ]
        return {**found, "parameters": _WHERE + rest}
    for field in schema["properties"].values():
        field["description"] = in_requests(field["description"])
    body = {"required": bool(schema.get("required")), "content": _json(schema)}
    return {**found, "parameters": _WHERE, "requestBody": body}


def _operation(tag: str, name: str, doc: str, answer: dict[str, Any], changes: bool) -> dict[str, Any]:
    """Describe an operation; the first paragraph of its docstring is the summary."""
    summary, rest = description(doc)
    done = {"description": "Done.", "content": _json(answer)}
    responses = {"200": done, "default": {"$ref": "#/components/responses/Refused"}}
    found: dict[str, Any] = {"operationId": name, "tags": [tag], "summary": summary, "responses": responses}
    found |= {"description": rest} if rest else {}
    return {**found, "security": [{"server": []}, {"server": [], "caller": []}] if changes else [{}, {"server": []}]}


def _get(
    tag: str, name: str, doc: str, answer: dict[str, Any], *parameters: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    return {"get": {**_operation(tag, name, doc, answer, changes=False), "parameters": [*_WHERE, *parameters]}}


def _agents() -> dict[str, Any]:
    """The addresses of the Janus system."""
    sent = _operation(_AGENTS, "message", _doc(interrupting.deliver_interruptions), ref("Delivered"), changes=True)
    # What the guard refuses it tells as everywhere.
    sent["responses"]["default"] = _refusal({"oneOf": [ref("Undelivered"), ref("Error")]})
    sent["requestBody"] = {"required": True, "content": _json(MESSAGE)}
    now = _query("interrupt", {"type": "boolean"}, "End the running turn; as the setting `delivery` says unless given.")
    lines = _query("lines", {"type": "integer", "minimum": 1, "maximum": 10_000}, "How many; 100 unless said.")
    logged = _get(_AGENTS, "log", "The last lines that an agent printed, newest last.", ref("Log"), lines)
    logged["get"]["parameters"].insert(0, _NAME)
    return {
        "/api/agents": _get(_AGENTS, "agents", "List the agents that can be written to.", AGENTS),
        "/api/agents/{name}/message": {"post": {**sent, "parameters": [_NAME, _WHERE[0], now]}},
        "/api/agents/{name}/log": logged,
    }


def _board() -> dict[str, Any]:
    """The addresses for a page that shows a team and keeps up with it by what changes."""
    number = {**_INTEGER, "minimum": 0}
    after = "Your latest version: the answer has only later changes, and null for a removed row."
    finished = "How many finished tasks, the newest; 100 unless said."
    seen = _query("lastEventId", _STRING, "As the header, for clients that can't set it.")
    header = {"name": "Last-Event-ID", "in": "header", "schema": _STRING, "description": "Where to go on."}
    streamed = _get(_BOARD, "events", _STREAM, {}, seen, header)
    streamed["get"]["responses"]["200"] = {
        "description": "Events, until the client or the server ends.",
        "content": {"text/event-stream": {"schema": _STRING}},
    }
    return {
        "/api/board": _get(_BOARD, "board", _doc(board.board), ref("Board")),
        "/api/board/rows": _get(
            _BOARD,
            "board-rows",
            _doc(board.rows),
            ref("Rows"),
            _query("after", _STRING, after),
            _query("messages", number, "The number of the newest message that is known."),
            _query("finished", {**number, "maximum": 100_000}, finished),
        ),
        "/api/board/messages": _get(
            _BOARD,
            "board-messages",
            "Read the messages before a number, oldest first.",
            MESSAGES,
            _query("before", number, "The number of a message; the newest unless said."),
            _query("limit", {**number, "maximum": 1000}, "How many; 200 unless said."),
            _query("whole", {"enum": [0, 1]}, "1 for long messages in full; else they are cut."),
        ),
        "/api/board/report": _get(_BOARD, "board-report", _doc(reports.report_of), ref("Report")),
        "/api/board/teams": _get(_BOARD, "board-teams", "List all teams, with the run that made each.", TEAMS),
        "/api/events": streamed,
    }


_STREAM = """Stream the team's changes as server-sent events.

Each entry of the team's history is an event `change`, whose id is its position; a stream goes on behind the
`Last-Event-ID`, or with what is to come. The event `reset` says that what was seen is not in the history any more.
"""


def _doc(function: Callable[..., Any]) -> str:
    from inspect import getdoc

    return getdoc(function) or ""
