"""`teams hook CLIENT --ask`: before a client uses a tool, the person is asked whether it may."""

from __future__ import annotations

import json

from teams_cli import errors
from teams_cli.clients import known, permissions
from teams_cli.clients.dialects import COMMON
from teams_cli.hooks import exchange
from teams_cli.questions import approvals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.hooks.entry import Standpoint

_PATIENCE = 10.0


def ask(client: str, given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> int:
    """Print what keeps the client from using the tool, if the person does not let it; the exit status.

    When nobody can be asked, that is what the client is told: the tool is not used.
    """
    event = json.loads(given)
    tool, input = str(event["tool_name"]), event.get("tool_input")
    if permissions.is_ours(tool, input):
        return 0
    if not standpoint.has_team:
        raise errors.NotAllowed("no team is set, so nobody can be asked", "Set TEAMS_TEAM and TEAMS_AGENT_ID.")
    store, caller = exchange.opened(standpoint, environ, _PATIENCE)
    why = approvals.ask_for_tool(store, standpoint.team, caller, tool, permissions.as_text(input))
    if why:
        exchange.say((known.get(client).dialect or COMMON).denial(event, why))
    return 0
