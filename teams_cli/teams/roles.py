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
"""The base of a role that extends a role whose definition was removed."""
_STRENGTH = ("allow", "ask", "deny")


def verdict(role: str, operation: str, team: Team | None, config: Config | None) -> str:
    """Return `allow`, `ask` or `deny`: the stricter of the team's and the user's rule. If there is no rule, the default
    of the operation decides.

    A rule for the role itself counts before one for a role that it extends, and that before `*`. The user's rule for
    the tool `*` covers operations that the user does not name. Deny is stricter than ask, and ask than allow, so no
    team gives back what the user took.
    """
    roles_by_default = may(operation)
    if role == HUMAN:
        return "allow" if HUMAN in roles_by_default else "deny"
    line = lineage(role, team, config)
    if line[-1] == LOST and is_change(operation) and operation != "leave-team":
        return "deny"
    by_team = _nearest_rule(line, operation, team.roles if team else {}, {})
    by_user = ""
    if config:
        tools = config.permission.get("tool", {})
        by_user = _nearest_rule(line, operation, config.agent, by_role(tools.get(operation, {})))
        by_user = by_user or _nearest_rule(line, operation, {}, by_role(tools.get("*", {})))
    decisions = [decision for decision in (by_team, by_user) if decision]
    if decisions:
        return max(decisions, key=_STRENGTH.index)
    return "allow" if line[-1] in (LOST, *roles_by_default) else "deny"


def by_role(rule: Mapping[str, str] | str) -> dict[str, str]:
    """Return the rule as a table of decisions by role. A single decision is for all roles, `*`."""
    return {"*": rule} if isinstance(rule, str) else dict(rule)


def _nearest_rule(
    line: list[str], operation: str, definitions: Mapping[str, RoleDefinition], rules: Mapping[str, str]
) -> str:
    """Return the decision on the operation for the first role in *line* that has one, by its definition or by the
    *rules* by role, else the decision for `*`; empty if there is none.
    """
    for role in [*line, "*"]:
        decisions = [decision for name, decision in rules.items() if ALIASES.get(name, name) == role]
        if role in definitions:
            definition = definitions[role]
            decisions += [word for word in ("allow", "deny") if operation in definition.get(word, ())]  # type: ignore[operator]
        if decisions:
            return max(decisions, key=_STRENGTH.index)
    return ""


def lineage(role: str, team: Team | None, config: Config | None) -> list[str]:
    """Return the role and the roles that it extends, directly and through others. The last is a built-in role, or
    `LOST` if one of them is not defined.
    """
    line = [role]
    while line[-1] not in BUILT_IN:
        definition = definition_of(line[-1], team, config)
        parent = ALIASES.get(definition["extends"], definition["extends"]) if definition else ""
        if not parent or parent in line:
            return [*line, LOST]
        line.append(parent)
    return line


def definition_of(role: str, team: Team | None, config: Config | None) -> RoleDefinition | None:
    """Return the definition of the role by the team, else by the user; None if there is none."""
    for table in _role_tables(team, config):
        if role in table:
            return table[role]
    return None


def _role_tables(team: Team | None, config: Config | None) -> list[dict[str, RoleDefinition]]:
    return [table for table in (team.roles if team else None, config.agent if config else None) if table]


def skills_of(member: Member, team: Team, config: Config | None) -> set[str]:
    """Return the skills of a member: those of its role and of the roles that this extends, and its own `--type`."""
    skills = {member.agent_type} if member.agent_type else set()
    for role in lineage(member.role, team, config):
        definition = definition_of(role, team, config)
        skills.update(definition.get("skill", ()) if definition else ())
    return skills


def about(member: Member, team: Team, config: Config | None) -> str:
    """Return a sentence for the member about its defined role and skills; empty for built-in roles."""
    if member.role in BUILT_IN:
        return ""
    definition = definition_of(member.role, team, config)
    description = definition.get("description", "").rstrip(".") if definition else ""
    sentence = f"Your role: {member.role}: {description}." if description else f"Your role: {member.role}."
    if skills := sorted(skills_of(member, team, config)):
        sentence += f" Your skills: {', '.join(skills)}."
    if workflow := definition.get("workflow") if definition else None:
        sentence += f" You follow the workflow {workflow}: teams list-workflows has its file."
    return sentence


def role_for(name: str, team: Team | None, config: Config | None) -> str | None:
    """Return the role of that name, which may be an alias of a built-in role; None if there is none."""
    role = ALIASES.get(name, name)
    return role if role in BUILT_IN or definition_of(role, team, config) else None


def known_role(name: str, team: Team, config: Config | None) -> str:
    """Return the role of that name, as `role_for` does.

    Raises:
        InvalidValue: There is none; the hint names all roles.
    """
    role = role_for(name, team, config)
    if role is None:
        defined = {name for table in _role_tables(team, config) for name in table}
        all_roles = ", ".join([*BUILT_IN, *sorted(defined)])
        raise errors.InvalidValue(f"there is no role {name!r}", f"Roles: {all_roles}. To add one: teams define-role")
    return role


MEMBERS = (LEADER, MEMBER, MANAGER)
EVERYBODY = (*MEMBERS, HUMAN)
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
    "leave-team": MEMBERS,
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
_INSTEAD = {
    "claim-task": "Leaders coordinate: leave the task to a member, or hand over the team first.",
    "join-team": "Leaders create teams: `teams spawn-team`.",
    "propose-plan": "Members propose plans; leaders decide them.",
    "spawn": "Use `teams run-agent`.",
}
"""What leaders can do instead of an operation that they may not do."""
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
_BY_WORD = {"everybody": EVERYBODY, "members": MEMBERS, "workers": WORKERS, "leaders": LEADERS, "reads": EVERYBODY}
"""The roles that the tables of extensions mean."""


def may(operation: str) -> tuple[str, ...]:
    """Return the roles that may do the operation if no rule says otherwise.

    Raises:
        LookupError: The operation is in no table: that is a bug, and nobody may do it.
    """
    if operation in _READS:
        return EVERYBODY
    if operation in _CHANGES:
        return _CHANGES[operation]
    if right := extensions.right(operation):
        return _BY_WORD[right]
    raise LookupError(f"no rights are declared for {operation!r}")


def in_closed_teams(operation: str) -> bool:
    """Whether the operation is possible in a closed team."""
    return operation in _IN_CLOSED_TEAMS or operation in _READS or extensions.right(operation) == "reads"


def instead(operation: str) -> str:
    """Return the advice for leaders who may not do the operation; empty if there is none."""
    return _INSTEAD.get(operation, "")


def is_change(name: str) -> bool:
    """Whether the command of that name changes something, so that it needs a right."""
    return name in _CHANGES or extensions.right(name) not in (None, "reads")


def operations() -> list[str]:
    """Return the names of all operations, sorted."""
    return sorted({*_CHANGES, *_READS, *extensions.rights()})
