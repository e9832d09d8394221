"""Mistakes on the command line, and the command that was probably meant."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from itertools import pairwise

from teams_cli import commands, errors
from teams_cli.names import is_id, is_name, is_number
from teams_cli.text import in_quotes

_ALIKE = 0.75
"""The least similarity of a mistyped word to the word that was probably meant. Below this, guesses would mislead."""
_SYNONYM_ALIKE = 0.85
"""The same for a synonym of a command. It is higher than `_ALIKE`, because there are many short synonyms."""
_NOUNS = {"task", "tasks", "team", "teams", "agent", "agents", "message", "messages", "plan", "plans"}
_ASSIGNING_OPTIONS = ("--assign", "--assignee", "--assigned-to", "--to")
_ASSIGNING_OPTION_OF = {"create-task": "--for", "update-task": "--owner"}
"""The option by which each of these commands gives a task to somebody."""
_TEXTS = {"TEXT", "TITLE", "QUESTION", "PROMPT", "STATUS", "WHY"}
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from teams_cli.commands.declaration import Command, Parameter


def unknown(name: str, arguments: Sequence[str] = ()) -> errors.WrongUsage:
    """Return the error for an unknown command. It names the command line meant, or the most similar command."""
    every = commands.every()
    usages = {command.name: command.whole_usage for command in every.values()}
    for command in every.values():
        usages |= command.also  # its synonyms, each with what to write instead
    if command_line := _in_two_words(name, arguments, usages) or _by_name(name, arguments, usages):
        return errors.WrongUsage(f"no such command {name!r}", f"Write: teams {command_line}")
    usages_of_synonyms: dict[str, str] = {}
    for known_name, usage in usages.items():
        usages_of_synonyms |= dict.fromkeys(commands.meaning_the_same(known_name), usage)
    usages = usages_of_synonyms | usages  # what a command itself declares goes before a synonym
    word = name.lower().replace("_", "-")
    whole_names = [known_name for known_name in usages if "/" not in known_name]  # not such as `NAME/ID`
    similar = get_close_matches(word, whole_names, 1, _SYNONYM_ALIKE)
    similar = similar or get_close_matches(word, every, 1, _ALIKE)
    similar = similar or [known_name for known_name in every if known_name.startswith(f"{word}-")]
    hint = f"Did you mean: teams {_filled_in(usages[similar[0]], arguments)}? " if similar else ""
    return errors.WrongUsage(f"no such command {name!r}", f"{hint}See: teams help --all")


def command_called(synonym: str) -> Command | None:
    """Return the command that declares the word *synonym*; None if there is none."""
    usages = (command.also[synonym] for command in commands.every().values() if synonym in command.also)
    usage = next(usages, None)
    return commands.find(usage.split()[0]) if usage else None


def _in_two_words(word: str, arguments: Sequence[str], usages: Mapping[str, str]) -> str:
    """Return the command line for a noun and a verb, such as `task list` or `claim task 3`; "" if there is none."""
    if not arguments:
        return ""
    second, *others = arguments
    for name in (f"{second}-{word}", f"{word}-{second}", f"{second}-{word}s", f"{second}-{word.removesuffix('s')}"):
        if command_line := _by_name(name, others, usages):
            return command_line
    return _by_name(second, others, usages) if word in _NOUNS else ""


def _by_name(name: str, arguments: Sequence[str], usages: Mapping[str, str]) -> str:
    """Return the command line for the command with this *name* or synonym, with the *arguments* filled in; "" if there
    is no such command. Some synonyms stand for another command if the first argument is a task or an agent.
    """
    narrower = name
    if arguments and _is_task(arguments[0]):
        narrower = f"{name}/ID"
    elif len(arguments) > 1 and is_name(arguments[0]):
        narrower = f"{name}/TO"
    usage = usages.get(narrower) or usages.get(name, "")
    return _filled_in(usage, arguments) if usage else ""


def _is_task(word: str) -> bool:
    return is_number(word.removeprefix("#")) or is_id(word, "task")


def _filled_in(usage: str, arguments: Sequence[str]) -> str:
    """Return the command line *usage*, in which the *arguments* replace the words in capitals, one after another. A
    word that stands for a text is replaced by all arguments that remain.
    """
    first_option = next((index for index, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    values, options = list(arguments[:first_option]), list(arguments[first_option:])
    words = [  # without the options that are among the arguments, and without the words for their values
        word
        for before, word in pairwise(["", *usage.split()])
        if word not in options and not (before in options and word.isupper())
    ]
    places = [index for index, word in enumerate(words) if word.strip("[].").isupper()]
    is_whole_text = len(values) == 1 and not (_is_task(values[0]) or is_name(values[0]))
    if is_whole_text:  # a text, which belongs into the last place: the name or the id before it is missing
        places = places[-1:]
    for index in places:
        if values:
            count = len(values) if words[index] in _TEXTS else 1
            words[index] = shlex.quote(" ".join(values[:count]))
            values = values[count:]
    command = commands.find(words[0])
    if command is None or not command.places:  # it takes no arguments
        values = []
    needed_words = [word for word in words if not word.startswith("[")]
    return " ".join([*needed_words, *map(shlex.quote, [*values, *options])])


def no_option(command: Command, flag: str, words: list[str]) -> errors.WrongUsage:
    """Return the error for the option *flag*, which the command does not have. If it may be a text that begins with a
    dash, the error says how to write it. Otherwise the error names the option that was probably meant, or lists all
    options if none is similar.
    """
    word = next(each for each in words if each.startswith(flag))
    if any(place.text for place in command.places) and (" " in word or not word.startswith("--")):
        shown = in_quotes(word) if " " in word else shlex.quote(word)
        options = _options_beginning_with(f"-{word}", command) if len(word) == 2 else []
        meant = f"Did you mean {options[0]}? " if options else ""
        return errors.WrongUsage(
            f"{shown} looks like an option, but {command.name} has no such option",
            f"{meant}Put a text that starts with a dash last, after `--`: teams {command.name} … -- {shown}",
        )
    refused = f"{command.name} has no option {flag}"
    if flag in _ASSIGNING_OPTIONS and command.name in _ASSIGNING_OPTION_OF:
        return errors.WrongUsage(refused, f"Write: teams {command.name} … {_ASSIGNING_OPTION_OF[command.name]} AGENT")
    name = flag.removeprefix("--")
    for place in command.places:
        if name in (place.name, place.metavar.lower(), *_PLACES.get(place.metavar, ())):
            return errors.WrongUsage(refused, f"Write: teams {command.whole_usage}")
    similar = [
        option for option, names in _OPTIONS.items() if name in names.split() and option.split()[0] in command.options
    ]
    similar = similar or get_close_matches(flag, command.options, 1, _ALIKE) or _options_beginning_with(flag, command)
    if not similar:
        options = [parameter.flags[0] for parameter in command.own if not parameter.positional]
        own_options = f"It has: {', '.join(options) or 'none of its own'}. See: teams help {command.name}"
        return errors.WrongUsage(refused, own_options)
    option = similar[0]
    words_meant: list[str] = []
    for each in words:
        words_meant += option.split() if each.partition("=")[0] == flag else [each]
    return errors.WrongUsage(refused, f"Did you mean {option}? Write: teams {shlex.join([command.name, *words_meant])}")


def _options_beginning_with(word: str, command: Command) -> list[str]:
    """Return the command's own option that begins with *word*, in a list; empty unless there is exactly one."""
    options = [parameter.flags[0] for parameter in command.own if parameter.flags[0].startswith(word)]
    return options if len(options) == 1 else []


_PLACES = {
    "ID": ("id", "task", "task-id", "message-id"),
    "TEXT": ("message", "body", "content"),
    "TO": ("agent", "recipient"),
}
"""For some arguments of commands, the options that users write instead of them."""
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
"""For each option, which may have a value as in `--status completed`, the names that other tools use for it."""


def without_value(parameter: Parameter) -> errors.WrongUsage:
    """Return the error for an option whose value is missing."""
    return errors.WrongUsage(f"{parameter.flags[0]} needs {parameter.metavar}", f"Write: {_with_example(parameter)}")


def _with_example(parameter: Parameter) -> str:
    flag = parameter.flags[0]
    if parameter.choices:
        return f"{flag}{parameter.placeholder}, which is one of: {', '.join(parameter.choices)}"
    if parameter.duration:
        return f"{flag} 60, or {flag} 5m"
    return f"{flag}{parameter.placeholder}" if parameter.type is str else f"{flag} 60"


def wrong_value(parameter: Parameter, value: str) -> errors.WrongUsage:
    """Return the error for a *value* that is not a number or not one of the choices. It names the choice meant."""
    if not parameter.choices:
        how = "Give a number." if parameter.positional else f"Write: {_with_example(parameter)}"
        return errors.WrongUsage(f"{parameter.flags[0]} takes a number, not {value!r}", how)
    similar = _choices_meant(parameter, value) or get_close_matches(value.lower(), parameter.choices, 1)
    meant = f"Did you mean {similar[0]}? " if similar else ""
    allowed = f"{meant}It takes: {', '.join(parameter.choices)}"
    return errors.WrongUsage(f"{value!r} is not a value of {parameter.shown}", allowed)


def too_many(command: Command, values: Mapping[str, Any], surplus: str) -> errors.WrongUsage:
    """Return the error for *surplus* words: what to write instead, such as a text in quotes or `--team`."""
    if command.places and command.places[-1].text:  # a text without quotes, of which *surplus* has the later words
        *before, text = command.places
        first_word = values[text.name]
        refused = f"{command.name} takes one {text.metavar}, but got more words: {surplus}"
        if not before and _is_task(first_word) and "--task" in command.options:
            return errors.WrongUsage(refused, f"Write: teams {command.name} {in_quotes(surplus)} --task {first_word}")
        arguments = [shlex.quote(str(values[parameter.name])) for parameter in before]
        whole = " ".join([command.name, *arguments, in_quotes(f"{first_word} {surplus}")])
        return errors.WrongUsage(refused, f"Put the {text.metavar} in quotes: teams {whole}")
    option = _option_for(command, surplus)
    is_team = not (command.places or option) and is_name(surplus) and not surplus.isdigit()
    team = f"; a team is named with --team {surplus}" if is_team and "--team" in command.options else ""
    return errors.WrongUsage(
        f"{command.name} got too many words: {surplus}", f"Write: teams {command.whole_usage}{option}{team}"
    )


def _option_for(command: Command, word: str) -> str:
    """Return the option, with its value, that users probably mean by the value *word* alone; "" if there is none."""
    if option := command.options.get(f"--{word}"):
        return f" {option.flags[0]}{option.placeholder}"
    for option in command.own:
        if not option.positional and (choices := _choices_meant(option, word)):
            return f" {option.flags[0]} {choices[0]}"
    for flag in ("--wait", "--timeout"):
        if flag in command.options and word.isdigit():
            return f" {flag} {word}"
    return f" --task {word}" if "--task" in command.options and _is_task(word) else ""


_NAMES_OF_CHOICES = {
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


def _choices_meant(parameter: Parameter, value: str) -> list[str]:
    """Return the choices of the parameter that *value* means, which may be another tool's name for it."""
    word = value.lower()
    return [
        choice
        for choice in parameter.choices
        if word == choice.lower() or word in _NAMES_OF_CHOICES.get(choice, "").split()
    ]
