"""Logins: in a database, a boundary between agents that files can't be; each agent has one of its own."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.contract import Kind, Store
from teams_cli.tasks import tasks
from teams_cli.teams import history
from teams_cli.teams.permission import require
from teams_cli.teams.roles import lineage
from teams_cli.teams.teams import LEADER, MANAGER, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.teams.caller import Caller


def set_up(store: Store, team_name: str, caller: Caller | None, kinds: Sequence[Kind[Any]] = ()) -> dict[str, str]:
    """Give every active member of a `--secure` team its own database login, and remove the logins of those who
    left.

    With a login of its own an agent can't change the team, another's inbox or claims, decisions, results, or
    what agents are run with, whatever program it uses. The answer shows the addresses of new logins with their
    passwords, once: put each into the TEAMS_STORE of its agent alone. Repeat it when members join or leave.

    Raises:
        WrongState: The team was not made with --secure.
        InvalidValue: The team is in files, which have no logins.
        NotAllowed: The present database login may not create others.
    """
    at = require(store, team_name, caller, "set-up-roles")
    team, caller = at.team, at.caller
    if not team.secure:
        raise errors.WrongState(
            f"team {team.name} was made without --secure", "Make one: teams spawn-team NAME --secure"
        )
    agents = {member.agent_id: _does(team, member, caller) for member in team.members if member.active}
    made = store.admit(team.name, agents, kinds)
    if made:
        history.note(store, team.name, caller.name, "logins made", agents=sorted(made))
    return made


def _does(team: Team, member: Member, caller: Caller) -> str:
    """What the member is to the database: one that `leads`, one that `manages` tasks or may add some, or another."""
    base = lineage(member.role, team, caller.config)[-1]
    if base == LEADER:
        return "leads"
    return "manages" if base == MANAGER or tasks.may_add(team, member.role, caller.config) else ""
