"""The parser of command lines, from the declarations of commands. It is 40 ms faster than Typer, and knows which
mistake was made.
"""

from __future__ import annotations

from teams_cli import commands, errors
from teams_cli.names import is_like_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from teams_cli.commands.declaration import Command, Parameter


def parse(words: list[str]) -> tuple[Command, dict[str, Any]]:
    """Return the command in a command line, and the values of all its parameters.

    Raises:
        WrongUsage: There is no such command, or it does not take these words. The error shows how to write it.
    """
    command = commands.find(words[0])
    if command is None:
        raise _mistakes().unknown(words[0], words[1:])
    values: dict[str, Any] = {parameter.name: parameter.default for parameter in command.parameters}
    arguments = _options(command, words[1:], values)
    _arguments(command, arguments, values)
    for parameter in command.parameters:
        if parameter.required and values[parameter.name] in (None, ()):
            raise errors.WrongUsage(f"{parameter.shown} is missing", f"Write, for example: teams {command.example}")
    return command, values


def _options(command: Command, words: list[str], values: dict[str, Any]) -> list[str]:
    """Store the values of the options among the *words* in *values*. Return the remaining words."""
    flags = command.options
    arguments: list[str] = []
    most_arguments = len(command.places)
    id_option: Parameter | None = None  # the option before the word, if it takes ids: more ids may follow
    remaining = iter(words)
    for word in remaining:
        if word == "--":
            return arguments + list(remaining)
        if word == "-" or not word.startswith("-"):
            if id_option and len(arguments) >= most_arguments and is_like_id(word):
                _put(values, id_option, word)
            else:
                arguments.append(word)
                id_option = None
            continue
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
        else:  # such as `-t`, whose value may follow without a space
            flag, equals, value = word[:2], word[2:], word[2:]
        parameter = flags.get(flag)
        if parameter is None:
            raise _mistakes().no_option(command, flag, words)
        if parameter.flag:
            if equals:
                raise errors.WrongUsage(f"{flag} takes no value", f"Write: {flag}")
            values[parameter.name] = True
            id_option = None
            continue
        id_option = parameter if parameter.is_id else None
        next_word = value if equals else next(remaining, None)
        if next_word is None or (next_word in flags and not equals):  # another option stands in place of the value
            raise _mistakes().without_value(parameter)
        _put(values, parameter, next_word)
    return arguments


def _arguments(command: Command, words: list[str], values: dict[str, Any]) -> None:
    """Store the *words*, which are no options, in *values* as the values of the positional parameters."""
    positional = command.places
    unused = list(words)
    if len(positional) == 1 and positional[0].is_id and not positional[0].many and all(map(is_like_id, words)):
        unused = [",".join(words)] if words else []  # several ids without commas
    for index, parameter in enumerate(positional):
        count = min(1, len(unused))
        if parameter.many:  # it takes all words but one for each parameter after it
            count = len(unused) - (len(positional) - index - 1)
        for _ in range(count):
            _put(values, parameter, unused.pop(0))
    if unused:
        raise _mistakes().too_many(command, values, " ".join(unused))


def _put(values: dict[str, Any], parameter: Parameter, word: str) -> None:
    """Convert *word* and store it in *values*, together with earlier values if the parameter takes several. Several
    ids of an option are joined with commas.
    """
    try:
        value = parameter.convert(word)
    except ValueError:
        raise _mistakes().wrong_value(parameter, word) from None
    if parameter.many:
        values[parameter.name] = (*values[parameter.name], value)
    elif parameter.is_id and not parameter.positional and values[parameter.name]:
        values[parameter.name] += f",{value}"
    else:
        values[parameter.name] = value


def _mistakes() -> ModuleType:
    """Return the module that makes the errors for mistakes. It is loaded only when there is a mistake."""
    from teams_cli.cli import mistakes

    return mistakes
