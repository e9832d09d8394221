"""Tools: one for each command that programs may request. Some tools for messages have their names in other systems:
`list_agents` and `send_to_agent` of Janus, and `broadcast` of IAM.
"""

from __future__ import annotations

from functools import cached_property

from mcp_types import Tool as Listed
from mcp_types import ToolAnnotations

from teams_cli import errors
from teams_cli.agents import attention
from teams_cli.clients import permissions
from teams_cli.clients.own_entries import PROMPT_TOOL
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import EVERY_ROW, Command
from teams_cli.extensions.mcp import results
from teams_cli.extensions.mcp.identity import Rights
from teams_cli.names import HUMAN
from teams_cli.questions import answering
from teams_cli.serving import requests
from teams_cli.teams import presence
from teams_cli.teams.roles import is_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Arguments = Mapping[str, Any]


_FULL = "full"
"""An argument of every tool: if it is true, the answer is not cut."""
_ASK = "ask-others"
_QUESTION_COMMANDS = (_ASK, "answer", "respond-to-broadcast")
"""Commands that are not offered while questions are off."""


class Tool:
    """A tool that runs a command. Its name, description and schema come from the command unless they are given."""

    has_data = True
    """Whether the answer has data besides the text."""

    def __init__(
        self, command: Command, name: str = "", description: str = "", schema: dict[str, Any] | None = None
    ) -> None:
        self.command = command
        self.name = name or results.tool_name(command.name)
        self.needs_right = is_change(command.name)
        self._description = description
        self._schema = schema

    @cached_property
    def listed(self) -> Listed:
        """The tool as an entry in a list of tools, with hints for clients."""
        may_claim = any(parameter.key == "claim" for parameter in self.command.own)
        may_change = self.needs_right or self.command.changes or may_claim
        if not may_change:
            annotations = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        else:
            annotations = ToolAnnotations(
                destructive_hint=self.command.changes and not (self.command.repeatable or self.command.adding),
                idempotent_hint=self.command.repeatable or None,
                open_world_hint=False,
            )
        return Listed(
            name=self.name,
            title=self.name.replace("_", " ").capitalize(),
            description=self.description,
            input_schema=self.schema,
            annotations=annotations,
        )

    @cached_property
    def description(self) -> str:
        """The description of the tool for models."""
        return self._description or results.description(self.command.doc)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the tool's arguments."""
        return self._schema or results.schema(requests.schema(self.command.name, requests.snake_case))

    def is_daily(self, rights: Rights) -> bool:
        """Return whether this is an everyday tool of the caller. If several tools run one command, only one of them can
        be an everyday tool: the tool by whose name hints call the command.
        """
        is_wanted = self.command.daily or (self.command.outside and rights.is_outside)
        return is_wanted and self.name == results.name_in_hints(self.command.name)

    def is_for(self, rights: Rights) -> bool:
        """Return whether the caller may use the tool. This is also True if the person must agree first."""
        if rights.is_held and self.command.held is None:  # the command needs a higher permission level
            return False
        if self.command.name in _QUESTION_COMMANDS and not rights.asks and rights.role != HUMAN:
            return False
        if not self.needs_right:
            return rights.has_identity or not self.command.changes
        return rights.may(self.command.name)

    def answer(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        """Run the command and return its answer. The answer is cut to the permitted length, unless the argument `full`
        is true, or the request has a `limit` and the command left out no rows.
        """
        own_arguments: Arguments = {key: value for key, value in arguments.items() if key != _FULL}
        if arguments.get(_FULL) is True:
            document = self.run(call, own_arguments)
            whole = document if isinstance(document, dict) else {"result": list(document)}
            return _complete(call, whole, getattr(document, "more", 0), must_fit=False)
        own_arguments, left_out = self._limited(call, own_arguments)
        document = self.run(call, own_arguments)
        left_out = left_out or getattr(document, "more", 0)  # some commands leave out rows themselves
        is_limited = own_arguments.get("limit") is not None
        must_fit = left_out > 0 or not is_limited
        if isinstance(document, dict):
            return _complete(call, document, left_out, must_fit)
        # Of rows that do not fit, the oldest are left out: the newest rows come first until the answer is cut.
        rows = document[::-1] if self.command.newest_last else document
        answer = results.listed(rows, self.command.gist, len(rows) if is_limited else results.ROWS)
        answer = _complete(call, answer, left_out, must_fit)
        return {**answer, "result": answer["result"][::-1]} if self.command.newest_last else answer

    def _limited(self, call: Call, arguments: Arguments) -> tuple[Arguments, int]:
        """Return the arguments to run the command with, and the number of rows that they leave out. A command that
        marks rows as read gets a limit, so that it marks only the rows that fit into one answer. If the request itself
        says which rows to show, its arguments stay unchanged.
        """
        marks_as_read = {"peek", "limit"} <= {parameter.key for parameter in self.command.own}
        if not marks_as_read or any(arguments.get(key) for key in ("peek", "all", "limit")):
            return arguments, 0
        rows = self.run(call, {**arguments, "peek": True, "limit": EVERY_ROW})
        fitting = results.rows_that_fit(rows)
        return {**arguments, "limit": fitting or None}, len(rows) - fitting  # without rows, no limit is needed

    def run(self, call: Call, arguments: Arguments) -> Any:
        """Run the command, and return its document."""
        return requests.answer(call, self.command.name, arguments)


def _complete(call: Call, answer: dict[str, Any], more: int, must_fit: bool) -> dict[str, Any]:
    """Return *answer*, with the number of left-out rows, *more*, if it is not 0. If *must_fit*, cut it as needed. The
    messages that are left out stay unread.
    """
    if more:
        answer = {**answer, "more": more}
    if not must_fit:
        return answer
    short = results.within(answer)
    call.left_out |= results.message_numbers(answer) - results.message_numbers(short)
    results.count_left_out(answer, short)
    return short


class MessagingTool(Tool):
    """A tool that has the name and the arguments of a tool of Janus or IAM, two other systems. All arguments are
    strings. *required* and *optional* have a description of each argument, by its name.
    """

    def __init__(
        self,
        command: Command,
        name: str,
        run: Callable[[Call, Mapping[str, str]], Any],
        description: str,
        required: dict[str, str],
        optional: dict[str, str],
    ) -> None:
        descriptions = {**required, **optional}
        properties = {key: {"type": "string", "description": text} for key, text in descriptions.items()}
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = list(required)
        super().__init__(command, name, description, schema)
        self._run = run

    def run(self, call: Call, arguments: Arguments) -> Any:
        try:
            return self._run(call, self._checked(arguments))
        except errors.TeamsError as error:
            if self.name == "send_to_agent":
                raise _undelivered(call, arguments, error) from None
            raise

    def _checked(self, arguments: Arguments) -> dict[str, str]:
        """Return the arguments as strings; a whole number becomes a string. Arguments that are null are left out."""
        allowed, required = self.schema["properties"], self.schema.get("required", ())
        hint = f"{self.name} takes {', '.join(allowed) or 'nothing'}."
        if unknown := [key for key in arguments if key not in allowed]:
            raise errors.WrongUsage(f"{unknown[0]}: unknown field", hint)
        texts = {key: str(value) for key, value in arguments.items() if value is not None}
        for key in texts:
            if isinstance(arguments[key], bool) or not isinstance(arguments[key], str | int):
                raise errors.InvalidValue(f"{key}: must be a string", "Give a text.")
        if any(key not in texts for key in required):
            raise errors.WrongUsage(f"Missing {' or '.join(required)}", hint)
        return texts


def _list_agents(call: Call, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the agents of the team with the keys of Janus, and the caller's own name under `self`."""
    document = requests.answer(call, "list-agents", arguments)
    agents = []
    for row in document["agents"]:
        agent = {"name": row["name"], "status": "active" if row["state"] == "active" else "idle"}  # as in Janus
        agent |= {key: row[key] for key in ("state", "role", "agentType", "queueDepth") if row.get(key)}
        if row.get("status"):
            agent["workingOn"] = row["status"]
        agents.append(agent)
    return {"agents": agents, "self": document["self"]}


def _send_to_agent(call: Call, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Send a message to one agent, and return an answer with the keys of Janus."""
    target, message = arguments["target"], arguments["message"]
    if target == _sender(call):
        raise errors.WrongUsage("Cannot send message to self", "Choose another agent from the list.")
    sent = requests.answer(call, "send-message", {"to": target, "text": message})
    return {"delivered": True, "target": sent["to"], "id": sent["id"]}


def _undelivered(call: Call, arguments: Arguments, error: errors.TeamsError) -> results.DocumentedRefusal:
    """Return the refusal of `send_to_agent`, with the keys of Janus and its exact sentence for unknown recipients."""
    is_unknown = isinstance(error, errors.AgentNotFound)
    message = f'Agent "{arguments["target"]}" not found' if is_unknown else error.message
    try:
        available = [name for name in call.load_team().active_names() if name != _sender(call)]
    except errors.TeamsError:
        available = []
    document = {"delivered": False, "error": message, "code": error.code, "hint": error.hint, "available": available}
    return results.DocumentedRefusal(error, document)


def _sender(call: Call) -> str:
    return call.caller.name if call.caller else ""


def _broadcast(call: Call, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Answer the message `reply_to`, or send a message to `send_to`, or without both, to all other agents."""
    message = arguments["message"]
    recipient = arguments.get("send_to")
    answered_id = arguments.get("reply_to")
    if answered_id is not None and recipient is not None:
        raise errors.WrongUsage("an answer goes to the sender of the message", "Leave out send_to or reply_to.")
    if answered_id is not None:
        sent = requests.answer(call, "reply", {"message": answered_id, "text": message})
        replied = {"repliedTo": sent["repliedTo"]}
    elif recipient is not None:
        sent = requests.answer(call, "send-message", {"to": recipient, "text": message})
        replied = {}
    else:
        return _broadcast_to_all(call, message)
    return {"you_are": sent["from"], "id": sent["id"], "sentTo": sent.get("recipients") or [sent["to"]], **replied}


def _broadcast_to_all(call: Call, message: str) -> dict[str, Any]:
    """Send the message to all other agents. If there are none, it becomes the sender's first status line."""
    sender = _sender(call)
    try:
        sent = requests.answer(call, "broadcast-message", {"text": message})
    except errors.NobodyThere:
        if presence.load(call.store, call.team, sender).status is not None:  # it would not be the first
            raise
        presence.introduce(call.store, call.team, sender, message)
        return {"you_are": sender, "id": None, "sentTo": []}
    outcome = {"you_are": sender, "id": sent["id"], "sentTo": sent["recipients"]}

    def add_agents() -> None:
        others = attention.others(call.store, call.team, sender)[: attention.MAX_NAMED]
        outcome["agents"] = [{"name": row["name"], "status": row["status"]} for row in others]

    call.try_to(add_agents)  # the message is sent, even if the agents can't be listed
    return outcome


_RUNS = {"list_agents": _list_agents, "send_to_agent": _send_to_agent, "broadcast": _broadcast}
_DESCRIPTIONS = {
    "list_agents": (
        "List the agents of the team, yourself included: status (idle or active), what each works on, how many unread "
        "messages it has; `self` is your own name."
    ),
    "send_to_agent": (
        "Send a message to one agent, to `leader` or to `human`. It is in their inbox at once and they see it between "
        "their steps; the answer arrives in your inbox. Unknown names are refused with the available ones."
    ),
    "broadcast": (
        "Send a message to all other agents or to one, or answer a message, which marks it as handled. Your "
        "first message to all also becomes your status line."
    ),
}
_PARAMETERS = {
    "target": "The recipient: a name from list_agents.",
    "message": "What to say.",
    "send_to": "Only this agent.",
    "reply_to": "The message to answer, by its id.",
}


def every(environ: Mapping[str, str]) -> dict[str, Tool]:
    """Return all tools by name, in the order of the help. The tool by which clients ask for permission is added if the
    environment says that the client uses it.
    """
    tools = {tool.name: tool for tool in map(Tool, requests.offered())}
    for command_name, (name, required_keys, optional_keys) in results.MESSAGING.items():
        command = tools[results.tool_name(command_name)].command
        required = {key: _PARAMETERS[key] for key in required_keys}
        optional = {key: _PARAMETERS[key] for key in optional_keys}
        tools[name] = MessagingTool(command, name, _RUNS[name], _DESCRIPTIONS[name], required, optional)
    if environ.get(permissions.VARIABLE) == permissions.LEVELS[0]:
        tools[PROMPT_TOOL] = AskPermission()
    return tools


def usable(tools: Mapping[str, Tool], rights: Rights, everything: bool) -> list[Tool]:
    """Return the tools that the caller may use. Unless *everything* is True, only everyday tools are returned."""
    return [tool for tool in tools.values() if (everything or tool.is_daily(rights)) and tool.is_for(rights)]


def listed(usable: Iterable[Tool], rights: Rights, everything: bool) -> list[Listed]:
    """Return the *usable* tools as a client lists them. Their descriptions are short unless *everything* is True."""
    rows = []
    for tool in usable:
        row = tool.listed if everything else _shorter(tool)
        if tool.command.name == _ASK:  # its description also says how readily the team asks questions
            row = row.model_copy(update={"description": f"{row.description} {rights.asks}"})
        rows.append(row)
    return rows


def _shorter(tool: Tool) -> Listed:
    """Return the tool with one sentence and without rarely used arguments, since models read it with every request."""
    rare = {parameter.key for parameter in tool.command.own if parameter.seldom}
    properties = {}
    for key, field in tool.schema["properties"].items():
        if key in rare:
            continue
        if "enum" in field:  # the choices explain the argument
            field = {name: value for name, value in field.items() if name not in ("description", "default")}
        properties[key] = field
    annotations = tool.listed.annotations
    changes = {
        "description": results.beginning(tool.description),
        "input_schema": {**tool.schema, "properties": properties},
        "annotations": annotations and annotations.model_copy(update={"open_world_hint": None}),
    }
    return tool.listed.model_copy(update=changes)


MORE_TOOLS = "more_tools"
_FIRST_COUNT = 5
"""The number of tools in the first list. The tool `more_tools` is not counted."""
_FIRST = (
    *("brief", "wait", "claim_task", "create_task", "broadcast", "update_task"),
    *("join_team", "spawn_team", "run_agent", "get_tasks", "list_agents"),
)
"""Tools in the order of their importance. The first list has the first `_FIRST_COUNT` of them that the caller may use.
"""
_MORE_TOOLS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The tool to call; without it, all are listed."},
        "arguments": {"type": "object"},
    },
}


def first_tools(usable: list[Tool]) -> list[Tool]:
    """Return the most important of the *usable* tools. The tool by which the client asks for permission is added if it
    is usable, because the client itself calls it.

    If the team's agents may ask each other questions, the tool for questions is listed instead of `claim_task`, to make
    agents use it. They can also claim tasks with the tool `wait`.
    """
    by_name = {tool.name: tool for tool in usable}
    ask = results.tool_name(_ASK)
    names = [ask if name == "claim_task" and ask in by_name else name for name in _FIRST]
    first = [by_name[name] for name in names if name in by_name][:_FIRST_COUNT]
    if PROMPT_TOOL in by_name:
        first.append(by_name[PROMPT_TOOL])
    return first


class MoreTools(Tool):
    """The tool that lists further tools, or calls one of them. *others* returns the further tools."""

    def __init__(self, others: Callable[[Call], list[Listed]]) -> None:
        doc = "List all other tools, or call one of them."
        command = Command(MORE_TOOLS, self.answer, doc=doc, example=MORE_TOOLS, quiet=True, daily=True, changes=False)
        super().__init__(command, schema=_MORE_TOOLS_SCHEMA)
        self._others = others

    def is_for(self, rights: Rights) -> bool:
        """Return False for every caller, so that the usual lists of tools do not have this tool. Only the first list of
        tools adds it.
        """
        return False

    def answer(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        """Return the whole list of further tools. It may be longer than the answers of other tools."""
        rows = [
            {"name": tool.name, "does": tool.description, "arguments": tool.input_schema["properties"]}
            for tool in self._others(call)
        ]
        return {
            "result": rows,
            "use": f"{MORE_TOOLS} with name and arguments; or the tool itself, if your list has it now",
        }


_ASK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tool_name": {"type": "string", "description": "The name of the tool."},
        "input": {"type": "object", "description": "The arguments of that tool."},
        "tool_use_id": {"type": "string", "description": "The number that the client gave the request."},
    },
    "required": ["tool_name", "input"],
}


class AskPermission(Tool):
    """The tool by which a client asks the person whether it may use one of its own tools."""

    has_data = False

    def __init__(self) -> None:
        doc = "Ask the person at the team's console whether a tool may be used. Your client calls this by itself."
        command = Command(PROMPT_TOOL, self.answer, doc=doc, example=PROMPT_TOOL, quiet=True, daily=True, long=True)
        super().__init__(command, PROMPT_TOOL, schema=_ASK_SCHEMA)

    def is_for(self, rights: Rights) -> bool:
        return rights.has_identity

    def answer(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        """Return the person's decision, uncut: it repeats the client's input, which must stay complete."""
        tool_name, input = arguments.get("tool_name"), arguments.get("input")
        if not isinstance(tool_name, str) or not isinstance(input, dict):
            raise errors.WrongUsage("Missing tool_name or input", f"{PROMPT_TOOL} takes both.")
        refusal = answering.ask_for_tool(call.store, call.team, call.caller, tool_name, permissions.as_text(input))
        return {"behavior": "deny", "message": refusal} if refusal else {"behavior": "allow", "updatedInput": input}
