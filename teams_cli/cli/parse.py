"""A strict parser for commands that are written without a mistake: 40 ms faster than Typer, which gets all others."""

from __future__ import annotations

from teams_cli import commands
from teams_cli.names import is_like_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.declaration import Command, Parameter


class _Unusual(Exception):
    """Not for this parser: help, a mistake, or a way of writing that only Typer knows."""


def parse(words: list[str]) -> tuple[Command, dict[str, Any]] | None:
    """The command and the values of all its parameters; None for what Typer shall look at."""
    command = commands.find(words[0]) if words else None
    if command is None:
        return None
    values: dict[str, Any] = {parameter.name: parameter.default for parameter in command.parameters}
    try:
        places = _options(command, words[1:], values)
        _arguments(command, places, values)
    except (_Unusual, ValueError):
        return None
    for parameter in command.parameters:
        if parameter.required and not values[parameter.name]:
            return None
    return command, values


def _options(command: Command, words: list[str], values: dict[str, Any]) -> list[str]:
    """Take the options into *values*; the other words."""
    flags = command.options
    places: list[str] = []
    room = len(command.places)
    before: Parameter | None = None
    rest = iter(words)
    for word in rest:
        if word == "--":
            return places + list(rest)
        if word == "-" or not word.startswith("-"):
            if before and len(places) >= room and is_like_id(word):  # one more id of the option before it
                _put(values, before, word)
            else:
                places.append(word)
                before = None
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        parameter = flags.get(flag)
        if parameter is None or (parameter.flag and equals):
            raise _Unusual
        if parameter.flag:
            values[parameter.name] = True
            before = None
        else:
            before = parameter if parameter.is_id else None
            _put(values, parameter, value if equals else _next(rest))
    return places


def _next(rest: Any) -> str:
    value = next(rest, None)
    if value is None or (value.startswith("-") and value != "-"):
        raise _Unusual
    return str(value)


def _arguments(command: Command, places: list[str], values: dict[str, Any]) -> None:
    positional = command.places
    waiting = list(places)
    if [place.is_id and not place.many for place in positional] == [True] and all(map(is_like_id, places)):
        waiting = [",".join(places)] if places else []
    for index, parameter in enumerate(positional):
        behind = len(positional) - index - 1  # many words end before those that have a place of their own
        for _ in range(len(waiting) - behind if parameter.many else min(1, len(waiting))):
            _put(values, parameter, waiting.pop(0))
    if waiting:
        raise _Unusual


def _put(values: dict[str, Any], parameter: Parameter, word: str) -> None:
    value = parameter.convert(word)
    if parameter.many:
        values[parameter.name] = (*values[parameter.name], value)
    elif parameter.is_id and not parameter.positional and values[parameter.name]:
        values[parameter.name] += f",{value}"
    else:
        values[parameter.name] = value
