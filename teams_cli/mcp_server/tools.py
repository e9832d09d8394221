"""Tools: every command that programs may request, and what agents of other systems call by other names."""

from __future__ import annotations

from functools import cached_property

from mcp_types import Tool as Listed
from mcp_types import ToolAnnotations

from teams_cli import roles
from teams_cli.commands import requests
from teams_cli.mcp_server import messaging, wording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Command
    from teams_cli.mcp_server.identity import Standing

DAILY = (
    "list_agents",
    "send_to_agent",
    "broadcast",
    "read_messages",
    "ack",
    "brief",
    "get_tasks",
    "show_task",
    "claim_task",
    "create_task",
    "update_task",
    "release_task",
    "heartbeat",
    "ask_others",
    "answer",
    "respond_to_broadcast",
    "spawn",
    "run_agent",
    "stop_agent",
    "recall",
    "wait",
    "propose_plan",
    "get_plans",
    "approve_plan",
    "reject_plan",
    "request_shutdown",
    "approve_shutdown",
    "reject_shutdown",
)
"""What agents need from day to day, of which each role has its part; the models read it with every request."""
OUTSIDE = ("join_team", "spawn_team", "discover_teams", "whoami")
"""What those need besides who are in no team yet."""
_SELDOM = {"spawn": ("answer", "cwd", "type"), "run_agent": ("answer", "cwd", "type")}
"""Parameters that are taken, but told of only where all is."""
_REPEATABLE = {"claim-task", "ack", "heartbeat", "join-team", "announce", "read-messages", "set", "define-role"}
_ADDING = {"send-message", "broadcast-message", "create-task", "reply", "ask-others", "answer", "propose-plan"} | {
    "spawn",
    "run-agent",
    "spawn-team",
    "attend",
}


class Tool:
    """A command as a tool; *operation* is what the roles know it by, None for what only reads."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.name = wording.tool_name(command.name)
        self.operation = command.name if command.name in roles.OPERATIONS else None

    @cached_property
    def listed(self) -> Listed:
        """The tool as models are told of it."""
        schema = wording.schema(requests.schema(self.command.name, requests.snake_case))
        description = wording.description(self.command.doc)
        return Listed(name=self.name, description=description, input_schema=schema, annotations=self._annotations)

    @property
    def _annotations(self) -> ToolAnnotations | None:
        if self.operation is None and not self.command.changes:
            return ToolAnnotations(read_only_hint=True)
        repeatable = self.command.name in _REPEATABLE
        if not repeatable and self.command.name not in _ADDING:
            return None
        return ToolAnnotations(destructive_hint=False, idempotent_hint=repeatable or None)

    def is_for(self, standing: Standing) -> bool:
        """Whether the caller may use it."""
        if self.operation is None:
            return standing.has_identity or not self.command.changes
        return standing.may(self.operation)

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
    def listed(self) -> Listed:
        """The tool as models are told of it."""
        return Listed(
            name=self.name,
            description=self.words.description,
            input_schema=self.words.schema,
            annotations=self._annotations,
        )

    def run(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        return self.words.run(call, arguments)


def every() -> dict[str, Tool]:
    """All tools by name, in the order of the help."""
    found = {tool.name: tool for tool in map(Tool, requests.offered())}
    for words in messaging.WORDS:
        found[words.name] = Own(found[wording.tool_name(words.command)].command, words)
    return found


def offered(known: Mapping[str, Tool], standing: Standing, everything: bool) -> list[Listed]:
    """The tools to list for the caller: those of every day, or all, and no other than it may use."""
    if everything:
        return [tool.listed for tool in known.values() if tool.is_for(standing)]
    names = [*DAILY, *(OUTSIDE if standing.role is None else ())]
    return [_shorter(known[name].listed) for name in names if name in known and known[name].is_for(standing)]


def _shorter(tool: Listed) -> Listed:
    seldom = _SELDOM.get(tool.name, ())
    properties = {key: value for key, value in tool.input_schema["properties"].items() if key not in seldom}
    return tool.model_copy(update={"input_schema": {**tool.input_schema, "properties": properties}})
