"""Wording: what commands say, said of requests: `POST /api/claim-task` for `teams claim-task`, `next` for `--next`."""

from __future__ import annotations

import inspect
import re

from teams_cli import errors
from teams_cli.serving import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STATUSES = {1: 422, 2: 400, 10: 404, 11: 409, 12: 503, 13: 403, 14: 408, 15: 500}
"""The HTTP status for each exit status."""
_METHODS = {command.name: "GET" if command.reads else "POST" for command in requests.offered()}
_COMMAND = re.compile(rf"\bteams ({'|'.join(sorted(_METHODS, key=len, reverse=True))})\b(?!-)")
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
_SAID = {
    "--as AGENT or TEAMS_AGENT_ID": "?as=AGENT",
    "--team NAME or TEAMS_TEAM": "?team=NAME",
    "; `-` reads it from standard input": "",
}
_REFUSED = re.compile(r"^\s*([A-Z]\w+)(?:, \w+)*: (.*)$")


def in_requests(text: str) -> str:
    """The text with commands and options called as in requests."""
    for said, meant in _SAID.items():
        text = text.replace(said, meant)
    text = _COMMAND.sub(lambda found: f"{_METHODS[found[1]]} /api/{found[1]}", text)
    return _FLAG.sub(lambda found: requests.camel_case(found[1].replace("-", "_")), text)


def preferred(prefer: str) -> Callable[[str], str]:
    """How a client wants to be told, by the header `Prefer` of its request: with `hints=shell` in the words of
    commands, for a person to read or type, else in those of requests.
    """
    asked = {part.strip().replace('"', "") for part in prefer.lower().split(",")}
    return str if "hints=shell" in asked else in_requests


def description(doc: str) -> tuple[str, str]:
    """The summary of a docstring, and the rest of it as Markdown, what is refused with its statuses."""
    told, _, raises = inspect.cleandoc(doc).partition("Raises:")
    summary, _, rest = told.strip().partition("\n\n")
    refused = [f"* {line}" for line in _refusals(raises)]
    parts = [rest.strip(), "\n".join(["Refused:", "", *refused]) if refused else ""]
    return in_requests(" ".join(summary.split())), in_requests("\n\n".join(part for part in parts if part))


def _refusals(raises: str) -> list[str]:
    """What is refused, each with its status of HTTP and its code."""
    found: list[str] = []
    kinds = errors.kinds()
    for line in raises.splitlines():
        if (named := _REFUSED.match(line)) and (kind := kinds.get(named[1])):
            found.append(f"{STATUSES[kind.status]} `{kind('').code}`: {named[2]}")
        elif found and line.strip():
            found[-1] += f" {line.strip()}"
    return found
