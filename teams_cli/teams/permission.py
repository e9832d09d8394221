"""Permission for every change: whether this caller may do this, in this team, now."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.teams import roles, teams
from teams_cli.teams.roles import LOST, lineage, verdict
from teams_cli.teams.teams import LEADER, MANAGER, Team

HOW_TO_SAY_WHO = (
    f"Add --as {HUMAN} as a person; as an agent --as AGENT or TEAMS_AGENT_ID. For a new name: teams join-team"
)
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from teams_cli.teams.config import Config

    Approve = Callable[[str, str], bool]


class Standing:
    """The caller's place in a team: its team, name and role."""

    def __init__(self, team: Team, caller: Caller, role: str) -> None:
        self.team = team
        self.caller = caller
        self.role = role

    @property
    def name(self) -> str:
        """The name of the caller."""
        return self.caller.name

    @property
    def leads(self) -> bool:
        """Whether the caller has the leader's role, or one that extends it."""
        return self._base == LEADER

    @property
    def manages(self) -> bool:
        """Whether the caller is the human, or has the role task-manager or one that extends it."""
        return self._base in (MANAGER, HUMAN)

    @property
    def _base(self) -> str:
        return HUMAN if self.role == HUMAN else lineage(self.role, self.team, self.caller.config)[-1]


def standing_of(team: Team, caller: Caller | None) -> Standing | None:
    """Return the caller's place in the team; None if it is not an active member."""
    if caller is None:
        return None
    if caller.is_human:
        return Standing(team, caller, HUMAN)
    member = team.member(caller.name)
    return Standing(team, caller, member.role) if member else None


def require(store: Store, team_name: str, caller: Caller | None, operation: str, about: str = "") -> Standing:
    """Check that the caller may do *operation* in the team, and return its place in it.

    If the rule is `ask`, the human is shown the operation and what it is *about*.

    Raises:
        NoIdentity: Nobody said who asks.
        TeamNotFound: There is no such team.
        NotAllowed: The caller is no active member, its token is wrong, or its role may not.
        NeedsHuman: The rules say to ask the human, who did not allow it.
        WrongState: The team is closed.
    """
    if caller is None:
        raise errors.NoIdentity(
            f"{operation} changes the team and needs to know who you are",
            HOW_TO_SAY_WHO,
        )
    team = teams.get(store, team_name)
    if team.state == "closed" and not roles.in_closed_teams(operation):
        from teams_cli.teams import history

        raise history.of_closed(store, team.name)
    at = standing_of(team, caller)
    if at is None:
        raise stranger(team, caller, operation)
    verify(team, caller)
    decision = verdict(at.role, operation, team, caller.config)
    if decision == "ask" and team.grants_to(caller.name, operation):
        decision = "allow"
    judge(at.role, operation, decision, caller, about, team)
    return at


def refuse_reading(team: Team, caller: Caller, operation: str) -> None:
    """Refuse a command that only reads, if a rule forbids it to the member.

    Raises:
        NotAllowed, NeedsHuman: As `require`.
    """
    member = team.member(caller.name)
    if member is not None:
        judge(member.role, operation, verdict(member.role, operation, team, caller.config), caller, operation, team)


def judge(role: str, operation: str, decision: str, caller: Caller, about: str = "", team: Team | None = None) -> None:
    """Return if the operation is allowed. If the rule is `ask`, ask the human.

    Raises:
        NotAllowed: It is denied.
        NeedsHuman: The human did not allow it, or can't be asked.
    """
    if decision == "deny" or (decision == "ask" and not (caller.approve and caller.approve(operation, about))):
        raise by_rule(decision, role, operation, caller, team)


def verify(team: Team, caller: Caller) -> None:
    """Check the caller's token, in a team made with --secure.

    Raises:
        NotAllowed: It is missing or wrong.
    """
    if not team.secure:
        return
    from hmac import compare_digest

    member = team.find(caller.name)
    expected = team.human_token_hash if caller.is_human else member and member.token_hash
    if not expected or not compare_digest(hash_token(caller.token), expected):
        raise errors.NotAllowed(
            f"the token of {caller.name} in team {team.name} is {'wrong' if caller.token else 'missing'}",
            "Put the token from joining into TEAMS_TOKEN.",
        )


def new_token() -> str:
    """Return a secret of 32 bytes, which is shown once."""
    import secrets

    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """Return the hash of a token. The files have only the hash."""
    from hashlib import sha256

    return sha256(token.encode(errors="replace")).hexdigest()


class Caller:
    """The agent or human who runs a command.

    *type* is the role that the environment gives an agent that has not joined yet; after that its role is in the team's
    file. *approve* asks the human for permission, if there is a way to ask.
    """

    def __init__(
        self,
        name: str,
        *,
        display: str = "",
        type: str = "",
        token: str = "",
        config: Config | None = None,
        approve: Approve | None = None,
    ) -> None:
        self.name = name
        self.display = display
        self.type = type
        self.token = token
        self.config = config
        self.approve = approve

    @property
    def is_human(self) -> bool:
        return self.name == HUMAN


def stranger(team: Team, caller: Caller, operation: str) -> errors.NotAllowed:
    """Return why a caller who is no active member is refused."""
    member = team.find(caller.name)
    if member is None:
        return errors.NotAllowed(
            f"{caller.name} is not a member of team {team.name}, so it may not {operation}",
            f"Join first: teams join-team {team.name} --as {caller.name}",
        )
    if member.stopped_by:
        return errors.NotAllowed(f"{caller.name} was shut down ({member.stopped_by})", "Join under another name.")
    return errors.NotAllowed(
        f"{caller.name} left team {team.name}", f"Join again: teams join-team {team.name} --as {caller.name}"
    )


def by_rule(decision: str, role: str, operation: str, caller: Caller, team: Team | None) -> errors.NotAllowed:
    """Return why a role is refused: the rule denies it, or the human did not allow it."""
    if decision == "deny" and role != HUMAN and (line := lineage(role, team, caller.config))[-1] == LOST:
        return errors.NotAllowed(
            f"the role {line[-2]!r} is not defined, so it may change nothing",
            "See: teams define-role; or teams leave-team",
        )
    if decision == "deny":
        hint = _hint(role, operation, team, caller.config)
        return errors.NotAllowed(f"{caller.name} is {_called(role)}, which may not {operation}", hint)
    hint = _who_allows(operation, team, caller.config)
    return errors.NeedsHuman(f"{caller.name} may {operation} only if the human allows it", hint)


def _called(role: str) -> str:
    return "the human" if role == HUMAN else f"a {role}"


def _hint(role: str, operation: str, team: Team | None, config: Config | None) -> str:
    """Return which roles may do it by the rules, and what the others can do instead."""
    allowed = _allowed(operation, team, config)
    able = f"Allowed to: {', '.join(allowed)}." if allowed else "The rules allow nobody to do this."
    if role in (HUMAN, LEADER):
        return (role not in roles.may(operation) and roles.instead(operation)) or able
    return able if not allowed or operation == "send-message" else f"{able} A message to the leader may help."


def _allowed(operation: str, team: Team | None, config: Config | None) -> list[str]:
    return [able for able in roles.EVERYBODY if verdict(able, operation, team, config) == "allow"]


def _who_allows(operation: str, team: Team | None, config: Config | None) -> str:
    if HUMAN in _allowed(operation, team, config):
        return f"Ask the human to run it with --as {HUMAN}, or to allow it in config.json."
    return "Ask the human to answer the permission question (`teams human`), or to allow the operation in config.json."
