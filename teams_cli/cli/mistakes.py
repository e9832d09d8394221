"""Mistakes on the command line, and the command that was probably meant."""

from __future__ import annotations

import shlex
from difflib import get_close_matches

from teams_cli import commands, errors
from teams_cli.names import is_id, is_name, is_number

_ALIKE = 0.75
"""From this likeness on a word is taken for one that was mistyped; below it the guesses mislead."""
_CALLED_ALIKE = 0.85
"""The same for what commands are called elsewhere: there are many such words, and short ones."""
_NOUNS = {"task", "tasks", "team", "teams", "agent", "agents", "message", "messages", "plan", "plans"}
_TEXTS = {"TEXT", "TITLE", "QUESTION", "PROMPT", "STATUS", "WHY"}
_ASSIGNEE = {"--assign", "--assignee", "--assigned-to", "--to"}
_FOR = {"create-task": "--for", "update-task": "--owner"}
"""The option by which a task is given to somebody."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from teams_cli.commands.declaration import Command, Parameter


def unknown(word: str, rest: Sequence[str] = ()) -> errors.WrongUsage:
    """The refusal of a command that there is not: it names the one that does this, with the words that were said behind
    it in their places; else those that are spelt alike.
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
    """How each command is written, by its name and by what else it is called."""
    every = commands.every()
    called = {also: how for command in every.values() for also, how in command.also.items()}
    return {**{name: command.whole_usage for name, command in every.items()}, **called}


def _in_two_words(word: str, rest: Sequence[str], known: Mapping[str, str]) -> str:
    """What is meant by a noun and a verb, in either order, as `task list` or `claim task 3`; empty if nothing is."""
    if not rest:
        return ""
    second, *others = rest
    for name in (f"{second}-{word}", f"{word}-{second}", f"{second}-{word}s", f"{second}-{word.removesuffix('s')}"):
        if found := _called(name, others, known):
            return found
    return _called(second, others, known) if word in _NOUNS else ""


def _called(name: str, rest: Sequence[str], known: Mapping[str, str]) -> str:
    """How the command of that name is written; some names mean another for who names a task, or an agent and more."""
    narrower = (
        f"{name}/ID" if rest and _is_task(rest[0]) else f"{name}/TO" if len(rest) > 1 and is_name(rest[0]) else name
    )
    how = known.get(narrower) or known.get(name, "")
    return _written(how, rest) if how else ""


def _is_task(word: str) -> bool:
    return is_number(word.removeprefix("#")) or is_id(word, "task")


def _written(how: str, rest: Sequence[str]) -> str:
    """The command with what was said in the places of its capitals, as far as that was; a text takes all that is left,
    and options stand behind.
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
    """The command without the options that were said, and their places."""
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word not in options and not (before in options and word.isupper())
    ]


def _room_for(said: list[str], name: str) -> list[str]:
    """The words that are left, where the command takes any."""
    command = commands.find(name)
    return said if command and command.places else []


def _near(word: str, known: Mapping[str, str]) -> str:
    """What is spelt nearly so, else what begins with that word; empty where nothing does."""
    every = commands.every()
    found = get_close_matches(word, [name for name in known if "/" not in name], 1, _CALLED_ALIKE)
    found = found or get_close_matches(word, every, 1, _ALIKE)
    found = found or [name for name in every if name.startswith(f"{word}-")]
    return found[0] if found else ""


def assigned(command: Command, words: Iterable[str]) -> errors.WrongUsage | None:
    """The refusal of an option that there is not, where whom a task is for has another."""
    right = _FOR.get(command.name)
    wrong = next((word for word in words if word.partition("=")[0] in _ASSIGNEE), None)
    if right is None or wrong is None:
        return None
    return errors.WrongUsage(
        f"no such option: {wrong.partition('=')[0]}", f"Write: teams {command.name} … {right} AGENT"
    )


def unquoted(command: Command, values: Mapping[str, Any], rest: str) -> errors.WrongUsage | None:
    """The refusal of words too many, where the last of the command's is a text: its quotes were forgotten."""
    if not command.places or not command.places[-1].text:
        return None
    *before, text = command.places
    words = [str(values.get(parameter.name)) for parameter in before]
    first = str(values.get(text.name))
    said = f"{command.name} takes one {text.metavar}, but got more words: {rest}"
    if not before and _is_task(first) and "--task" in command.options:
        return errors.WrongUsage(said, f'Write: teams {command.name} "{rest}" --task {first}')
    whole = f'"{first} {rest}"'
    return errors.WrongUsage(
        said,
        f"Put the {text.metavar} in quotes: teams {' '.join([command.name, *words, whole])}",
    )


def dashed(command: Command, words: Iterable[str]) -> errors.WrongUsage | None:
    """The refusal of what looks like an option, where it can be the text that the command takes."""
    if not any(place.text for place in command.places):
        return None
    for word in words:
        if word.startswith("-") and (" " in word or not word.startswith("--")) and word not in command.options:
            shown = f'"{word}"' if " " in word else word
            near = _beginning_with(f"-{word}", command) if len(word) == 2 else []
            meant = f"Did you mean {near[0]}? " if near else ""
            return errors.WrongUsage(
                f"{shown} looks like an option, but {command.name} has no such option",
                f"{meant}Put a text that starts with a dash last, after `--`: teams {command.name} … -- {shown}",
            )
    return None


def no_option(command: Command, word: str, words: list[str]) -> errors.WrongUsage:
    """The refusal of an option that there is not: it shows the command with the one that was meant, else names those of
    the command.
    """
    said = f"{command.name} has no option {word}"
    name = word.removeprefix("--")
    if any(
        name in (place.name, place.metavar.lower(), *_PLACES.get(place.metavar, "").split()) for place in command.places
    ):
        return errors.WrongUsage(said, f"Write: teams {command.whole_usage}")
    same = [how for how, others in _OPTIONS.items() if name in others.split() and how.split()[0] in command.options]
    near = same or get_close_matches(word, command.options, 1, _ALIKE) or _beginning_with(word, command)
    own = [parameter.flags[0] for parameter in command.own if not parameter.positional]
    others = f"It has: {', '.join(own) or 'none of its own'}. See: teams help {command.name}"
    if not near:
        return errors.WrongUsage(said, others)
    meant = [part for each in words for part in ([*near[0].split()] if each.partition("=")[0] == word else [each])]
    return errors.WrongUsage(said, f"Did you mean {near[0]}? Write: teams {shlex.join([command.name, *meant])}")


def _beginning_with(word: str, command: Command) -> list[str]:
    """The command's own option that begins so; none where several do."""
    found = [parameter.flags[0] for parameter in command.own if parameter.flags[0].startswith(word)]
    return found if len(found) == 1 else []


_PLACES = {"ID": "id task task-id message-id", "TEXT": "message body content", "TO": "agent recipient"}
"""The options that some words of a command are taken for."""
_OPTIONS = {
    "--status completed": "done complete completed finish finished",
    "--result": "comment note notes summary output",
    "--description": "desc body details text",
    "--blocked-by": "depends-on depends deps needs blockers",
    "--timeout": "seconds for time wait",
    "--owner AGENT": "mine me agent assignee",
    "--wait": "timeout seconds",
    "--next": "any best",
}
"""For each option, as written here, the names that other tools use for it."""


def missing(command: Command, said: str) -> errors.WrongUsage:
    """The refusal of a command without a word that it needs: it shows one that has all."""
    return errors.WrongUsage(said, f"Write, for example: teams {command.example}")


def without_value(command: Command, flag: str) -> errors.WrongUsage | None:
    """The refusal of an option without its value: it shows how it is written, and what it may be."""
    option = command.options.get(flag)
    if option is None or option.flag:
        return None
    choices = f", which is one of: {', '.join(option.choices)}" if option.choices else ""
    return errors.WrongUsage(f"{flag} needs {option.metavar}", f"Write: {flag}{option.placeholder}{choices}")


def too_many(command: Command, rest: str) -> errors.WrongUsage:
    """The refusal of words too many: it shows how many the command takes; a word alone may be meant for an option, or
    for the team.
    """
    option = _option_for(command, rest)
    is_team = not (command.places or option) and is_name(rest) and not rest.isdigit()
    team = f"; a team is named with --team {rest}" if is_team and "--team" in command.options else ""
    return errors.WrongUsage(
        f"{command.name} got too many words: {rest}", f"Write: teams {command.whole_usage}{option}{team}"
    )


def _option_for(command: Command, word: str) -> str:
    """The option of the command that the word was meant for, as it is written; empty where it may be none."""
    options = [parameter for parameter in command.own if not parameter.positional]
    named = [f" {option.flags[0]}{option.placeholder}" for option in options if option.flags[0] == f"--{word}"]
    chosen = [f" {option.flags[0]} {same}" for option in options for same in _same(option, word)]
    waits = [option for option in options if option.flags[0] in ("--wait", "--timeout")]
    lengths = [f" {option.flags[0]} {word}" for option in waits if word.isdigit()]
    return next(iter([*named, *chosen, *lengths]), "")


def no_number(parameter: Parameter, value: str) -> errors.WrongUsage:
    """The refusal of a word where a number has to be."""
    flag = parameter.flags[0]
    example = f"{flag} 60, or {flag} 5m" if parameter.duration else f"{flag} 60"
    return errors.WrongUsage(
        f"{flag} takes a number, not {value!r}",
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


def no_choice(parameter: Parameter, value: str) -> errors.WrongUsage:
    """The refusal of a word that is none of the choices: it names the one that was meant."""
    near = _same(parameter, value) or get_close_matches(value.lower(), parameter.choices, 1)
    said = ", ".join(parameter.choices)
    named = parameter.usage if parameter.positional else parameter.flags[0]
    return errors.WrongUsage(
        f"{value!r} is not a value of {named}",
        f"Did you mean {near[0]}? It takes: {said}" if near else f"It takes: {said}",
    )


def _same(parameter: Parameter, value: str) -> list[str]:
    """The choices that are called so, here or elsewhere."""
    word = value.lower()
    return [choice for choice in parameter.choices if word == choice.lower() or word in _SAME.get(choice, "").split()]
