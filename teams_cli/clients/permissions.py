"""The permissions of a client that `teams` starts: ask about everything, edit in its directory, or do all that its user
may do.
"""

from __future__ import annotations

from teams_cli import environment, errors
from teams_cli.clients import own_entries
from teams_cli.environment import HELD

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
_LEVEL_OF_EARLIER_VERSIONS = "edit"
HELP = "What an agent may do without asking: nothing (ask), edit its directory (edit), or everything (all)."


class Mode:
    """What holds a client to a permission level: *words* for its command line, and environment variables to *set*."""

    def __init__(self, words: list[str], set: Mapping[str, str]) -> None:
        self.words = words
        self.set = set


def choose(profile: Profile, asked: Permissions | None, team: Team, environ: Mapping[str, str]) -> Permissions | None:
    """Return the permission level at which to start a client: the level *asked* for. If none is asked for, it is the
    level of the client's profile, or else the team's setting. Return None for a client without levels, which may do
    whatever its command line allows.

    Raises:
        InvalidValue: The client can't be held to that level; the error says why.
        NotAllowed: The agent that starts the client has a lower level itself.
    """
    if asked:
        refuse_missing(profile, asked)
    if not profile.modes:  # such a client may do everything, which is the last of the levels
        refuse_more(environ, LEVELS[-1], f"start {profile.name}, which nothing holds back")
        return None
    from teams_cli.teams import settings

    level: Permissions = asked or profile.permissions or settings.value(team, SETTING)  # type: ignore[assignment]
    mode(profile, level)  # refuses a level to which the client can't be held
    refuse_more(environ, level, f"start an agent that may do more ({level})")
    return level


def refuse_missing(profile: Profile, level: str) -> None:
    """Refuse a permission level to which the client of the profile can't be held."""
    if not profile.modes:
        why = f"{profile.name} can't be held to permissions {level}: it does what its command line lets it"
        raise errors.InvalidValue(why, "Leave out --permissions.")
    mode(profile, level)  # refuses a level to which the client can't be held


def held_to(profile: Profile, level: str | None) -> str | None:
    """Return the permission level that applies to a client: the *level* at which it was started. If *level* is None, an
    earlier version of `teams` started the client, and `edit` applies. Return None if its profile has no levels.
    """
    if not profile.modes:
        return None
    return level or _LEVEL_OF_EARLIER_VERSIONS


def mode(profile: Profile, level: str | None) -> Mode:
    """Return the words and variables that hold the client to the permission *level*; none for a client without levels.

    Raises:
        InvalidValue: The client can't be held to the level; the error says why.
    """
    level = held_to(profile, level)
    if level is None:
        return Mode([], {})
    how = profile.modes.get(level)
    if how is None or isinstance(how, str):  # a text says why the client can't be held to the level
        possible = [other for other in LEVELS if not isinstance(profile.modes.get(other), str | None)]
        why = how or "its profile has no such mode"
        raise errors.InvalidValue(
            f"{profile.name} can't be started with permissions {level}: {why}",
            f"Use --permissions {' or '.join(possible) or 'nothing'}; for the whole team: teams set permissions LEVEL",
        )
    if isinstance(how, list):
        return Mode(how, {})
    variables = {name: str(value) for name, value in how.get("set", {}).items()}
    return Mode(list(how.get("words", [])), variables)


def refuse_more(environ: Mapping[str, str], level: str, to_do: str) -> None:
    """Raise an error if an agent that is held to less than *level* starts or changes another agent with this level, and
    so could get around its own limits. *to_do* says in the error what was refused.

    Raises:
        NotAllowed: The environment is that of a client held to less than *level*, or of a process below such a client.
    """
    holder = environment.holder(environ)
    if holder and LEVELS.index(holder.level) < LEVELS.index(level):
        raise not_allowed(holder.level, to_do)


def not_allowed(level: str, to_do: str, instead: str = "") -> errors.NotAllowed:
    """Return the error that refuses *to_do* to an agent held to *level*. *instead* says what the agent can do without
    asking the person; "" if there is nothing.
    """
    return errors.NotAllowed(
        f"an agent with permissions {level} may not {to_do}: its client does not allow it",
        f"{instead}{' Or ask' if instead else 'Ask'} the person to do it at their own terminal. To ask: "
        "teams ask-others --human QUESTION",
    )


def as_text(input: Any) -> str:
    """Return the *input* of a tool as a text that a person can judge: only the command if there is one, else the whole
    input as JSON.
    """
    import json

    if isinstance(input, dict) and isinstance(input.get("command"), str):
        return str(input["command"])
    return json.dumps(input, ensure_ascii=False)


def is_ours(tool: str, input: Any) -> bool:
    """Whether the tool is one of our own tools, or its *input* is a shell command that runs nothing but `teams`."""
    if tool.startswith(f"mcp__{own_entries.NAME}__"):
        return True
    command = input.get("command") if isinstance(input, dict) else None
    if not isinstance(command, str) or not command.startswith("teams "):
        return False
    if set("$`\n\r") & set(command):  # the shell would run something inside of it, or another line
        return False
    import shlex

    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.commenters = ""  # it takes each `#` for a comment, and a shell only one that begins a word
    try:
        words = list(lexer)
    except ValueError:
        return False
    operators = set("();<>|&")  # they add another command, or write to a file
    return not any(set(word) <= operators for word in words)
