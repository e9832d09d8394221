"""Mistakes on the command line, and the command that was probably meant."""

from __future__ import annotations

import shlex
from difflib import get_close_matches

from teams_cli import commands, errors
from teams_cli.names import is_id, is_name, is_number

_ALIKE = 0.75
"""The least similarity of a mistyped word to the right one; below it, guesses mislead."""
_CALLED_ALIKE = 0.85
"""The same for the synonyms of commands, which are many and short."""
_NOUNS = {"task", "tasks", "team", "teams", "agent", "agents", "message", "messages", "plan", "plans"}
_ASSIGNEE = ("--assign", "--assignee", "--assigned-to", "--to")
_FOR = {"create-task": "--for", "update-task": "--owner"}
"""The option by which a task is given to somebody."""
_TEXTS = {"TEXT", "TITLE", "QUESTION", "PROMPT", "STATUS", "WHY"}
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from teams_cli.commands.declaration import Command, Parameter


def unknown(word: str, rest: Sequence[str] = ()) -> errors.WrongUsage:
    """Return the refusal of an unknown command. It shows the command that was meant, with the words *rest* in their
    places, or else the most similar command.
    """
    known = _meant()
    found = _in_two_words(word, rest, known) or _called(word, rest, known)
    if found:
        return errors.WrongUsage(f"no such command {word!r}", f"Write: teams {found}")
    same = {other: how for name, how in known.items() for other in commands.meaning_the_same(name)} | known
    near = _near(word.lower().replace("_", "-"), same)
    hint = f"Did you mean: teams {_written(same[near], rest)}? " if near else ""
    return errors.WrongUsage(f"no such command {word!r}", f"{hint}See: teams help --all")


def _meant() -> dict[str, str]:
    """Return how to write each command, by its name and by its synonyms."""
    every = commands.every()
    called = {also: how for command in every.values() for also, how in command.also.items()}
    return {**{name: command.whole_usage for name, command in every.items()}, **called}


def _in_two_words(word: str, rest: Sequence[str], known: Mapping[str, str]) -> str:
    """Return the command that a noun and a verb in either order mean, as in `task list` or `claim task 3`; "" if there
    is none.
    """
    if not rest:
        return ""
    second, *others = rest
    for name in (f"{second}-{word}", f"{word}-{second}", f"{second}-{word}s", f"{second}-{word.removesuffix('s')}"):
        if found := _called(name, others, known):
            return found
    return _called(second, others, known) if word in _NOUNS else ""


def _called(name: str, rest: Sequence[str], known: Mapping[str, str]) -> str:
    """Return the command with the name or synonym *name*, with the words *rest* in their places; "" if there is none.

    Some synonyms mean another command if a task or an agent follows.
    """
    narrower = (
        f"{name}/ID" if rest and _is_task(rest[0]) else f"{name}/TO" if len(rest) > 1 and is_name(rest[0]) else name
    )
    how = known.get(narrower) or known.get(name, "")
    return _written(how, rest) if how else ""


def _is_task(word: str) -> bool:
    return is_number(word.removeprefix("#")) or is_id(word, "task")


def _written(how: str, rest: Sequence[str]) -> str:
    """Return the command *how* with the words *rest* in the places of its capitals. A text takes all remaining words,
    and options come last.
    """
    cut = next((index for index, word in enumerate(rest) if word.startswith("-")), len(rest))
    said, options = list(rest[:cut]), list(rest[cut:])
    words = _without(how.split(), options)
    places = [index for index, word in enumerate(words) if word.strip("[].").isupper()]
    if len(said) == 1 < len(places) and not (_is_task(said[0]) or is_name(said[0])):
        places = places[-1:]  # a whole text, and nobody whom it is for
    while places and said:
        index = places.pop(0)
        taken = len(said) if words[index] in _TEXTS else 1
        words[index], said = shlex.quote(" ".join(said[:taken])), said[taken:]
    written = [word for word in words if not word.startswith("[")]
    return " ".join([*written, *map(shlex.quote, [*_room_for(said, words[0]), *options])])


def _without(words: list[str], options: Sequence[str]) -> list[str]:
    """Return the words of a command without the given *options* and their values."""
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word not in options and not (before in options and word.isupper())
    ]


def _room_for(said: list[str], name: str) -> list[str]:
    """Return the remaining words if the command takes any arguments, else nothing."""
    command = commands.find(name)
    return said if command and command.places else []


def _near(word: str, known: Mapping[str, str]) -> str:
    """Return the name in *known* that is spelt almost like *word*, else a command that begins with it; "" if there is
    none.
    """
    every = commands.every()
    found = get_close_matches(word, [name for name in known if "/" not in name], 1, _CALLED_ALIKE)
    found = found or get_close_matches(word, every, 1, _ALIKE)
    found = found or [name for name in every if name.startswith(f"{word}-")]
    return found[0] if found else ""


def no_option(command: Command, flag: str, words: list[str]) -> errors.WrongUsage:
    """Return the refusal of an option that the command does not have. It names what was probably meant, says how to
    write a text that begins with a dash, or lists the options of the command.
    """
    word = next(each for each in words if each.startswith(flag))
    if any(place.text for place in command.places) and (" " in word or not word.startswith("--")):
        return _dashed(command, word)
    refused = f"{command.name} has no option {flag}"
    if flag in _ASSIGNEE and command.name in _FOR:
        return errors.WrongUsage(refused, f"Write: teams {command.name} … {_FOR[command.name]} AGENT")
    name = flag.removeprefix("--")
    if any(name in (place.name, place.metavar.lower(), *_PLACES.get(place.metavar, "")) for place in command.places):
        return errors.WrongUsage(refused, f"Write: teams {command.whole_usage}")
    same = [how for how, others in _OPTIONS.items() if name in others.split() and how.split()[0] in command.options]
    near = same or get_close_matches(flag, command.options, 1, _ALIKE) or _beginning_with(flag, command)
    if not near:
        own = [parameter.flags[0] for parameter in command.own if not parameter.positional]
        has = f"It has: {', '.join(own) or 'none of its own'}. See: teams help {command.name}"
        return errors.WrongUsage(refused, has)
    meant = [part for each in words for part in (near[0].split() if each.partition("=")[0] == flag else [each])]
    return errors.WrongUsage(refused, f"Did you mean {near[0]}? Write: teams {shlex.join([command.name, *meant])}")


def _dashed(command: Command, word: str) -> errors.WrongUsage:
    """Return the refusal of a word that looks like an option, but may be the text that the command takes."""
    shown = f'"{word}"' if " " in word else word
    near = _beginning_with(f"-{word}", command) if len(word) == 2 else []
    meant = f"Did you mean {near[0]}? " if near else ""
    return errors.WrongUsage(
        f"{shown} looks like an option, but {command.name} has no such option",
        f"{meant}Put a text that starts with a dash last, after `--`: teams {command.name} … -- {shown}",
    )


def _beginning_with(word: str, command: Command) -> list[str]:
    """Return a list with the option of the command itself that begins with *word*. It is empty if there are several, or
    none.
    """
    options = [parameter.flags[0] for parameter in command.own if parameter.flags[0].startswith(word)]
    return options if len(options) == 1 else []


_PLACES = {
    "ID": ("id", "task", "task-id", "message-id"),
    "TEXT": ("message", "body", "content"),
    "TO": ("agent", "recipient"),
}
"""For some arguments of commands, the names of options that are mistaken for them."""
_OPTIONS = {
    "--status completed": "done complete completed finish finished",
    "--result": "comment note notes summary output",
    "--description": "desc body details text",
    "--blocked-by": "depends-on depends deps needs blockers",
    "--timeout": "seconds for time wait",
    "--owner AGENT": "mine me agent",
    "--wait": "timeout seconds",
    "--next": "any best",
}
"""For each option, as written here, the names that other tools use for it."""


def not_alone(flag: str) -> errors.WrongUsage:
    """Return the refusal of an option that takes no value but was given one."""
    return errors.WrongUsage(f"{flag} takes no value", f"Write: {flag}")


def without_value(parameter: Parameter) -> errors.WrongUsage:
    """Return the refusal of an option whose value is missing."""
    return errors.WrongUsage(f"{parameter.flags[0]} needs {parameter.metavar}", f"Write: {_written_with(parameter)}")


def _written_with(parameter: Parameter) -> str:
    """Return how to write the option with a value: an example of a number, or the values that are allowed."""
    flag = parameter.flags[0]
    if parameter.choices:
        return f"{flag}{parameter.placeholder}, which is one of: {', '.join(parameter.choices)}"
    if parameter.duration:
        return f"{flag} 60, or {flag} 5m"
    return f"{flag}{parameter.placeholder}" if parameter.type is str else f"{flag} 60"


def wrong_value(parameter: Parameter, value: str) -> errors.WrongUsage:
    """Return the refusal of a value that is not a number, or not one of the choices. It names the choice that was
    meant.
    """
    if not parameter.choices:
        how = "Give a number." if parameter.positional else f"Write: {_written_with(parameter)}"
        return errors.WrongUsage(f"{parameter.flags[0]} takes a number, not {value!r}", how)
    near = _same(parameter, value) or get_close_matches(value.lower(), parameter.choices, 1)
    meant = f"Did you mean {near[0]}? " if near else ""
    allowed = f"{meant}It takes: {', '.join(parameter.choices)}"
    return errors.WrongUsage(f"{value!r} is not a value of {parameter.shown}", allowed)


def too_many(command: Command, values: Mapping[str, Any], rest: str) -> errors.WrongUsage:
    """Return the refusal of too many words. It helps if a text lacks its quotes, or if a word was meant for an option
    or as the team.
    """
    if command.places and command.places[-1].text:
        return _unquoted(command, values, rest)
    option = _option_for(command, rest)
    is_team = not (command.places or option) and is_name(rest) and not rest.isdigit()
    team = f"; a team is named with --team {rest}" if is_team and "--team" in command.options else ""
    return errors.WrongUsage(
        f"{command.name} got too many words: {rest}", f"Write: teams {command.whole_usage}{option}{team}"
    )


def _unquoted(command: Command, values: Mapping[str, Any], rest: str) -> errors.WrongUsage:
    *before, text = command.places
    words = [str(values[parameter.name]) for parameter in before]
    first = values[text.name]
    refused = f"{command.name} takes one {text.metavar}, but got more words: {rest}"
    if not before and _is_task(first) and "--task" in command.options:
        return errors.WrongUsage(refused, f'Write: teams {command.name} "{rest}" --task {first}')
    whole = " ".join([command.name, *words, f'"{first} {rest}"'])
    return errors.WrongUsage(refused, f"Put the {text.metavar} in quotes: teams {whole}")


def _option_for(command: Command, word: str) -> str:
    """Return the option of the command that the word was meant for, as users write it; "" if there is none."""
    if option := command.options.get(f"--{word}"):
        return f" {option.flags[0]}{option.placeholder}"
    for option in command.own:
        if not option.positional and (same := _same(option, word)):
            return f" {option.flags[0]} {same[0]}"
    for flag in ("--wait", "--timeout"):
        if flag in command.options and word.isdigit():
            return f" {flag} {word}"
    return f" --task {word}" if "--task" in command.options and _is_task(word) else ""


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
"""For some values, the names that other tools use for them."""


def _same(parameter: Parameter, value: str) -> list[str]:
    """Return the choices of the parameter that *value* means, by their own names or by those of other tools."""
    word = value.lower()
    return [choice for choice in parameter.choices if word == choice.lower() or word in _SAME.get(choice, "").split()]
