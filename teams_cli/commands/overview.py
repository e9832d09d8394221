"""Commands that tell an agent where it is."""

from __future__ import annotations

from teams_cli import brief, teams
from teams_cli.commands.declaration import Command, table
from teams_cli.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_WHOAMI = """Say who you are: your name, role and type in the team, where the teams are kept, and what says so."""


def _whoami(call: Call) -> Any:
    team_name = call.sources["team"][0]
    if not team_name and len(likely := call.likely_teams()) == 1:
        team_name = likely[0]
    document: dict[str, Any] = {
        "agentId": call.caller.name if call.caller else None,
        "agentName": (call.caller.display or None) if call.caller else None,
        "agentType": (call.caller.type or None) if call.caller else None,
        "role": None,
        "team": team_name or None,
        "member": False,
        "root": call.store.root,
        "store": call.store.place,
        "sources": {what: source for what, (_, source) in call.sources.items()},
    }
    if not team_name or call.caller is None:
        return document
    try:
        team = teams.load(call.store, team_name)
    except NotFound:
        return document
    member = team.member(call.caller.name)
    document.update(role=brief.role_of(team, call.caller), member=member is not None)
    if member:
        document.update(agentName=member.agent_name, agentType=member.agent_type)
    return document


def _brief(call: Call) -> Any:
    team, _ = call.team, call.agent
    assert call.caller is not None
    return brief.brief(call.store, team, call.caller)


COMMANDS = table(
    Command("whoami", _whoami, doc=_WHOAMI, reads=True),
    Command("brief", _brief, doc=brief.brief, changes=False),
)
