"""Before every call of its model, in a client that lets us add to it: who is there, and what is not handled yet.

It is not kept in the session, so that each call has what is so then; nothing is marked as read by it.
"""

from __future__ import annotations

import json

from teams_cli import errors
from teams_cli.agents import attention
from teams_cli.hooks import exchange, subagents
from teams_cli.teams import permission

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.hooks.entry import Standpoint


def tell(given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> None:
    """Print the synthetic result of a `broadcast` tool, unless there is nothing in it, or the agent is no member."""
    child = str(json.loads(given).get("agent_id") or "")
    store, parent = exchange.opened(standpoint, environ)
    caller = subagents.caller_of(store, standpoint.team, parent, child) if child else parent
    if caller is None:
        return
    try:
        permission.require(store, standpoint.team, caller, "read-messages")
        payload = attention.glance(store, standpoint.team, caller)
    except errors.TeamsError:  # the client goes on as without us
        return
    if payload:
        exchange.say(payload)
