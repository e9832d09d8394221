"""Tools: one for each command that programs may request, and those for messages under the names that other systems
use.
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
from teams_cli.commands.declaration import Command
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
_ASK = "ask-others"
_OF_QUESTIONS = (_ASK, "answer", "respond-to-broadcast")
"""Commands that are not offered while questions are off."""
_ALL = 1_000_000


class Tool:
    """A command as a tool. Its name, its description and the schema of its arguments are those of the command, unless
    others are given.
    """

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
        """The tool as it is in a list of tools."""
        return Listed(
            name=self.name,
            title=self.name.replace("_", " ").capitalize(),
            description=self.description,
            input_schema=self.schema,
            annotations=self._annotations,
        )

    @cached_property
    def description(self) -> str:
        """The description of the tool for models."""
        return self._description or results.description(self.command.doc)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the tool's arguments."""
        return self._schema or results.schema(requests.schema(self.command.name, requests.snake_case))

    @property
    def _annotations(self) -> ToolAnnotations:
        claims = any(parameter.key == "claim" for parameter in self.command.own)
        if not self.needs_right and not (self.command.changes or claims):
            return ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return ToolAnnotations(
            destructive_hint=self.command.changes and not (self.command.repeatable or self.command.adding),
            idempotent_hint=self.command.repeatable or None,
            open_world_hint=False,
        )

    def is_daily(self, rights: Rights) -> bool:
        """Return whether this is an everyday tool of the caller. A tool that hints call by another name is not."""
        is_wanted = self.command.daily or (self.command.outside and rights.is_outside)
        return is_wanted and self.name == results.called(self.command.name)

    def is_for(self, rights: Rights) -> bool:
        """Return whether the caller may use the tool."""
        if rights.is_held and self.command.held is None:
            return False
        if self.command.name in _OF_QUESTIONS and not rights.asks and rights.role != HUMAN:
            return False
        if not self.needs_right:
            return rights.has_identity or not self.command.changes
        return rights.may(self.command.name)

    def answer(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        """Run the command, and return its answer, cut to the length that an answer may have. With the argument `full`
        it is not cut.

        Raises:
            TeamsError: The command refuses.
        """
        given = {key: value for key, value in arguments.items() if key != _FULL}
        is_whole = arguments.get(_FULL) is True
        more = 0
        if not is_whole and self._may_mark and not any(given.get(key) for key in ("peek", "all", "limit")):
            # It marks as read what it shows, so it may take no more than it shows.
            rows = self.run(call, {**given, "peek": True, "limit": _ALL})
            fit = results.rows_that_fit(rows)
            more, given = len(rows) - fit, {**given, "limit": fit or None}
        document: Any = self.run(call, given)
        more = more or getattr(document, "more", 0)
        has_limit = is_whole or given.get("limit") is not None
        is_list = not isinstance(document, dict)
        if is_list:
            most = len(document) if has_limit else results.ROWS
            newest_first = document[::-1] if self.command.newest_last else document
            document = results.listed(newest_first, () if is_whole else self.command.gist, most)
        document = document | ({"more": more} if more else {})
        if not is_whole and (more or not has_limit):
            document = results.within(document)
        if is_list and self.command.newest_last:  # the oldest rows are those that do not fit
            document = document | {"result": document["result"][::-1]}
        shown: dict[str, Any] = document
        return shown

    @cached_property
    def _may_mark(self) -> bool:
        return {"peek", "limit"} <= {parameter.key for parameter in self.command.own}

    def run(self, call: Call, arguments: Arguments) -> Any:
        """Run the command, and return its document.

        Raises:
            TeamsError: The command refuses.
        """
        return requests.answer(call, self.command.name, arguments)


class MessagingTool(Tool):
    """A tool with the name and the arguments that another system uses. *required* and *optional* have the descriptions
    of the arguments, all of which are texts.
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
        described = {**required, **optional}
        properties = {key: {"type": "string", "description": help} for key, help in described.items()}
        schema = {"type": "object", "properties": properties, **({"required": [*required]} if required else {})}
        super().__init__(command, name, description, schema)
        self._run = run

    def run(self, call: Call, arguments: Arguments) -> Any:
        try:
            return self._run(call, self._checked(arguments))
        except errors.TeamsError as error:
            if self.name != "send_to_agent":
                raise
            raise _undelivered(call, arguments, error) from None

    def _checked(self, arguments: Arguments) -> dict[str, str]:
        known, required = self.schema["properties"], self.schema.get("required", ())
        hint = f"{self.name} takes {', '.join(known) or 'nothing'}."
        if unknown := [key for key in arguments if key not in known]:
            raise errors.WrongUsage(f"{unknown[0]}: unknown field", hint)
        given = {key: _text(key, value) for key, value in arguments.items() if value is not None}
        if any(key not in given for key in required):
            raise errors.WrongUsage(f"Missing {' or '.join(required)}", hint)
        return given


def _text(key: str, value: Any) -> str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise errors.InvalidValue(f"{key}: must be a string", "Give a text.")


def _list_agents(call: Call, given: Mapping[str, str]) -> Any:
    listed = requests.answer(call, "list-agents", given)
    return {"agents": [_agent(row) for row in listed["agents"]], "self": listed["self"]}


def _agent(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent in short form. Its `status` is `idle` or `active`, as the other system defines it."""
    others = {key: row[key] for key in ("state", "role", "agentType", "queueDepth") if row.get(key)}
    doing = {"workingOn": row["status"]} if row.get("status") else {}
    return {"name": row["name"], "status": "active" if row["state"] == "active" else "idle", **others, **doing}


def _send_to_agent(call: Call, given: Mapping[str, str]) -> Any:
    if given["target"] == _name(call):
        raise errors.WrongUsage("Cannot send message to self", "Choose another agent from the list.")
    sent = requests.answer(call, "send-message", {"to": given["target"], "text": given["message"]})
    return {"delivered": True, "target": sent["to"], "id": sent["id"]}


def _undelivered(call: Call, arguments: Arguments, error: errors.TeamsError) -> results.DocumentedRefusal:
    """Return the refusal in the other system's form, with the reason and the agents that can be reached."""
    is_unknown = isinstance(error, errors.AgentNotFound)
    message = f'Agent "{arguments["target"]}" not found' if is_unknown else error.message
    try:
        available = [name for name in call.load_team().active_names() if name != _name(call)]
    except errors.TeamsError:
        available = []
    document = {"delivered": False, "error": message, "code": error.code, "hint": error.hint, "available": available}
    return results.DocumentedRefusal(error, document)


def _name(call: Call) -> str:
    return call.caller.name if call.caller else ""


def _broadcast(call: Call, given: Mapping[str, str]) -> Any:
    message, to, number = given["message"], given.get("send_to"), given.get("reply_to")
    if number is not None and to is not None:
        raise errors.WrongUsage("an answer goes to the sender of the message", "Leave out send_to or reply_to.")
    if number is not None:
        sent = requests.answer(call, "reply", {"message": number, "text": message})
    elif to is not None:
        sent = requests.answer(call, "send-message", {"to": to, "text": message})
    else:
        return _broadcast_to_all(call, message)
    outcome = {"you_are": sent["from"], "id": sent["id"], "sentTo": sent.get("recipients") or [sent["to"]]}
    return {**outcome, "repliedTo": sent["repliedTo"]} if number is not None else outcome


def _broadcast_to_all(call: Call, message: str) -> Any:
    """Send the message to all other agents. The first broadcast of an agent that is alone becomes its status line."""
    name = _name(call)
    try:
        sent = requests.answer(call, "broadcast-message", {"text": message})
    except errors.NobodyThere:
        if presence.load(call.store, call.team, name).status is not None:
            raise
        presence.introduce(call.store, call.team, name, message)
        return {"you_are": name, "id": None, "sentTo": []}
    outcome = {"you_are": name, "id": sent["id"], "sentTo": sent["recipients"]}

    def add_agents() -> None:
        others = attention.others(call.store, call.team, name)[: attention.MAX_NAMED]
        outcome["agents"] = [{"name": row["name"], "status": row["status"]} for row in others]

    call.try_to(add_agents)
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


def every() -> dict[str, Tool]:
    """Return all tools by name, in the order of the help."""
    tools = {tool.name: tool for tool in map(Tool, requests.offered())}
    for command, (name, required, optional) in results.MESSAGING.items():
        needed, others = ({key: _PARAMETERS[key] for key in keys} for keys in (required, optional))
        own = tools[results.tool_name(command)].command
        tools[name] = MessagingTool(own, name, _RUNS[name], _DESCRIPTIONS[name], needed, others)
    return tools


def usable(tools: Mapping[str, Tool], rights: Rights, everything: bool) -> list[Tool]:
    """Return the tools that the caller may use: the everyday ones, or all of them if *everything* is True."""
    return [tool for tool in tools.values() if (everything or tool.is_daily(rights)) and tool.is_for(rights)]


def listed(usable: Iterable[Tool], rights: Rights, everything: bool) -> list[Listed]:
    """Return the tools as a client lists them. Their descriptions are short unless *everything* is True."""
    return [_with_invitation(tool, tool.listed if everything else _shorter(tool), rights) for tool in usable]


def _with_invitation(tool: Tool, listed: Listed, rights: Rights) -> Listed:
    """Return the tool. The description of the tool that asks others also says how readily the team asks questions."""
    if tool.command.name != _ASK:
        return listed
    return listed.model_copy(update={"description": f"{listed.description} {rights.asks}"})


def _shorter(tool: Tool) -> Listed:
    """Return the tool with a description of one sentence and without rare arguments, since models read the list with
    every request.
    """
    rare = {parameter.key for parameter in tool.command.own if parameter.seldom}
    properties = {key: _terse(value) for key, value in tool.schema["properties"].items() if key not in rare}
    annotations = tool.listed.annotations
    changes = {
        "description": results.beginning(tool.description),
        "input_schema": {**tool.schema, "properties": properties},
        "annotations": annotations and annotations.model_copy(update={"open_world_hint": None}),
    }
    return tool.listed.model_copy(update=changes)


def _terse(field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument, without a description if it has a list of choices."""
    return {key: value for key, value in field.items() if not ("enum" in field and key in ("description", "default"))}


NAME = "more_tools"
_MOST_FIRST = 5
"""The number of tools in the first list, besides `more_tools`."""
_FIRST = (
    *("brief", "wait", "claim_task", "create_task", "broadcast", "update_task"),
    *("join_team", "spawn_team", "run_agent", "get_tasks", "list_agents"),
)
"""Tools by importance. The first list has the first of these that the caller may use."""
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The tool to call; without it, all are listed."},
        "arguments": {"type": "object"},
    },
}


def first_tools(usable: list[Tool]) -> list[Tool]:
    """Return the most important of the usable tools, and the tool for permissions, which the client calls by itself.

    While questions are on, agents are asked to use them, so the tool for questions takes the place of `claim_task`. The
    tool `wait` claims tasks too.
    """
    by_name = {tool.name: tool for tool in usable}
    ask = results.tool_name(_ASK)
    names = [ask if name == "claim_task" and ask in by_name else name for name in _FIRST]
    first = [by_name[name] for name in names if name in by_name][:_MOST_FIRST]
    return [*first, by_name[PROMPT_TOOL]] if PROMPT_TOOL in by_name else first


def tool_meant(name: str, arguments: Arguments) -> tuple[str, Arguments]:
    """Return the tool that a call uses, perhaps through `more_tools`, and the arguments for that tool."""
    given = arguments.get("arguments")
    if name == NAME and isinstance(arguments.get("name"), str):
        return str(arguments["name"]), given if isinstance(given, dict) else {}
    return name, arguments


class MoreTools(Tool):
    """The tool that lists further tools, which *others* returns, or calls one of them."""

    def __init__(self, others: Callable[[Call], list[Listed]]) -> None:
        doc = "List all other tools, or call one of them."
        command = Command(NAME, self._list, doc=doc, example=NAME, quiet=True, daily=True, changes=False)
        super().__init__(command, schema=_SCHEMA)
        self._others = others

    def is_daily(self, rights: Rights) -> bool:
        return False

    def is_for(self, rights: Rights) -> bool:
        return True

    def answer(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        """Return the whole list, which may be longer than other answers."""
        return self._list(call)

    def _list(self, call: Call) -> dict[str, Any]:
        rows = [
            {"name": tool.name, "does": tool.description, "arguments": tool.input_schema["properties"]}
            for tool in self._others(call)
        ]
        return {"result": rows, "use": f"{NAME} with name and arguments; or the tool itself, if your list has it now"}


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
        command = Command(PROMPT_TOOL, _ask, doc=doc, example=PROMPT_TOOL, quiet=True, daily=True, long=True)
        super().__init__(command, PROMPT_TOOL, schema=_ASK_SCHEMA)

    def is_for(self, rights: Rights) -> bool:
        return rights.has_identity

    def answer(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        """Return the whole answer. It repeats the client's own input, so nothing may be cut."""
        return _ask(call, arguments.get("tool_name"), arguments.get("input"))


def permission_tools(environ: Mapping[str, str]) -> dict[str, Tool]:
    """Return the tool that asks for permission, if the environment says that the client uses it; otherwise an empty
    dictionary.
    """
    return {PROMPT_TOOL: AskPermission()} if environ.get(permissions.VARIABLE) == permissions.LEVELS[0] else {}


def _ask(call: Call, tool_name: Any, input: Any) -> dict[str, Any]:
    """Return whether the tool may be used, in the client's own format."""
    if not isinstance(tool_name, str) or not isinstance(input, dict):
        raise errors.WrongUsage("Missing tool_name or input", f"{PROMPT_TOOL} takes both.")
    refusal = answering.ask_for_tool(call.store, call.team, call.caller, tool_name, permissions.as_text(input))
    return {"behavior": "deny", "message": refusal} if refusal else {"behavior": "allow", "updatedInput": input}
