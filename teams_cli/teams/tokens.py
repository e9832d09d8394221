"""Tokens of members of a team made with --secure: made, kept as a digest, compared."""

from __future__ import annotations

from teams_cli import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller
    from teams_cli.teams.teams import Team


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
