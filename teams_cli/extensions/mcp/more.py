"""More tools: a client begins with few, as its model reads the list with every request; the rest come when asked for.

Clients that read the list again have them in it then. For the others this tool uses each of them.
"""

from __future__ import annotations

from functools import cached_property

from teams_cli.clients.mcp_settings import PROMPT_TOOL
from teams_cli.commands.declaration import Command
from teams_cli.extensions.mcp.tools import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mcp_types import Tool as Listed

    from teams_cli.commands.call import Call
    from teams_cli.extensions.mcp.identity import Rights

NAME = "more_tools"
MOST = 5
"""How many stand beside this one at the beginning."""
_FIRST = (
    *("brief", "wait", "claim_task", "create_task", "broadcast", "update_task"),
    *("join_team", "spawn_team", "run_agent", "get_tasks", "list_agents"),
)
"""Those that are wanted first; of what the caller may use, the first of them are offered."""
_DOC = "List the tools for mail and all else, or use one."
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Use it; none: list all."},
        "arguments": {"type": "object"},
    },
}


def beginning(usable: list[Tool]) -> list[Tool]:
    """The tools that a client begins with, of those that it may use each day; what it calls by itself is among them."""
    known = {tool.name: tool for tool in usable}
    first = [known[name] for name in _FIRST if name in known][:MOST]
    return first + [known[name] for name in (PROMPT_TOOL,) if name in known]


def meant(name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
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
        return {"result": rows, "use": f"{NAME} with name and arguments; or the tool itself, where you have it now"}
