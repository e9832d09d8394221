"""Tools: every command that programs may request, and what agents of other systems call by other names."""

from __future__ import annotations

from functools import cached_property

from mcp_types import Tool as Listed
from mcp_types import ToolAnnotations

from teams_cli import errors
from teams_cli.clients import permissions
from teams_cli.clients.own_entries import PROMPT_TOOL
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Command
from teams_cli.extensions.mcp import messaging, results
from teams_cli.extensions.mcp.identity import Rights
from teams_cli.names import HUMAN
from teams_cli.questions import answering
from teams_cli.serving import requests
from teams_cli.teams.rights import is_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


_FULL = "full"
_ASK = "ask-others"
_OF_QUESTIONS = (_ASK, "answer", "respond-to-broadcast")
"""What no agent has a use for where questions are off."""
_ALL = 1_000_000


class Tool:
    """A command as a tool. One that *has_data* answers with data beside the text."""

    has_data = True

    def __init__(self, command: Command) -> None:
        self.command = command
        self.name = results.tool_name(command.name)
        self.needs_right = is_change(command.name)

    @cached_property
    def listed(self) -> Listed:
        """The tool as models are told of it."""
        return Listed(
            name=self.name,
            title=self.name.replace("_", " ").capitalize(),
            description=self.description,
            input_schema=self.schema,
            annotations=self._annotations,
        )

    @cached_property
    def description(self) -> str:
        """What it does."""
        return results.description(self.command.doc)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return results.schema(requests.schema(self.command.name, requests.snake_case))

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
        """Whether the caller is told of it each day: under one name, though it may have two."""
        wanted = self.command.daily or (self.command.outside and rights.is_outside)
        return wanted and self.name == results.called(self.command.name)

    def is_for(self, rights: Rights) -> bool:
        """Whether the caller may use it."""
        if rights.is_held and self.command.held is None:
            return False
        if self.command.name in _OF_QUESTIONS and not rights.asks and rights.role != HUMAN:
            return False
        if not self.needs_right:
            return rights.has_identity or not self.command.changes
        return rights.may(self.command.name)

    def answer(self, call: Call, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the command answers, as far as a model can bear it; all of it with the argument `full`.

        Raises:
            TeamsError: It is refused.
        """
        given = {key: value for key, value in arguments.items() if key != _FULL}
        whole = arguments.get(_FULL) is True
        more = 0
        if not whole and self._marks(given):
            more, given = self._no_more_than_fits(call, given)
        document: Any = self.run(call, given)
        more = more or getattr(document, "more", 0)
        asked = whole or given.get("limit") is not None
        is_list = not isinstance(document, dict)
        if is_list:
            rows = len(document) if asked else results.ROWS
            newest_first = document[::-1] if self.command.newest_last else document
            document = results.listed(newest_first, () if whole else self.command.gist, rows)
        document = document | ({"more": more} if more else {})
        if not whole and (more or not asked):
            document = results.within(document)
        if is_list and self.command.newest_last:  # what does not fit is the oldest
            document = document | {"result": document["result"][::-1]}
        shown: dict[str, Any] = document
        return shown

    def _marks(self, given: Mapping[str, Any]) -> bool:
        """Whether it marks what it shows, so that it may not take more than it shows."""
        return self._may_mark and not any(given.get(key) for key in ("peek", "all", "limit"))

    @cached_property
    def _may_mark(self) -> bool:
        return {"peek", "limit"} <= {parameter.key for parameter in self.command.own}

    def _no_more_than_fits(self, call: Call, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Count the rows that do not fit; and the arguments for showing, and marking, the others."""
        rows = self.run(call, {**given, "peek": True, "limit": _ALL})
        fit = results.rows_that_fit(rows)
        return len(rows) - fit, {**given, "limit": fit or None}

    def run(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        """What the command answers.

        Raises:
            TeamsError: It is refused.
        """
        return requests.answer(call, self.command.name, arguments)


class Own(Tool):
    """A tool that does what a command does, in the words of another system."""

    def __init__(self, command: Command, words: messaging.Words) -> None:
        super().__init__(command)
        self.words = words
        self.name = words.name

    @cached_property
    def description(self) -> str:
        """What it does."""
        return self.words.description

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return self.words.schema

    def run(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        return self.words.run(call, arguments)


def every() -> dict[str, Tool]:
    """All tools by name, in the order of the help."""
    found = {tool.name: tool for tool in map(Tool, requests.offered())}
    for words in messaging.WORDS:
        found[words.name] = Own(found[results.tool_name(words.command)].command, words)
    return found


def usable(tools: Mapping[str, Tool], rights: Rights, everything: bool) -> list[Tool]:
    """The tools to offer the caller: those of every day, or all, and no other than it may use."""
    return [tool for tool in tools.values() if (everything or tool.is_daily(rights)) and tool.is_for(rights)]


def listed(usable: Iterable[Tool], rights: Rights, everything: bool) -> list[Listed]:
    """These tools as the caller is told of them."""
    return [_told_when(tool, tool.listed if everything else _shorter(tool), rights) for tool in usable]


def _told_when(tool: Tool, listed: Listed, rights: Rights) -> Listed:
    """The tool; of the one by which others are asked also when it should be used, which the team says."""
    if tool.command.name != _ASK:
        return listed
    return listed.model_copy(update={"description": f"{listed.description} {rights.asks}"})


def _shorter(tool: Tool) -> Listed:
    """The tool in a sentence, without what is seldom given; the models read the list with every request."""
    seldom = {parameter.key for parameter in tool.command.own if parameter.seldom}
    properties = {key: _terse(value) for key, value in tool.schema["properties"].items() if key not in seldom}
    sentence = results.beginning(tool.description)
    schema = {**tool.schema, "properties": properties}
    annotations = (
        tool.listed.annotations.model_copy(update={"open_world_hint": None}) if tool.listed.annotations else None
    )
    return tool.listed.model_copy(update={"description": sentence, "input_schema": schema, "annotations": annotations})


def _terse(field: dict[str, Any]) -> dict[str, Any]:
    """The schema of an argument; what can be chosen from says it by itself."""
    return {key: value for key, value in field.items() if not ("enum" in field and key in ("description", "default"))}


NAME = "more_tools"
MOST = 5
"""How many stand beside this one at the beginning."""
_FIRST = (
    *("brief", "wait", "claim_task", "create_task", "broadcast", "update_task"),
    *("join_team", "spawn_team", "run_agent", "get_tasks", "list_agents"),
)
"""Those that are wanted first; of what the caller may use, the first of them are offered."""
_DOC = "List all other tools, or call one of them."
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The tool to call; without it, all are listed."},
        "arguments": {"type": "object"},
    },
}


def first_tools(usable: list[Tool]) -> list[Tool]:
    """The tools that a client begins with, of those that it may use each day; what it calls by itself is among them."""
    by_name = {tool.name: tool for tool in usable}
    first = [by_name[name] for name in _FIRST if name in by_name][:MOST]
    return first + [by_name[name] for name in (PROMPT_TOOL,) if name in by_name]


def tool_meant(name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The tool that a call uses, and its arguments."""
    given = arguments.get("arguments")
    if name == NAME and isinstance(arguments.get("name"), str):
        return str(arguments["name"]), given if isinstance(given, dict) else {}
    return name, arguments


class MoreTools(Tool):
    """It says which there are, by what *others* finds."""

    def __init__(self, others: Callable[[Call], list[Listed]]) -> None:
        command = Command(NAME, self._list, doc=_DOC, example=NAME, quiet=True, daily=True, changes=False)
        super().__init__(command)
        self.name = NAME
        self._others = others

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return dict(_SCHEMA)

    def is_daily(self, rights: Rights) -> bool:
        return False  # it is offered by who knows whether the others are

    def is_for(self, rights: Rights) -> bool:
        return True

    def answer(self, call: Call, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The tools that the client was not told of, which is longer than other answers where they are many."""
        return self._list(call)

    def _list(self, call: Call) -> dict[str, Any]:
        rows = [
            {"name": tool.name, "does": tool.description, "arguments": tool.input_schema["properties"]}
            for tool in self._others(call)
        ]
        return {"result": rows, "use": f"{NAME} with name and arguments; or the tool itself, if your list has it now"}


_ASK_DOC = "Ask the person at the team's console whether a tool may be used. Your client calls this by itself."
_ASK_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "tool_name": {"type": "string", "description": "The name of the tool."},
        "input": {"type": "object", "description": "The arguments of that tool."},
        "tool_use_id": {"type": "string", "description": "The number that the client gave the request."},
    },
    "required": ["tool_name", "input"],
}


class AskPermission(Tool):
    """It is offered where the environment says that the client is to ask, and nowhere else."""

    has_data = False

    def __init__(self) -> None:
        super().__init__(
            Command(PROMPT_TOOL, _ask, doc=_ASK_DOC, example=PROMPT_TOOL, quiet=True, daily=True, long=True)
        )
        self.name = PROMPT_TOOL

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments, as its client has them."""
        return dict(_ASK_SCHEMA)

    def is_for(self, rights: Rights) -> bool:
        return rights.has_identity

    def answer(self, call: Call, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the client is told, which has its own input in it, so nothing is cut."""
        found: dict[str, Any] = self.run(call, arguments)
        return found

    def run(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        return _ask(call, **{key: arguments.get(key) for key in ("tool_name", "input")})


def leave_tools(environ: Mapping[str, str]) -> dict[str, Tool]:
    """The tool by its name, for a client that is to ask."""
    return {PROMPT_TOOL: AskPermission()} if environ.get(permissions.VARIABLE) == permissions.LEVELS[0] else {}


def _ask(call: Call, tool_name: Any, input: Any) -> dict[str, Any]:
    """In the client's own words, whether the tool may be used."""
    if not isinstance(tool_name, str) or not isinstance(input, dict):
        raise errors.WrongUsage("Missing tool_name or input", f"{PROMPT_TOOL} takes both.")
    why = answering.ask_for_tool(call.store, call.team, call.caller, tool_name, permissions.as_text(input))
    return {"behavior": "deny", "message": why} if why else {"behavior": "allow", "updatedInput": input}
