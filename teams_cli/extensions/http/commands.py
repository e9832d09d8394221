"""The command that serves the HTTP API and the board."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.commands.call import Service
from teams_cli.commands.declaration import Command, in_group, option, switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_SERVE = """Serve the teams over HTTP on this machine until interrupted, with a board for you in the browser.

The command prints the address; the part after `#` is the token that every change needs. If the port is taken, the
server uses the next free one; the file `server.json` in the data directory has the address. With --private, reading
needs the token too. With --open, if a server already runs, the command opens its board.

Raises:
    Conflict: A server of these teams already runs.
"""
_PORT = 9223
LAST_PORT = 65535


def _serve(call: Call, port: int, private: bool, browse: bool) -> Any:
    if not 0 <= port <= LAST_PORT:
        raise errors.InvalidValue(
            f"{port} is not a valid port", f"Give a number from 1 to {LAST_PORT}, or 0 for any free one."
        )
    return Service("extensions.http.server", "http", {"port": port, "private": private, "browse": browse})


COMMANDS = in_group(
    "Connect",
    Command(
        "serve",
        _serve,
        option(
            "--port", "The port to listen on; if it is taken, the next free one.", type=int, metavar="N", default=_PORT
        ),
        switch("--private", "Require the token for reading too."),
        switch("--open", "Open the board in a browser.", name="browse"),
        doc=_SERVE,
        in_team=False,
        changes=False,
        words=lambda server: [f"{server['url']}/#token={server['token']}"],
        traits="at_shell",
        example="serve",
        also="board graph timeline dashboard web ui gui server",
    ),
)
