"""Permissions: whether the caller may make a change in a team now."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.teams import roles, teams
from teams_cli.teams.roles import lineage, undefined_role, verdict
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
    """The position of the caller in a team: the team, and the caller's name and role in it."""

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
        """Whether the caller has the leader's role, or a role that extends it."""
        return self._base == LEADER

    @property
    def manages(self) -> bool:
        """Whether the caller is the human, or has the role task-manager or a role that extends it."""
        return self._base in (MANAGER, HUMAN)

    @property
    def _base(self) -> str:
        return HUMAN if self.role == HUMAN else lineage(self.role, self.team, self.caller.config)[-1]


def standing_of(team: Team, caller: Caller | None) -> Standing | None:
    """Return the caller's standing in the team; None if the caller is neither an active member nor the human."""
    if caller is None:
        return None
    if caller.is_human:
        return Standing(team, caller, HUMAN)
    member = team.member(caller.name)
    return Standing(team, caller, member.role) if member else None


def require(store: Store, team_name: str, caller: Caller | None, operation: str, about: str = "") -> Standing:
    """Check that the caller may do *operation* in the team, and return the caller's standing in it.

    If the rule for the operation is `ask`, the human is asked. The question says what the operation is *about*.

    Raises:
        NoIdentity: The caller did not say who it is.
        TeamNotFound: There is no such team.
        NotAllowed: The caller is not an active member, its token is wrong, or its role may not do the operation.
        NeedsHuman: The rules say to ask the human, and the human did not allow it.
        WrongState: The team is closed.
    """
    if caller is None:
        raise errors.NoIdentity(f"{operation} changes the team and needs to know who you are", HOW_TO_SAY_WHO)
    team = teams.get(store, team_name)
    if team.state == "closed" and not roles.in_closed_teams(operation):
        from teams_cli.teams import history

        raise history.of_closed(store, team.name)
    standing = standing_of(team, caller)
    if standing is None:
        raise _refusal_of_stranger(team, caller, operation)
    verify(team, caller)
    decision = verdict(standing.role, operation, team, caller.config)
    if decision == "ask" and team.grants_to(caller.name, operation):
        decision = "allow"
    judge(standing.role, operation, decision, caller, about, team)
    return standing


def refuse_reading(team: Team, caller: Caller, operation: str) -> None:
    """Refuse a command that only reads, if the rule for this *operation* forbids it to the caller's role. If the rule
    is `ask`, the human is asked. A caller who is not a member is not refused.

    Raises:
        NotAllowed, NeedsHuman: As for `require`.
    """
    member = team.member(caller.name)
    if member is not None:
        decision = verdict(member.role, operation, team, caller.config)
        judge(member.role, operation, decision, caller, operation, team)


def judge(role: str, operation: str, decision: str, caller: Caller, about: str = "", team: Team | None = None) -> None:
    """Refuse the *operation* if the *decision* of the rules is `deny`. If it is `ask`, ask the human, who is shown what
    the operation is *about*. If it is `allow`, do nothing.

    Raises:
        NotAllowed: The decision is `deny`.
        NeedsHuman: The human did not allow it, or can't be asked.
    """
    if decision == "allow":
        return
    if decision == "ask":
        if caller.approve and caller.approve(operation, about):
            return
        if HUMAN in _allowed_roles(operation, team, caller.config):
            hint = f"Ask the human to run it with --as {HUMAN}, or to allow it in config.json."
        else:
            question = "the permission question (`teams human`)"
            hint = f"Ask the human to answer {question}, or to allow the operation in config.json."
        raise errors.NeedsHuman(f"{caller.name} may {operation} only if the human allows it", hint)
    if role != HUMAN and (undefined := undefined_role(role, team, caller.config)):
        is_defined = roles.definition_of(undefined, team, caller.config) is not None
        raise errors.NotAllowed(
            f"the role {undefined!r} {'extends itself' if is_defined else 'is not defined'}, so it may change nothing",
            "A leader or the human defines it (teams define-role). To leave: teams leave-team",
        )
    who = "the human" if role == HUMAN else f"a {role}"
    hint = _hint_for_denied(role, operation, team, caller.config)
    raise errors.NotAllowed(f"{caller.name} is {who}, which may not {operation}", hint)


def refuse_former(team: Team, caller: Caller) -> None:
    """Refuse a caller that was a member and is none any more, because it would wait in vain.

    Raises:
        NotAllowed: The caller has left, or was shut down.
    """
    if team.find(caller.name) and not team.member(caller.name):
        raise _refusal_of_stranger(team, caller, "wait")


def verify(team: Team, caller: Caller) -> None:
    """If the team was made with --secure, check the caller's token.

    Raises:
        NotAllowed: The token is missing or wrong.
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
    """Return a secret of 32 random bytes as hexadecimal digits. It is shown to its owner only once."""
    return os.urandom(32).hex()


def hash_token(token: str) -> str:
    """Return the hash of a token. Only the hash is stored in files."""
    from hashlib import sha256

    return sha256(token.encode(errors="replace")).hexdigest()


class Caller:
    """The agent or human who runs a command.

    *type* is the role that the environment gives to an agent that has not joined yet; later the agent's role is in the
    team's file. *approve* is a function that asks the human for permission; None if the human can't be asked.
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


def _refusal_of_stranger(team: Team, caller: Caller, operation: str) -> errors.NotAllowed:
    member, join = team.find(caller.name), f"teams join-team {team.name} --as {caller.name}"
    is_closed = team.state == "closed"  # then nobody can join
    if member is None:
        return errors.NotAllowed(
            f"{caller.name} is not a member of team {team.name}, so it may not {operation}",
            "The team is closed." if is_closed else f"Join first: {join}",
        )
    if member.stopped_by:
        return errors.NotAllowed(f"{caller.name} was shut down ({member.stopped_by})", "Join under another name.")
    hint = "The team is closed: you are done." if is_closed else f"Join again: {join}"
    return errors.NotAllowed(f"{caller.name} left team {team.name}", hint)


def _hint_for_denied(role: str, operation: str, team: Team | None, config: Config | None) -> str:
    """Return a sentence that says which roles may do a refused operation, and whom a member can ask. For a leader or
    the human, it says instead what they can do in place of the operation, if anything.
    """
    allowed = _allowed_roles(operation, team, config)
    hint = f"Allowed to: {', '.join(allowed)}." if allowed else "The rules allow nobody to do this."
    if role in (HUMAN, LEADER):
        is_refused_by_rule = role in roles.may(operation)  # then the operation itself is right for the role
        return hint if is_refused_by_rule else roles.INSTEAD.get(operation, hint)
    # In these cases nobody can do it, or can be asked for it.
    can_ask = operation != "send-message" and verdict(role, "send-message", team, config) != "deny"
    if team is None or team.state == "closed" or not can_ask:
        return hint
    if LEADER in allowed:
        return f"{hint} Ask the leader for it: teams send-message {team.leader} TEXT"
    return f"{hint} Ask for it: teams send-message {HUMAN} TEXT" if HUMAN in allowed else hint


def _allowed_roles(operation: str, team: Team | None, config: Config | None) -> list[str]:
    return [role for role in roles.EVERYBODY if verdict(role, operation, team, config) == "allow"]
