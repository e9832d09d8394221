"""Help for people on a terminal: all commands with what they do, or one with all that can be said with it, in boxes."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from teams_cli import commands
from teams_cli.cli import guide
from teams_cli.cli.output import is_fancy
from teams_cli.commands.declaration import Command, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import TextIO

    Row = tuple[str, ...]

_ABOUT = """Team coordination for AI coding agents: teams, tasks and messages as JSON files.

Say who you are with --as or TEAMS_AGENT_ID, and where with --team or TEAMS_TEAM. Every command takes --json.
"""
_ALL_USAGE = "teams [OPTIONS] COMMAND [ARGS]..."
_OWN = [
    ("--version", "", "Show the version."),
    ("--man", "", "Print the manual page, for `man -l -`."),
    ("--install-completion", "", "Install completion for the current shell."),
    ("--show-completion", "", "Show completion for the current shell, to copy it or to change it."),
]
_HELP = ("--help, -h", "", "Show this.")


def show(command: Command | None, out: TextIO, off: Collection[str] = (), whole: bool = False) -> None:
    """Draw the help of the command, of the most used, or of the *whole* program."""
    console = Console(file=out, highlight=False, color_system="auto" if is_fancy(out) else None)
    for part in _of_one(command) if command else _of_all(off) if whole else _of_most_used(off):
        console.print(part if isinstance(part, Panel) else Padding(part, (0, 1, 1, 1)))


def _of_most_used(off: Collection[str]) -> list[Text | Panel]:
    rows: list[Row] = [(each.name, each.want) for each in guide.of_every_day(off)]
    return [_usage(_ALL_USAGE), *_texts(_ABOUT), _box("Commands", rows), Text(guide.MORE)]


def _of_all(off: Collection[str]) -> list[Text | Panel]:
    boxes = [
        _box(guide.titled(group, off), [(each.name, guide.first_sentence(each)) for each in members])
        for group, members in commands.groups().items()
    ]
    return [_usage(_ALL_USAGE), *_texts(_ABOUT), _box("Options", [*_OWN, _HELP]), *boxes]


def _of_one(command: Command) -> list[Text | Panel]:
    arguments: list[Row] = [(place.metavar, _about(place)) for place in command.places]
    options = [parameter for parameter in command.parameters if not parameter.positional]
    rows = [(", ".join(each.flags), each.placeholder.strip(), _about(each)) for each in options]
    boxes = [_box("Arguments", arguments)] if arguments else []
    return [
        _usage(f"teams {command.whole_usage} [OPTIONS]"),
        *_texts(said_of(command)),
        *boxes,
        _box("Options", [*rows, _HELP]),
    ]


def said_of(command: Command) -> str:
    """The help of a command without its parameters: its docstring, its exit statuses and an example."""
    text, refusals = guide.told_of(command)
    refused = "\n".join(f"* {line}" for line in refusals)
    return "\n\n".join(part for part in (text, refused, f"Example: teams {command.example}") if part)


def _paragraphs(text: str) -> list[str]:
    """A text in paragraphs, each on one line, but for what is listed in it."""
    found = []
    for part in text.strip().split("\n\n"):
        lines: list[str] = []
        for line in part.splitlines():
            if lines and not line.startswith("* "):
                lines[-1] += f" {line.strip()}"
            else:
                lines.append(line.strip())
        found.append("\n".join(lines))
    return found


def _texts(text: str) -> list[Text | Panel]:
    return [Text(paragraph) for paragraph in _paragraphs(text)]


def _usage(words: str) -> Text:
    return Text.assemble(("Usage: ", "yellow"), (words, "bold"))


def _about(parameter: Parameter) -> str:
    """What a parameter is for, what it may be, and what is meant where it is left out."""
    untold = [choice for choice in parameter.choices if choice not in parameter.help]
    choices = f" One of: {', '.join(parameter.choices)}." if untold else ""
    default = f" [default: {parameter.default}]" if parameter.default and not parameter.flag else ""
    return f"{parameter.help}{choices}{default}{' [required]' if parameter.required else ''}"


def _box(title: str, rows: list[Row]) -> Panel:
    """Rows under a title; the last column is broken into lines, the others are not."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(style="bold cyan", no_wrap=True)
    for _ in rows[0][1:-1]:
        table.add_column(style="yellow", no_wrap=True)
    table.add_column(ratio=1)
    for row in rows:
        table.add_row(*map(Text, row))
    return Panel(table, title=title, title_align="left", border_style="dim")
