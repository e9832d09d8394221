"""The rights of a client that `teams` starts: ask for all, edit in its directory, or all that its user may."""

from __future__ import annotations

from teams_cli import environment, errors
from teams_cli.clients import own_entries
from teams_cli.environment import HELD, SANDBOX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.clients.profiles import Profile
    from teams_cli.records.types import Permissions
    from teams_cli.teams.teams import Team

LEVELS = environment.LEVELS
VARIABLE = HELD
SETTING = "permissions"
_BEFORE = "edit"
HELP = "What it may do without asking: ask (nothing), edit or all."


class Mode:
    """How a client is held to one level: *words* on its command line, and variables to *set*."""

    def __init__(self, words: list[str], set: Mapping[str, str]) -> None:
        self.words = words
        self.set = set


def choose(profile: Profile, asked: Permissions | None, team: Team, environ: Mapping[str, str]) -> Permissions | None:
    """The level to start a client at: what was asked for, else what its profile says, else the team's setting.

    None for a client that has no modes: it does what its own command line lets it.

    Raises:
        InvalidValue: The client can't be held to that level; says why.
        NotAllowed: Whoever starts it may do less itself.
    """
    if asked:
        refuse_missing(profile, asked)
    if not profile.modes:
        refuse_more(environ, LEVELS[-1], f"start {profile.name}, which nothing holds back")
        return None
    level = asked or profile.permissions or _setting(team)
    mode(profile, level)
    refuse_more(environ, level, f"start an agent that may do more ({level})")
    return level


def refuse_missing(profile: Profile, level: str) -> None:
    """Refuse a level that the client can't be held to."""
    if not profile.modes:
        why = f"{profile.name} can't be held to permissions {level}: it does what its command line lets it"
        raise errors.InvalidValue(why, "Leave out --permissions.")
    mode(profile, level)


def _setting(team: Team) -> Permissions:
    from teams_cli.teams import settings

    return settings.value(team, SETTING)  # type: ignore[return-value]  # one of the setting's choices


def held_to(profile: Profile, level: str | None) -> str | None:
    """The level of a client that was started at *level*: earlier versions said none."""
    return (level or _BEFORE) if profile.modes else None


def mode(profile: Profile, level: str | None) -> Mode:
    """How the client is held to that level; with no words for one that has no modes.

    Raises:
        InvalidValue: It can't be; says why.
    """
    level = held_to(profile, level)
    if level is None:
        return Mode([], {})
    found = profile.modes.get(level)
    if found is None or isinstance(found, str):
        others = [other for other in LEVELS if not isinstance(profile.modes.get(other), str | None)]
        why = found or "its profile has no such mode"
        raise errors.InvalidValue(
            f"{profile.name} can't be started with permissions {level}: {why}",
            f"Use --permissions {' or '.join(others) or 'nothing'}; for the whole team: teams set permissions LEVEL",
        )
    if isinstance(found, list):
        return Mode(found, {})
    return Mode(list(found.get("words", [])), {key: str(value) for key, value in found.get("set", {}).items()})


def is_confined(profile: Profile, level: str | None) -> bool:
    """Whether the client's shell is a sandbox at that level: what is started in it is to be started outside."""
    return any(SANDBOX in word for word in mode(profile, level).words)


def refuse_more(environ: Mapping[str, str], level: str, to_do: str) -> None:
    """Refuse to do for a client what it may not do itself.

    Raises:
        NotAllowed: The environment is that of a client which is held to less than *level*, or of one above.
    """
    holder = environment.holder(environ)
    if holder and LEVELS.index(holder.level) < LEVELS.index(level):
        raise not_allowed(holder.level, to_do)


def not_allowed(level: str, to_do: str, instead: str = "") -> errors.NotAllowed:
    """The refusal of what would reach past the level that an agent is held to; *instead* is what it can do itself."""
    return errors.NotAllowed(
        f"an agent with permissions {level} may not {to_do}: `teams` grants only what its client does",
        f"{instead}{' Or ask' if instead else 'Ask'} the person to do it, at their own terminal: "
        "teams ask-others --human QUESTION",
    )


def as_text(input: Any) -> str:
    """What a tool would be given, for the person to judge: a command as it is, else as JSON."""
    import json

    if isinstance(input, dict) and isinstance(input.get("command"), str):
        return str(input["command"])
    return json.dumps(input, ensure_ascii=False)


def is_ours(tool: str, input: Any) -> bool:
    """Whether the tool is one of ours, or a shell command that is `teams` and nothing else."""

    if tool.startswith(f"mcp__{own_entries.NAME}__"):
        return True
    command = input.get("command") if isinstance(input, dict) else None
    if not isinstance(command, str) or not command.startswith("teams ") or set("$`\n\r") & set(command):
        return False
    import shlex

    try:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
    except ValueError:
        return False
    return not any(set(word) <= set("();<>|&") for word in words)
