"""Logins: in a database, a boundary between agents that files can't be; each agent has one of its own."""

from __future__ import annotations

from teams_cli import history
from teams_cli.errors import WrongState
from teams_cli.roles import require
from teams_cli.teams import LEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.caller import Caller
    from teams_cli.store.contract import Store


def set_up(store: Store, team_name: str, caller: Caller | None) -> dict[str, str]:
    """Give every active member of a `--secure` team a login of its own in the database, and take it from who left.

    With it an agent can't change another's inbox, its claims, or the team, whatever program it uses. The addresses of
    new logins are returned, with their passwords, this once: put each in the TEAMS_STORE of its agent alone. Run it
    again when members have come or gone.

    Raises:
        WrongState: The team was not made with --secure.
        InvalidValue: The team is in files, which know no logins.
        NotAllowed: The login that we have in the database may make no others.
    """
    team = require(store, team_name, caller, "set-up-roles")
    assert caller is not None
    if not team.secure:
        raise WrongState(f"team {team.name} was made without --secure", "Make one: teams spawn-team NAME --secure")
    agents = {member.agent_id: member.role == LEADER for member in team.members if member.active}
    made = store.admit(team.name, agents)
    if made:
        history.note(store, team.name, caller.name, "logins made", agents=sorted(made))
    return made
