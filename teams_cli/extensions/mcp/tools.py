"""Tools: every command that programs may request, and what agents of other systems call by other names."""

from __future__ import annotations

from functools import cached_property

from mcp_types import Tool as Listed
from mcp_types import ToolAnnotations

from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Command
from teams_cli.extensions.mcp import bounds, messaging, wording
from teams_cli.extensions.mcp.identity import Rights
from teams_cli.names import HUMAN
from teams_cli.serving import requests
from teams_cli.teams.rights import is_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
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
        self.name = wording.tool_name(command.name)
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
        return wording.description(self.command.doc)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return wording.schema(requests.schema(self.command.name, requests.snake_case))

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
        return wanted and self.name == wording.called(self.command.name)

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
        document = self.run(call, given)
        more = more or getattr(document, "more", 0)
        asked = whole or given.get("limit") is not None
        if not isinstance(document, dict):
            rows = len(document) if asked else bounds.ROWS
            document = bounds.listed(document, () if whole else self.command.gist, rows)
        document = document | ({"more": more} if more else {})
        return document if whole or (asked and not more) else bounds.within(document)

    def _marks(self, given: Mapping[str, Any]) -> bool:
        """Whether it marks what it shows, so that it may not take more than it shows."""
        return self._may_mark and not any(given.get(key) for key in ("peek", "all", "limit"))

    @cached_property
    def _may_mark(self) -> bool:
        return {"peek", "limit"} <= {parameter.key for parameter in self.command.own}

    def _no_more_than_fits(self, call: Call, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """How many rows are left for later, and the arguments with which it shows, and marks, the others."""
        rows = self.run(call, {**given, "peek": True, "limit": _ALL})
        fit = bounds.rows_that_fit(rows)
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
        found[words.name] = Own(found[wording.tool_name(words.command)].command, words)
    return found


def usable(known: Mapping[str, Tool], rights: Rights, everything: bool) -> list[Tool]:
    """The tools to offer the caller: those of every day, or all, and no other than it may use."""
    return [tool for tool in known.values() if (everything or tool.is_daily(rights)) and tool.is_for(rights)]


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
    sentence = wording.beginning(tool.description)
    schema = {**tool.schema, "properties": properties}
    annotations = (
        tool.listed.annotations.model_copy(update={"open_world_hint": None}) if tool.listed.annotations else None
    )
    return tool.listed.model_copy(update={"description": sentence, "input_schema": schema, "annotations": annotations})


def _terse(field: dict[str, Any]) -> dict[str, Any]:
    """The schema of an argument; what can be chosen from says it by itself."""
    return {key: value for key, value in field.items() if not ("enum" in field and key in ("description", "default"))}
