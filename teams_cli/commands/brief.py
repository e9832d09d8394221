"""Commands that show an agent where it is."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.commands.declaration import Command, table
from teams_cli.teams import roles, teams
from teams_cli.views import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_WHOAMI = """Show your name, role and type in the team, where the teams are kept, and the source of each value."""


def _whoami(call: Call) -> Any:
    team_name = call.sources["team"][0] or call.only_team()
    document: dict[str, Any] = {
        "agentId": call.caller.name if call.caller else None,
        "agentName": (call.caller.display or None) if call.caller else None,
        "agentType": (call.caller.type or None) if call.caller else None,
        "role": None,
        "team": team_name or None,
        "member": False,
        "root": call.store.root,
        "store": call.store.address,
        "sources": {what: source for what, (_, source) in call.sources.items()},
    }
    if not team_name or call.caller is None:
        return document
    try:
        team = teams.get(call.store, team_name)
    except errors.NotFound:
        return document
    member = team.member(call.caller.name)
    document.update(role=brief.role_of(team, call.caller), member=member is not None)
    if member:
        document.update(agentName=member.agent_name, agentType=member.agent_type)
        if about := roles.about(member, team, call.config):
            document.update(about=about, skills=sorted(roles.skills_of(member, team, call.config)))
    return document


def _brief(call: Call) -> Any:
    caller = call.known
    try:
        team = call.team
    except errors.NoTeam:  # then what to do about that is what is next
        return brief.outside(call.store, "", caller)
    return brief.brief(call.store, team, caller, call.once_told)


COMMANDS = table(
    "Teams",
    Command(
        "whoami",
        _whoami,
        doc=_WHOAMI,
        reads=True,
        words="brief:who",
        outside=True,
        held="",
        example="whoami",
        also="me who-am-i",
    ),
    Command(
        "brief",
        _brief,
        doc=brief.brief,
        changes=False,
        words="brief:brief",
        daily=True,
        quiet=True,
        held="",
        example="brief",
        want="your tasks, what waits for you, your next command",
        also="status state next start get-status show-status overview summary sync my-tasks mine begin",
    ),
)
