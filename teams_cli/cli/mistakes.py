"""Mistakes on the command line: what was meant, as far as that can be told."""

from __future__ import annotations

from difflib import get_close_matches

from teams_cli import commands
from teams_cli.errors import WrongUsage
from teams_cli.records.annotations import Any, Iterable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.declaration import Command, Parameter


def unknown(word: str) -> WrongUsage:
    """The refusal of a command that there is not: it names the one that does this, else those that are spelt alike."""
    meant = {also: how for command in commands.every().values() for also, how in command.also.items()}
    if word in meant:
        hint = f"Write: teams {meant[word]}"
    else:
        near = get_close_matches(word, [*commands.every(), *meant], 1)
        hint = f"Did you mean: teams {meant.get(near[0], near[0])}? " if near else ""
        hint += "`teams help` has all commands."
    return WrongUsage(f"no such command {word!r}", hint)


def unquoted(command: Command, values: Mapping[str, Any], rest: str) -> WrongUsage | None:
    """The refusal of words too many, where the last of the command's is a text: its quotes were forgotten."""
    places = [parameter for parameter in command.own if parameter.positional]
    if not places or not places[-1].text:
        return None
    *before, text = places
    words = [str(values.get(parameter.name)) for parameter in before]
    whole = f'"{values.get(text.name)} {rest}"'
    return WrongUsage(
        f"{command.name} takes one {text.metavar}, and got more words: {rest}",
        f"Put the {text.metavar} in quotes: teams {' '.join([command.name, *words, whole])}",
    )


def dashed(command: Command, words: Iterable[str]) -> WrongUsage | None:
    """The refusal of what looks like an option, where it can be the text that the command takes."""
    if not any(parameter.positional and parameter.text for parameter in command.own):
        return None
    for word in words:
        if word.startswith("-") and (" " in word or not word.startswith("--")) and word not in _flags(command):
            shown = f'"{word}"' if " " in word else word
            return WrongUsage(
                f"{shown} looks like an option, and {command.name} has none of that name",
                f"A text that starts with a dash goes last, behind `--`: teams {command.name} … -- {shown}",
            )
    return None


def _flags(command: Command) -> set[str]:
    return {flag for parameter in command.parameters for flag in parameter.flags}


def no_number(parameter: Parameter, value: str) -> WrongUsage:
    """The refusal of a word where a number has to be."""
    return WrongUsage(
        f"{parameter.flags[0]} takes {parameter.metavar}, a number, and {value} is none",
        f"Write: {parameter.flags[0]} 60" if not parameter.positional else "Give a number.",
    )
