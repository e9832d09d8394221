"""The tool by which a client has the person asked whether it may use another: `--permission-prompt-tool` of some."""

from __future__ import annotations

from functools import cached_property

from teams_cli import errors
from teams_cli.clients import permissions
from teams_cli.clients.mcp_settings import PROMPT_TOOL
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Command
from teams_cli.extensions.mcp.identity import Rights
from teams_cli.extensions.mcp.tools import Tool
from teams_cli.questions import approvals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_DOC = "Ask the person at the team's console whether a tool may be used. Your client calls this by itself."
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "tool_name": {"type": "string", "description": "Which tool."},
        "input": {"type": "object", "description": "What it would be given."},
        "tool_use_id": {"type": "string", "description": "The client's own number of the request."},
    },
    "required": ["tool_name", "input"],
}


class AskPermission(Tool):
    """It is offered where the environment says that the client is to ask, and nowhere else."""

    has_data = False

    def __init__(self) -> None:
        super().__init__(Command(PROMPT_TOOL, _ask, doc=_DOC, example=PROMPT_TOOL, quiet=True, daily=True, long=True))
        self.name = PROMPT_TOOL

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments, as its client has them."""
        return dict(_SCHEMA)

    def is_for(self, rights: Rights) -> bool:
        return rights.has_identity

    def answer(self, call: Call, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the client is told, which has its own input in it, so nothing is cut."""
        found: dict[str, Any] = self.run(call, arguments)
        return found

    def run(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        return _ask(call, **{key: arguments.get(key) for key in ("tool_name", "input")})


def tools(environ: Mapping[str, str]) -> dict[str, Tool]:
    """The tool by its name, for a client that is to ask."""
    return {PROMPT_TOOL: AskPermission()} if environ.get(permissions.VARIABLE) == permissions.LEVELS[0] else {}


def _ask(call: Call, tool_name: Any, input: Any) -> dict[str, Any]:
    """In the client's own words, whether the tool may be used."""
    if not isinstance(tool_name, str) or not isinstance(input, dict):
        raise errors.WrongUsage("Missing tool_name or input", f"{PROMPT_TOOL} takes both.")
    why = approvals.ask_for_tool(call.store, call.team, call.caller, tool_name, permissions.as_text(input))
    return {"behavior": "deny", "message": why} if why else {"behavior": "allow", "updatedInput": input}
