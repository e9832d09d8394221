"""Typer over the same declarations: help, completion, and good words for whoever mistyped."""

from __future__ import annotations

import inspect
import os
import textwrap
from typing import Annotated, Any

import typer

from teams_cli import __version__, commands, errors
from teams_cli.commands.declaration import Command, Parameter
from teams_cli.errors import TeamsError, WrongUsage

_ABOUT = """Team coordination for AI coding agents: teams, tasks and messages as JSON files.

Say who you are with --as or TEAMS_AGENT_ID, and where with --team or TEAMS_TEAM. Every command takes --json.
"""


def run_with_typer(words: list[str], execute: Any) -> int:
    """Parse and run as Typer does; its refusals become ours."""
    whole = not words or words[0] not in commands.INDEX or "_TEAMS_COMPLETE" in os.environ
    app = build(list(commands.INDEX) if whole else words[:1], execute)
    try:
        status = typer.main.get_command(app)(args=words, prog_name="teams", standalone_mode=False)
    except TeamsError:
        raise
    except Exception as error:
        raise _as_refusal(error, words) from error
    return status if isinstance(status, int) else 0


def _as_refusal(error: Exception, words: list[str]) -> Exception:
    """A mistake that Typer found, in our form; anything else as it is."""
    say = getattr(error, "format_message", None)
    if say is None:
        if type(error).__name__ == "Abort":
            return KeyboardInterrupt()  # type: ignore[return-value]
        return error
    known = bool(words) and words[0] in commands.INDEX
    message = str(say()).rstrip(".")
    return WrongUsage(message[:1].lower() + message[1:], f"See: teams {words[0] + ' ' if known else ''}--help")


def build(names: list[str], execute: Any) -> typer.Typer:
    """The application with these commands."""
    app = typer.Typer(
        help=_ABOUT,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    groups = {name: group for group, found in commands.GROUPS.items() for name in found}
    for name in names:
        command = commands.find(name)
        app.command(name, help=help_of(command), rich_help_panel=groups[name])(_function(command, execute))
    return app


def _main(version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False) -> None:
    if version:
        print(f"teams {__version__}")
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
    from enum import Enum

    from typer.main import get_click_type
    from typer.models import ParameterInfo

    return get_click_type(annotation=Enum("Choice", {c: c for c in choices}), parameter_info=ParameterInfo())


def help_of(command: Command) -> str:
    """The docstring as help: its words, then what is refused, each with its exit status."""
    text, _, raises = inspect.cleandoc(command.doc).partition("Raises:")
    refused = "\n\n".join(f"* {line}" for line in _refusals(raises))
    return text.strip() + (f"\n\nRefused:\n\n{refused}" if refused else "")


def _refusals(raises: str) -> list[str]:
    found = []
    for line in textwrap.dedent(raises).strip().splitlines():
        name, colon, why = line.strip().partition(": ")
        status = getattr(getattr(errors, name.split(",")[0], None), "status", None)
        if colon and status is not None:
            found.append(f"{why} (exit status {status})")
        elif found:
            found[-1] += " " + line.strip()
    return found
