"""Before every call of its model, in a client that lets us add to it: who is there, and what is not handled yet.

It is not kept in the session, so that each call has what is so then; nothing is marked as read by it.
"""

from __future__ import annotations

import json
import sys

from teams_cli import environment, streams
from teams_cli.agents import attention
from teams_cli.errors import TeamsError
from teams_cli.hooks import subagents
from teams_cli.records.annotations import Mapping
from teams_cli.store import opening
from teams_cli.store.files.engine import FILES
from teams_cli.teams import config, permission
from teams_cli.teams.caller import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.hooks.entry import Standpoint

_PATIENCE = 2.0


def tell(given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> None:
    """Print the synthetic result of a `broadcast` tool, unless there is nothing in it, or the agent is no member."""
    child = str(json.loads(given).get("agent_id") or "")
    store = opening.open_store(standpoint.root, standpoint.store or FILES, _PATIENCE, environ.get("TEAMS_HOST", ""))
    token = standpoint.token or environment.look_up("token", None, environ)[0]
    parent = Caller(standpoint.agent, token=token, config=config.load(store.root, environ))
    caller = subagents.caller_of(store, standpoint.team, parent, child) if child else parent
    if caller is None:
        return
    try:
        permission.require(store, standpoint.team, caller, "read-messages")
        payload = attention.glance(store, standpoint.team, caller)
    except TeamsError:  # the client goes on as without us
        return
    if payload:
        try:
            sys.stdout.write(json.dumps(payload) + "\n")
            sys.stdout.flush()
        finally:
            streams.finish()
