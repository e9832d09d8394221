"""Completion for shells: commands, options, and existing teams, agents, tasks, workflows and settings.

A shell asks for completions with every press of Tab, so they come from the declarations, without Typer.
"""

from __future__ import annotations

import os
from itertools import pairwise

from teams_cli import commands, errors
from teams_cli.environment import FLAGS
from teams_cli.names import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.commands.declaration import Command, Parameter

    Offers = list[tuple[str, str]]

VARIABLE = "_TEAMS_COMPLETE"
_LINE, _FISH = "_TYPER_COMPLETE_ARGS", "_TYPER_COMPLETE_FISH_ACTION"
"""The variables that have the command line (from zsh and fish) and the kind of request (from fish)."""
_QUOTING = frozenset("\"'\\")
"""Characters that only `shlex` can split at. Importing it takes as long as all the rest."""
_MOST_OFFERS = 200
_LONGEST_TITLE = 50


def answer(environ: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the text and the exit status for a shell that asks for completions; None if only Typer can answer."""
    shell = environ[VARIABLE]
    if shell == "complete_bash":
        words = _split(environ.get("COMP_WORDS", ""))
        index = int(environ.get("COMP_CWORD") or 0)  # of the word in which Tab was pressed
        begun = words[index] if index < len(words) else ""
        return "\n".join(value for value, _ in offers(words[1:index], begun, environ)), 0
    if shell not in ("complete_zsh", "complete_fish"):
        return None
    line = environ.get(_LINE, "")
    before = _split(line)[1:]
    begun = "" if line.endswith(" ") or not before else before.pop()
    rows = offers(before, begun, environ)
    if shell == "complete_zsh":
        return _zsh(rows), 0
    if environ.get(_FISH) == "is-args":
        return "", 0 if rows else 1
    return "\n".join(f"{value}\t{help}" if help else value for value, help in rows), 0


def _zsh(offers: Offers) -> str:
    """Return the completions as a command that zsh evaluates."""
    if not offers:
        return "_files"

    def quoted(text: str) -> str:
        escaped = "".join(f"\\{letter}" if letter in '\\"$`' else letter for letter in text.replace("'", ""))
        return escaped.replace(":", "\\\\:")

    rows = "\n".join(f'"{quoted(value)}"' + (f':"{quoted(help)}"' if help else "") for value, help in offers)
    return f"_arguments '*: :(({rows}))'"


def _split(line: str) -> list[str]:
    """Split an unfinished command line into words. Its last word may begin with a quote that is not closed yet."""
    if line.isascii() and not _QUOTING.intersection(line):
        return line.split()
    import shlex

    for closing in ("", '"', "'"):
        try:
            return shlex.split(line + closing)
        except ValueError:
            continue
    return line.split()


def offers(before: list[str], begun: str, environ: Mapping[str, str]) -> Offers:
    """Return the words that may follow the words *before* and that begin with *begun*, each with its help or ""."""
    command, after_command = None, 0  # the word of the command may be a synonym of its name
    while command is None and after_command < len(before):
        command = commands.find(before[after_command])
        after_command += 1
    if command is None:
        candidates = [(name, "") for name in commands.names()]
    elif parameter := _parameter_to_complete(command, before[after_command:], begun):
        candidates = _values(command, parameter, before, environ)
    else:
        candidates = [(flag, each.help) for each in command.parameters for flag in each.flags if flag.startswith("--")]
    return [(value, help) for value, help in candidates if value.startswith(begun)][:_MOST_OFFERS]


def _parameter_to_complete(command: Command, words: list[str], begun: str) -> Parameter | None:
    """Return the parameter whose value comes next, after the *words* behind the command. Return None if the name of an
    option comes next. *begun* is the beginning of the next word.
    """
    by_flag = command.options
    if words and (option := by_flag.get(words[-1])) and not option.flag:
        return option
    if begun.startswith("-"):
        return None
    takes_value = {flag for flag, option in by_flag.items() if not option.flag}
    argument_count = 0
    for before, word in zip(["", *words], words, strict=False):
        if not word.startswith("-") and before not in takes_value:
            argument_count += 1
    places = command.places
    for place in places[: argument_count + 1]:
        if place.many:  # it takes all arguments that follow
            return place
    return places[argument_count] if argument_count < len(places) else None


def _values(command: Command, parameter: Parameter, before: list[str], environ: Mapping[str, str]) -> Offers:
    """Return the values that exist for the parameter, such as the names of all teams; empty if they are not known."""
    if parameter.choices:
        return [(choice, "") for choice in parameter.choices]
    if command.name == "set":
        from teams_cli.teams import settings

        if parameter.name == "key":
            return [(key, setting.help) for key, setting in settings.every().items()]
        if parameter.name == "value":
            setting = next(filter(None, map(settings.find, before)), None)
            return [(choice, "") for choice in setting.choices] if setting else []
    is_name_of_team = parameter.name == "name" and command.name in ("here", "copy-team")
    is_team = parameter.name in ("team", "team_name") or is_name_of_team
    is_task = parameter.name in ("task", "blocked_by", "after", "unblock") and parameter.metavar == "ID"
    is_agent = parameter.metavar in ("AGENT", "TO") and parameter.name != "agent_id"
    if not (is_team or is_task or is_agent or parameter.name == "workflow"):
        return []
    from teams_cli.cli.command_line import make_call

    options = {FLAGS[word]: value for word, value in pairwise(before) if word in FLAGS}
    try:
        call = make_call(options, environ, lambda operation, about: None, lambda line: None)
        if is_team:
            return [(name, "") for name in call.store.teams()]
        if is_task:
            from teams_cli.tasks import tasks

            every = tasks.all_of(call.store, call.team, [])
            open_tasks = [task for task in every if task.status not in ("completed", "cancelled")][-_MOST_OFFERS:]
            return [(task.id, " ".join(task.title.split())[:_LONGEST_TITLE]) for task in open_tasks]
        if is_agent:
            return [(member.agent_id, member.role) for member in call.load_team().roster() if member.active]
    except errors.TeamsError:  # without a team, nothing is known
        return []
    from teams_cli import workflows  # the parameter is a workflow

    names = [os.path.basename(path).removesuffix(".md") for path in workflows.paths(call.current_directory or ".")]
    return [(name, "") for name in names if is_name(name)]  # a shell would obey another name, and `run` refuses it
