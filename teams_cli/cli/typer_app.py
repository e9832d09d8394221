"""Typer with the declarations of commands: help on a terminal, and completion for shells that `completing` lacks."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.main import get_click_type
from typer.models import ParameterInfo

from teams_cli import commands
from teams_cli.cli import guide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Command, Parameter

_ABOUT = """Team coordination for AI coding agents: teams, tasks and messages as JSON files.

Say who you are with --as or TEAMS_AGENT_ID, and name your team with --team or TEAMS_TEAM.
Every command takes --json."""


def run(words: list[str]) -> int:
    """Let Typer do what the *words* or the environment ask for: install or show the completion for a shell, or answer a
    shell that asks for completions. Return the exit status.
    """
    app = _app()
    for command in commands.every().values():
        app.command(command.name, help=escape(guide.first_sentence(command)))(_function(command))
    return _run(app, words)


def show_help(command: Command | None, call: Call | None, wants_all: bool) -> int:
    """Draw the help of *command*, of the everyday commands or, with *wants_all*, of all. Return the exit status."""
    if command:
        app = _app()
        paragraphs, refusals = guide.parts_of_help(command)
        help = "\n\n".join([*paragraphs, *refusals, f"Example: teams {command.example}"])
        app.command(command.name, help=escape(help))(_function(command))
        return _run(app, [command.name, "--help"])
    app = _app(help=_ABOUT, add_completion=wants_all, epilog="" if wants_all else guide.MORE)
    if wants_all:
        groups_off = guide.off_in_team(call)
        rows = [
            (each, guide.first_sentence(each), guide.titled(each.group, groups_off))
            for each in commands.every().values()
        ]
    else:
        rows = [(each, each.want, "Commands") for each in guide.of_every_day(call)]
    for each, about, panel in rows:
        app.command(each.name, help=escape(about), rich_help_panel=panel)(lambda: None)
    return _run(app, ["--help"])


def _app(**options: Any) -> typer.Typer:
    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]}, rich_markup_mode="rich", **options)
    app.callback()(_main)
    return app


def _run(app: typer.Typer, words: list[str]) -> int:
    status = typer.main.get_command(app)(args=words, prog_name="teams", standalone_mode=False)
    return status if isinstance(status, int) else 0


def _main(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    man: Annotated[bool, typer.Option("--man", help="Print the manual page, for `man -l -`.")] = False,
) -> None:
    """Declare these options, so that the help shows them. They are handled before Typer is loaded."""


def _function(command: Command) -> Callable[..., None]:
    """Return a function that does nothing, but whose signature tells Typer the parameters of the command."""

    def run() -> None: ...

    parameters = [_parameter(parameter) for parameter in command.parameters]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(parameter: Parameter) -> inspect.Parameter:
    annotation: Any = bool if parameter.flag else parameter.type
    if parameter.many:
        annotation = list[annotation]
    shown: dict[str, Any] = {"help": escape(parameter.help), "metavar": parameter.metavar or None}
    if parameter.choices:
        choices = Enum("Choice", {choice: choice for choice in parameter.choices})  # type: ignore[misc]
        shown |= {"click_type": get_click_type(annotation=choices, parameter_info=ParameterInfo()), "metavar": None}
    if parameter.positional:
        marker: Any = typer.Argument(show_default=False, **shown)
    else:
        marker = typer.Option(*parameter.flags, show_default=bool(parameter.default), **shown)
    default: Any = [] if parameter.many else parameter.default
    if parameter.required:
        default = inspect.Parameter.empty
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(parameter.name, kind, default=default, annotation=Annotated[annotation, marker])
