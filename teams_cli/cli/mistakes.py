"""Mistakes on the command line: what was meant, as far as that can be told."""

from __future__ import annotations

from difflib import get_close_matches

from teams_cli import commands
from teams_cli.errors import WrongUsage
from teams_cli.names import is_name
from teams_cli.records.annotations import Any, Iterable, Mapping

_ALIKE = 0.75
"""From this likeness on a word is taken for one that was mistyped; below it the guesses mislead."""
_ASSIGNEE = {"--assign", "--assignee", "--assigned-to", "--to"}
_FOR = {"create-task": "--for", "update-task": "--owner"}
"""The option by which a task is given to somebody."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.declaration import Command, Parameter


def unknown(word: str) -> WrongUsage:
    """The refusal of a command that there is not: it names the one that does this, else those that are spelt alike."""
    meant = {also: how for command in commands.every().values() for also, how in command.also.items()}
    if word in meant:
        hint = f"Write: teams {meant[word]}"
    else:
        near = _near(word.lower().replace("_", "-"), [*commands.every(), *meant])
        hint = f"Did you mean: teams {meant.get(near, near)}? " if near else ""
        hint += "`teams help` has all commands."
    return WrongUsage(f"no such command {word!r}", hint)


def _near(word: str, known: list[str]) -> str:
    """What is spelt nearly so, else what begins with that word; empty where nothing does."""
    found = get_close_matches(word, known, 1, _ALIKE) or [each for each in known if each.startswith(f"{word}-")]
    return found[0] if found else ""


def assigned(command: Command, words: Iterable[str]) -> WrongUsage | None:
    """The refusal of an option that there is not, where whom a task is for has another."""
    right = _FOR.get(command.name)
    wrong = next((word for word in words if word.partition("=")[0] in _ASSIGNEE), None)
    if right is None or wrong is None:
        return None
    return WrongUsage(f"no such option: {wrong.partition('=')[0]}", f"Write: teams {command.name} … {right} AGENT")


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


def no_option(command: Command, word: str) -> WrongUsage:
    """The refusal of an option that there is not: it names the one that is spelt alike, else those of the command."""
    near = get_close_matches(word, _flags(command), 1, _ALIKE)
    own = [parameter.flags[0] for parameter in command.own if not parameter.positional]
    others = f"It has: {', '.join(own) or 'none of its own'}. See: teams help {command.name}"
    return WrongUsage(f"{command.name} has no option {word}", f"Did you mean {near[0]}?" if near else others)


def missing(command: Command, said: str) -> WrongUsage:
    """The refusal of a command without a word that it needs: it shows one that has all."""
    return WrongUsage(said, f"Write, for example: teams {command.example}")


def without_value(command: Command, flag: str) -> WrongUsage | None:
    """The refusal of an option without its value: it shows how it is written, and what it may be."""
    found = next((parameter for parameter in command.parameters if flag in parameter.flags), None)
    if found is None or found.flag:
        return None
    choices = f", which is one of: {', '.join(found.choices)}" if found.choices else ""
    return WrongUsage(f"{flag} takes {found.metavar}, and got nothing", f"Write: {flag}{found.placeholder}{choices}")


def too_many(command: Command, rest: str) -> WrongUsage:
    """The refusal of words too many: it shows how many the command takes; a word alone may be meant for the team."""
    places = [parameter.usage for parameter in command.own if parameter.positional]
    is_team = not places and is_name(rest) and "--team" in _flags(command)
    team = f"; a team is named with --team {rest}" if is_team else ""
    hint = f"Write: {' '.join(['teams', command.name, *places])}{team}"
    return WrongUsage(f"{command.name} got more words than it takes: {rest}", hint)


def _flags(command: Command) -> set[str]:
    return {flag for parameter in command.parameters for flag in parameter.flags}


def no_number(parameter: Parameter, value: str) -> WrongUsage:
    """The refusal of a word where a number has to be."""
    flag = parameter.flags[0]
    example = f"{flag} 60, or {flag} 5m" if parameter.duration else f"{flag} 60"
    return WrongUsage(
        f"{flag} takes {parameter.metavar}, a number, and {value!r} is none",
        f"Write: {example}" if not parameter.positional else "Give a number.",
    )


_SAME = {
    "completed": "done complete finished finish closed resolved success ok",
    "pending": "open todo new ready queued waiting unclaimed reopen reopened backlog",
    "in_progress": "in-progress inprogress progress doing started start working wip active claimed running",
    "in_review": "in-review inreview review reviewing",
    "failed": "fail failure error broken",
    "cancelled": "canceled cancel dropped abandoned wontfix",
    "high": "urgent critical highest p0 p1",
    "normal": "medium med default p2",
    "low": "lowest minor p3",
}
"""What some values are called elsewhere."""


def no_choice(parameter: Parameter, value: str) -> WrongUsage:
    """The refusal of a word that is none of the choices: it names the one that was meant."""
    word = value.lower()
    same = [choice for choice in parameter.choices if word == choice.lower() or word in _SAME.get(choice, "").split()]
    near = same or get_close_matches(word, parameter.choices, 1)
    said = ", ".join(parameter.choices)
    named = parameter.usage if parameter.positional else parameter.flags[0]
    return WrongUsage(
        f"{value!r} is no value of {named}",
        f"Did you mean {near[0]}? It takes: {said}" if near else f"It takes: {said}",
    )
