"""Parse command lines: which command is meant, with which values, and who runs it in which team, on which store.

The parser works from the declarations of commands. It is 40 ms faster than Typer, and knows which mistake was made.
"""

from __future__ import annotations

import os

from teams_cli import commands, errors
from teams_cli.agents.seats import terminals_directory
from teams_cli.commands.call import Call
from teams_cli.environment import holder, look_up, root_directory, split_option, store_address
from teams_cli.names import HUMAN, is_like_id
from teams_cli.store import opening
from teams_cli.store.files.engine import FILES
from teams_cli.teams import config
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

    from teams_cli.cli.person import PersonTerminal
    from teams_cli.commands.declaration import Command, Parameter

    AtTerminal = Callable[[str, str], bool | None]
    Setting = tuple[str, str]
    """The value of a setting, and where it comes from."""


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
        flag, equals, value = split_option(word)
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
    """Store the *words*, which are not options, in *values* as the values of the positional parameters."""
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
    """Convert *word* and store it in *values*, after earlier values if the parameter takes several. If an option takes
    several ids, they are joined with commas.
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


def make_call(
    flags: Mapping[str, str | None],
    environ: Mapping[str, str],
    ask_at_terminal: AtTerminal,
    say: Callable[[str], Any],
    for_person: bool = False,
) -> Call:
    """Return the call that the environment and the *flags* describe: its store, team and caller. *say* shows a line to
    the person.

    If no name is given, the caller may be the human: the command has to be *for_person*, and typed by a person at a
    terminal. *ask_at_terminal* asks the person at the terminal to allow an operation. If it returns None, because
    nobody is there, the human is asked through the team's queue.
    """
    root, root_source = root_directory(flags.get("root"), environ)
    (agent, agent_source), (team, team_source), token = _caller_and_team(flags, root, environ, for_person)
    try:
        directory = os.getcwd()
    except OSError:
        directory = ""
    if not team:
        from teams_cli.agents.seats import bindings

        if team_of_directory := bindings.team_here(root, directory):
            team, team_source = team_of_directory, "here"
    if held := holder(environ):
        from teams_cli.commands import held as of_held

        of_held.refuse_elsewhere(held, root, store_address(flags.get("store"), environ, "")[0], environ)
    settings = config.load(root, environ)
    address, store_source = store_address(flags.get("store"), environ, settings.store)
    try:
        store = opening.open_store(root, address or FILES, host=environ.get("TEAMS_HOST", ""), environ=environ)
    except errors.InvalidValue as wrong:
        if store_source == "flag":
            raise
        place = f"{config.path_in(root)}: store" if store_source == "config.json" else store_source
        raise errors.InvalidValue(f"{place}: {wrong.message}", wrong.hint) from None
    caller = _caller(agent, token, environ, settings) if agent else None
    sources = {
        "root": (root, root_source),
        "store": (opening.without_secrets(address or FILES), store_source),
        "team": (team, team_source),
        "agent": (agent, agent_source),
    }
    call = Call(store, settings, caller, team, sources, say, environ, _terminal, directory)
    if caller:

        def approve(operation: str, about: str) -> bool:
            is_allowed = ask_at_terminal(operation, about)
            return call.ask_human(operation, about) if is_allowed is None else is_allowed

        caller.approve = approve
    return call


def _caller_and_team(
    flags: Mapping[str, str | None], root: str, environ: Mapping[str, str], for_person: bool
) -> tuple[Setting, Setting, str]:
    """Return the name of the caller and the name of the team, each with its source, and the caller's token. A name or a
    token that is not known is "".

    The caller is the first of these that is known: the one that a flag names; the member to whom this terminal belongs,
    unless another team is named; the one that the environment names; and the human, if the command is *for_person* and
    a person types it at a terminal.
    """
    name, source = look_up("agent", flags.get("agent"), environ)
    team, team_source = look_up("team", flags.get("team"), environ)
    token = look_up("token", None, environ)[0]
    if source != "flag" and os.path.isdir(terminals_directory(root)):  # on most machines, no terminal is a member's
        from teams_cli.agents.seats import bindings

        member = bindings.of_this_process(root, environ, is_named=bool(name))
        if member and team in ("", member.team):
            source_of_team = "terminal" if team_source == "unset" else team_source
            return (member.agent, "terminal"), (member.team, source_of_team), member.token or token
    if not name and for_person:
        from teams_cli.cli.person import is_person_there
        from teams_cli.processes import TAG

        if is_person_there() and not environ.get(TAG):  # no agent that `teams` started
            return (HUMAN, "person"), (team, team_source), token
    return (name, source), (team, team_source), token


def _caller(name: str, token: str, environ: Mapping[str, str], settings: config.Config) -> Caller:
    """Return the caller with this name. Raise an error if an agent with a restricted client calls itself the human."""
    if name == HUMAN and holder(environ):
        from teams_cli.clients import permissions

        permissions.refuse_more(environ, permissions.LEVELS[-1], "act as the person")
    display, type = look_up("display", None, environ)[0], look_up("type", None, environ)[0]
    return Caller(name, display=display, type=type, token=token, config=settings)


def _terminal() -> PersonTerminal:
    from teams_cli.cli.person import PersonTerminal

    return PersonTerminal()
