"""Roles that a team makes for itself."""

from __future__ import annotations

from teams_cli import history, names, roles, text
from teams_cli.errors import AlreadyExists, InvalidValue
from teams_cli.roles import require
from teams_cli.store.contract import update
from teams_cli.teams import LEADER, MANAGER, MEMBER, TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.caller import Caller
    from teams_cli.shapes import RoleDefinition
    from teams_cli.store.contract import Store


def define(
    store: Store,
    team_name: str,
    caller: Caller | None,
    name: str,
    *,
    extends: str = MEMBER,
    allow: list[str] | None = None,
    deny: list[str] | None = None,
    skills: list[str] | None = None,
    description: str | None = None,
) -> RoleDefinition:
    """Define a role of the team, or define it anew: what it extends, what it may and may not do, what it knows.

    Raises:
        InvalidValue: The name can't be one, or an operation or the role it extends does not exist.
        AlreadyExists: The name differs only in case from another role's.
    """
    team = require(store, team_name, caller, "define-role", name)
    assert caller is not None
    names.check_name(name, "role")
    if name.lower() in (LEADER, MEMBER, MANAGER, *roles.ALIASES):
        raise InvalidValue(f"{name} is one of the three roles and stays as it is", "Choose another name.")
    _refuse_look_alike(name, team)
    parent = roles.known_role(extends, team, caller.config)
    if roles.lineage(parent, team, caller.config)[-1] == LEADER or name in roles.lineage(parent, team, caller.config):
        raise InvalidValue(f"{name} can't extend {parent}", f"Extend {MEMBER}, {MANAGER} or a role made of them.")
    for operation in [*(allow or ()), *(deny or ())]:
        if operation not in roles.OPERATIONS:
            raise InvalidValue(
                f"there is no operation {operation!r}", f"Operations: {', '.join(sorted(roles.OPERATIONS))}."
            )
    definition: RoleDefinition = {
        "extends": parent,
        "skill": [text.one_line(s, "skill", text.MAX_SKILL) for s in skills or ()],
    }
    definition["allow"], definition["deny"] = list(allow or ()), list(deny or ())
    if description:
        definition["description"] = text.checked(description, "description")

    def edit(team: Team) -> Team:
        return team.having(roles={**team.roles, name: definition})

    update(store, team_name, TEAM, team_name, edit)
    history.note(store, team_name, caller.name, "role defined", role=name, extends=parent)
    return definition


def _refuse_look_alike(name: str, team: Team) -> None:
    for other in team.roles:
        if other.lower() == name.lower() and other != name:
            raise AlreadyExists(f"{name} differs only in case from the role {other}", "Choose another name.")
