"""Wording: what commands say of themselves, said of tools: `claim_task` for `teams claim-task`, `next` for `--next`."""

from __future__ import annotations

import inspect
import re

from teams_cli import commands
from teams_cli.extensions.mcp import messaging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

_COMMAND = re.compile(rf"\bteams ({'|'.join(sorted(commands.every(), key=len, reverse=True))})\b(?!-)")
_QUOTED = re.compile(rf"`({'|'.join(name for name in commands.every() if '-' in name)})`")
_FLAG = re.compile(r"(?<![\w-])--(?!as\b|team\b|root\b|json\b)([a-z][a-z-]*)")
_AT_SHELL = re.compile(
    r",? instead of --team\b|; `-` reads it from standard input|, or teams create-task --from (?s:.*)"
    r"|(?<=\bteams join-team )(\S+) --as \S+"
)
_OF_SERVER = re.compile(r"^(mcp_+)?teams?_+")
_AT_START = {
    "--as AGENT or TEAMS_AGENT_ID": "TEAMS_AGENT_ID where the server is started",
    "--team NAME or TEAMS_TEAM": "team_name, or TEAMS_TEAM where the server is started",
}
"""What a call can't say, or says otherwise."""
_LITTLE = 20
_OTHERWISE = {**{words.command: words.name for words in messaging.WORDS}, "announce": "broadcast"}
"""The tools that are not called as their commands are, or that agents are offered in their stead."""


def tool_name(command: str) -> str:
    """What the tool of a command is called."""
    return command.replace("-", "_")


def meant(name: str, known: Container[str]) -> str | None:
    """The known tool that a client means, which may put the server's name before it, and write dashes."""
    bare = name.replace("-", "_")
    return next((each for each in (bare, _OF_SERVER.sub("", bare)) if each in known), None)


def called(command: str) -> str:
    """The tool by which agents are told of the command."""
    return _OTHERWISE.get(command, tool_name(command))


def in_tools(text: str) -> str:
    """The text with commands called as the tools are."""
    text = _AT_SHELL.sub(lambda found: found[1] or "", text)
    for said, meant in _AT_START.items():
        text = text.replace(said, meant)
    text = _COMMAND.sub(lambda found: called(found[1]), text)
    text = _QUOTED.sub(lambda found: f"`{called(found[1])}`", text)
    return _FLAG.sub(lambda found: found[1].replace("-", "_"), text)


def description(doc: str) -> str:
    """What a docstring says to those who call: all before what is refused, in one paragraph."""
    told = inspect.cleandoc(doc).partition("Raises:")[0]
    return in_tools(" ".join(told.split()))


def beginning(text: str) -> str:
    """The first sentence, and the next if that says little."""
    first, _, rest = text.partition(". ")
    if rest and len(first) < _LITTLE:
        first = f"{first}. {rest.partition('. ')[0]}"
    return first.rstrip(".") + "."


def schema(document: dict[str, object]) -> dict[str, object]:
    """The schema of a request as tools are listed: what is refused anyway need not be said to every model."""
    said = {key: value for key, value in document.items() if key != "additionalProperties"}
    return {key: _worded(value) for key, value in said.items()}


def _worded(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: in_tools(inner) if key == "description" and isinstance(inner, str) else _worded(inner)
            for key, inner in value.items()
        }
    return value
