"""Completion for shells: commands, options, and the teams, agents, tasks, workflows and settings that there are.

It is asked with every press of Tab, so it is answered from the declarations, without Typer.
"""

from __future__ import annotations

import os
from itertools import pairwise

from teams_cli import commands, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Command, Parameter

    Offers = list[tuple[str, str]]

VARIABLE = "_TEAMS_COMPLETE"
_LINE, _FISH = "_TYPER_COMPLETE_ARGS", "_TYPER_COMPLETE_FISH_ACTION"
_GLOBAL = {"--team": "team", "-t": "team", "--as": "agent", "--root": "root", "--store": "store"}
_QUOTING = frozenset("\"'\\")
"""Characters that need `shlex`, whose import takes as long as all the rest."""
_MOST = 200
_TITLE = 50


def answer(environ: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the text for the shell that asks for completions, and the exit status; None for a shell that Typer
    answers.
    """
    shell = environ[VARIABLE]
    if shell == "complete_bash":
        words = _split(environ.get("COMP_WORDS", ""))
        place = int(environ.get("COMP_CWORD") or 0)
        begun = words[place] if place < len(words) else ""
        return "\n".join(value for value, _ in offers(words[1:place], begun, environ)), 0
    line = environ.get(_LINE, "")
    before = _split(line)[1:]
    begun = "" if line.endswith(" ") or not before else before.pop()
    if shell == "complete_zsh":
        return _zsh(offers(before, begun, environ)), 0
    if shell == "complete_fish":
        found = offers(before, begun, environ)
        if environ.get(_FISH) == "is-args":
            return "", 0 if found else 1
        return "\n".join(f"{value}\t{help}" if help else value for value, help in found), 0
    return None


def _zsh(found: Offers) -> str:
    """Return the completions in *found* as a command that zsh evaluates."""
    if not found:
        return "_files"

    def quoted(text: str) -> str:
        escaped = "".join(f"\\{letter}" if letter in '\\"$`' else letter for letter in text.replace("'", ""))
        return escaped.replace(":", "\\\\:")

    rows = "\n".join(f'"{quoted(value)}"' + (f':"{quoted(help)}"' if help else "") for value, help in found)
    return f"_arguments '*: :(({rows}))'"


def _split(line: str) -> list[str]:
    """Split an unfinished command line, in which a quote may be open, into words."""
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
    """Return the words that may follow *before* and that begin with *begun*, each with its help."""
    command = next((named for word in before if (named := commands.find(word))), None)
    found = _of_command(command, before, begun, environ) if command else [(name, "") for name in commands.names()]
    return [(value, help) for value, help in found if value.startswith(begun)][:_MOST]


def _of_command(command: Command, before: list[str], begun: str, environ: Mapping[str, str]) -> Offers:
    parameter = _wanted(command, before[before.index(command.name) + 1 :], begun)
    if parameter is None:
        return [(flag, each.help) for each in command.parameters for flag in each.flags if flag.startswith("--")]
    return _values(command, parameter, before, environ)


def _wanted(command: Command, words: list[str], begun: str) -> Parameter | None:
    """Return the parameter whose value is to be completed. None if there is none, so that the names of options are
    offered.
    """
    by_flag = command.options
    if words and (named := by_flag.get(words[-1])) and not named.flag:
        return named
    if begun.startswith("-"):
        return None
    valued = {flag for flag, each in by_flag.items() if not each.flag}
    given = [word for word, last in zip(words, ["", *words], strict=False) if word[:1] != "-" and last not in valued]
    places = command.places
    many = next((each for each in places[: len(given) + 1] if each.many), None)
    return many or (places[len(given)] if len(given) < len(places) else None)


def _values(command: Command, parameter: Parameter, before: list[str], environ: Mapping[str, str]) -> Offers:
    if parameter.choices:
        return [(choice, "") for choice in parameter.choices]
    if command.name == "set" and parameter.name == "value":
        return _choices_of(before)
    kind = _kind(command, parameter)
    if kind is None:
        return []
    from teams_cli.cli.calls import make_call

    flags = {_GLOBAL[word]: value for word, value in pairwise(before) if word in _GLOBAL}
    try:
        return kind(make_call(flags, environ, lambda operation, about: None, lambda line: None))
    except errors.TeamsError:
        return []


def _kind(command: Command, parameter: Parameter) -> Callable[[Call], Offers] | None:
    """Return the function that offers the values of a parameter; None if there is none."""
    if parameter.name in ("team", "team_name") or (command.name, parameter.name) in (
        ("here", "name"),
        ("copy-team", "name"),
    ):
        return _teams
    if parameter.name in ("task", "blocked_by", "after", "unblock") and parameter.metavar == "ID":
        return _tasks
    if parameter.name == "workflow":
        return _workflows
    if (command.name, parameter.name) == ("set", "key"):
        return _settings
    return _agents if parameter.metavar in ("AGENT", "TO") and parameter.name != "agent_id" else None


def _teams(call: Call) -> Offers:
    return [(name, "") for name in call.store.teams()]


def _agents(call: Call) -> Offers:
    return [(member.agent_id, member.role) for member in call.load_team().roster() if member.active]


def _tasks(call: Call) -> Offers:
    """Return the tasks that are neither completed nor cancelled; if there are many, the newest."""
    from teams_cli.tasks import tasks

    found = [task for task in tasks.all_of(call.store, call.team, []) if task.status not in ("completed", "cancelled")]
    return [(task.id, " ".join(task.title.split())[:_TITLE]) for task in found[-_MOST:]]


def _workflows(call: Call) -> Offers:
    from teams_cli.workflows import places

    return [(os.path.basename(path).removesuffix(".md"), "") for path in places.paths(call.said_directory or ".")]


def _settings(call: Call) -> Offers:
    from teams_cli.teams import settings

    return [(key, setting.help) for key, setting in settings.every().items()]


def _choices_of(before: list[str]) -> Offers:
    from teams_cli.teams import settings

    setting = next(filter(None, map(settings.find, before)), None)
    return [(choice, "") for choice in setting.choices] if setting else []
