"""The description of the API, in OpenAPI 3.1, derived from the declarations of the commands."""

from __future__ import annotations

from functools import cache
from types import UnionType

from teams_cli import __version__
from teams_cli.agents import interrupting
from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.refusals import description, in_requests
from teams_cli.records.types import schema_of
from teams_cli.runs import reports
from teams_cli.serving import requests
from teams_cli.views import board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.declaration import Command


_STRING: dict[str, Any] = {"type": "string"}
_TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}
_INTEGER: dict[str, Any] = {"type": "integer"}
_OBJECT: dict[str, Any] = {"type": "object"}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the schema of an object with these keys, each with its own schema. The object may have other keys."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_RUN = {"type": ["object", "null"], "properties": {"workflow": _STRING, "status": _STRING}}
_BOARD_LISTS = {"tasks": "Task", "messages": "Message", "questions": "Question", "plans": "Plan", "landings": "Landing"}
_SCHEMAS = {
    "Error": _object({"error": _object({"code": _STRING, "message": _STRING, "hint": _STRING})}),
    "Agent": _object(
        {"name": _STRING, "status": {"enum": ["idle", "active"]}, "queueDepth": _INTEGER},
        {
            "role": _STRING,
            "agentType": _TEXT_OR_NULL,
            "state": _STRING,
            "announced": _TEXT_OR_NULL,
            "lastSeen": _STRING,
        },
    ),
    "Delivered": _object(
        {"delivered": {"const": True}, "target": _STRING, "id": _STRING, "number": _INTEGER},
        {"interrupted": {"type": "boolean"}},
    ),
    "Undelivered": _object(
        {"delivered": {"const": False}, "error": _STRING, "code": _STRING, "hint": _STRING},
        {"available": _list_of(_STRING)},
    ),
    "Log": _object({"agent": _STRING, "lines": _list_of(_STRING)}),
    "Board": _object(
        {
            **{key: _list_of(_ref(record)) for key, record in _BOARD_LISTS.items()},
            **{"team": _OBJECT, "agents": _list_of(_OBJECT), "course": _OBJECT, "position": _INTEGER, "now": _STRING},
        }
    ),
    "Rows": _object(
        {
            "version": _STRING,
            "whole": {"type": "boolean"},
            "rows": {"type": "object", "additionalProperties": _OBJECT},
            "messages": _list_of(_ref("Message")),
            "position": _INTEGER,
            "now": _STRING,
        }
    ),
    "Report": _object({"workflow": _STRING, "status": _STRING, "markdown": _TEXT_OR_NULL}),
}
"""The schemas of answers that are neither records nor lists of records."""


def _answer(command: Command) -> dict[str, Any]:
    """Return the schema of a command's answer; {}, which allows anything, if the answer has no records."""
    record = _record_of(command)
    if record is None:
        return {}
    schema = _ref(record.__name__)
    if isinstance(command.answers, UnionType):  # a record for one id, a list for several
        return {"anyOf": [schema, _list_of(schema)]}
    return schema if record is command.answers else _list_of(schema)  # the latter for `list[record]`


def _record_of(command: Command) -> Any:
    return getattr(command.answers, "__args__", (command.answers,))[0]


def _components() -> dict[str, Any]:
    """Return all schemas to which the document refers: those of records, of their parts, and of other answers."""
    schemas: dict[str, Any] = dict(_SCHEMAS)
    records = dict.fromkeys(_record_of(command) for command in requests.offered())
    for record in filter(None, records):  # the answers of some commands have no records
        schema = schema_of(record)
        schemas |= {name: _stored(part) for name, part in schema.pop("$defs", {}).items()}
        schemas[record.__name__] = _stored(schema)
    return schemas


def _stored(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a stored record: *schema* without defaults, and with its id or number as required."""
    properties: dict[str, Any] = schema.get("properties", {})
    # The store gives these; they have a default only for a record that is not stored yet.
    given_on_storing = [key for key in ("id", "number") if properties.get(key, {}).get("default") in ("", 0)]
    for field in properties.values():
        field.pop("default", None)
    if not given_on_storing:
        return schema
    return {**schema, "required": [*schema.get("required", ()), *given_on_storing]}


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
    "409": "The state of the team does not allow the change.",
    "413": f"The body has more than {refusals.BODY} bytes.",
    "415": "The body is not JSON.",
    "421": "The server does not have the name in Host.",
    "422": "Another failure, such as that of a command.",
    "500": "A record on disk is damaged, or a bug.",
    "503": "Busy: a retry is safe.",
}
_AGENTS, _BOARD = "Agents", "Board"
_TAGS = {
    "Teams": "Making teams, joining and leaving them, and who you are.",
    "Tasks": "Creating, claiming and finishing tasks.",
    "Messages": "Writing to others, and reading your mail.",
    "Questions": "Asking the other agents and the person.",
    _AGENTS: "Starting, interrupting and stopping agents.",
    "Plans and shutdown": "Proposing and deciding plans; asking agents to end.",
    "Workflows": "Reading and checking workflow files.",
    "Inspect": "Looking at the history and at settings.",
    _BOARD: "Showing a team on a page, and following its changes.",
}
_RETRY = {"Retry-After": {"schema": _STRING, "description": "With 503: seconds to wait before the retry."}}


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths = _agents() | _board()
    for command in requests.offered():
        paths[f"/api/{command.name}"] = {"get" if command.reads else "post": _command(command)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "teams", "version": __version__, "description": _ABOUT},
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": _components(),
            "parameters": {"team": _TEAM, "as": _AS},
            "responses": {"Refused": _refusal(_ref("Error"))},
            "securitySchemes": {
                "server": {"type": "http", "scheme": "bearer"},
                "caller": {"type": "apiKey", "in": "header", "name": "X-Teams-Token"},
            },
        },
    }


def _refusal(schema: dict[str, Any]) -> dict[str, Any]:
    rows = [f"| {status} | {meaning} |" for status, meaning in _REFUSALS.items()]
    description = "\n".join(["The request is refused, and changed nothing.", "", "| status | |", "|---|---|", *rows])
    return {"description": description, "headers": _RETRY, "content": _json(schema)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _query(name: str, schema: dict[str, Any], help: str, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": schema, "description": help}


_TEAM = _query("team", _STRING, "The team to act in; the only one unless given.")
_AS = _query("as", _STRING, "The agent that asks; the human unless given.")
_NAME = {"name": "name", "in": "path", "required": True, "schema": _STRING, "description": "The agent."}
_TEAM_AND_CALLER = [{"$ref": "#/components/parameters/team"}, {"$ref": "#/components/parameters/as"}]


def _command(command: Command) -> dict[str, Any]:
    """Return the operation that runs the command, with its parameters in the query or in the body."""
    schema = requests.schema(command.name, requests.camel_case)
    operation = _operation(command.group, command.name, command.doc, _answer(command), changes=not command.reads)
    if command.reads:
        required = schema.get("required", ())
        parameters = [
            _query(key, field, in_requests(field.pop("description")), key in required)
            for key, field in schema["properties"].items()
        ]
        return {**operation, "parameters": _TEAM_AND_CALLER + parameters}
    for field in schema["properties"].values():
        field["description"] = in_requests(field["description"])
    body = {"required": bool(schema.get("required")), "content": _json(schema)}
    return {**operation, "parameters": _TEAM_AND_CALLER, "requestBody": body}


def _operation(tag: str, name: str, doc: str, answer: dict[str, Any], changes: bool) -> dict[str, Any]:
    """Return an operation without parameters. *doc* is its docstring, and *answer* is the schema of its answer."""
    summary, details = description(doc)
    done = {"description": "Done.", "content": _json(answer)}
    responses = {"200": done, "default": {"$ref": "#/components/responses/Refused"}}
    operation: dict[str, Any] = {"operationId": name, "tags": [tag], "summary": summary, "responses": responses}
    if details:
        operation["description"] = details
    # Of the entries in this list, a request must fulfil one; {} demands nothing.
    operation["security"] = [{"server": []}, {"server": [], "caller": []}] if changes else [{}, {"server": []}]
    return operation


def _get(tag: str, name: str, doc: str, answer: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    operation = _operation(tag, name, doc, answer, changes=False)
    return {"get": {**operation, "parameters": [*_TEAM_AND_CALLER, *parameters]}}


def _agents() -> dict[str, Any]:
    """Return the paths of the Janus system, with their operations."""
    send = _operation(
        _AGENTS, "message", interrupting.send_and_interrupt.__doc__ or "", _ref("Delivered"), changes=True
    )
    # A refusal before the message is looked at, such as that of a wrong token, is an `Error` as for every request.
    send["responses"]["default"] = _refusal({"oneOf": [_ref("Undelivered"), _ref("Error")]})
    send["requestBody"] = {
        "required": True,
        "content": _json(_object({"message": _STRING, "sender": _STRING}, {"uid": _STRING})),
    }
    interrupt_help = "End the running turn; as the setting `delivery` says unless given."
    send["parameters"] = [_NAME, _TEAM_AND_CALLER[0], _query("interrupt", {"type": "boolean"}, interrupt_help)]
    lines = _query("lines", {"type": "integer", "minimum": 1, "maximum": 10_000}, "How many; 100 unless given.")
    log = _get(_AGENTS, "log", "The last lines that an agent printed, newest last.", _ref("Log"), lines)
    log["get"]["parameters"].insert(0, _NAME)
    return {
        "/api/agents": _get(_AGENTS, "agents", "List the agents that can be written to.", _list_of(_ref("Agent"))),
        "/api/agents/{name}/message": {"post": send},
        "/api/agents/{name}/log": log,
    }


def _board() -> dict[str, Any]:
    """Return the paths for the board and for event streams, with their operations."""
    number = {**_INTEGER, "minimum": 0}
    team = _object({"name": _STRING, "state": _STRING, "description": _TEXT_OR_NULL, "run": _RUN})
    after_help = "Your latest version: the answer has only later changes, and null for a removed row."
    finished_help = "How many finished tasks, the newest; 100 unless given."
    last_event = _query("lastEventId", _STRING, "The same as the header, for clients that can't set it.")
    last_event_header = {
        "name": "Last-Event-ID",
        "in": "header",
        "schema": _STRING,
        "description": "The last event that you have.",
    }
    events = _get(_BOARD, "events", _EVENTS, {}, last_event, last_event_header)
    events["get"]["responses"]["200"] = {
        "description": "Events, until the client or the server ends.",
        "content": {"text/event-stream": {"schema": _STRING}},
    }
    return {
        "/api/board": _get(_BOARD, "board", board.board.__doc__ or "", _ref("Board")),
        "/api/board/rows": _get(
            _BOARD,
            "board-rows",
            board.rows.__doc__ or "",
            _ref("Rows"),
            _query("after", _STRING, after_help),
            _query("messages", number, "The number of the newest message that you have."),
            _query("finished", {**number, "maximum": 100_000}, finished_help),
        ),
        "/api/board/messages": _get(
            _BOARD,
            "board-messages",
            "Read the messages before a number, oldest first.",
            _list_of(_ref("Message")),
            _query("before", number, "The number of a message; the newest unless given."),
            _query("limit", {**number, "maximum": 1000}, "How many; 200 unless given."),
            _query("whole", {"enum": [0, 1]}, "1 for long messages in full; else they are cut."),
        ),
        "/api/board/report": _get(_BOARD, "board-report", reports.report_of.__doc__ or "", _ref("Report")),
        "/api/board/teams": _get(_BOARD, "board-teams", "List all teams, with the run that made each.", _list_of(team)),
        "/api/events": events,
    }


_EVENTS = """Stream the team's changes as server-sent events.

Each entry of the team's history is an event `change`, whose id is its position; a stream goes on behind the
`Last-Event-ID`, or with the next event. The event `reset` says that the events you saw are no longer in the history.
"""
