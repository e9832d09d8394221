"""Wording: what commands say of themselves, said of tools: `claim_task` for `teams claim-task`, `next` for `--next`."""

from __future__ import annotations

import inspect
import re

from teams_cli import commands

_COMMAND = re.compile(rf"\bteams ({'|'.join(sorted(commands.INDEX, key=len, reverse=True))})\b(?!-)")
_QUOTED = re.compile(rf"`({'|'.join(name for name in commands.INDEX if '-' in name)})`")
_FLAG = re.compile(r"(?<![\w-])--(?!as\b|team\b|root\b|json\b)([a-z][a-z-]*)")
_AT_SHELL = re.compile(r"; `-` reads it from standard input")
_TOOLS = {"list-agents": "list_agents", "send-message": "send_to_agent", "broadcast-message": "broadcast"}


def tool_name(command: str) -> str:
    """What the tool of a command is called."""
    return command.replace("-", "_")


def in_tools(text: str) -> str:
    """The text with commands called as the tools are."""
    text = _COMMAND.sub(lambda found: _mentioned(found[1]), text)
    text = _QUOTED.sub(lambda found: f"`{_mentioned(found[1])}`", text)
    return _FLAG.sub(lambda found: found[1].replace("-", "_"), _AT_SHELL.sub("", text))


def _mentioned(command: str) -> str:
    return _TOOLS.get(command, tool_name(command))


def description(doc: str) -> str:
    """What a docstring says to those who call: all before what is refused, in one paragraph."""
    told = inspect.cleandoc(doc).partition("Raises:")[0]
    return in_tools(" ".join(told.split()))


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
