"""The command that serves the commands as tools of the Model Context Protocol."""

from __future__ import annotations

from teams_cli.commands.call import Service
from teams_cli.commands.declaration import Command, in_group, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_MCP = """Serve the commands as tools of the Model Context Protocol, over standard input and output.

Environment variables say who you are and in which team. Tools that your role may not use are not offered; without a
name you can only read and join. At first only a few tools are listed. The tool `more_tools` lists the others; they can
be called even before they are listed. `--tools daily` lists the everyday tools from the start; `--tools all` lists all
tools.

Raises:
    ExtensionMissing: The extra `mcp` is missing.
"""


def _mcp(call: Call, tools: str) -> Any:
    return Service("extensions.mcp.server", "mcp", {"tools": tools})


COMMANDS = in_group(
    "Connect",
    Command(
        "mcp",
        _mcp,
        option("--tools", "The tools to list from the start.", choices=("default", "daily", "all"), default="default"),
        doc=_MCP,
        changes=False,
        traits="at_shell",
        held="tools",
        example="mcp",
    ),
)
