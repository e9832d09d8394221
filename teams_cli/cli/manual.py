"""The manual page, from the declarations: `teams --man | man -l -`."""

from __future__ import annotations

from teams_cli import __version__, commands, errors
from teams_cli.cli.guide import told_of
from teams_cli.commands.declaration import AS, JSON, ROOT, STORE, TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.declaration import Command, Parameter

_NAME = r"teams \- team coordination for AI coding agents"
_ABOUT = """Agents in one team share tasks without two doing the same one, and send each other messages without losing a
message. Teams, tasks and messages are JSON files under one directory, or rows of a PostgreSQL database.

A command that changes something needs to know who asks, and most need a team: the only open one need not be named.
Of those that answer with a list or a record, --json gives one JSON document; a refusal is then one, too, on standard
error. Where an id is wanted, 7, #7 and task-7 are the same; where a text is, - means standard input."""
_VARIABLES = {
    "TEAMS_AGENT_ID": "Who calls.",
    "TEAMS_TEAM": "The team to act in.",
    "TEAMS_HOME": "The directory that the teams are in.",
    "TEAMS_STORE": "The database that they are in instead.",
    "TEAMS_TOKEN": "The caller's token, in a team made with --secure.",
    "NO_COLOR": "Print no colour.",
}
_OTHERS = {0: "Done.", 1: "Another expected failure.", 3: "A bug; the message names its log.", 130: "Interrupted."}
"""The exit statuses that no error says best."""


def page() -> str:
    """The whole page, in the macros of man."""
    lines = [
        f'.TH TEAMS 1 "" "teams {__version__}" "User Commands"',
        *_section("NAME", [_NAME]),
        *_section("SYNOPSIS", [r".B teams", r"\fICOMMAND\fR [\fIOPTIONS\fR]"]),
        *_section("DESCRIPTION", _paragraphs(_ABOUT)),
        *_section(
            "OPTIONS OF EVERY COMMAND", [line for every in (TEAM, AS, ROOT, STORE, JSON) for line in _row(every)]
        ),
    ]
    group = ""
    for command in commands.every().values():
        if command.group != group:
            group = command.group
            lines += [f'.SH "{_escaped(group).upper()}"']
        lines += _command(command)
    lines += _section("ENVIRONMENT", [line for pair in _VARIABLES.items() for line in _item(*pair)])
    lines += _section("EXIT STATUS", [line for status, what in _statuses() for line in _item(str(status), what)])
    return "\n".join([*lines, ""])


def _section(name: str, lines: list[str]) -> list[str]:
    return [f'.SH "{name}"', *lines]


def _command(command: Command) -> list[str]:
    """A command: how it is written, what it does, its own parameters, what it refuses, and an example."""
    text, refusals = told_of(command)
    places = " ".join(parameter.usage for parameter in command.own if parameter.positional)
    lines = [f'.SS "{_escaped(f"teams {command.name} {places}".rstrip())}"', *_paragraphs(text)]
    for parameter in command.own:
        lines += _row(parameter)
    lines += [line for refused in refusals for line in (".PP", _escaped(refused))]
    return [*lines, ".PP", "Example:", rf"\fBteams {_escaped(command.example)}\fR"]


def _row(parameter: Parameter) -> list[str]:
    choices = f" One of: {', '.join(parameter.choices)}." if parameter.choices else ""
    return _item(f"{', '.join(parameter.flags)}{parameter.placeholder}", parameter.help + choices)


def _item(term: str, text: str) -> list[str]:
    return [".TP", rf"\fB{_escaped(term)}\fR", _escaped(text)]


def _paragraphs(text: str) -> list[str]:
    """The paragraphs of a text; those that begin with a star are items."""
    lines: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        words = " ".join(paragraph.split())
        lines += [r".IP \(bu 2", _escaped(words[2:])] if words.startswith("* ") else [".PP", _escaped(words)]
    return lines


def _statuses() -> list[tuple[int, str]]:
    """Each exit status with what it says, as the errors have it."""
    kinds = reversed(errors.kinds().values())
    told = {kind.status: (kind.__doc__ or "").partition("\n")[0] for kind in kinds}
    return sorted({**told, **_OTHERS}.items())


def _escaped(text: str) -> str:
    """The text as roff prints it: nothing in it is a macro or an escape."""
    said = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{said}" if said.startswith((".", "'")) else said
