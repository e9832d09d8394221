"""What each role may do, and the one function that every change asks for leave."""

from __future__ import annotations

from teams_cli import teams
from teams_cli.errors import InvalidValue, NeedsHuman, NoIdentity, NotAllowed, WrongState
from teams_cli.names import HUMAN
from teams_cli.teams import LEADER, MANAGER, MEMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.caller import Caller
    from teams_cli.config import Config
    from teams_cli.shapes import RoleDefinition
    from teams_cli.store.contract import Store
    from teams_cli.teams import Member, Team

BUILT_IN = (LEADER, MEMBER, MANAGER)
ALIASES = {"leader": LEADER, "member": MEMBER, "manager": MANAGER}

_ALL = {
    "send-message",
    "read-messages",
    "reply",
    "ack",
    "announce",
    "ask-others",
    "answer",
    "heartbeat",
    "leave-team",
} | {"interject"}
_WORK = {"join-team", "claim-task", "update-task", "release-task", "propose-plan", "spawn"} | {
    "approve-shutdown",
    "reject-shutdown",
}
_LEAD = {"spawn-team", "broadcast-message", "create-task", "update-task", "release-task", "approve-plan"} | {
    "reject-plan",
    "request-shutdown",
    "run-agent",
    "stop-agent",
    "pause-agent",
    "resume-agent",
    "close-team",
    "copy-team",
    "set-up-roles",
    "restore-team",
    "hand-over",
    "define-role",
    "set",
}
MAY: dict[str, frozenset[str]] = {
    LEADER: frozenset(_ALL | _LEAD),
    MEMBER: frozenset(_ALL | _WORK | {"broadcast-message"}),
    MANAGER: frozenset(_ALL | _WORK | {"create-task"}),
    HUMAN: frozenset(_ALL | _LEAD | {"skip-question"}) - {"leave-team"},
}
"""The operations of each role; whose task or plan one may change, the operation itself asks `is_any`."""

OPERATIONS = frozenset().union(*MAY.values())
_OF_A_CLOSED_TEAM = frozenset({"restore-team", "read-messages", "copy-team"})
_STRENGTH = ("allow", "ask", "deny")


def require(store: Store, team_name: str, caller: Caller | None, operation: str, about: str = "") -> Team:
    """Check that the caller may do *operation* in the team, and return the team.

    Whoever is asked for leave (`ask`) is shown the operation and what it is *about*.

    Raises:
        NoIdentity: Nobody said who asks.
        TeamNotFound: There is no such team.
        NotAllowed: The caller is no active member, its token is wrong, or its role may not.
        NeedsHuman: The rules say to ask the human, who did not allow it.
        WrongState: The team is closed.
    """
    if caller is None:
        raise NoIdentity(
            f"{operation} changes the team and needs to know who you are",
            "Say it with --as AGENT or TEAMS_AGENT_ID; `teams join-team` gives you a name.",
        )
    team = teams.load(store, team_name)
    if team.state == "closed" and operation not in _OF_A_CLOSED_TEAM:
        raise WrongState(f"team {team.name} is closed", f"`teams restore-team {team.name}` opens it again.")
    role = role_of(team, caller, operation)
    verify(team, caller)
    decision = verdict(role, operation, team, caller.config)
    if decision == "ask" and team.grants_to(caller.name, operation):
        decision = "allow"
    judge(role, operation, decision, caller, about)
    return team


def role_of(team: Team, caller: Caller, operation: str) -> str:
    """The role that the team's files give the caller.

    Raises:
        NotAllowed: It is no active member.
    """
    if caller.is_human:
        return HUMAN
    member = team.find(caller.name)
    if member is None:
        raise NotAllowed(
            f"{caller.name} is not a member of team {team.name}, so it may not {operation}",
            f"Join first: teams join-team {team.name} --as {caller.name}",
        )
    if member.stopped_by:
        raise NotAllowed(f"{caller.name} was shut down ({member.stopped_by})", "Work goes on under another name.")
    if not member.active:
        raise NotAllowed(
            f"{caller.name} left team {team.name}", f"Join again: teams join-team {team.name} --as {caller.name}"
        )
    return member.role


def verify(team: Team, caller: Caller) -> None:
    """In a team made with --secure, check the caller's token.

    Raises:
        NotAllowed: It is missing or wrong.
    """
    if not team.secure:
        return
    from hmac import compare_digest

    member = team.find(caller.name)
    expected = team.human_token_hash if caller.is_human else member and member.token_hash
    if not expected or not compare_digest(hash_token(caller.token), expected):
        raise NotAllowed(
            f"team {team.name} asks for a token, and {caller.name}'s is {'wrong' if caller.token else 'missing'}",
            "Put the token that joining gave in TEAMS_TOKEN.",
        )


def new_token() -> str:
    """A secret of 32 bytes, to be shown once."""
    import secrets

    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """What the files keep of a token."""
    from hashlib import sha256

    return sha256(token.encode(errors="replace")).hexdigest()


def judge(role: str, operation: str, decision: str, caller: Caller, about: str = "") -> None:
    """Let pass what is allowed; put to the human what is to be asked.

    Raises:
        NotAllowed: It is denied.
        NeedsHuman: The human did not allow it, or can't be asked.
    """
    if decision == "deny":
        raise NotAllowed(f"{caller.name} is {_called(role)}, which may not {operation}", _hint(role, operation))
    if decision == "ask" and not (caller.approve and caller.approve(operation, about)):
        raise NeedsHuman(
            f"{caller.name} may {operation} only when the human allows it",
            f"Ask the human to run it with --as {HUMAN}, or to allow it in config.json.",
        )


def verdict(role: str, operation: str, team: Team | None, config: Config | None) -> str:
    """`allow`, `ask` or `deny`: the stronger of what the team and what the user says, else the table of roles.

    Each says it of this very role, else of one that it extends, else of `*`. Deny beats ask beats allow, so that no
    team gives back what the user took.
    """
    if role == HUMAN:
        return "allow" if operation in MAY[HUMAN] else "deny"
    line = lineage(role, team, config)
    rules = config.permission.get("tool", {}).get(operation, {}) if config else {}
    by_team = _nearest(line, operation, team.roles if team else {}, {})
    by_user = _nearest(line, operation, config.agent if config else {}, rules)
    said = [word for word in (by_team, by_user) if word]
    if said:
        return max(said, key=_STRENGTH.index)
    return "allow" if operation in MAY.get(line[-1], ()) else "deny"


def _nearest(line: list[str], operation: str, roles: Mapping[str, RoleDefinition], rules: Mapping[str, str]) -> str:
    """What definitions and rules say of the first role in *line* that they say anything of, else of `*`."""
    for name in [*line, "*"]:
        said = [decision for key, decision in rules.items() if ALIASES.get(key, key) == name]
        if name in roles:
            said += [word for word in ("allow", "deny") if operation in roles[name].get(word, ())]  # type: ignore[operator]
        if said:
            return max(said, key=_STRENGTH.index)
    return ""


def lineage(role: str, team: Team | None, config: Config | None) -> list[str]:
    """The role and those it extends, down to one of the three.

    Raises:
        NotAllowed: It extends a role that is not defined, or itself.
    """
    line = [role]
    while line[-1] not in BUILT_IN:
        definition = definition_of(line[-1], team, config)
        parent = ALIASES.get(definition["extends"], definition["extends"]) if definition else ""
        if not parent or parent in line:
            raise NotAllowed(f"the role {line[-1]!r} is not defined, so it may do nothing", "See `teams define-role`.")
        line.append(parent)
    return line


def definition_of(role: str, team: Team | None, config: Config | None) -> RoleDefinition | None:
    """How the team, else the user, defines that role."""
    for table in _role_tables(team, config):
        if role in table:
            return table[role]
    return None


def _role_tables(team: Team | None, config: Config | None) -> list[dict[str, RoleDefinition]]:
    return [table for table in (team.roles if team else None, config.agent if config else None) if table]


def skills_of(member: Member, team: Team, config: Config | None) -> set[str]:
    """What a member knows: the skills of its role and those it extends, and its specialty."""
    skills = {member.agent_type} if member.agent_type else set()
    for role in lineage(member.role, team, config):
        definition = definition_of(role, team, config)
        skills.update(definition.get("skill", ()) if definition else ())
    return skills


def is_any(team: Team, caller: Caller, *roles: str) -> bool:
    """Whether the caller has one of these roles, or one that extends it."""
    if caller.is_human:
        return HUMAN in roles
    member = team.member(caller.name)
    return member is not None and lineage(member.role, team, caller.config)[-1] in roles


def role_for(word: str, team: Team | None, config: Config | None) -> str | None:
    """The role that *word* names: one of the three, an alias, or one that is defined; None if there is none."""
    word = ALIASES.get(word, word)
    known = word in BUILT_IN or definition_of(word, team, config)
    return word if known else None


def known_role(word: str, team: Team, config: Config | None) -> str:
    """The role that *word* names.

    Raises:
        InvalidValue: There is none; the hint names those that there are.
    """
    role = role_for(word, team, config)
    if role is None:
        defined = [name for table in _role_tables(team, config) for name in table]
        known = ", ".join([*BUILT_IN, *sorted(set(defined))])
        raise InvalidValue(f"there is no role {word!r}", f"Roles: {known}. `teams define-role` makes more.")
    return role


def _called(role: str) -> str:
    return "the human" if role == HUMAN else f"a {role}"


def _hint(role: str, operation: str) -> str:
    able = [name for name, may in MAY.items() if operation in may]
    if role in (HUMAN, LEADER):
        return _INSTEAD.get(operation, f"Allowed to: {', '.join(able)}.")
    return f"Allowed to: {', '.join(able)}. A message to the leader may help."


_INSTEAD = {
    "spawn": "Use `teams run-agent`.",
    "claim-task": "Leaders coordinate: leave the task to a member, or hand over the team first.",
    "join-team": "Leaders create teams: `teams spawn-team`.",
    "propose-plan": "Members propose plans; leaders decide them.",
}
