"""`teams hook CLIENT --ask`: before a client uses a tool, the person is asked whether it may."""

from __future__ import annotations

import json
import sys

from teams_cli import environment, streams
from teams_cli.clients import known, permissions
from teams_cli.clients.dialects import COMMON
from teams_cli.errors import NotAllowed
from teams_cli.questions import approvals
from teams_cli.records.annotations import Mapping
from teams_cli.store import opening
from teams_cli.store.files.engine import FILES
from teams_cli.teams import config
from teams_cli.teams.caller import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.hooks.entry import Standpoint


def ask(client: str, given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> int:
    """Print what keeps the client from using the tool, if the person does not let it; the exit status.

    When nobody can be asked, that is what the client is told: the tool is not used.
    """
    event = json.loads(given)
    tool, input = str(event["tool_name"]), event.get("tool_input")
    if permissions.is_ours(tool, input):
        return 0
    if not standpoint.has_team:
        raise NotAllowed("there is no team whose person could be asked", "Set TEAMS_TEAM and TEAMS_AGENT_ID.")
    store = opening.open_store(standpoint.root, standpoint.store or FILES, host=environ.get("TEAMS_HOST", ""))
    token = standpoint.token or environment.look_up("token", None, environ)[0]
    caller = Caller(standpoint.agent, token=token, config=config.load(store.root, environ))
    why = approvals.ask_for_tool(store, standpoint.team, caller, tool, permissions.as_text(input))
    if why:
        try:
            sys.stdout.write(json.dumps((known.get(client).dialect or COMMON).denial(event, why)) + "\n")
            sys.stdout.flush()
        finally:
            streams.finish()
    return 0
