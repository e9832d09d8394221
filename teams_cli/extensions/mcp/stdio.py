"""The MCP server over standard input and output: begins it, and ends the process with it."""

from __future__ import annotations

import os
import sys

import anyio

from teams_cli.commands.call import Call
from teams_cli.extensions.mcp import pipes
from teams_cli.extensions.mcp.server import TeamsServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn


def run(call: Call, settings: Mapping[str, Any]) -> NoReturn:
    """Serve until standard input ends; *settings* says by `tools` which the client begins with. Then the process ends,
    whatever its threads still wait for.
    """
    try:
        source, sink = pipes.claim()
    except OSError:  # there is nobody to serve
        os._exit(0)
    anyio.run(TeamsServer(call, settings["tools"]).serve, source, sink)
    sys.stderr.flush()
    os._exit(0)
