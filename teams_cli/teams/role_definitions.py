"""Roles that a team makes for itself."""

from __future__ import annotations

from teams_cli import errors, names, text
from teams_cli.store.contract import Store, update
from teams_cli.teams import history, roles
from teams_cli.teams.permission import require
from teams_cli.teams.teams import LEADER, MANAGER, MEMBER, TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.records.types import RoleDefinition
    from teams_cli.teams.permission import Caller


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
    workflow: str | None = None,
) -> RoleDefinition:
    """Define a role of the team, or replace its definition: its parent, its rights, its skills and its workflow.

    Raises:
        InvalidValue: The name is not valid, or an operation or the parent role does not exist.
        AlreadyExists: Another role has that name; upper and lower case do not matter.
    """
    standing = require(store, team_name, caller, "define-role", name)
    config = standing.caller.config
    refuse_name(name, standing.team)
    parent = roles.known_role(extends, standing.team, config)
    for operation in (*(allow or ()), *(deny or ())):
        if operation not in roles.operations():
            raise errors.InvalidValue(
                f"there is no operation {operation!r}", f"Operations: {', '.join(roles.operations())}."
            )
    definition: RoleDefinition = {
        "extends": parent,
        "skill": [text.one_line(skill, "skill", text.MAX_SKILL) for skill in skills or ()],
        "allow": list(allow or ()),
        "deny": list(deny or ()),
    }
    if description:
        definition["description"] = text.checked(description, "description")
    if workflow:
        definition["workflow"] = text.one_line(workflow, "workflow", text.MAX_SKILL)

    def edit(team: Team) -> Team:
        refuse_name(name, team)  # again, since another role may have been defined meanwhile
        ancestry = roles.lineage(parent, team, config)
        if ancestry[-1] in (LEADER, roles.LOST) or name in ancestry:
            hint = f"Extend {MEMBER}, {MANAGER} or one of their roles."
            raise errors.InvalidValue(f"{name} can't extend {parent}", hint)
        return team.having(roles={**team.roles, name: definition})

    update(store, team_name, TEAM, team_name, edit)
    history.note(store, team_name, standing.name, "role defined", role=name, extends=parent)
    return definition


def refuse_name(name: str, team: Team) -> None:
    """Refuse the *name* for a role if it is invalid, means a built-in role, or differs from another only in case."""
    names.check_name(name, "role")
    if name.lower() in (*roles.BUILT_IN, *roles.ALIASES):
        raise errors.InvalidValue(f"{name} is a built-in role", "Choose another name.")
    for other in team.roles:
        if other.lower() == name.lower() and other != name:
            raise errors.AlreadyExists(f"{name} differs only in case from the role {other}", "Choose another name.")
