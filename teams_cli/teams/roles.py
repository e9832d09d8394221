"""Roles and their rights: who may do what, by the table of rights, the team's rules and the user's rules."""

from __future__ import annotations

from teams_cli import errors, extensions
from teams_cli.names import HUMAN
from teams_cli.teams.teams import LEADER, MANAGER, MEMBER, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.records.types import RoleDefinition
    from teams_cli.teams.config import Config


BUILT_IN = (LEADER, MEMBER, MANAGER)
ALIASES = {"leader": LEADER, "member": MEMBER, "manager": MANAGER}

LOST = ""
"""Ends a lineage after a role that is no longer defined or extends itself."""
_STRENGTH = ("allow", "ask", "deny")


def verdict(role: str, operation: str, team: Team | None, config: Config | None) -> str:
    """Return `allow`, `ask` or `deny` for the *operation*: the stricter of the team's rule and the user's rule. Deny is
    stricter than ask, and ask is stricter than allow, so no team can allow what the user forbids. If neither has a
    rule, the default of the operation decides.

    A rule for the role itself takes precedence over a rule for a role that it extends, and both take precedence over a
    rule for `*`. If the user has no rule for the operation, the user's rule for the tool `*` applies.
    """
    roles_by_default = may(operation)
    if role == HUMAN:
        return "allow" if HUMAN in roles_by_default else "deny"
    ancestry = lineage(role, team, config)
    is_undefined = ancestry[-1] == LOST
    if is_undefined and is_change(operation) and operation != "leave-team":
        return "deny"
    by_team = _nearest_rule(ancestry, operation, team.roles if team else {}, {})
    by_user = ""
    if config:
        tools = config.permission.get("tool", {})
        by_user = _nearest_rule(ancestry, operation, config.agent, by_role(tools.get(operation, {})))
        by_user = by_user or _nearest_rule(ancestry, operation, {}, by_role(tools.get("*", {})))
    decisions = [decision for decision in (by_team, by_user) if decision]
    if decisions:
        return max(decisions, key=_STRENGTH.index)
    # For a role that is not defined, only reading and leaving are left here.
    return "allow" if is_undefined or ancestry[-1] in roles_by_default else "deny"


def by_role(rule: Mapping[str, str] | str) -> dict[str, str]:
    """Return a *rule* as a table of decisions by role. A single decision applies to all roles, `*`."""
    return {"*": rule} if isinstance(rule, str) else dict(rule)


def _nearest_rule(
    ancestry: list[str], operation: str, definitions: Mapping[str, RoleDefinition], rules: Mapping[str, str]
) -> str:
    """Return the decision on the *operation* for the first role in *ancestry* that has one, or else for `*`; "" if no
    role has one. Decisions are in *rules*, by role, and in the lists `allow` and `deny` of the *definitions* of roles.
    If a role has several decisions, the strictest applies.
    """
    for role in [*ancestry, "*"]:
        decisions = [decision for name, decision in rules.items() if ALIASES.get(name, name) == role]
        if definition := _definition_in(definitions, role):
            decisions += [word for word in ("allow", "deny") if operation in definition.get(word, ())]  # type: ignore[operator]
        if decisions:
            return max(decisions, key=_STRENGTH.index)
    return ""


def lineage(role: str, team: Team | None, config: Config | None) -> list[str]:
    """Return the role and its ancestors: the role that it extends, and so on up to a built-in role. If one of them is
    not defined or extends itself, the list ends with `LOST` instead.
    """
    ancestry = [role]
    while ancestry[-1] not in BUILT_IN:
        definition = definition_of(ancestry[-1], team, config)
        if definition is None:
            return [*ancestry, LOST]
        parent = ALIASES.get(definition["extends"], definition["extends"])
        if not parent or parent in ancestry:
            return [*ancestry, LOST]
        ancestry.append(parent)
    return ancestry


def undefined_role(role: str, team: Team | None, config: Config | None) -> str:
    """Return the role at which the lineage of *role* breaks off, because it is not defined or extends itself, perhaps
    through other roles. Return "" if the lineage ends at a built-in role.
    """
    ancestry = lineage(role, team, config)
    return ancestry[-2] if ancestry[-1] == LOST else ""


def definition_of(role: str, team: Team | None, config: Config | None) -> RoleDefinition | None:
    """Return the team's definition of the role, or else the user's; None if there is no definition."""
    for table in _role_tables(team, config):
        if definition := _definition_in(table, role):
            return definition
    return None


def _definition_in(table: Mapping[str, RoleDefinition], role: str) -> RoleDefinition | None:
    """Return the definition of the role in *table*, where a built-in role may be under its alias; None without one."""
    names = (role, *(alias for alias, meant in ALIASES.items() if meant == role))
    return next((table[name] for name in names if name in table), None)


def _role_tables(team: Team | None, config: Config | None) -> list[dict[str, RoleDefinition]]:
    tables = (team.roles if team else None, config.agent if config else None)
    return [table for table in tables if table]


def skills_of(member: Member, team: Team, config: Config | None) -> set[str]:
    """Return the skills of a member: its own `--type`, and those of its role and of the roles that its role extends."""
    skills = {member.agent_type} if member.agent_type else set()
    for role in lineage(member.role, team, config):
        definition = definition_of(role, team, config)
        skills.update(definition.get("skill", ()) if definition else ())
    return skills


def about(member: Member, team: Team, config: Config | None) -> str:
    """Return some sentences for the member about its role and its skills; an empty text for a built-in role."""
    if member.role in BUILT_IN:
        return ""
    definition = definition_of(member.role, team, config)
    description = definition.get("description", "").rstrip(".") if definition else ""
    workflow = definition.get("workflow") if definition else None
    sentences = f"Your role: {member.role}: {description}." if description else f"Your role: {member.role}."
    if skills := sorted(skills_of(member, team, config)):
        sentences += f" Your skills: {', '.join(skills)}."
    if workflow:
        sentences += f" You follow the workflow {workflow}: teams list-workflows has its file."
    return sentences


def role_for(name: str, team: Team | None, config: Config | None) -> str | None:
    """Return the role with that *name* or alias; None if there is no such role."""
    role = ALIASES.get(name, name)
    return role if role in BUILT_IN or definition_of(role, team, config) else None


def known_role(name: str, team: Team, config: Config | None) -> str:
    """Return the role with that *name*, which may also be an alias of a built-in role.

    Raises:
        InvalidValue: There is no such role; the hint names all roles.
    """
    role = role_for(name, team, config)
    if role is None:
        defined = {name for table in _role_tables(team, config) for name in table}
        all_roles = ", ".join([*BUILT_IN, *sorted(defined)])
        raise errors.InvalidValue(f"there is no role {name!r}", f"Roles: {all_roles}. To add one: teams define-role")
    return role


EVERYBODY = (*BUILT_IN, HUMAN)
WORKERS = (MEMBER, MANAGER)
LEADERS = (LEADER, HUMAN)

_CHANGES = {
    "ack": EVERYBODY,
    "agree": EVERYBODY,
    "announce": EVERYBODY,
    "answer": EVERYBODY,
    "approve-plan": LEADERS,
    "approve-shutdown": WORKERS,
    "ask-others": EVERYBODY,
    "broadcast-message": (LEADER, MEMBER, HUMAN),
    "claim-task": WORKERS,
    "close-team": LEADERS,
    "copy-team": LEADERS,
    "create-task": (LEADER, MANAGER, HUMAN),
    "define-role": LEADERS,
    "down": LEADERS,
    "export": LEADERS,
    "hand-over": LEADERS,
    "heartbeat": EVERYBODY,
    "import": (LEADER, MANAGER, HUMAN),
    "interject": EVERYBODY,
    "join-team": WORKERS,
    "land": EVERYBODY,
    "leave-team": BUILT_IN,
    "note": EVERYBODY,
    "pause-agent": LEADERS,
    "propose-plan": WORKERS,
    "prune": LEADERS,
    "read-messages": EVERYBODY,
    "reject-plan": LEADERS,
    "reject-shutdown": WORKERS,
    "release-task": EVERYBODY,
    "reply": EVERYBODY,
    "request-shutdown": LEADERS,
    "restart-agent": LEADERS,
    "restore-team": LEADERS,
    "resume-agent": LEADERS,
    "review-task": EVERYBODY,
    "run-agent": LEADERS,
    "send-message": EVERYBODY,
    "set": LEADERS,
    "set-up-roles": LEADERS,
    "share": EVERYBODY,
    "skip-question": (HUMAN,),
    "spawn": WORKERS,
    "spawn-team": LEADERS,
    "stop-agent": LEADERS,
    "up": LEADERS,
    "update-task": EVERYBODY,
    "worktree": LEADERS,
}
"""The commands that change something, with the roles that may run them."""
_IN_CLOSED_TEAMS = frozenset(
    {"copy-team", "down", "export", "prune", "read-messages", "restore-team", "stop-agent", "worktree"}
)
INSTEAD = {
    "claim-task": "Leave the task to a member, start one (teams run-agent PROMPT --detach), or leave the task open: "
    "teams close-team",
    "join-team": "Leaders create teams: `teams spawn-team`.",
    "propose-plan": "Members propose plans; leaders decide them.",
    "spawn": "Use `teams run-agent`.",
}
"""For each operation that a leader or the human may not do: what they can do instead."""
_READS = {
    "before-complete",
    "discover-teams",
    "get-evidence",
    "get-landings",
    "get-plans",
    "get-questions",
    "get-tasks",
    "history",
    "list-agents",
    "logs",
    "diff",
    "overlaps",
    "recall",
    "search",
    "sent",
    "settings",
    "shared",
    "show-message",
    "show-plan",
    "show-question",
    "show-task",
    "show-team",
    "usage",
    "whoami",
}
"""The commands that only read. Everybody may run them, members or not, and also in a closed team."""
_BY_WORD = {"everybody": EVERYBODY, "members": BUILT_IN, "workers": WORKERS, "leaders": LEADERS, "reads": EVERYBODY}
"""The roles that a word in an extension's table of rights stands for."""


def may(operation: str) -> tuple[str, ...]:
    """Return the roles that may do the operation if no rule says otherwise.

    Raises:
        LookupError: The operation is in no table. This is a bug; nobody may do the operation.
    """
    if operation in _READS:
        return EVERYBODY
    if operation in _CHANGES:
        return _CHANGES[operation]
    if right := extensions.rights().get(operation):
        return _BY_WORD[right]
    raise LookupError(f"no rights are declared for {operation!r}")


def in_closed_teams(operation: str) -> bool:
    """Whether the operation is allowed in a closed team."""
    return operation in _IN_CLOSED_TEAMS or operation in _READS or extensions.rights().get(operation) == "reads"


def is_change(name: str) -> bool:
    """Whether the command of that name changes something, so that its caller needs a right to it."""
    return name in _CHANGES or extensions.rights().get(name, "reads") != "reads"


def operations() -> list[str]:
    """Return the names of all operations, sorted."""
    return sorted({*_CHANGES, *_READS, *extensions.rights()})
