"""Typer over the same declarations: completion where we have none of our own, and good words for whoever mistyped."""

from __future__ import annotations

import inspect
import os
from enum import Enum
from typing import Annotated, Any

import typer
from typer.main import get_click_type
from typer.models import ParameterInfo

from teams_cli import __version__, commands, errors
from teams_cli.cli import guide, mistakes
from teams_cli.cli.guide import told_of
from teams_cli.commands.declaration import Command, Parameter


def run_with_typer(words: list[str], execute: Any) -> int:
    """Parse and run as Typer does; its refusals become ours."""
    command = commands.find(words[0]) if words and "_TEAMS_COMPLETE" not in os.environ else None
    app = build([command] if command else list(commands.every().values()), execute)
    try:
        status = typer.main.get_command(app)(args=words, prog_name="teams", standalone_mode=False)
    except errors.TeamsError:
        raise
    except Exception as error:
        raise _as_refusal(error, words) from error
    return status if isinstance(status, int) else 0


def _as_refusal(error: Any, words: list[str]) -> Exception:
    """A mistake that Typer found, in our form; anything else as it is."""
    if not hasattr(error, "format_message"):
        return KeyboardInterrupt() if type(error).__name__ == "Abort" else error  # type: ignore[return-value]
    command = commands.find(words[0]) if words else None
    if command is not None and (meant := _meant(error, command, words[1:])):
        return meant
    return errors.WrongUsage(_said(error), f"See: teams {f'help {command.name}' if command else 'help'}")


def _said(error: Any) -> str:
    message = str(error.format_message()).rstrip(".")
    return message[:1].lower() + message[1:]


def _meant(error: Any, command: Command, words: list[str]) -> errors.WrongUsage | None:
    """What is known to be meant by mistakes that many make."""
    kind = type(error).__name__
    if kind == "NoSuchOption":
        known = mistakes.assigned(command, words) or mistakes.dashed(command, words)
        return known or mistakes.no_option(command, error.option_name, words)
    if kind == "MissingParameter":
        return mistakes.missing(command, _said(error))
    if kind == "BadOptionUsage":
        return mistakes.without_value(command, error.option_name)
    if kind == "BadParameter" and error.param is not None:
        return _no_value(error, command)
    _, too_many, rest = error.format_message().partition("unexpected extra argument")
    rest = rest.partition(" (")[2].rstrip(".)")
    return mistakes.unquoted(command, error.ctx.params, rest) or mistakes.too_many(command, rest) if too_many else None


def _no_value(error: Any, command: Command) -> errors.WrongUsage | None:
    """The refusal of a value that is not a number, or not one of the choices."""
    found = next((p for p in command.own if p.name == error.param.name), None)
    value = error.message.partition(" is not ")[0].strip("'")
    if found is None or (found.type is str and not found.choices):
        return None
    return mistakes.no_choice(found, value) if found.choices else mistakes.no_number(found, value)


def build(offered: list[Command], execute: Any) -> typer.Typer:
    """The application with these commands."""
    app = typer.Typer(
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    for command in offered:
        app.command(command.name, help=told_of(command)[0])(_function(command, execute))
    return app


def _main(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    man: Annotated[bool, typer.Option("--man", help="Print the manual page, for `man -l -`.")] = False,
) -> None:
    if version:
        print(f"teams {__version__}")
    if man:
        print(guide.page(), end="")
    if version or man:
        raise typer.Exit


def _function(command: Command, execute: Any) -> Any:
    """A function with the signature from which Typer reads the parameters of the command."""

    def run(**values: Any) -> int:
        for parameter in command.parameters:
            if parameter.many:
                values[parameter.name] = tuple(values[parameter.name] or ())
        return int(execute(command, values))

    parameters = [_parameter(parameter) for parameter in command.parameters]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(parameter: Parameter) -> inspect.Parameter:
    hint: Any = bool if parameter.flag else parameter.type
    hint = list[hint] if parameter.many else hint
    if not parameter.required and not parameter.flag and not parameter.many and parameter.default is None:
        hint = hint | None
    help = parameter.help
    extra: dict[str, Any] = {"help": help, "metavar": parameter.metavar or None}
    if parameter.duration:
        extra.update(parser=lambda word: parameter.convert(str(word)))  # the default is a number
    if parameter.choices:
        extra.update(click_type=_choice(parameter.choices), metavar=None)
    if parameter.positional:
        marker: Any = typer.Argument(show_default=False, **extra)
    else:
        marker = typer.Option(*parameter.flags, show_default=bool(parameter.default), **extra)
    default: Any = inspect.Parameter.empty if parameter.required else (parameter.default if not parameter.many else [])
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, marker]
    )


def _choice(choices: tuple[str, ...]) -> Any:
    return get_click_type(annotation=Enum("Choice", {c: c for c in choices}), parameter_info=ParameterInfo())
