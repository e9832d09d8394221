"""The refusal of a command that the caller may not run: why, who may, and what to do instead."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.names import HUMAN
from teams_cli.teams import rights
from teams_cli.teams.roles import verdict
from teams_cli.teams.teams import LEADER, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller
    from teams_cli.teams.config import Config


def stranger(team: Team, caller: Caller, operation: str) -> errors.NotAllowed:
    """Why one who is no active member may do nothing."""
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
    """Why one of that role may not: it is denied, or the human was to be asked and did not allow it."""
    if decision == "deny":
        hint = _hint(role, operation, team, caller.config)
        return errors.NotAllowed(f"{caller.name} is {_called(role)}, which may not {operation}", hint)
    hint = _who_allows(operation, team, caller.config)
    return errors.NeedsHuman(f"{caller.name} may {operation} only if the human allows it", hint)


def _called(role: str) -> str:
    return "the human" if role == HUMAN else f"a {role}"


def _hint(role: str, operation: str, team: Team | None, config: Config | None) -> str:
    """Who may, by the rules that refused it, and what one who may not can do instead."""
    allowed = _allowed(operation, team, config)
    able = f"Allowed to: {', '.join(allowed)}." if allowed else "The rules allow nobody to do this."
    if role in (HUMAN, LEADER):
        return (role not in rights.may(operation) and rights.instead(operation)) or able
    return able if not allowed or operation == "send-message" else f"{able} A message to the leader may help."


def _allowed(operation: str, team: Team | None, config: Config | None) -> list[str]:
    return [able for able in rights.EVERYBODY if verdict(able, operation, team, config) == "allow"]


def _who_allows(operation: str, team: Team | None, config: Config | None) -> str:
    if HUMAN in _allowed(operation, team, config):
        return f"Ask the human to run it with --as {HUMAN}, or to allow it in config.json."
    return "Ask the human to answer when they are asked: `teams human`; or to allow it in config.json."
